#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Setu against another engine: same model, same threads, one process at a time, alternating.

    tests/bench/peers/compare.py                                    # llama.cpp; smol and m1b
    tests/bench/peers/compare.py --peer ik --types q4_0 --no-smol
    tests/bench/peers/compare.py --cases decode:16,decode:32 --pairs 9 --setu-flags=--numerics=f32

A pair is a case of ours and the same case of theirs, one right after the other; who begins changes
from pair to pair. A line shows the ratio of each pair (ours over theirs, more is better for us) by
median and range, and both sides' median tokens/s. Seeded models are made by `setu model synth`.
"""
import argparse, json, os, pathlib, re, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "setu"
CONTEXT, ANSWER = 64, 32  # of a decoded sequence: tokens before, tokens timed


def output(command, under=(), errors=subprocess.PIPE):
    command = [str(word) for word in (*under, *command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                          cwd=tempfile.gettempdir())
    if done.returncode != 0:
        said = (done.stderr or done.stdout)[-2000:]
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{said}")
    return done.stdout


class Setu:
    def __init__(self, binary, threads, flags, under):
        self.binary, self.threads, self.flags, self.under = binary, threads, flags, under
        self.last = None  # what the last run said of machine, engine and peaks

    def tokens_per_second(self, model, kind, count):
        # The middle of what the peer decodes; a step is as long as its neighbours.
        cases = (["--prefill", count, "--decode", ""] if kind == "prefill" else
                 ["--prefill", "", "--decode", count, "--context", CONTEXT + ANSWER // 2])
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            output([self.binary, "bench", "engine", "--model", model, "--threads", self.threads,
                    "--rounds", 5, "--json", file.name, *cases, *self.flags], self.under)
            self.last = json.load(open(file.name))
        return self.last["cases"][0]["tokens_per_second"]


class Llama:
    """llama.cpp or ik_llama.cpp, by its own benchmarks."""

    def __init__(self, folder, threads, under, bench_flags=(), batched_flags=()):
        self.folder, self.threads, self.under = pathlib.Path(folder) / "bin", threads, under
        self.bench_flags, self.batched_flags = bench_flags, batched_flags

    def tokens_per_second(self, model, kind, count):
        if kind == "prefill":
            said = output([self.folder / "llama-bench", "-m", model, "-t", self.threads, "-p", count,
                           "-n", 0, "-r", 3, "-o", "json", *self.bench_flags], self.under)
            return json.loads(said[said.index("["):])[0]["avg_ts"]
        said = output([self.folder / "llama-batched-bench", "-m", model, "-t", self.threads, "-c",
                       max(512, count * (CONTEXT + ANSWER)), "-npp", CONTEXT, "-ntg", ANSWER, "-npl",
                       count, *self.batched_flags], self.under, errors=subprocess.STDOUT)
        # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
        rows = re.findall(r"^\|\s*\d+ \|.*\|$", said, re.MULTILINE)
        return float(rows[-1].split("|")[8])


def peer(name, threads, under):
    folder = output([pathlib.Path(__file__).with_name("install.sh"), name]).strip()
    if name == "ik":
        return Llama(folder, threads, under, ["-rtr", 1], ["-rtr"])
    return Llama(folder, threads, under)


def models(options):
    if not options.no_smol:
        yield "smol", output([ROOT / "deploy/local/fetch_model.sh"]).strip()
    folder = CACHE / "models"
    for weights in filter(None, options.types.split(",")):
        file = folder / f"synthetic-{options.shape}-{weights}.gguf"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            output([options.setu.resolve(), "model", "synth", "--shape", options.shape, "--type", weights,
                    "--out", file])
        yield f"{options.shape} {weights}", file
    for file in map(pathlib.Path, options.model):
        yield file.stem, file.resolve()


def word_of(path, otherwise="unknown"):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return otherwise


def machine(threads):
    cpu = next((line.split(":")[1].strip() for line in word_of("/proc/cpuinfo", "").splitlines()
                if line.startswith("model name")), "unknown CPU")
    cache = word_of("/sys/devices/system/cpu/cpu0/cache/index3/size").strip()
    pages = word_of("/sys/kernel/mm/transparent_hugepage/enabled").split("[")[-1].split("]")[0]
    return (f"{cpu}, {os.cpu_count()} cores, L3 {cache}, {threads} threads, huge pages {pages}, "
            f"load {os.getloadavg()[0]:.1f}")


def compare(ours, theirs, model, kind, count, pairs):
    """[(ours, theirs)] in tokens/s."""
    rates = []
    for pair in range(pairs):
        sides = [ours, theirs] if pair % 2 == 0 else [theirs, ours]
        measured = {side: side.tokens_per_second(model, kind, count) for side in sides}
        rates.append((measured[ours], measured[theirs]))
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="llama", choices=["llama", "llama-no-amx", "ik"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", default="prefill:512,decode:1,decode:16,decode:32")
    parser.add_argument("--shape", default="m1b", help="of `setu model synth`")
    parser.add_argument("--types", default="q8_0,q4_0,q4_k_m", help="of its weights")
    parser.add_argument("--model", action="append", default=[], help="another GGUF file")
    parser.add_argument("--no-smol", action="store_true", help="leave the default model out")
    parser.add_argument("--setu", default=ROOT / "build/release/bin/setu", type=pathlib.Path)
    parser.add_argument("--setu-flags", default="", help="for `setu bench engine`, such as "
                        "--numerics=f32; commas between them")
    parser.add_argument("--under", default="", help="a command that runs both sides, such as "
                        "'chrt -f 40' where others use the machine")
    parser.add_argument("--json", help="write every pair there")
    options = parser.parse_args()

    under = options.under.split()
    ours = Setu(options.setu.resolve(), options.threads, options.setu_flags.replace(",", " ").split(), under)
    theirs = peer(options.peer, options.threads, under)
    print(f"machine  {machine(options.threads)}")
    print(f"ratio    setu over {options.peer}, {options.pairs} pairs\n")
    print(f"{'model':14} {'case':12} {'ratio':>6} {'least':>6} {'most':>6} {'setu':>9} "
          f"{options.peer:>12} {'load':>5} {'roof':>6}  path")
    record = []
    for name, file in models(options):
        for kind, count in (case.split(":") for case in options.cases.split(",")):
            rates = compare(ours, theirs, file, kind, int(count), options.pairs)
            ratios = [us / them for us, them in rates]
            engine, case = ours.last["engine"], ours.last["cases"][0]
            print(f"{name:14} {kind + ' ' + count:12} {statistics.median(ratios):6.2f} "
                  f"{min(ratios):6.2f} {max(ratios):6.2f} "
                  f"{statistics.median(us for us, _ in rates):9.1f} "
                  f"{statistics.median(them for _, them in rates):12.1f} "
                  f"{os.getloadavg()[0]:5.1f} {100 * case['roof_share']:5.1f}%  "
                  f"{engine['numerics']} {engine['isa']}", flush=True)
            record.append({"model": name, "case": kind, "count": int(count), "pairs": rates,
                           "ours": ours.last})
    if options.json:
        json.dump(record, open(options.json, "w"), indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Setu against other engines: same model, same threads, one at work at a time, alternating.

    tests/bench/peers/compare.py                                    # llama.cpp; smol and m1b
    tests/bench/peers/compare.py --peers llama,ik --types q4_0 --no-smol
    tests/bench/peers/compare.py --peers vllm --types q8_0 --cases prefill:512,decode:16
    tests/bench/peers/compare.py --cases decode:16,decode:32 --numerics int8-g32,bf16-tile --pairs 9
    tests/bench/peers/compare.py --types q4_0 --layers 20 --no-smol   # m1b, but beyond a large L3

In a round each engine runs a case once, ours between the peers, and the next round goes the other
way about: so each peer has a pair with each path of ours, one run close to the other. A line shows
the ratio of the pairs (ours over theirs, more is better for us) by median and range, both sides'
median tokens/s, and the median share of its roof that ours reached; `best` is the fastest peer of
each round. Seeded models are made by `setu model synth`; vLLM gets their shape only, so one type is
as good as another, and one process for all cases of a model (see vllm_bench.py).
"""
import argparse, collections, contextlib, fcntl, json, os, pathlib, re, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "setu"
CONTEXT, ANSWER = 64, 32  # of a decoded sequence: tokens before, tokens timed

# How all engines run: threads, timed passes over a prompt, the command that each is run by.
Run = collections.namedtuple("Run", "threads passes under")


def output(command, under=(), errors=subprocess.PIPE):
    command = [str(word) for word in (*under, *command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                          cwd=tempfile.gettempdir())
    if done.returncode != 0:
        said = (done.stderr or done.stdout)[-2000:]
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}:\n{said}")
    return done.stdout


class Engine:
    def load(self, model):
        """What is to be done once for all cases of a model."""


class Setu(Engine):
    def __init__(self, binary, flags, run):
        self.binary, self.flags, self.run = binary, flags, run
        self.reports = []  # what each run said of machine, engine, peaks and the case

    def tokens_per_second(self, model, kind, count):
        # The middle of what the peer decodes; a step is as long as its neighbours.
        cases = (["--prefill", count, "--decode", ""] if kind == "prefill" else
                 ["--prefill", "", "--decode", count, "--context", CONTEXT + ANSWER // 2])
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            output([self.binary, "bench", "engine", "--model", model, "--threads", self.run.threads,
                    "--rounds", self.run.passes, "--round-seconds", 1, "--json", file.name, *cases,
                    *self.flags], self.run.under)
            self.reports.append(json.load(open(file.name)))
        return self.reports[-1]["cases"][0]["tokens_per_second"]


class Llama(Engine):
    """llama.cpp or ik_llama.cpp, by its own benchmarks."""

    def __init__(self, folder, run, bench_flags=(), batched_flags=lambda count: ()):
        self.folder, self.run = pathlib.Path(folder) / "bin", run
        self.bench_flags, self.batched_flags = bench_flags, batched_flags

    def tokens_per_second(self, model, kind, count):
        if kind == "prefill":
            said = output([self.folder / "llama-bench", "-m", model, "-t", self.run.threads, "-p",
                           count, "-n", 0, "-r", self.run.passes, "-o", "json", *self.bench_flags],
                          self.run.under)
            return json.loads(said[said.index("["):])[0]["avg_ts"]
        said = output([self.folder / "llama-batched-bench", "-m", model, "-t", self.run.threads,
                       "-c", max(512, count * (CONTEXT + ANSWER)), "-npp", CONTEXT, "-ntg", ANSWER,
                       "-npl", count, *self.batched_flags(count)], self.run.under,
                      errors=subprocess.STDOUT)
        # | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
        rows = re.findall(r"^\|\s*\d+ \|.*\|$", said, re.MULTILINE)
        if not rows:
            sys.exit(f"{self.folder}/llama-batched-bench gave no table:\n{said[-2000:]}")
        return float(rows[-1].split("|")[8])


class Vllm(Engine):
    def __init__(self, folder, run):
        self.python, self.run = pathlib.Path(folder) / "bin/python", run
        self.process, self.said = None, None

    def load(self, model):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*self.run.under, self.python, pathlib.Path(__file__).with_name("vllm_bench.py"), model,
             "--threads", str(self.run.threads), "--passes", str(self.run.passes),
             "--context", str(CONTEXT), "--answer", str(ANSWER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True)
        self.answer()

    def tokens_per_second(self, model, kind, count):
        print(f"{kind}:{count}", file=self.process.stdin, flush=True)
        return float(self.answer())

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.said.seek(0)
            sys.exit(f"vllm_bench.py ended with {self.process.wait()}:\n{self.said.read()[-2000:]}")
        return line


def ik(folder, run):
    # Its flash attention aborts on several sequences (of 0.1.5, `GGML_ASSERT(S > 0)`).
    return Llama(folder, run, ["-rtr", 1],
                 lambda count: ["-rtr"] if count == 1 else ["-rtr", "-no-fa"])


PEERS = {"llama": Llama, "llama-no-amx": Llama, "vllm": Vllm, "ik": ik}


def peer(name, run):
    if name not in PEERS:
        sys.exit(f"compare.py: --peers has '{name}'; there are {', '.join(PEERS)}")
    folder = output([pathlib.Path(__file__).with_name("install.sh"), name], errors=None).strip()
    return PEERS[name](folder, run)


def models(options):
    if not options.no_smol:
        yield "smol", output([ROOT / "deploy/local/fetch_model.sh"]).strip()
    folder = CACHE / "models"
    layers = ["--layers", options.layers] if options.layers else []
    shape = "-".join([options.shape, *map(str, layers[1:])])
    for weights in filter(None, options.types.split(",")):
        file = folder / f"synthetic-{shape}-{weights}.gguf"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True)
            output([options.setu.resolve(), "model", "synth", "--shape", options.shape, *layers,
                    "--type", weights, "--out", file])
        yield f"{shape} {weights}", file
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


@contextlib.contextmanager
def alone(lock):
    """Holds the file that flock(1) of others waits for, where there is one."""
    with open(lock, "a") if lock else contextlib.nullcontext() as file:
        if file:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compare(engines, model, kind, count, rounds, lock):
    """Of each round, each engine's tokens/s."""
    names, rates = list(engines), []
    for each in range(rounds):
        with alone(lock):
            rates.append({name: engines[name].tokens_per_second(model, kind, count)
                          for name in (names if each % 2 == 0 else reversed(names))})
    return rates


def lines(rounds, sides, peers):
    """Of each side of ours against each peer, and the best where there are several: both names,
    our median, theirs, ratios."""
    rates = {name: [each[name] for each in rounds] for name in rounds[0]}
    if len(peers) > 1:
        rates["best"] = [max(each[name] for name in peers) for each in rounds]
    others = [name for name in rates if name not in sides]
    for side in sides:
        for other in others:
            yield (side, other, statistics.median(rates[side]), statistics.median(rates[other]),
                   [mine / theirs for mine, theirs in zip(rates[side], rates[other])])


def show(model, case, name, report_rounds, mine, them, ratios):
    """A line; `report_rounds` is what our runs said."""
    last = report_rounds[-1]
    share = statistics.median(each["cases"][0]["roof_share"] for each in report_rounds)
    peaks = last["peaks"]
    print(f"{model:14} {case:11} {last['engine']['numerics']:20} {name:12} "
          f"{statistics.median(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f} "
          f"{mine:9.1f} {them:9.1f} {os.getloadavg()[0]:5.1f} {100 * share:5.1f}%  "
          f"{last['engine']['isa']} {last['model']['weight_bytes'] >> 20} MiB "
          f"{peaks['bytes_per_second'] / 1e9:.1f} GB/s "
          f"{peaks['operations_per_second'] / 1e9:.0f} GOP/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     epilog="\n\n".join(__doc__.split("\n\n")[1:]),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="llama", help="of " + ", ".join(PEERS))
    parser.add_argument("--pairs", type=int, default=5, help="with each peer: the rounds")
    parser.add_argument("--passes", type=int, default=3, help="timed in a run: over a prompt, and "
                        "a second each of ours")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cases", default="prefill:512,decode:1,decode:16,decode:32")
    parser.add_argument("--shape", default="m1b", help="of `setu model synth`")
    parser.add_argument("--layers", type=int, help="where not as the shape has them")
    parser.add_argument("--types", default="q8_0,q4_0,q4_k_m", help="of its weights")
    parser.add_argument("--model", action="append", default=[], help="another GGUF file")
    parser.add_argument("--no-smol", action="store_true", help="leave the default model out")
    parser.add_argument("--setu", default=ROOT / "build/release/bin/setu", type=pathlib.Path)
    parser.add_argument("--numerics", default="auto", help="of ours, each a side of its own")
    parser.add_argument("--setu-flags", default="", help="for `setu bench engine`, such as "
                        "--kv-dtype=bf16; commas between them")
    parser.add_argument("--under", default="", help="a command that runs each engine, such as "
                        "'chrt -f 40' where others use the machine")
    parser.add_argument("--lock", help="a file for flock, held for a round: where others measure too")
    parser.add_argument("--json", help="write every pair there")
    options = parser.parse_args()

    run = Run(options.threads, options.passes, options.under.split())
    flags = options.setu_flags.replace(",", " ").split()
    ours = {f"setu {numerics}": Setu(options.setu.resolve(), ["--numerics", numerics, *flags], run)
            for numerics in options.numerics.split(",")}
    peers = options.peers.split(",")
    theirs = [(name, peer(name, run)) for name in peers]
    half = len(peers) // 2
    engines = dict([*theirs[:half], *ours.items(), *theirs[half:]])
    print(f"machine  {machine(options.threads)}")
    print(f"ratio    setu over the peer, {options.pairs} pairs\n")
    print(f"{'model':14} {'case':11} {'setu':20} {'peer':12} {'ratio':>6} {'least':>6} {'most':>6} "
          f"{'setu':>9} {'peer':>9} {'load':>5} {'roof':>6}  isa, weights and peaks")
    record = []
    for name, file in models(options):
        for engine in engines.values():
            with alone(options.lock):
                engine.load(file)
        for kind, count in (case.split(":") for case in options.cases.split(",")):
            rounds = compare(engines, file, kind, int(count), options.pairs, options.lock)
            reports = {side: setu.reports[-options.pairs:] for side, setu in ours.items()}
            for side, other, mine, them, ratios in lines(rounds, ours, peers):
                show(name, f"{kind} {count}", other, reports[side], mine, them, ratios)
            record.append({"model": name, "case": kind, "count": int(count), "rounds": rounds,
                           "ours": reports})
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()

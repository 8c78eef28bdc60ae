#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a neighbour that moves memory as fast as one core can does to a worker's roofline.

    tests/bench/hog.py --model m1b.gguf              # weights of at least twice the last cache
    tests/bench/hog.py --model m1b.gguf --rounds 5 --seconds 10

Two looks, each with and without the hog, which has the last core for itself:
  engine   `setu bench engine` on the first core, alternating: a roof probed beside the hog is lower,
           and so are the tokens
  worker   a decode worker of a running cluster under load: the hog takes from its share of the
           peak, and leaves the peak, which only rises
"""
import argparse, json, os, pathlib, re, statistics, subprocess, sys, tempfile, time, urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOG = "a = bytearray(1 << 28); b = bytearray(a)\nwhile True: b[:] = a"
SHARE, PEAK = "setu_roofline_bandwidth_share", "setu_roofline_peak_bytes_per_second"


class Hog:
    """Copies 256 MiB over and over on one core while it is entered."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=on(last_core()))
        time.sleep(1.0)  # its memory is there

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def last_core():
    return max(os.sched_getaffinity(0))


def on(core):
    return lambda: os.sched_setaffinity(0, {core})


def engine(arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([arguments.setu, "bench", "engine", "--model", arguments.model, "--threads",
                        "1", "--prefill", "", "--decode", "1", "--rounds", "3", "--json", file.name],
                       check=True, preexec_fn=on(min(os.sched_getaffinity(0))),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run = json.load(open(file.name))
    case = run["cases"][0]
    return {"peak GB/s": run["peaks"]["bytes_per_second"] / 1e9,
            "decode x1 tokens/s": case["tokens_per_second"],
            "GB/s": case["bytes"] * case["tokens_per_second"] / 1e9}


def compare_engines(arguments):
    quiet, beside = [], []
    for _ in range(arguments.rounds):
        quiet.append(engine(arguments))
        with Hog():
            beside.append(engine(arguments))
    for name in quiet[0]:
        alone, hogged = (statistics.median(run[name] for run in runs) for runs in (quiet, beside))
        print(f"engine   {name:20} alone {alone:7.2f}   beside the hog {hogged:7.2f}")


def metric(page, name):
    return float(re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", page, re.M)[1])


def limit(page):
    return re.search(r'^setu_roofline_limit{[^}]*reason="([^"]*)"[^}]*} 1$', page, re.M)[1]


# The medians of some seconds of a worker's life.
def watch(url, seconds):
    pages = []
    for _ in range(seconds):
        time.sleep(1.0)
        pages.append(urllib.request.urlopen(url).read().decode())
    share = statistics.median(metric(page, SHARE) for page in pages)
    peak = statistics.median(metric(page, PEAK) for page in pages)
    return f"share {share:.2f} of {peak / 1e9:.1f} GB/s, {limit(pages[-1])}"


def watch_worker(arguments):
    up = subprocess.Popen([arguments.setu, "up", arguments.model, "--port", str(arguments.port),
                           "--kv-memory", "256MiB"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    load = None
    try:
        url = next(found[1] for found in
                   (re.search(r"decode-0:\s+(http\S+)", line) for line in up.stdout) if found)
        load = subprocess.Popen([arguments.setu, "bench", "--address",
                                 f"127.0.0.1:{arguments.port}", "--requests", "1000",
                                 "--concurrency", "1", "--prompt-tokens", "16", "--max-tokens",
                                 "400"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3.0)  # its first windows
        print("worker   alone         ", watch(url, arguments.seconds), flush=True)
        with Hog():
            print("worker   beside the hog", watch(url, arguments.seconds), flush=True)
        print("worker   alone again   ", watch(url, arguments.seconds), flush=True)
    finally:
        for process in (load, up):
            if process is not None:
                process.terminate()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--setu", default=str(ROOT / "build/release/bin/setu"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=6, help="of each look at the worker")
    parser.add_argument("--port", type=int, default=50151, help="of the router")
    arguments = parser.parse_args()
    compare_engines(arguments)
    watch_worker(arguments)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether following `setu doctor`'s advice helps by as much as it predicts.

    tests/bench/advice.py --numerics int8-g32
    tests/bench/advice.py --numerics bf16-tile --rounds 7 --context 4096

Models are made by `setu model synth` where --models does not hold them yet. In each round the
doctor predicts for the model in Q8_0, and the engine's bench runs it as it is and as advised: 32
sequences rather than 8, 4-bit weights, 8-bit K and V. Medians over the rounds.
"""
import argparse, json, pathlib, statistics, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BATCH, LARGER = 8, 32  # what `setu doctor` advises for


def model(arguments, weights):
    path = pathlib.Path(arguments.models) / f"synthetic-{arguments.shape}-{weights}.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([arguments.setu, "model", "synth", "--shape", arguments.shape, "--type",
                        weights, "--out", path], check=True, stdout=subprocess.DEVNULL)
    return path


def options(arguments, path, *more):
    return ["--model", path, "--numerics", arguments.numerics, "--context", str(arguments.context),
            "--kv-memory", arguments.kv_memory, *more]


# Tokens per second at each batch.
def measure(arguments, path, batches, *more):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([arguments.setu, "bench", "engine", "--prefill", "", "--decode",
                        ",".join(map(str, batches)), "--rounds", "3", "--json", file.name,
                        *options(arguments, path, *more)],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return [case["tokens_per_second"] for case in json.load(file)["cases"]]


def one_round(arguments, q8, q4):
    doctor = json.loads(subprocess.check_output(
        [arguments.setu, "doctor", "--json", *options(arguments, q8)], stderr=subprocess.DEVNULL))
    expected = {case["what"]: case["tokens_per_second"] for case in doctor["expected"]}
    few, many = measure(arguments, q8, [BATCH, LARGER])
    (int4,) = measure(arguments, q4, [BATCH])
    (int8_kv,) = measure(arguments, q8, [BATCH], "--kv-dtype", "int8")
    return {f"{LARGER} sequences rather than {BATCH}":
                (expected[f"decode x{LARGER}"] / expected[f"decode x{BATCH}"], many / few),
            "4-bit weights": (doctor["advice"]["int4_weights"], int4 / few),
            "8-bit K and V": (doctor["advice"]["int8_kv"], int8_kv / few)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--setu", default=ROOT / "build/release/bin/setu")
    parser.add_argument("--models", default=pathlib.Path.home() / ".cache/setu/models")
    parser.add_argument("--shape", default="m1b")
    parser.add_argument("--numerics", default="int8-g32")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--kv-memory", default="2GiB")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    q8, q4 = model(arguments, "q8_0"), model(arguments, "q4_0")
    rounds = [one_round(arguments, q8, q4) for _ in range(arguments.rounds)]
    print(f"{arguments.shape}, {arguments.numerics}, context {arguments.context}, "
          f"{arguments.rounds} rounds\n{'tokens/s, times':26} predicted  measured  measured/predicted")
    for name in rounds[0]:
        predicted = statistics.median(r[name][0] for r in rounds)
        measured = statistics.median(r[name][1] for r in rounds)
        print(f"{name:26} {predicted:9.2f} {measured:9.2f} {measured / predicted:19.2f}")


if __name__ == "__main__":
    sys.exit(main())

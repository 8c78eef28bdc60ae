#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes one safeguard at a time out of a copy of the sources, and shows that some seed notices.

    tests/simulator/mutate.py            all of them; fails where one goes unnoticed
    tests/simulator/mutate.py salt ...   these
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutants"
SEEDS = 2000

# name: file, what stands there, what is put in its place
MUTANTS = {
    # Fences: what keeps a late message of an earlier attempt from doing harm.
    "withdraw": ("services/decode/loop.cc",
                 "if (request->transfer->Withdraw()) return StartOver(*request);",
                 "return StartOver(*request);"),
    "copy-after-withdrawal": ("common/kv_transfer/receiver.cc",
                              "copying_ = state_ == State::kReceiving;",
                              "copying_ = true;"),
    "index-of-token": ("services/router/request_flow.cc",
                       "if (first_index < 0 || first_index > before) return false;", ""),
    "repeated-token": ("services/router/answer.cc",
                       "const size_t known = ids_.size() - static_cast<size_t>(first_index);",
                       "const size_t known = 0;"),
    # Frees: what gives room back, and not before its time.
    "blocks": ("common/kv/block_pool.cc",
               "if (!blocks_.empty()) pool_->Release(blocks_);", ""),
    "grant": ("services/decode/grant.cc",
              "room_->promised_ -= std::exchange(blocks_, 0);", ""),
    "places": ("services/decode/grant.cc",
               "room_->sequences_ -= std::exchange(sequences_, 0);", ""),
    "claim": ("services/router/worker.h", "if (worker_) Add(-1);", ""),
    "early-free": ("services/prefill/loop.cc",
                   "running.push->Commit(first_tokens);",
                   "running.push->Commit(first_tokens), running.lease.Release();"),
    # Circuits: who failed gets one request at a time, until one has worked.
    "probe": ("services/router/circuit.h", " && probes_ == 0", ""),
    "close": ("services/router/circuit.cc", "  closed_ = true;\n  probes_ = 0;", "  probes_ = 0;"),
    # Parts of a block's name.
    "salt": ("common/kv/prefix_chain.cc", "return Mix(hash, scope.salt);", "return hash;"),
    "parent": ("common/kv/prefix_chain.cc", "BlockHash hash = parent;", "BlockHash hash = parent & 0;"),
    "ids": ("common/kv/prefix_cache.cc",
            "return std::equal(ids.begin(), ids.end(), known) ? block : kNone;",
            "return std::equal(ids.begin(), ids.end(), known) ? block : block;",
            "common/kv/prefix_chain.cc",
            "for (const int32_t id : ids) hash = Mix(hash, static_cast<uint32_t>(id));",
            "hash = Mix(hash, static_cast<uint32_t>(ids.front()));"),
}


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)


def copy_tree():
    listed = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT, check=True).stdout
    for name in listed.splitlines():
        source, target = ROOT / name, COPY / name
        if not source.exists():
            continue
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)  # with a new time, so that it is built again
        shutil.copymode(source, target)


def build():
    if not (COPY / "build/release/build.ninja").exists():
        run("cmake", "--preset", "release", cwd=COPY, check=True)
    built = run("ninja", "-C", "build/release", "simulate", cwd=COPY)
    if built.returncode != 0:
        sys.exit(built.stdout[-2000:])


def first_complaint():
    for mode in ("safety", "liveness"):
        ran = run("build/release/test/simulate", "--mode", mode, "--seeds", str(SEEDS), cwd=COPY)
        if ran.returncode != 0:
            wrong = [line for line in ran.stdout.splitlines() if line.startswith("WRONG")]
            return wrong[-1] if wrong else f"{mode}: it ended with {ran.returncode}"
    return None


def put(file, before, after):
    path = COPY / file
    text = path.read_text()
    if text.count(before) != 1:
        sys.exit(f"{file} does not have this once: {before}")
    path.write_text(text.replace(before, after))


def notices(name):
    changes = MUTANTS[name]
    for i in range(0, len(changes), 3):
        put(*changes[i:i + 3])
    build()
    complaint = first_complaint()
    copy_tree()
    print(f"{name}: {complaint or 'NOT NOTICED'}", flush=True)
    return complaint is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", help="one of " + ", ".join(MUTANTS))
    names = parser.parse_args().name or list(MUTANTS)
    if unknown := [name for name in names if name not in MUTANTS]:
        parser.error(f"no mutant is called {unknown[0]}; see --help")
    copy_tree()
    build()
    if complaint := first_complaint():
        sys.exit(f"unchanged: {complaint}")
    unnoticed = [name for name in names if not notices(name)]
    if unnoticed:
        sys.exit("not noticed: " + " ".join(unnoticed))


main()

# SPDX-License-Identifier: Apache-2.0
"""Runs every command of README.md, in its order, as a reader would paste it.

usage: readme_test.py   (from the root of the tree, with the release preset built)
"""
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest


def blocks():
    """The lines of each sh block of README.md, comments dropped."""
    text = open("README.md", encoding="utf-8").read()
    for body in re.findall(r"```sh\n(.*?)```", text, re.S):
        yield [re.sub(r"\s+#.*", "", line) for line in body.splitlines() if line.strip()]


def run(command, stdin=""):
    """The command's output; fails where it does not end with 0 in two minutes."""
    done = subprocess.run(["bash", "-c", command], input=stdin, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@contextlib.contextmanager
def background(command):
    """Runs a shell command in a process group of its own; at the end its children drain."""
    process = subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=90)


def wait_ready(flags=""):
    deadline = time.monotonic() + 60
    ask = f"build/release/bin/setu generate hello --max-tokens 1 --temperature 0 {flags}"
    while subprocess.run(shlex.split(ask), capture_output=True).returncode != 0:
        assert time.monotonic() < deadline, "the cluster did not become ready"
        time.sleep(0.2)


class Readme(unittest.TestCase):
    def test_every_command_runs(self):
        demo, up, clients, examples, services, tenants, known = blocks()

        self.assertEqual([line.split()[0] for line in demo],
                         ["./deploy/local/demo.sh", "./tests/run.sh"])
        answer = run(demo[0])
        self.assertRegex(answer, r"TTFT [\d.]+ ms, [\d.]+ tokens/s, .* KV moved [1-9][\d.]* KiB")
        run(demo[1] + " --help")  # it runs this test, so only its help

        self.assertEqual(len(up), 1)
        with background("exec " + up[0]) as cluster:
            wait_ready()
            for line in clients:
                # An answer whose seed is drawn may go on as long as the context lasts.
                bound = "SETU_MAX_TOKENS=100 " if line.endswith("setu chat") else ""
                self.assertTrue(run(bound + line, stdin="Say hello.\n").strip(), line)
            for line in examples:
                self.assertRegex(run(line), r"\[\d+ tokens\]", line)
            cluster.send_signal(signal.SIGINT)
            self.assertEqual(cluster.wait(timeout=90), 0)

        with background("\n".join(services) + "\nwait"):
            wait_ready()

        with contextlib.suppress(FileNotFoundError):
            os.remove("build/acme.token")  # it is written once
        with background("\n".join(tenants) + "\nwait"):
            wait_ready("--token-file build/acme.token")
            for line in known:
                self.assertTrue(run(line).strip(), line)
            without = re.sub(r"--token-file \S+", "", known[0])
            with self.assertRaisesRegex(AssertionError, "UNAUTHENTICATED"):
                run(without)


if __name__ == "__main__":
    sys.argv[1:] = ["-v"]
    unittest.main()

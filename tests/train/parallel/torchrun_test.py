#!/usr/bin/env python3
"""torchrun starts C++ programs, and starts them again after one was killed.

    tests/train/parallel/torchrun_test.py TEST_PROGRAM EXAMPLE      torchrun is taken from the folder of this Python
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

TORCHRUN = Path(sys.executable).parent / "torchrun"
# As --standalone, which looks up the name of the host and waits if it has no address.
HERE = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
program: str
example: str


def torchrun(*words, **variables):
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", **variables}
    return subprocess.run([TORCHRUN, *HERE, "--no-python", "--nproc-per-node", "2", *words],
                          capture_output=True, text=True, timeout=3000, env=environment)  # fmt: skip


WORK = ["--gtest_filter=LauncherProcess.DISABLED_Work", "--gtest_also_run_disabled_tests"]


@unittest.skipUnless(TORCHRUN.exists(), f"there is no {TORCHRUN}")
class Torchrun(unittest.TestCase):
    def test_processes_find_each_other(self):
        run = torchrun(program, *WORK)
        self.assertEqual(run.returncode, 0, run.stderr)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} of 2 has the sum, attempt 0", run.stdout)

    def test_a_killed_process_is_an_error(self):
        run = torchrun(program, *WORK, POSENC_KILL_ON_ATTEMPT="0")
        self.assertNotEqual(run.returncode, 0)
        self.assertNotIn("has the sum", run.stdout)

    def test_after_a_restart_all_meet_again(self):
        run = torchrun("--max-restarts", "1", program, *WORK, POSENC_KILL_ON_ATTEMPT="0")
        self.assertEqual(run.returncode, 0, run.stderr)
        for rank in (0, 1):
            self.assertIn(f"rank {rank} of 2 has the sum, attempt 1", run.stdout)

    def test_the_example_trains(self):
        run = torchrun(example)
        self.assertEqual(run.returncode, 0, run.stderr)
        alone = subprocess.run([example], capture_output=True, text=True, timeout=3000)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(run.stdout, alone.stdout, "two processes reach one process's loss")


if __name__ == "__main__":
    program, example = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])

#!/usr/bin/env python3
"""Disturbs a training run of several processes at random moments and resumes it: the final weights have to be those of
the undisturbed run.

    kill_and_resume.py PROGRAM [--ranks 2] [--rounds 30] [--seed N] [--steps 40]

A round starts the processes, waits, and sends SIGKILL, SIGSTOP or SIGTERM to one of them, or limits the size of rank 0's
files, so that SIGXFSZ ends it in the middle of its next checkpoint. The others have to end by themselves, with an error
that names the group, and the checkpoint has to be the old one or the new one. Then the same command resumes. A run that
reaches its end is compared and begins anew.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT = 60  # of the group, in seconds: how long a stopped process stays unnoticed
LIMIT = 1200  # of a round, so that one that hangs ends
CHECKPOINT = 4_000_000  # bytes, less than a checkpoint has


class Processes:
    """The processes of one start, which meet in a new store."""

    def __init__(self, folder, options):
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.files = [open(self.folder / f"{rank}.{end}", "w+") for rank in range(options.ranks) for end in ("out", "err")]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        self.all = [
            subprocess.Popen([options.program, self.folder / "store", str(rank), str(options.ranks), folder / "checkpoint",
                              str(options.steps), str(TIMEOUT)], stdout=self.files[2 * rank], stderr=self.files[2 * rank + 1], env=environment)
            for rank in range(options.ranks)]

    def text(self, rank, end):
        return (self.folder / f"{rank}.{end}").read_text()

    def wait_for_first_report(self, until):
        while time.monotonic() < until and not self.text(0, "out") and None in [process.poll() for process in self.all]:
            time.sleep(0.01)

    def wait(self, rank, until):
        try:
            return self.all[rank].wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.end()
            fail(f"rank {rank} did not end by itself")

    def end(self):
        for process in self.all:
            if process.poll() is None:
                process.kill()
                process.wait()
        for file in self.files:
            file.close()


def fail(text):
    sys.exit(f"kill_and_resume.py: {text}")


def saved(path):
    """The step of a checkpoint, which has to be complete, and a digest of its weights."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__")
    if len(data) != 8 + length + max(entry["data_offsets"][1] for entry in header.values()):
        fail("the checkpoint is half-written")
    digest = hashlib.sha256()
    for name in sorted(header):
        if name.startswith(("model.", "generator.", "optimizer.")):
            begin, end = header[name]["data_offsets"]
            digest.update(name.encode() + data[8 + length + begin : 8 + length + end])
    return int(float(metadata["number.step"])), digest.hexdigest()


def run_to_end(folder, options):
    processes = Processes(folder, options)
    until = time.monotonic() + 4 * LIMIT
    codes = [processes.wait(rank, until) for rank in range(options.ranks)]
    if any(codes):
        fail(f"a run ended with {codes}: {processes.text(0, 'err')}{processes.text(1, 'err')}")
    processes.end()
    return saved(folder / "checkpoint")


def disturb(folder, options, dice, seconds):
    """Returns what was done, after all processes have ended."""
    processes = Processes(folder, options)
    until = time.monotonic() + LIMIT
    processes.wait_for_first_report(until)
    delay, rank = dice.uniform(0, seconds), dice.randrange(options.ranks)
    kind = dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGXFSZ, signal.SIGXFSZ, signal.SIGSTOP, signal.SIGTERM))
    size = dice.randrange(1000, CHECKPOINT)
    rank = 0 if kind == signal.SIGXFSZ else rank  # which writes the checkpoints
    time.sleep(delay)
    text = f"{kind.name} to rank {rank} after {delay:.3f} s" + (f", at byte {size}" if kind == signal.SIGXFSZ else "")
    if None not in [process.poll() for process in processes.all]:
        codes = [process.wait() for process in processes.all]
        processes.end()
        return f"{text}: too late, ended with {codes}"
    if kind == signal.SIGXFSZ:
        resource.prlimit(processes.all[rank].pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(processes.all[rank].pid, resource.RLIMIT_FSIZE, (size, size))
    else:
        processes.all[rank].send_signal(kind)
    others = [other for other in range(options.ranks) if other != rank]
    begin = time.monotonic()
    codes = {other: processes.wait(other, until) for other in others}
    took = time.monotonic() - begin
    if kind == signal.SIGSTOP:
        processes.all[rank].kill()
    own = processes.wait(rank, until)
    finished = all(code == 0 for code in codes.values())
    errors = [processes.text(other, "err") for other in others]
    processes.end()
    if kind == signal.SIGXFSZ and own not in (0, -signal.SIGXFSZ):
        fail(f"{text}: rank {rank} has to be killed while it writes. Got status {own}")
    if kind == signal.SIGTERM:
        # A signal before the handlers are set up, or in the last step, ends the process or comes too late.
        if not finished and own not in (-signal.SIGTERM,) and set([own, *codes.values()]) != {3}:
            fail(f"{text}: all have to stop with status 3. Got {own} and {codes}: {errors}")
    elif not finished:
        for other, error in zip(others, errors):
            if codes[other] != 1 or "rank" not in error:
                fail(f"{text}: rank {other} has to end with an error of the group. Got status {codes[other]}: {error}")
            if kind != signal.SIGSTOP and "within the group's time-out" in error:
                fail(f"{text}: rank {other} has to lose its peer at once, not after the time-out. Got: {error}")
    return f"{text}: {took:.2f} s, statuses {own} and {codes}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(os.environ.get("POSENC_TEST_SEED", time.time()))
    print(f"seed {seed}", flush=True)
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        whole, disturbed = Path(name) / "whole", Path(name) / "disturbed"
        whole.mkdir(), disturbed.mkdir()
        begin = time.monotonic()
        expected = run_to_end(whole, options)
        seconds = time.monotonic() - begin
        print(f"undisturbed: {options.steps} steps in {seconds:.1f} s", flush=True)
        compared = 0
        for number in range(options.rounds):
            text = disturb(disturbed, options, dice, 0.4 * seconds)
            step = saved(disturbed / "checkpoint")[0] if (disturbed / "checkpoint").exists() else 0
            print(f"round {number + 1}: {text}; checkpoint at step {step}", flush=True)
            leftovers = [entry.name for entry in disturbed.iterdir() if entry.suffix == ".tmp"]
            if len(leftovers) > 1:
                fail(f"temporary files pile up: {leftovers}")
            if step == options.steps:
                if saved(disturbed / "checkpoint") != expected:
                    fail("the final weights differ from those of the undisturbed run")
                compared += 1
                (disturbed / "checkpoint").unlink()
        if run_to_end(disturbed, options) != expected:
            fail("the final weights differ from those of the undisturbed run")
        print(f"{options.rounds} rounds, {compared + 1} finished runs, all with the weights of the undisturbed run")


if __name__ == "__main__":
    main()

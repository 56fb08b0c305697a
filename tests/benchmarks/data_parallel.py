#!/usr/bin/env python3
"""Times data-parallel training steps: two processes of one thread against one process of one and of two threads, and
against Python's DistributedDataParallel over Gloo.

    tests/benchmarks/data_parallel.py BINARY [--model base|task] [--rounds 5] [--json FILE]

BINARY is posenc_rank_benchmark. Every case runs once in each round, in another order each time, while the processes of
the others wait; the first round is not counted. A step's time is that of its slowest process. Prints the minima, the
tokens a second, and whether the goals are met. Two idle cores and 12 GB of memory are needed for `base`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "tools")]
import torch  # noqa: E402
from bench import processor  # noqa: E402
from train_step_peers import MODELS  # noqa: E402


@dataclass
class Case:
    title: str
    team: str  # whose processes run it
    threads: int
    parts: int  # micro-batches a step
    copies: int  # of the batch, in a micro-batch


CASES = {
    "one": Case("1 process, 1 thread", "alone", 1, 1, 1),
    "one x4": Case("1 process, 1 thread, 4 micro-batches", "alone", 1, 4, 1),
    "threads": Case("1 process, 2 threads", "alone", 2, 1, 1),
    "threads, twice the rows": Case("1 process, 2 threads, twice the rows", "alone", 2, 1, 2),
    "threads x4": Case("1 process, 2 threads, twice the rows, 4 micro-batches", "alone", 2, 4, 2),
    "ranks": Case("2 processes, 1 thread", "ours", 1, 1, 1),
    "ranks x4": Case("2 processes, 1 thread, 4 micro-batches", "ours", 1, 4, 1),
    "DDP": Case("Python's DDP, 2 processes, 1 thread", "python", 1, 1, 1),
    "DDP x4": Case("Python's DDP, 2 processes, 1 thread, 4 micro-batches", "python", 1, 4, 1),
}
# case, competitor, the least ratio of their tokens a second
GOALS = [
    ("ranks", "one", 1.7),
    ("ranks x4", "one", 1.85),
    ("ranks", "threads", 0.95),
    ("ranks", "threads, twice the rows", 0.95),
    ("ranks x4", "threads x4", 0.95),
    ("ranks", "DDP", 1.0),
    ("ranks x4", "DDP x4", 1.0),
]


class Team:
    """Processes that take each step together."""

    def __init__(self, commands: list[list[str]]) -> None:
        environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
        self.children = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) for command in commands
        ]
        for child in self.children:
            if child.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{child.args[0]} has ended")

    def seconds(self, case: Case) -> float:
        for child in self.children:
            child.stdin.write(f"{case.threads} {case.parts} {case.copies}\n")
            child.stdin.flush()
        return max(float(child.stdout.readline()) for child in self.children)

    def end(self) -> None:
        for child in self.children:
            child.stdin.close()
        for child in self.children:
            child.wait()


def teams_of(binary: str, model: str, folder: str) -> dict[str, Team]:
    peers = [sys.executable, "-W", "ignore", str(HERE / "train_step_peers.py"), folder]
    subprocess.run(peers, input=f"make {model}\n", text=True, check=True, stdout=subprocess.DEVNULL)
    own = [binary, model, f"{folder}/{model}.safetensors", f"{folder}/store"]
    python = [sys.executable, "-W", "ignore", str(HERE / "ddp_peers.py"), model, folder]
    return {
        "alone": Team([[*own, "0", "1"]]),
        "ours": Team([[*own, str(rank), "2"] for rank in range(2)]),
        "python": Team([[*python, str(rank), "2"] for rank in range(2)]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--model", choices=sorted(MODELS), default="base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()

    seconds = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        teams = teams_of(options.binary, options.model, folder)
        names = list(CASES)
        for number in range(options.rounds + 1):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                took = teams[CASES[name].team].seconds(CASES[name])
                if number > 0:
                    seconds[name].append(took)
            print(f"round {number} of {options.rounds}", file=sys.stderr)
        for team in teams.values():
            team.end()

    rows, length = MODELS[options.model][2][:2]
    speeds = {}
    for name, case in CASES.items():
        ranks = 1 if case.team == "alone" else 2
        speeds[name] = ranks * case.parts * case.copies * rows * length / min(seconds[name])
    for name, case in CASES.items():
        print(f"{case.title:56} {min(seconds[name]):8.3f} s  {speeds[name]:9,.0f} tokens/s  {speeds[name] / speeds['one']:5.2f}x")
    for name, other, least in GOALS:
        ratio = speeds[name] / speeds[other]
        print(f"{'met   ' if ratio >= least else 'MISSED'} {name} / {other}: {ratio:.2f}, at least {least}")
    if options.json:
        about = {"processor": processor(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d"), "model": options.model}
        cases = {case.title: {"seconds": min(seconds[name]), "tokens_per_second": speeds[name]} for name, case in CASES.items()}
        Path(options.json).write_text(json.dumps(about | {"rounds": options.rounds, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()

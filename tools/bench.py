#!/usr/bin/env python3
"""Runs the benchmarks interleaved with their competitors, and prints medians and ratios.

    tools/bench.py BINARY [--filter REGEX] [--seconds 280] [--json FILE] [--shared]

Ours and LibTorch's run in the Google Benchmark BINARY, each Python peer in its own process. They run in turn, one
comparison at a time, each time starting with another case; rounds are repeated while time remains. (A case without a
comparison runs once, except for the parts of a profile.) A case that takes less than 0.2 seconds runs twice, and the
second run counts: a virtual machine may have returned free memory to its host, and whoever touches it first would pay
for that. --shared says that the machine runs other work besides, which slows both sides of a comparison: the tables then
show the run as that of another machine, by its ratios. A result whose bits differ from those of its comparison ends the run. tools/docs.py --keep takes the JSON.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench_goals import SECTIONS, competitor, goals

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "tests" / "benchmarks" / "peers.py"
MOST_ROUNDS = 9
WARM_SECONDS = 0.2
SHARED = ", shared"  # after the name of a processor


class Process:
    """A child process that answers the name of a case with its duration and fingerprint."""

    def __init__(self, title: str, command: list[str], listing: list[str]) -> None:
        self.title, self.command, self.child = title, command, None
        listed = subprocess.run(listing, check=True, capture_output=True, text=True)
        # Google Benchmark appends the kind of time to the names.
        self.names = {re.sub("/(real_time|manual_time|process_time)$", "", name): name for name in listed.stdout.split("\n") if name}

    def ask(self, name: str) -> tuple[float, str]:
        if name.endswith("/2"):
            time.sleep(0.25)  # OpenMP threads of the previous process spin for 200 ms
        if self.child is None:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.child.stdin.write(self.names[name] + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{name}: {answer or self.title + ' has ended'}")
        seconds, fingerprint = answer.split()
        return float(seconds), fingerprint

    def end(self) -> None:
        if self.child is not None:
            self.child.stdin.close()
            self.child.wait()


def processes(binary: str, python: str) -> list[Process]:
    found = [Process("the binary", [binary, "--serve", "--benchmark_min_time=0.03"], [binary, "--benchmark_list_tests"])]
    for peer in ("eager", "compile"):
        command = [python, "-W", "ignore", "-B", str(PEERS), peer]
        found.append(Process(f"peers.py {peer}", [*command, "--serve"], [*command, "--list"]))
    return found


def comparisons(cases: list[str]) -> list[list[str]]:
    """Groups cases that are compared with each other, in the order of the goals."""
    groups: dict[str, list[str]] = {}
    for _, _, ours, theirs, _ in goals():
        group = groups.setdefault(ours, [ours])
        group.append(theirs)
    # A case in several comparisons runs in the first; cases without a comparison come last.
    seen: set[str] = set()
    ordered = []
    for group in [*groups.values(), *[[case] for case in cases]]:
        fresh = [case for case in dict.fromkeys(group) if case in cases and case not in seen]
        seen.update(fresh)
        if fresh:
            ordered.append(fresh)
    return ordered


def check_equal(fingerprints: dict[str, str]) -> None:
    """Raises unless both sides of every comparison have the same bits, where they have fingerprints and neither rounds weights."""
    for _, title, ours, theirs, _ in goals():
        a, b = fingerprints.get(ours, "-"), fingerprints.get(theirs, "-")
        if "-" not in (a, b) and a != b and "int8" not in ours + theirs:
            raise RuntimeError(f"{title}: {ours} and {theirs} have other bits")


def measure(found: list[Process], chosen: list[list[str]], seconds: float) -> dict[str, list[float]]:
    owner = {name: process for process in found for name in process.names}
    times: dict[str, list[float]] = {name: [] for group in chosen for name in group}
    compared = {name for _, _, ours, theirs, _ in goals() for name in (ours, theirs)}
    start = time.monotonic()
    fingerprints: dict[str, str] = {}
    for number in range(MOST_ROUNDS + 1):  # round 0 warms up, compiles and compares; not counted
        began = time.monotonic()
        for group in chosen:
            first = number % len(group)  # a different one starts in each round
            for name in group[first:] + group[:first]:
                if number > 1 and name not in compared and not name.startswith("profile/"):
                    continue
                try:
                    took, fingerprints[name] = owner[name].ask(name)
                    if number > 0 and took < WARM_SECONDS:
                        took, _ = owner[name].ask(name)
                except RuntimeError as error:
                    if number > 0 or owner[name].title != "peers.py compile":
                        raise
                    print(f"left out: {error}", file=sys.stderr)  # needs a C++ compiler
                    group.remove(name)
                    continue
                if number > 0:
                    times[name].append(took)
        if number == 0:
            check_equal(fingerprints)
        now = time.monotonic()
        if number >= 1 and now - start + (now - began) > seconds:
            break
    return {name: values for name, values in times.items() if values}


def processor() -> str:
    try:
        return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.processor() or platform.machine()


def report(times: dict[str, list[float]], torch: str, load: float, shared: bool) -> dict:
    medians = {name: statistics.median(values) for name, values in times.items()}
    least = {name: min(values) for name, values in times.items()}
    ratios = [
        {"section": section, "title": title, "ours": ours, "theirs": theirs, "ratio": medians[theirs] / medians[ours],
         "ratio_of_minima": least[theirs] / least[ours], "goal": goal}
        for section, title, ours, theirs, goal in goals()
        if ours in medians and theirs in medians
    ]
    return {
        "processor": processor() + (SHARED if shared else ""),
        "cores": os.cpu_count(),
        "load": round(load, 1),
        "torch": torch,
        "date": time.strftime("%Y-%m-%d"),
        "rounds": max(map(len, times.values()), default=0),
        "cases": {name: {"median": medians[name], "minimum": least[name]} for name in times},
        "ratios": ratios,
    }


def human(seconds: float) -> str:
    for unit, factor in (("s ", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:9.3f} {unit}"


def show(found: dict) -> None:
    width = max(map(len, found["cases"]), default=0)
    for name, values in found["cases"].items():
        print(f"{name:{width}}  {human(values['median'])}  (least {human(values['minimum'])})")
    for section, title in SECTIONS.items():
        rows = [row for row in found["ratios"] if row["section"] == section]
        if rows:
            print(f"\n{title}")
        for row in rows:
            goal = row["goal"]
            verdict = "" if goal is None else f", goal {goal:.3g}x{'' if row['ratio'] >= goal else ': missed'}"
            print(f"  {row['title']}, against {competitor(row['theirs'])}: {row['ratio']:.2f}x "
                  f"(of minima {row['ratio_of_minima']:.2f}x{verdict})")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--filter", default=".", help="regular expression of the cases that run")
    parser.add_argument("--seconds", type=float, default=280, help="no round is begun that would end later")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--shared", action="store_true", help="the machine also runs other work")
    parser.add_argument("--python", default=sys.executable, help="a Python with torch: the competitors")
    arguments = parser.parse_args()
    os.environ["POSENC_PYTHON"] = arguments.python  # of the peers that the binary starts
    load = os.getloadavg()[0]
    found = processes(arguments.binary, arguments.python)
    cases = [name for process in found for name in process.names if re.search(arguments.filter, name)]
    if not cases:
        print(f"no benchmark matches {arguments.filter}", file=sys.stderr)
        return 1
    try:
        times = measure(found, comparisons(cases), arguments.seconds)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        for process in found:
            process.end()
    version = subprocess.run([arguments.python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    results = report(times, version.stdout.strip(), load, arguments.shared)
    show(results)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

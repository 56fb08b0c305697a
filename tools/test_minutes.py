#!/usr/bin/env python3
"""Prints a table of where the minutes of `make test` went, in seconds of a thread: what ninja's log says of the last build
of each file, and what ctest's says of the last run. Of a build with an empty ccache, on an otherwise idle machine."""

import argparse
import re
from collections import Counter
from pathlib import Path

# The first that fits the path of an output.
BUILDING = (
    ("precompiled headers", "cmake_pch"),
    ("the kernels, for each instruction set", "src/kernels/"),
    ("the command line", "src/cli/"),
    ("the library", "src/"),
    ("example and demo programs", "examples/CMakeFiles|examples/[a-z_]+/CMakeFiles|tools/demo/"),
    ("the tests", "tests/.*[.]o$"),
)


def building(folder: Path) -> Counter:
    last = {}
    for line in (folder / ".ninja_log").read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        last[output] = (int(end) - int(start)) / 1000
    seconds: Counter = Counter()
    for output, took in last.items():
        if not (folder / output).exists():  # of an earlier configuration
            continue
        seconds[next((name for name, pattern in BUILDING if re.search(pattern, output)), "linking and the rest")] += took
    return seconds


def testing(folder: Path) -> Counter:
    seconds: Counter = Counter()
    name = ""
    for line in (folder / "Testing/Temporary/LastTest.log").read_text(errors="replace").splitlines():
        if match := re.match(r"\d+/\d+ Testing: (\S+)", line):
            name = match[1]
        elif match := re.match(r"Test time = +([\d.]+) sec", line):
            seconds[name] += float(match[1])
    return seconds


def table(title: str, seconds: Counter, rows: int) -> None:
    print(f"| {title} | {sum(seconds.values()):.0f} s |\n|---|---|")
    for name, took in seconds.most_common(rows):
        print(f"| {name} | {took:.0f} |")
    if rest := seconds.most_common()[rows:]:
        print(f"| {len(rest)} others | {sum(took for _, took in rest):.0f} |")
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/release"), help="of a build (default %(default)s)")
    folder = parser.parse_args().folder
    table("building", building(folder), 10)
    table("running the tests", testing(folder), 12)


if __name__ == "__main__":
    main()

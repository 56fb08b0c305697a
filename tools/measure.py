#!/usr/bin/env python3
"""Records figures that take minutes, which tools/docs.py --write then shows.

    tools/measure.py allocator BINARY [--rounds N]   settings of the C library's allocator, into docs/performance/allocator.json;
                                                     BINARY: posenc_benchmark, as built by `make bench`
    tools/measure.py pronounce MINUTES...            trainings of that many minutes each, by tools/pronounce.sh --fresh, into
                                                     docs/pronounce.json
"""

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import time
from pathlib import Path

from bench import processor
from page_tables import DOCS, ROOT

KEEP = {"MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_MMAP_THRESHOLD_": "1073741824"}
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
SETTINGS = {"default": {}, "keep freed memory": KEEP, "huge pages": HUGE, "both": KEEP | HUGE}
CASES = {
    "forward of 4,096 tokens": "embed/module/4096/512/1/real_time",
    "forward of 4,096 tokens, LibTorch composition": "embed/composed/4096/512/1/real_time",
    "forward of 32,768 tokens": "embed/module/32768/512/1/real_time",
    "forward of 32,768 tokens, LibTorch composition": "embed/composed/32768/512/1/real_time",
    "backward of 4,096 tokens, new dense gradient": "embed_backward/module/4096/512/1/real_time",
    "`embed_out` of 32,768 tokens": "embed/out/32768/512/1/real_time",
}


def ask(process: subprocess.Popen, case: str) -> float:
    process.stdin.write(case + "\n")
    process.stdin.flush()
    return float(process.stdout.readline().split()[0])


def allocator(options: argparse.Namespace) -> None:
    """Medians over the rounds after the first. One process per setting; the processes take turns."""
    command = [options.binary, "--serve", "--benchmark_min_time=0.1"]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | setting)
               for setting in SETTINGS.values()]  # fmt: skip
    rounds = [{title: [ask(process, case) for process in running] for title, case in CASES.items()} for _ in range(options.rounds + 1)]
    for process in running:
        process.communicate()
    medians = {title: [1e3 * statistics.median(times) for times in zip(*(one[title] for one in rounds[1:]))] for title in CASES}
    write(DOCS / "performance/allocator.json", {"processor": processor(), "settings": list(SETTINGS), "milliseconds": medians})


def pronounce(options: argparse.Namespace) -> None:
    path = DOCS / "pronounce.json"
    for minutes in options.minutes:
        load, began = os.getloadavg()[0], time.monotonic()
        command = [str(ROOT / "tools/pronounce.sh"), str(minutes), "--fresh"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        seconds, memory = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
        curve = (ROOT / "build/pronounce/curve.jsonl").read_text()
        others = [run for run in json.loads(path.read_text()) if run["minutes"] != minutes]
        write(path, sorted([*others, training(minutes, done.stdout, curve, seconds, load, memory)], key=lambda run: run["minutes"]))


def training(minutes: int, said: str, curve: str, seconds: float, load: float, megabytes: float) -> dict:
    """`said`: the standard output of posenc-pronounce train."""
    wide = re.search(r"by (\d+) beams ([\d.]+) %", said)
    sizes = re.search(r"([\d,]+) parameters, ([\d,]+) steps.* (\d+) threads", said)
    return {
        "minutes": minutes,
        "parameters": int(sizes[1].replace(",", "")),
        "threads": int(sizes[3]),
        "processor": processor(),
        "load": round(load, 1),
        "seconds": round(seconds),
        "megabytes": round(megabytes),
        "beams": int(wide[1]),
        "beams_error_rate": float(wide[2]) / 100,
        "curve": [json.loads(line) for line in curve.splitlines()],
    }


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subcommands = parser.add_subparsers(required=True)
    sub = subcommands.add_parser("allocator")
    sub.add_argument("binary")
    sub.add_argument("--rounds", type=int, default=5)
    sub.set_defaults(measure=allocator)
    sub = subcommands.add_parser("pronounce")
    sub.add_argument("minutes", type=int, nargs="+")
    sub.set_defaults(measure=pronounce)
    options = parser.parse_args()
    options.measure(options)


if __name__ == "__main__":
    main()

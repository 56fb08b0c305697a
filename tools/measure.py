#!/usr/bin/env python3
"""Records figures that take minutes, which tools/docs.py --write then shows.

    tools/measure.py allocator BINARY [--rounds N]   settings of the C library's allocator, into docs/performance/allocator.json;
                                                     BINARY: posenc_benchmark, as built by `make bench`
    tools/measure.py server BINARY [--seconds N]     prints what calls of frozen models take beside other programs;
                                                     BINARY: posenc-serve, as built by `make bench`
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
import sys
import time
from pathlib import Path

from bench import Process, processor
from page_tables import DOCS, ROOT

KEEP = {"MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_MMAP_THRESHOLD_": "1073741824"}
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
SETTINGS = {"default": {}, "keep freed memory": KEEP, "huge pages": HUGE, "both": KEEP | HUGE}
CASES = {
    "forward of 4,096 tokens": "embed/module/4096/512/1",
    "forward of 4,096 tokens, LibTorch composition": "embed/composed/4096/512/1",
    "forward of 32,768 tokens": "embed/module/32768/512/1",
    "forward of 32,768 tokens, LibTorch composition": "embed/composed/32768/512/1",
    "backward of 4,096 tokens, new dense gradient": "embed_backward/module/4096/512/1",
    "`embed_out` of 32,768 tokens": "embed/out/32768/512/1",
}


def allocator(options: argparse.Namespace) -> None:
    """Medians over the rounds after the first. One process per setting; the processes take turns."""
    running = [Process(name, ["env", *(f"{key}={value}" for key, value in setting.items()), options.binary, "--serve", "--benchmark_min_time=0.1"],
                       [options.binary, "--benchmark_list_tests"]) for name, setting in SETTINGS.items()]  # fmt: skip
    rounds = [{title: [process.ask(case)[0] for process in running] for title, case in CASES.items()} for _ in range(options.rounds + 1)]
    for process in running:
        process.end()
    medians = {title: [1e3 * statistics.median(times) for times in zip(*(one[title] for one in rounds[1:]))] for title in CASES}
    write(DOCS / "performance/allocator.json", {"processor": processor(), "settings": list(SETTINGS), "milliseconds": medians})


# Model, sequences, tokens of each: the figures are of 8 bits.
CALLS = {"MiniLM, 16 tokens": ("minilm", 1, 16), "MiniLM, 128 tokens": ("minilm", 1, 128), "MiniLM, 8 x 128 tokens": ("minilm", 8, 128),
         "Marian's shape, a search of 8 sources": ("marian", 8, 32)}  # fmt: skip
BUSY_LOOPS = [0, 1, 4, 8]
CALLERS = [(1, 1), (1, 2), (2, 1), (2, 2), (8, 1), (8, 2)]  # threads that call, and the most threads of a call


def server(options: argparse.Namespace) -> None:
    """The mean time of a call, beside programs that keep a processor busy; and the calls a second of several callers."""
    def ask(call: tuple[str, int, int], callers: int, threads: int) -> tuple[int, float]:
        command = [options.binary, *map(str, call), "int8", str(callers), str(threads), str(options.seconds)]
        calls, mean, _ = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        return int(calls), float(mean)

    for loops in BUSY_LOOPS:
        running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
        try:
            for title, call in CALLS.items():
                times = [1e3 * ask(call, 1, threads)[1] for threads in (1, 2)]
                print(f"{loops} busy loops, {title}: {times[0]:.3g} ms with one thread, {times[1]:.3g} with two", flush=True)
        finally:
            for one in running:
                one.kill()
                one.wait()
    for title, call in CALLS.items():
        for callers, threads in CALLERS:
            print(f"{callers} callers, {threads} threads each, {title}: {callers / ask(call, callers, threads)[1]:.3g} calls a second", flush=True)


def pronounce(options: argparse.Namespace) -> None:
    path = DOCS / "pronounce.json"
    for minutes in options.minutes:
        load, began = os.getloadavg()[0], time.monotonic()
        command = [str(ROOT / "tools/pronounce.sh"), str(minutes), "--fresh"]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        seconds, kilobytes = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        beams, error_rate = re.search(r"by (\d+) beams ([\d.]+) %", said).groups()
        parameters, threads = re.search(r"([\d,]+) parameters, [\d,]+ steps.* (\d+) threads", said).groups()
        run = {"minutes": minutes, "parameters": int(parameters.replace(",", "")), "threads": int(threads), "processor": processor(),
               "load": round(load, 1), "seconds": round(seconds), "megabytes": round(kilobytes / 1000), "beams": int(beams),
               "beams_error_rate": float(error_rate) / 100,
               "curve": [json.loads(line) for line in (ROOT / "build/pronounce/curve.jsonl").read_text().splitlines()]}  # fmt: skip
        others = [one for one in json.loads(path.read_text()) if one["minutes"] != minutes]
        write(path, sorted([*others, run], key=lambda one: one["minutes"]))


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    subcommands = parser.add_subparsers(required=True)
    sub = subcommands.add_parser("allocator")
    sub.add_argument("binary")
    sub.add_argument("--rounds", type=int, default=5)
    sub.set_defaults(measure=allocator)
    sub = subcommands.add_parser("server")
    sub.add_argument("binary")
    sub.add_argument("--seconds", type=float, default=2.0)
    sub.set_defaults(measure=server)
    sub = subcommands.add_parser("pronounce")
    sub.add_argument("minutes", type=int, nargs="+")
    sub.set_defaults(measure=pronounce)
    options = parser.parse_args()
    options.measure(options)


if __name__ == "__main__":
    main()

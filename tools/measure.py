#!/usr/bin/env python3
"""Records figures that take minutes, which tools/docs.py --write then shows.

    tools/measure.py allocator BINARY [--rounds N]   settings of the C library's allocator, into docs/performance/allocator.json;
                                                     BINARY: posenc_benchmark, as built by `make bench`
    tools/measure.py server BINARY [--rounds N]      calls of frozen models beside other programs, into docs/performance/server.json;
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
from collections.abc import Callable
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
CALLERS, THREADS = [1, 2, 8], [1, 2]  # threads that call, and the most threads of a call


def server(options: argparse.Namespace) -> None:
    """A call beside programs that keep a processor busy, with one thread and with two; and the calls a second of several callers. Medians."""
    def ask(call: tuple[str, int, int], callers: int, threads: int) -> float:
        command = [options.binary, *map(str, call), "int8", str(callers), str(threads), str(options.seconds)]
        return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1])

    def medians(ask_all: Callable[[], list[float]]) -> list[float]:
        rounds = [ask_all() for _ in range(options.rounds)]
        return [float(f"{statistics.median(times):.3g}") for times in zip(*rounds)]

    load = os.getloadavg()[0]
    milliseconds: dict[str, list[list[float]]] = {title: [] for title in CALLS}
    for loops in BUSY_LOOPS:
        running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
        try:
            for title, call in CALLS.items():
                milliseconds[title].append(medians(lambda: [1e3 * ask(call, 1, threads) for threads in THREADS]))
        finally:
            for one in running:
                one.kill()
                one.wait()
    each_second = {title: medians(lambda: [callers / ask(call, callers, threads) for callers in CALLERS for threads in THREADS])
                   for title, call in CALLS.items()}  # fmt: skip
    write(DOCS / "performance/server.json", {"processor": processor(), "cores": os.cpu_count(), "load": round(load, 1), "rounds": options.rounds,
                                             "threads": THREADS, "busy_loops": BUSY_LOOPS, "milliseconds": milliseconds, "callers": CALLERS,
                                             "calls_a_second": each_second})  # fmt: skip


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
    sub.add_argument("--rounds", type=int, default=3)
    sub.add_argument("--seconds", type=float, default=2.0)
    sub.set_defaults(measure=server)
    sub = subcommands.add_parser("pronounce")
    sub.add_argument("minutes", type=int, nargs="+")
    sub.set_defaults(measure=pronounce)
    options = parser.parse_args()
    options.measure(options)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The table of docs/allocator.md: the effect of settings of the C library's allocator.

tools/allocator_doc.py BINARY [--rounds N]     BINARY: posenc_benchmark, as built by `make bench`
"""

import argparse
import statistics
import subprocess
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "allocator.md"
BEGIN, END = "<!-- table: tools/allocator_doc.py -->\n", "<!-- end of table -->"
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


def measure(binary: str, rounds: int) -> dict[tuple[str, str], float]:
    """Returns medians over the rounds after the first. One process per setting; the processes take turns."""
    command = [binary, "--serve", "--benchmark_min_time=0.1"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = {}
    for name, setting in SETTINGS.items():
        running[name] = subprocess.Popen(["env", *(f"{k}={v}" for k, v in setting.items()), *command], **pipes)
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds + 1):
        for case in CASES.values():
            for name, process in running.items():
                taken = ask(process, case)
                if number > 0:
                    times.setdefault((case, name), []).append(taken)
    for process in running.values():
        process.communicate()
    return {key: statistics.median(values) for key, values in times.items()}


def table(times: dict[tuple[str, str], float]) -> str:
    text = f"| one thread, float32, D = 512, ms | {' | '.join(SETTINGS)} |\n|---|{'---|' * len(SETTINGS)}\n"
    for title, case in CASES.items():
        text += f"| {title} | {' | '.join(f'{times[case, name] * 1e3:.3g}' for name in SETTINGS)} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + table(measure(arguments.binary, arguments.rounds)) + rest[rest.index(END) :])


if __name__ == "__main__":
    main()

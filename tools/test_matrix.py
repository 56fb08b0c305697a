"""Runs the built test programs that compare numbers as on other processors, or with other seeds.

    test_matrix.py cpus --build DIR [--short] [--first SEED] [--group NAME...]
        ATEN_CPU_CAPABILITY x POSENC_ISA x threads, as far as this machine supports them, and MKL's common path; Python,
        which is compared bit for bit, runs with the same capability. Each combination has a seed of its own, as below;
        the short form has the tests' usual ones.
    test_matrix.py seeds --build DIR [--count N] [--first SEED] [--group NAME...]
        POSENC_TEST_SEED=SEED and the following ones; a random SEED without --first.

Prints a line for each run when it is done, then all failures, and what was left out and why. Exits with 1 on a failure.
"""

import argparse
import itertools
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

GROUPS = ["core", "kernels", "positions_tables", "positions_functional", "positions_nn", "catalogue", "transformer", "modules", "inference",
          "models", "train", "parity"]
SEEDED = [group for group in GROUPS if group not in ("core", "parity")]  # the numbers of the others are fixed
LEFT_OUT = "base, weights, weights_read, cli, parity_program, examples, docs, tools: they compare bytes and texts, no sums"
LEVELS = ["default", "avx2", "avx512"]  # ATen's
SETS = {  # posenc's: what src/kernels/sets.h requires of the processor
    "generic": [],
    "sse2": ["sse2"],
    "avx2": ["avx2", "fma", "f16c"],
    "avx2vnni": ["avx2", "fma", "f16c", "avx_vnni"],
    "avx512": ["avx512f", "avx512dq", "avx512bw", "avx512vl", "fma"],
    "avx512vnni": ["avx512f", "avx512dq", "avx512bw", "avx512vl", "fma", "avx512_vnni"],
    "avx512bf16": ["avx512f", "avx512dq", "avx512bw", "avx512vl", "fma", "avx512_vnni", "avx512_bf16"],
}
TIMEOUT = 1200


def processor_flags() -> set[str]:
    found = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return set(found.group(1).split()) if found else set()


def available() -> tuple[list[str], list[str], list[str]]:
    """ATen's levels and posenc's sets that this processor supports, and a line for each unsupported one."""
    flags, missing = processor_flags(), []
    lacks = {name: [flag for flag in needed if flag not in flags] for name, needed in SETS.items()}
    sets = [name for name, absent in lacks.items() if not absent]
    levels = [level for level in LEVELS if not lacks.get(level)]
    for name, absent in lacks.items():
        if absent:
            missing.append(f"{name} of ATen and of posenc: this processor lacks {', '.join(absent)}")
    return levels, sets, missing


def combinations(short: bool) -> tuple[list[dict[str, str]], list[str]]:
    """The environments to test, and what is left out."""
    levels, sets, missing = available()
    every = [
        {"ATEN_CPU_CAPABILITY": level, "POSENC_ISA": isa, "OMP_NUM_THREADS": threads}
        for level, isa, threads in itertools.product(levels, sets, ("1", "2"))
    ]
    # Intel's common path: another order of summation, on any maker's processors.
    every.append({**every[-1], "MKL_CBWR": "COMPATIBLE"})
    if short:  # the least capable and another mix, far from what ctest has just run
        missing.append(f"{len(every) - 2} of {len(every)} combinations: the short form; `make test-cpus` has all")
        every = [every[0], {**every[-1], "POSENC_ISA": sets[max(0, len(sets) - 2)]}]
    return every, missing


class Build:
    def __init__(self, folder: Path):
        self.folder = folder.resolve()

    def references(self, environment: dict[str, str], which: str) -> str:
        """Makes Python write the files that the tests read; returns the message of a failure."""
        done = subprocess.run(["ctest", "--test-dir", str(self.folder), "-R", f"^reference[.]({which})$", "-FA", ".*"],
                              env={**os.environ, **environment}, capture_output=True, text=True)  # fmt: skip
        return "" if done.returncode == 0 else done.stdout[-2000:]

    def run(self, group: str, environment: dict[str, str]) -> list[str]:
        """The failed tests of a group, or how the program ended if it did not finish."""
        program = self.folder / "tests" / f"{group}_test"
        if not program.is_file():
            return [f"{program} is not built"]
        try:
            done = subprocess.run([program, "--gtest_brief=1"], capture_output=True, text=True, timeout=TIMEOUT,
                                  env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE", **environment})  # fmt: skip
        except subprocess.TimeoutExpired:
            return [f"not done after {TIMEOUT} s"]
        failed = sorted(set(re.findall(r"^\[  FAILED  \] (\S+[.]\S+?)(?:,| \(|$)", done.stdout, re.MULTILINE)))
        if failed or done.returncode == 0:
            return failed
        return [f"ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}"]


def label(environment: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in environment.items())


def matrix(build: Build, environments: list[dict[str, str]], groups: list[str], live: bool) -> int:
    """Runs everything; returns the number of failures. `live`: rerun Python for each setting of ATen and MKL."""
    failures, made = [], None
    for environment in environments:
        begin, cells = time.monotonic(), []
        python = {name: value for name, value in environment.items() if name in ("ATEN_CPU_CAPABILITY", "MKL_CBWR")}
        if live and "parity" in groups and python != made:
            if problem := build.references(python, "live|torchscript|transformer_scripts"):
                print(f"Python under {label(python)} failed:\n{problem}")
                return 1
            made = python
        for group in groups:
            failed = build.run(group, environment)
            cells.append(f"{group} {'ok' if not failed else f'{len(failed)} FAILED'}")
            failures += [f"{label(environment)} {build.folder.name}/tests/{group}_test: {one}" for one in failed]
        print(f"{label(environment)}: {', '.join(cells)} ({time.monotonic() - begin:.0f} s)", flush=True)
    if made:
        build.references({}, "live|torchscript|transformer_scripts")  # restore what ctest leaves
    print("\n".join(failures), end="\n" if failures else "")
    return len(failures)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cpus", "seeds"])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--group", nargs="+", choices=GROUPS)
    parser.add_argument("--short", action="store_true", help="of cpus: two combinations")
    parser.add_argument("--count", type=int, default=20, help="of seeds")
    parser.add_argument("--first", type=int, help="the first seed")
    options = parser.parse_args()
    build = Build(options.build)
    if problem := "" if (build.folder / "live/marian").is_dir() else build.references({}, "marian"):
        print(problem)
        return 1
    first = secrets.randbelow(2**31) if options.first is None else options.first
    if options.what == "seeds":
        environments = [{"POSENC_TEST_SEED": str(first + i)} for i in range(options.count)]
        left_out, groups = [LEFT_OUT, "core, parity: nothing in them is drawn"], options.group or SEEDED
    else:
        environments, left_out = combinations(options.short)
        if not options.short:
            environments = [{**one, "POSENC_TEST_SEED": str(first + i)} for i, one in enumerate(environments)]
        left_out.insert(0, LEFT_OUT)
        groups = options.group or GROUPS
    failed = matrix(build, environments, groups, live=options.what == "cpus")
    for line in left_out:
        print(f"left out: {line}")
    print(f"{len(environments)} x {len(groups)} runs, {failed} failed tests")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

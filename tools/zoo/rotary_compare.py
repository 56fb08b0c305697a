"""Compares `posenc rotary --preset NAME` with the packages of rotary_registry.ROTARY, bit for bit: cos, sin, rotated q
and k of random configurations, positions and dtypes. compare.py calls it; alone:

.venv-zoo/bin/python tools/zoo/rotary_compare.py --posenc build/release/posenc --seed 7 --preset flux wan
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import rotary_diffusers  # noqa: F401
import rotary_diffusers_copies  # noqa: F401
import rotary_others  # noqa: F401
import rotary_sites
import sources
from rotary_registry import ROTARY, ROTARY_COPIES, Case, RotaryReference, all_of, rotary_names

CASES = 16
TIMEOUT = 120


def text_of(value) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else json.dumps(value).strip('"')


def run(binary: str, threads: int, name: str, case: Case) -> dict[str, torch.Tensor] | str:
    """What posenc writes, or its error message."""
    with tempfile.TemporaryDirectory() as folder:
        given, out = Path(folder) / "in.safetensors", Path(folder) / "out.safetensors"
        save_file(case.inputs(), given)
        command = [binary, "rotary", "--preset", name, "--in", str(given), "--out", str(out)]
        for key, value in case.params.items():
            command += ["--param", f"{key}={text_of(value)}"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
        if done.returncode:
            return f"exit {done.returncode}: {done.stderr.strip()[:300]}"
        return load_file(out)


def as_bits(t: torch.Tensor) -> torch.Tensor:
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return t.contiguous().view(kinds[t.element_size()])


def wide(t: torch.Tensor) -> torch.Tensor:
    """Without axes of size 1, which the packages put where they broadcast."""
    return t.reshape([s for s in t.shape if s != 1])


def difference(want: torch.Tensor, got: torch.Tensor) -> str:
    """"" if the bits are equal."""
    want, got = wide(want), wide(got)
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype} {tuple(got.shape)}, expected {want.dtype} {tuple(want.shape)}"
    unequal = as_bits(want) != as_bits(got)
    if not unequal.any():
        return ""
    most = float((want.double() - got.double()).abs().max())
    return f"{int(unequal.sum())} of {want.numel()} values, max abs {most:.3g}"


def problem(case: Case, got: dict[str, torch.Tensor] | str) -> str:
    if isinstance(got, str):
        return got
    for name, want in case.expected().items():
        if case.positions is None and name in ("cos", "sin"):
            continue
        text = difference(want, got[name]) if name in got else "absent"
        if text:
            return f"{name}: {text}"
    return ""


def check(reference: RotaryReference, binary: str, threads: list[int], seed: int) -> tuple[int, list[str]]:
    """The number of equal cases, and a line for each other. The cases take turns with the numbers of threads, and run side by
    side: the binary spends most of a call on its start."""
    cases = [reference.case(seed, number) for number in range(CASES)]
    counts = [threads[number % len(threads)] for number in range(CASES)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tables = pool.map(run, repeat(binary), counts, repeat(reference.name), cases)
        texts = [problem(case, table) for case, table in zip(cases, tables)]
    problems = []
    for case, text in zip(cases, texts):
        if text:
            problems.append(f"{case.params} {case.q.dtype} {tuple(case.q.shape)}: {text}")
    return CASES - len(problems), problems


def unknown(binary: str) -> list[str]:
    """Presets of these packages that are not compared, the other way round, and classes that are neither."""
    said = subprocess.run([binary, "presets", "--rotary", "--json"], check=True, capture_output=True, text=True).stdout
    entries = json.loads(said)
    there = {entry["name"] for entry in entries if not entry["source"].startswith("transformers ")}
    there |= {f"{entry['name']}, {also.split(' (')[0]}" for entry in entries for also in entry["also"]}
    compared = set(ROTARY) | {f"{name}, {copy.label}" for name, copies in ROTARY_COPIES.items() for copy in copies}
    return [f"rotary {name}: listed but not compared" for name in sorted(there - compared)] + [
        f"rotary {name}: compared but not listed" for name in sorted(compared - there)
    ] + [f"rotary: the class {name} is no preset, and named in none" for name in rotary_sites.uncovered(entries)]


def compare(binary: str, threads: list[int], seed: int, names: list[str]) -> tuple[int, int, int]:
    """Prints a line for each preset; returns how many passed, failed and were skipped."""
    warnings.filterwarnings("ignore", message="In CPU autocast")
    passed = failed = skipped = 0
    for reference in (reference for name in names for reference in all_of(name)):
        name = reference.name
        try:
            equal, problems = check(reference, binary, threads, seed)
        except sources.MissingSource as e:
            print(f"rotary {name}: skipped, {e}", flush=True)
            skipped += 1
            continue
        source = f"package {reference.package} {reference.version}, {reference.system}"
        print(f"rotary {name}: equal {equal}/{CASES}, {source}", flush=True)
        for text in problems[:3] + [f"... {len(problems) - 3} more"] * (len(problems) > 3):
            print(f"    {text}")
        passed, failed = passed + (not problems), failed + bool(problems)
    return passed, failed, skipped


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True, help="the binary")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--preset", nargs="+", default=rotary_names(), choices=rotary_names(), metavar="NAME")
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed, failed, skipped = compare(args.posenc, args.threads, args.seed, args.preset)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

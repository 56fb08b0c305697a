"""Compares `posenc relative` with the classes of the real packages, bit for bit: bias, scores, masks and tables of random
settings, tensors and dtypes.

    compare.py --posenc build/release/posenc [--seed N] [--cases N] [--preset NAME...] [--threads 1 2]

Prints its seed first. It has the presets of transformers, and those of timm and x-transformers where these are installed
(packages.py says how).
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import alibi  # noqa: F401
import axes  # noqa: F401
import blocks  # noqa: F401
import buckets  # noqa: F401
import clamped  # noqa: F401
import deberta  # noqa: F401
import documents  # noqa: F401
import packages
import transformer_xl  # noqa: F401
import windows  # noqa: F401
from relative_registry import RELATIVE, Case


def run(binary: str, threads: int, case: Case) -> dict[str, torch.Tensor] | str:
    """What posenc writes, or its error message."""
    with tempfile.TemporaryDirectory() as folder:
        config, given, out = (Path(folder) / name for name in ("settings.json", "in.safetensors", "out.safetensors"))
        config.write_text(json.dumps(case.settings))
        save_file({name: t.contiguous().clone() for name, t in case.tensors.items()}, given)
        done = subprocess.run(
            [binary, "relative", "--config", config, "--in", given, "--out", out],
            capture_output=True, text=True, timeout=3000, env={**os.environ, "OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip
        return load_file(out) if done.returncode == 0 else f"exit {done.returncode}: {done.stderr.strip()[:300]}"


def difference(want: torch.Tensor, got: torch.Tensor) -> str:
    """"" if the bits are equal."""
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype} {tuple(got.shape)}, expected {want.dtype} {tuple(want.shape)}"
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[want.element_size()]
    unequal = (want.contiguous().view(kind) != got.contiguous().view(kind)) & ~(want.isnan() & got.isnan())
    if not unequal.any():
        return ""
    most = float((want.double() - got.double()).abs().nan_to_num(0, 0, 0).max())
    return f"{int(unequal.sum())} of {want.numel()} values, max abs {most:.3g}"


def problem(case: Case, got: dict[str, torch.Tensor] | str) -> str:
    if isinstance(got, str):
        return got
    for name, want in case.expected.items():
        text = difference(want, got[name]) if name in got else "absent"
        if text:
            return f"{name}: {text}"
    return ""


def check(name: str, binary: str, threads: list[int], seed: int, count: int) -> list[str]:
    """A line for each case that is not equal."""
    problems = []
    for number in range(count):
        case = RELATIVE[name].case(seed, number)
        texts = [problem(case, run(binary, n, case)) for n in threads]
        text = next((t for t in texts if t), "")
        if text:
            shapes = {key: tuple(t.shape) for key, t in case.tensors.items()}
            problems.append(f"{number}: {case.settings} {shapes}: {text}")
    return problems


def unknown(binary: str) -> list[str]:
    """Presets that are compared but not listed, and those listed that no adapter here has."""
    said = subprocess.run([binary, "presets", "--relative", "--json"], check=True, capture_output=True, text=True).stdout
    listed = {entry["name"]: entry["source"].split()[0] for entry in json.loads(said)}
    packages = {listed[name] for name in RELATIVE if name in listed}
    return [f"{name}: compared but not listed" for name in sorted(set(RELATIVE) - set(listed))] + [
        f"{name}: listed but not compared" for name, package in listed.items() if package in packages and name not in RELATIVE
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True, help="the binary")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--cases", type=int, default=8, help="of each preset")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--preset", nargs="+", default=list(RELATIVE), choices=list(RELATIVE), metavar="NAME")
    args = parser.parse_args()
    seed = secrets.randbelow(10**9) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    if packages.missing():
        print(f"timm and x-transformers: skipped, {packages.missing()} is not installed")
    failed = unknown(args.posenc) if len(args.preset) == len(RELATIVE) else []
    print("\n".join(failed), end="\n" if failed else "")
    for name in args.preset:
        problems = check(name, args.posenc, args.threads, seed, args.cases)
        print(f"{name}: equal {args.cases - len(problems)}/{args.cases}", flush=True)
        for text in problems[:3] + [f"... {len(problems) - 3} more"] * (len(problems) > 3):
            print(f"    {text}")
        failed += [name] * bool(problems)
    print(f"{len(args.preset)} presets, {len(failed)} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compares every reference with its plain-torch re-derivation, as int32 (so -0.0 is not 0.0). One line per preset."""

import argparse
import sys
import time

import torch

import table_cases
import rederived
import sources
from adapters import Reference, all_of


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.view(torch.int32), b.contiguous().view(torch.int32))


def explain(a: torch.Tensor, b: torch.Tensor) -> str:
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)} against {tuple(b.shape)}"
    different = a.view(torch.int32) != b.contiguous().view(torch.int32)
    return f"{int(different.sum())} of {a.numel()} values, max abs {float((a - b).abs().max()):.3g}"


def check(reference: Reference, seed: int) -> tuple[int, int, list[str]]:
    equal, total, notes = 0, 0, []
    for case in table_cases.of(reference, seed):
        if case.expect == "error":
            continue
        total += 1
        try:
            want = reference.table(case.length, case.dim, **case.params)
        except sources.MissingSource:
            raise
        except Exception as e:
            notes.append(f"{case.length}x{case.dim} {case.params}: {type(e).__name__}: {e}")
            continue
        got = rederived.table(reference.name, case.length, case.dim, **case.params)
        if same(want, got):
            equal += 1
        else:
            notes.append(f"{case.length}x{case.dim} {case.params}: {explain(want, got)}")
    return equal, total, notes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("presets", nargs="*")
    args = parser.parse_args()
    torch.set_num_threads(1)
    passed = failed = skipped = 0
    for r in (r for name in args.presets or rederived.NAMES for r in all_of(name)):
        begin = time.monotonic()
        name = f"{r.name} ({r.system})"
        try:
            equal, total, notes = check(r, args.seed)
        except sources.MissingSource as e:
            skipped += 1
            print(f"{name}: skipped, {e}")
            continue
        ok = equal == total
        passed, failed = passed + ok, failed + (not ok)
        print(
            f"{name}: equal {equal}/{total} {r.kind} {r.package} {r.version} {time.monotonic() - begin:.1f}s",
            flush=True,
        )
        for note in notes[:3]:
            print(f"    {note}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

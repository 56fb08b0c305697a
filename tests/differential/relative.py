"""Relative positions of every preset against the system's own class: bits in the dtypes that it has, and gradients in float32.

The cases are those of tests/relative, which also compares them by the command.
"""

import importlib
import sys
from pathlib import Path

import torch

from harness import Case, Draw, Failure, Programs, run

sys.path.append(str(Path(__file__).parents[1] / "relative"))
for name in ("alibi", "axes", "buckets", "clamped", "deberta", "documents", "packages", "shifted", "windows"):
    importlib.import_module(name)
RELATIVE = importlib.import_module("registry").RELATIVE

CASES = 4  # of each preset in a batch, beside one with gradients


def bits(draw: Draw, name: str) -> Case:
    case = RELATIVE[name].case(draw.getrandbits(48))
    return Case({"op": "relative", "settings": case.settings}, case.tensors, case.expected, "bits")


def gradients(draw: Draw, name: str) -> Case | None:
    """None where no output depends on a tensor."""
    case = RELATIVE[name].case(draw.getrandbits(48), gradients=True)
    outputs = {key: value for key, value in case.expected.items() if value.requires_grad}
    leaves = {key: value for key, value in case.tensors.items() if value.requires_grad}
    if not outputs:
        return None
    cotangents = {key: draw.normal(*value.shape) for key, value in outputs.items()}
    found = torch.autograd.grad(list(outputs.values()), list(leaves.values()), list(cotangents.values()), allow_unused=True)
    expected = {f"grad.{key}": value for key, value in zip(leaves, found) if value is not None}
    tensors = case.tensors | {f"cotangent.{key}": value for key, value in cotangents.items()}
    return Case({"op": "relative", "settings": case.settings}, tensors, expected, "sums")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    cases = []
    for name, reference in RELATIVE.items():
        cases += [bits(draw, name) for _ in range(CASES)]
        if "float32" in reference.dtypes:
            cases += [case for case in [gradients(draw, name)] if case]
    return run(programs, cases)

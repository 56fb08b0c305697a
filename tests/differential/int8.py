"""Layers with weights in 8 bits against the arithmetic that docs/int8.md states, in integers of 64 bits: equal bits with
every instruction set of the processor, on one to three threads."""

import re

import numpy as np
import torch
from torch import Tensor

from harness import Case, Draw, Failure, Programs, judge

CASES = 24
WIDTHS = [1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 257]
UNUSUAL = [0.0, -0.0, 1e-45, 1e-40, 2.0**-126, 2.0**-101, 2.0**-100, 7.9e-31, 1e30, 3.4e38, -3.4e38, float("inf"),
           float("-inf"), float("nan")]  # fmt: skip


def converted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the integers and the unit of each row."""
    integers, units = np.zeros(rows.shape, np.int64), np.zeros(len(rows), np.float32)
    for i, row in enumerate(rows):
        if not np.isfinite(row).all():
            units[i] = np.nan
            continue
        largest = np.abs(row).max()
        if largest < np.float32(2.0**-100):
            continue
        scale = np.float32(127) / largest
        units[i] = largest / np.float32(127)
        integers[i] = np.rint(row * scale)  # to nearest, ties to even
    return integers, units


def layer(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    (q_x, unit_x), (q_w, unit_w) = converted(x), converted(weight)
    out = (q_x @ q_w.T).astype(np.float32) * unit_w * unit_x[:, None]
    assert out.dtype == np.float32
    return out if bias is None else out + bias


def unusual(draw: Draw, matrix: Tensor) -> None:
    """Changes some rows to what a conversion could get wrong."""
    for row in matrix:
        kind = draw.randrange(12)
        if kind == 0:  # one number
            row[draw.randrange(len(row))] = draw.choice(UNUSUAL)
        elif kind == 1:  # nothing else
            row.fill_(draw.choice(UNUSUAL))
        elif kind == 2:  # halves, which are ties where the scale is 1
            row.copy_(draw.integers(254, len(row)) - 126.5)
            row[draw.randrange(len(row))] = draw.choice([127.0, -127.0])
        elif kind == 3:  # of one sign and the largest size, which would saturate 16 bits
            row.fill_(draw.choice([2.0, -3.0]))
        elif kind == 4:
            row.mul_(10.0 ** draw.randint(-38, 30))
        elif kind == 5:  # subnormal
            row.mul_(2.0**-130)


def case_of(draw: Draw) -> Case:
    rows = draw.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 30, 70])
    inner, outer, beside = draw.choice(WIDTHS), draw.choice(WIDTHS), draw.choice([0, 0, 1, 5])
    if draw.coin(0.1):
        inner, outer = draw.choice([(2048, 48), (512, 333), (3000, 1)])
    x, weight = draw.normal(rows, inner + beside), draw.normal(outer, inner)
    if draw.coin(0.7):
        unusual(draw, x)
    if draw.coin(0.5):
        unusual(draw, weight)
    tensors = {"x": x, "weight": weight, "ids": draw.integers(outer, draw.randint(1, 9))}
    if draw.coin():
        tensors["bias"] = draw.normal(outer) * draw.choice([0.0, 1.0, 100.0])
    bias = tensors["bias"].numpy() if "bias" in tensors else None
    integers, units = converted(weight.numpy())
    table = torch.from_numpy(integers.astype(np.float32) * units[:, None])
    expected = {"out": torch.from_numpy(layer(x[:, :inner].numpy(), weight.numpy(), bias)),
                "rows": table[tensors["ids"]]}  # fmt: skip
    return Case({"op": "int8_layer", "threads": draw.randint(1, 3)}, tensors, expected, "bits")


def set_names(programs: Programs, case: Case) -> list[str]:
    """Returns the instruction sets of this processor, which the error for an unknown one lists."""
    answer = programs.compute([case], "sets", {"POSENC_ISA": "unknown"})[0]
    found = re.search(r"this processor has: (.*)\. Got", str(answer))
    assert found, answer
    return found[1].split(", ")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with np.errstate(all="ignore"):
        cases = [case_of(draw) for _ in range(CASES)]
    count, failures = 0, []
    for name in set_names(programs, cases[0]):
        results = programs.compute(cases, name, {"POSENC_ISA": name})
        count += len(cases)
        failures += [Failure(f"{name}: {one.what}", one.why) for one in judge(cases, results)]
    return count, failures

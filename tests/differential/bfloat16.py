"""What computes in bfloat16 against the arithmetic that docs/bfloat16.md states, step by step in float32, and attention against
PyTorch's own in float64 of the rounded numbers. Layers have equal bits with every instruction set of the processor, on one to three
threads, those of very small or large numbers with the sets that have fused multiply-add; so have attentions and whole models."""

import logging

import numpy as np
import torch
from torch import Tensor

import encoders
from harness import Case, Draw, Failure, Programs, judge
from int8 import WIDTHS, WITHOUT_FUSED, far, model_case, set_names

LAYERS, ATTENTIONS = 16, 8
ENCODERS = ("convbert", "deberta", "deberta-v2", "mobilebert", "wav2vec2-conformer", "xlnet", "bert", "modernbert", "t5")
WEIGHTS = ("float32", "int8", "bfloat16")
BOUNDS = {"int8": 0.1, "bfloat16": 0.03, "float32": 0.03}
UNUSUAL = [0.0, -0.0, 1e-45, -1e-40, 2.0**-126, 1.00390625, 1.01171875, 3.4e38, float("inf"), float("-inf"), float("nan")]


def flushed(x: np.ndarray) -> np.ndarray:
    """What is below 2^-126 becomes zero, with its sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x).astype(np.float32)


def rounded(x: np.ndarray) -> np.ndarray:
    """To bfloat16, to nearest, ties to even; what is below 2^-126 becomes zero."""
    bits = flushed(x).view(np.uint32).astype(np.uint64)
    near = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, near)


def layer(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Products are exact in float32 for numbers of ordinary size, so that a sum rounds once."""
    x, weight = rounded(x), rounded(weight)
    sums = np.zeros((len(x), len(weight)), np.float32)
    for k in range(0, x.shape[1], 2):
        for at in (k + 1, k):
            if at < x.shape[1]:
                sums = flushed(sums + x[:, at, None] * weight[None, :, at])
    assert sums.dtype == np.float32
    return sums if bias is None else flushed(sums + flushed(bias))


def layer_case(draw: Draw) -> Case:
    rows = draw.choice([1, 1, 2, 3, 4, 5, 8, 12, 13, 16, 25, 30, 70])
    inner, outer, beside = draw.choice(WIDTHS), draw.choice(WIDTHS), draw.choice([0, 0, 1, 5])
    x, weight = draw.normal(rows, inner + beside), draw.normal(outer, inner)
    for matrix in (x, weight):
        for row in matrix if draw.coin() else ():
            if draw.coin(0.2):
                row[draw.randrange(len(row))] = draw.choice(UNUSUAL)
    tensors = {"x": x, "weight": weight, "ids": draw.integers(outer, draw.randint(1, 9))}
    if draw.coin():
        tensors["bias"] = draw.normal(outer) * draw.choice([0.0, 1.0, 100.0])
    bias = tensors["bias"].numpy() if "bias" in tensors else None
    expected = {"out": torch.from_numpy(layer(x[:, :inner].numpy(), weight.numpy(), bias)),
                "rows": torch.from_numpy(rounded(weight.numpy()))[tensors["ids"]]}  # fmt: skip
    return Case({"op": "bfloat16_layer", "threads": draw.randint(1, 3)}, tensors, expected, "bits")


def is_ordinary(case: Case) -> bool:
    """Whether sets without fused multiply-add have the same bits, too."""
    sizes = torch.cat([case.tensors[name].flatten() for name in ("x", "weight")]).abs().nan_to_num(0.0, 0.0)
    return bool(((sizes == 0) | ((sizes > 2.0**-40) & (sizes < 2.0**40))).all())


def attention_case(draw: Draw) -> tuple[Case, Tensor]:
    """A case that expects nothing yet, and PyTorch's attention on the rounded numbers."""
    heads, width, batch = draw.randint(1, 4), draw.choice([1, 2, 5, 8, 16, 20, 32, 64, 80]), draw.randint(1, 3)
    queries, keys, causal = draw.randint(1, 130), draw.randint(1, 130), draw.coin(0.3)
    if causal:
        keys = queries
    tensors = {name: draw.normal(batch, length, heads * width) for name, length in (("q", queries), ("k", keys), ("v", keys))}
    added = torch.zeros(batch, heads, queries, keys)
    if draw.coin():
        tensors["bias"] = added = draw.normal(batch, heads, queries, keys)
    q, k, v = (torch.from_numpy(rounded(tensors[name].numpy())).double().unflatten(2, (heads, width)).transpose(1, 2) for name in "qkv")
    added = added.double()
    if causal:
        added = added.masked_fill(torch.ones(queries, keys).triu(1) > 0, float("-inf"))
    exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, added).transpose(1, 2).flatten(2)
    options = {"op": "sequence_attention", "products": "bfloat16", "threads": draw.randint(1, 3), "heads": heads, "causal": causal}
    return Case(options, tensors, {}, "bits"), exact


def whole_models(draw: Draw, programs: Programs) -> tuple[list[Case], list[Tensor | None]]:
    cases = [model_case(draw, programs, weights) for weights in WEIGHTS]
    with torch.no_grad(), encoders.one_thread(logging.ERROR):
        made, *_ = encoders.one(draw, programs, draw.choice(ENCODERS), 0)
    given, exact = made[0].tensors, made[0].expected["last_hidden_state"]
    cases += [Case({"op": "converted_encoder", "weights": one, "folder": made[0].options["folder"]}, given, {}, "bits") for one in WEIGHTS]
    for case in cases:
        case.options["compute"] = "bfloat16"
    return cases, [None] * len(WEIGHTS) + [exact] * len(WEIGHTS)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with np.errstate(all="ignore"):
        layers = [layer_case(draw) for _ in range(LAYERS)]
    attentions = [attention_case(draw) for _ in range(ATTENTIONS)]
    models, exact = whole_models(draw, programs)
    near = [case for case, _ in attentions] + models
    truths = [truth for _, truth in attentions] + exact
    names = set_names(programs, layers[0])
    fused = [name for name in names if name not in WITHOUT_FUSED or "sse2" not in names]
    count, failures = 0, []
    for name in reversed(names):  # the best one first
        cases = layers + near if name in fused else [case for case in layers if is_ordinary(case)]
        threads = str(draw.randint(1, 3))
        results = programs.compute(cases, f"bfloat16-{name}", {"POSENC_ISA": name, "OMP_NUM_THREADS": threads})
        for case, got, truth in zip(near, results[LAYERS:], truths):
            if case.expected or isinstance(got, str):
                continue
            case.expected = got
            if case.options["op"] == "sequence_attention":
                error = (got["out"].double() - truth).abs().max().item()
                if error > 0.02:  # a weight rounded to 8 bits of mantissa
                    failures.append(Failure(f"{case.options}", f"off by {error:.3g}"))
            elif truth is not None and (why := far(case, got["out"], truth, BOUNDS)):
                failures.append(Failure(f"{case.options}", why))
        count += len(cases)
        failures += [Failure(f"{name}, {threads} threads: {one.what}", one.why) for one in judge(cases, results)]
    return count, failures

"""Optimisers with random options, groups, dtypes, strides and sparse gradients against torch.optim, each step;
clipping."""

import math

import torch

from harness import DTYPES, Case, Draw, Failure, Programs, run

CASES = 10
KINDS = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD,
         "SparseAdam": torch.optim.SparseAdam}  # fmt: skip


def options_of(draw: Draw, kind: str, sparse: bool) -> dict:
    """Random options, for a group or the optimiser."""
    every = {"lr": draw.choice([1e-4, 0.01, 0.3, 0.0]), "maximize": draw.coin()}
    if kind == "SGD":
        every |= {"momentum": draw.choice([0.0, 0.5, 0.9]), "dampening": draw.choice([0.0, 0.3])}
        if not sparse:
            every["weight_decay"] = draw.choice([0.0, 0.01])
        if draw.coin(0.3):
            every |= {"nesterov": True, "momentum": 0.9, "dampening": 0.0}
            return every
    else:
        every |= {"betas": [draw.choice([0.0, 0.5, 0.9]), draw.choice([0.9, 0.999])], "eps": draw.choice([1e-8, 1e-3])}
    if kind == "SparseAdam":
        every["lr"] = every["lr"] or 0.01
    elif kind != "SGD":
        every |= {"weight_decay": draw.choice([0.0, 0.1]), "amsgrad": draw.coin()}
    return {name: value for name, value in every.items() if draw.coin(0.7)}


def row_gradient(draw: Draw, p: torch.Tensor) -> torch.Tensor:
    rows = draw.integers(p.size(0), draw.choice([0, 1, 5, 30]))
    values = draw.normal(len(rows), p.size(1)).to(p.dtype)
    gradient = torch.sparse_coo_tensor(rows.unsqueeze(0), values, p.shape)
    return gradient.coalesce() if draw.coin() else gradient


def one(draw: Draw) -> Case:
    kind = draw.choice(list(KINDS))
    sparse = kind == "SparseAdam" or (kind == "SGD" and draw.coin(0.4))
    # Python's SGD cannot add sparse tensors of half types.
    halves = [] if sparse and kind == "SGD" else ["bfloat16", "float16"]
    dtype = DTYPES[draw.choice(["float32", "float32", "float64", *halves])]
    shapes = [(draw.randint(1, 40), draw.choice([1, 3, 16, 33])) for _ in range(draw.randint(1, 4))]
    if not sparse and draw.coin(0.3):
        shapes.append(())
    transposed = [not sparse and len(shape) == 2 and draw.coin(0.3) for shape in shapes]
    parameters = []
    for shape, turned in zip(shapes, transposed):
        p = draw.normal(*shape).to(dtype)
        parameters.append((p.t().contiguous().t() if turned else p).requires_grad_())
    tensors = {f"start.{k}": p.detach().clone() for k, p in enumerate(parameters)}
    options = options_of(draw, kind, sparse)
    nesterov = options.get("nesterov", False)
    # A group must not drop the momentum that nesterov requires.
    groups = [options_of(draw, kind, sparse) if draw.coin(0.4) and not nesterov else {} for _ in parameters]
    listed = [{"params": [p], **group} for p, group in zip(parameters, groups)]
    optimizer = KINDS[kind](listed, **options, **({} if sparse else {"fused": True}))
    steps, expected, momentum = draw.randint(1, 12), {}, False
    for step in range(steps):
        for k, p in enumerate(parameters):
            key = f"grad.{step}.{k}"
            p.grad = None
            if draw.coin(0.15):
                continue
            if sparse:
                p.grad = row_gradient(draw, p)
                tensors[f"{key}.rows"], tensors[f"{key}.values"] = p.grad._indices()[0].clone(), p.grad._values().clone()
                if p.grad.is_coalesced():
                    tensors[f"{key}.coalesced"] = torch.ones(1)
            else:
                gradient = draw.normal(*p.shape).to(dtype)
                if draw.coin(0.1):
                    gradient.zero_()
                tensors[key] = gradient
                p.grad = gradient.t().contiguous().t() if transposed[k] else gradient.clone()
        optimizer.step()
        expected |= {f"after.{step}.{k}": p.detach().clone() for k, p in enumerate(parameters)}
    if sparse and kind == "SGD":
        momentum = any({**options, **group}.get("momentum", 0.0) for group in groups)
    made = {"op": "optimizer", "optimizer": kind, "options": options, "groups": groups, "steps": steps,
            "transposed": transposed}  # fmt: skip
    return Case(made, tensors, expected, "momentum" if momentum else "bits")


def clip(draw: Draw) -> Case:
    """One step of a Trainer with clip_norm, against clip_grad_norm_ on the dense gradients."""
    dtype = DTYPES[draw.choice(["float32", "float32", "float64", "bfloat16", "float16"])]
    size, max_norm, lr = draw.choice([1e-4, 1.0, 30.0]), draw.choice([0.5, 1.0, 7.0]), draw.choice([0.0, 0.1, 1.0])
    tensors, parameters = {}, []
    for k in range(draw.randint(1, 5)):
        p = draw.normal(draw.randint(1, 9), draw.choice([1, 3, 16])).to(dtype).requires_grad_()
        tensors[f"start.{k}"] = p.detach().clone()
        parameters.append(p)
        kind = draw.choice(["dense", "dense", "sparse", "none"])
        if kind == "dense":
            p.grad = (draw.normal(*p.shape) * size).to(dtype)
            if draw.coin(0.05):
                p.grad[0, 0] = draw.choice([math.inf, math.nan, 0.0])
            tensors[f"grad.{k}"] = p.grad.clone()
        elif kind == "sparse" and dtype in (torch.float32, torch.float64):  # Python supports no others
            rows = draw.integers(p.size(0), draw.choice([0, 1, 5, 30]))
            values = (draw.normal(len(rows), p.size(1)) * size).to(dtype)
            tensors[f"rows.{k}"], tensors[f"values.{k}"] = rows, values
            p.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), values, p.shape).to_dense()

    def of(wide: torch.dtype) -> dict:
        own = [p.detach().clone().to(wide).requires_grad_() for p in parameters]
        for p, given in zip(own, parameters):
            p.grad = None if given.grad is None else given.grad.clone().to(wide)
        torch.nn.utils.clip_grad_norm_(own, max_norm)
        torch.optim.SGD(own, lr, fused=True).step()
        return {f"after.{k}": p.detach() for k, p in enumerate(own)} | {
            f"grad.{k}": p.grad for k, p in enumerate(own) if p.grad is not None
        }

    options = {"op": "clip", "max_norm": max_norm, "lr": lr, "twice": draw.coin(0.3)}
    return Case(options, tensors, of(dtype), "sums", of(torch.float64))


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    return run(programs, [clip(draw) if draw.coin(0.3) else one(draw) for _ in range(CASES)])

"""Trajectories of PyTorch's optimisers. `trajectories.py FOLDER` writes one file per case, with the parameters
`start.<k>`, the gradients `grad.<step>.<k>` (`rows` and `values` of a sparse one) and the parameters after each step,
`after.<step>.<k>`; metadata `case` describes the case in JSON."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

STEPS = 20
SHAPES = [(7, 33), (5,), (1,), (61, 83)]  # the last is split between threads
TABLE = (50, 19)
KINDS = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD,
         "SparseAdam": torch.optim.SparseAdam}  # fmt: skip
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}

# name: optimiser, options, and if relevant: options of each group, dtype, absent, sparse
CASES = {
    "adam": ("Adam", {"lr": 0.01}, {}),
    "adam_options": ("Adam", {"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-6, "weight_decay": 0.1}, {}),
    "adam_amsgrad": ("Adam", {"amsgrad": True}, {}),
    "adam_maximize": ("Adam", {"maximize": True, "weight_decay": 0.01}, {}),
    "adam_absent": ("Adam", {"lr": 0.01}, {"absent": True}),
    "adam_groups": ("Adam", {"lr": 0.01, "weight_decay": 0.1, "eps": 1e-7},
                    {"groups": [{}, {"weight_decay": 0.0}, {"lr": 0.001, "amsgrad": True}, {"eps": 1e-8}]}),
    "adamw": ("AdamW", {}, {}),
    "adamw_options": ("AdamW", {"lr": 0.02, "betas": [0.8, 0.95], "weight_decay": 0.2, "amsgrad": True}, {}),
    "adamw_groups": ("AdamW", {}, {"groups": [{"weight_decay": 0.0}, {}, {"maximize": True}, {"lr": 0.1}]}),
    "sgd": ("SGD", {"lr": 0.1}, {}),
    "sgd_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}, {}),
    "sgd_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}, {}),
    "sgd_groups": ("SGD", {"lr": 0.1, "momentum": 0.9}, {"groups": [{}, {"momentum": 0.0}, {"lr": 1.0}, {}]}),
    "sgd_rows": ("SGD", {"lr": 0.1}, {"sparse": True}),
    "sgd_rows_maximize": ("SGD", {"lr": 0.1, "maximize": True}, {"sparse": True}),
    "sgd_rows_momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2}, {"sparse": True}),
    "sgd_rows_nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}, {"sparse": True}),
    "sparse_adam": ("SparseAdam", {}, {"sparse": True}),
    "sparse_adam_options": ("SparseAdam", {"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-6, "maximize": True},
                            {"sparse": True, "absent": True}),
}  # fmt: skip
for base in ("adam_amsgrad", "adamw", "sgd_momentum", "sgd_rows", "sparse_adam"):
    for dtype in ("float64", "bfloat16", "float16"):
        kind, options, more = CASES[base]
        CASES[f"{base}_{dtype}"] = (kind, options, {**more, "dtype": dtype})


def row_gradient(step: int, dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    """Rows with repeats; coalesced in every other step, empty in the fourth."""
    rows = torch.randint(TABLE[0], (0 if step == 3 else 30,), generator=generator)
    values = torch.randn(len(rows), TABLE[1], generator=generator).to(dtype)
    gradient = torch.sparse_coo_tensor(rows.unsqueeze(0), values, TABLE)
    return gradient.coalesce() if step % 2 else gradient


def trajectory(name: str, folder: Path) -> None:
    kind, options, more = CASES[name]
    sparse, dtype = more.get("sparse", False), DTYPES[more.get("dtype", "float32")]
    generator = torch.Generator().manual_seed(len(name))
    shapes = [TABLE, TABLE] if sparse else SHAPES
    parameters = [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]
    tensors = {f"start.{k}": p.detach().clone() for k, p in enumerate(parameters)}
    groups = more.get("groups", [{}] * len(parameters))
    fused = {} if sparse else {"fused": True}
    listed = [{"params": [p], **group} for p, group in zip(parameters, groups)]
    optimizer = KINDS[kind](listed, **options, **fused)
    for step in range(STEPS):
        for k, p in enumerate(parameters):
            if more.get("absent") and (step + k) % 3 == 0:
                p.grad = None
            elif sparse:
                p.grad = row_gradient(step, dtype, generator)
                tensors[f"grad.{step}.{k}.rows"] = p.grad._indices()[0].clone()
                tensors[f"grad.{step}.{k}.values"] = p.grad._values().clone()
            else:
                p.grad = torch.randn(p.shape, generator=generator).to(dtype)
                tensors[f"grad.{step}.{k}"] = p.grad
        optimizer.step()
        tensors |= {f"after.{step}.{k}": p.detach().clone() for k, p in enumerate(parameters)}
    case = {"optimizer": kind, "options": options, "groups": groups}
    save_file(tensors, folder / f"{name}.safetensors", {"case": json.dumps(case)})


for name in CASES:
    trajectory(name, Path(sys.argv[1]))

"""The notebooks' tables as their classes make them with another default dtype.

`default_dtype.py NOTEBOOKS FOLDER` writes tables.safetensors for tests/modules/default_dtype_test.cpp: `<dtype>.<key>`, one
entry per class, with D = 24 and 700 positions, more than a half type can count.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

sys.path.insert(0, sys.argv[1])
from reference import (  # noqa: E402
    input_embedding,
    position_embedding,
    timestep_embedding,
    token_and_position_embedding,
)

WIDTH, LENGTH = 24, 700

torch.set_num_threads(1)
tables = {}
for name in ("float32", "float64", "bfloat16", "float16"):
    torch.set_default_dtype(getattr(torch, name))
    tables[f"{name}.input_embedding"] = input_embedding.PositionalEncoding(WIDTH, LENGTH).pe
    tables[f"{name}.token_and_position_embedding"] = (
        token_and_position_embedding.PositionalEncoding(WIDTH, LENGTH).pe
    )
    tables[f"{name}.position_embedding"] = position_embedding.MyPositionEncoding(
        LENGTH, WIDTH
    ).pos_enc
    if name.startswith("float") and name != "float16":
        tables[f"{name}.timestep_embedding"] = timestep_embedding.PositionalEncoding(
            LENGTH, WIDTH
        ).embedding.weight.detach()
save_file({key: value.contiguous() for key, value in tables.items()},
          Path(sys.argv[2]) / "tables.safetensors")

"""Notebook 04: position_embedding stored as a buffer."""

from pathlib import Path
from typing import List

import torch

from reference import position_embedding as reference
from reference.cases.common import module_case, tables

NOTEBOOK = "04_position_embedding"


def write_all(folder: Path) -> List[str]:
    """Every case of this notebook; the names that were written."""
    return _buffered_positions(folder)


def _buffered_positions(folder: Path) -> List[str]:
    stem, written = "position_embedding", []
    cases = {  # max_len, d_model, position_ids
        "buffer_d6": (10, 6, torch.arange(0, 4).unsqueeze(0).expand(2, -1)),
        "buffer_d6_offset": (10, 6, torch.arange(3, 7).unsqueeze(0).expand(2, -1)),
        "buffer_d2_flat": (50, 2, torch.tensor([49, 0, 7])),
        "buffer_d18_repeated": (33, 18, torch.tensor([[5, 5, 5], [32, 0, 5]])),
        "buffer_d96_max_len": (40, 96, torch.arange(40).unsqueeze(0)),
        "buffer_d200_length_one": (20, 200, torch.tensor([[19]])),
        "buffer_d512": (9, 512, torch.tensor([[8, 1, 0], [2, 2, 7]])),
    }
    for case, (max_len, d_model, position_ids) in cases.items():
        module = reference.MyPositionEncoding(max_len, d_model)
        inputs = {"position_ids": position_ids.contiguous()}
        options = {"max_len": max_len, "d_model": d_model, "storage": "buffer"}
        options["preset"] = "notebook_004"
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    build = lambda length, dim: reference.MyPositionEncoding(length, dim).pos_enc  # noqa: E731
    return written + tables(folder, NOTEBOOK, "notebook_004", build)

"""Notebook 02: timestep_embedding, and position_embedding stored as a frozen weight."""

from pathlib import Path
from typing import List

from reference import timestep_embedding as reference
from reference.cases.common import ids_for, module_case, tables
from reference.fixture import generator, normal_like

NOTEBOOK = "02_timestep_embedding"


def write_all(folder: Path) -> List[str]:
    """Every case of this notebook; the names that were written."""
    return _frozen_positions(folder) + _timesteps(folder)


def _frozen_positions(folder: Path) -> List[str]:
    stem, written = "position_embedding", []
    cases = {  # max_len, d_model, shape of the ids
        "frozen_d2": (100, 2, (16,)),
        "frozen_d18_column": (100, 18, (16, 1)),
        "frozen_d96_matrix": (60, 96, (4, 3)),
        "frozen_d200": (20, 200, (1,)),
        "frozen_d512": (9, 512, (2, 5)),
    }
    for case, (max_len, d_model, shape) in cases.items():
        inputs = {"position_ids": ids_for(stem, case, max_len, *shape)}
        module = reference.PositionalEncoding(max_len, d_model)
        options = {"max_len": max_len, "d_model": d_model, "storage": "embedding"}
        options["preset"] = "notebook_002"
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    build = lambda length, dim: reference.PositionalEncoding(length, dim).embedding.weight  # noqa: E731
    return written + tables(folder, NOTEBOOK, "notebook_002", build, [(5000, 512)])


def _timesteps(folder: Path) -> List[str]:
    stem, written = "timestep_embedding", []
    cases = {  # max_len, d_model, channels, shape of t, shape of the image
        "d128_column": (100, 128, 1, (16, 1), None),
        "d36_flat": (77, 36, 1, (16,), None),
        "d2": (50, 2, 2, (3,), None),
        "d96_three_channels": (100, 96, 3, (5, 1), None),
        "d6_length_one": (10, 6, 4, (1,), None),
        "image": (20, 36, 1, (16, 1), (1, 28, 28)),
        "image_gradients": (77, 36, 3, (5,), (3, 8, 7)),
        "image_batch": (77, 36, 3, (4,), (4, 3, 6, 5)),
    }
    for case, (max_len, d_model, channels, shape, image) in cases.items():
        module = reference.TimestepEmbedding(max_len, d_model, channels)
        t = ids_for(stem, case, max_len, *shape)
        inputs, call = {"t": t}, None
        if image is not None:
            inputs = {"image": normal_like(generator(stem, case, "image"), *image), "t": t}
            call = module.add_to
        options = {"max_len": max_len, "d_model": d_model, "channels": channels}
        options["preset"] = "notebook_002"
        gradients = case != "image"  # 16 images of 28 x 28 and their cotangent are too much
        name = module_case(
            folder, NOTEBOOK, stem, case, module, inputs, options,
            gain=0.25, call=call, with_gradients=gradients,
        )  # fmt: skip
        written.append(name)
    return written

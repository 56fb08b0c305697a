"""Notebook 00: token_embedding, positional_encoding, input_embedding."""

from pathlib import Path
from typing import List

from reference import input_embedding as reference
from reference.cases.common import REPEATED, ids_for, module_case, tables, token_options
from reference.fixture import generator, normal_like

NOTEBOOK = "00_input_embedding"


def write_all(folder: Path) -> List[str]:
    """Every case of this notebook; the names that were written."""
    return _tokens_plain(folder) + _positional_encodings(folder) + _input_embeddings(folder)


def _tokens_plain(folder: Path) -> List[str]:
    stem, written = "token_embedding", []
    shapes = {
        "d2": (7, 2, (2, 3)),
        "d6_length_one": (211, 6, (2, 1)),
        "d18": (23, 18, (3, 5)),
        "d96_flat_ids": (13, 96, (9,)),
        "d200_cube_ids": (9, 200, (2, 3, 2)),
        "d512": (7, 512, (1, 4)),
    }
    for case, (vocab_size, d_model, shape) in shapes.items():
        inputs = {"ids": ids_for(stem, case, vocab_size, *shape)}
        module = reference.TokenEmbedding(vocab_size, d_model)
        options = token_options(vocab_size, d_model)
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    module = reference.TokenEmbedding(11, 18)
    options = token_options(11, 18)
    inputs = {"ids": REPEATED}
    written.append(module_case(folder, NOTEBOOK, stem, "repeated_ids", module, inputs, options))
    return written


def _positional_encodings(folder: Path) -> List[str]:
    stem, written = "positional_encoding", []
    shapes = {  # d_model, max_len, batch, length
        "d2": (2, 50, 2, 7),
        "d6_length_one": (6, 33, 3, 1),
        "d18": (18, 40, 2, 11),
        "d96_max_len": (96, 14, 2, 14),
        "d200": (200, 12, 2, 7),
        "d512": (512, 7, 1, 5),
        "max_len_one": (6, 1, 2, 1),
        "d6_long": (6, 400, 1, 400),
    }
    for case, (d_model, max_len, batch, length) in shapes.items():
        inputs = {"x": normal_like(generator(stem, case, "x"), batch, length, d_model)}
        module = reference.PositionalEncoding(d_model, max_len)
        options = {"d_model": d_model, "max_len": max_len, "dropout": 0.0}
        options["preset"] = "notebook_000"
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    build = lambda length, dim: reference.PositionalEncoding(dim, length).pe[0]  # noqa: E731
    return written + tables(folder, NOTEBOOK, "notebook_000", build, [(5000, 512)])


def _input_embeddings(folder: Path) -> List[str]:
    stem, written = "input_embedding", []
    shapes = {  # vocab_size, d_model, max_len, batch, length
        "d2": (19, 2, 16, 2, 5),
        "d6_length_one": (19, 6, 16, 2, 1),
        "d18_max_len": (29, 18, 23, 3, 23),
        "d96": (17, 96, 20, 2, 7),
        "d200": (11, 200, 12, 1, 7),
        "d512": (7, 512, 5, 1, 3),
    }
    for case, (vocab_size, d_model, max_len, batch, length) in shapes.items():
        inputs = {"ids": ids_for(stem, case, vocab_size, batch, length)}
        module = reference.InputEmbedding(vocab_size, d_model, max_len)
        options = {**token_options(vocab_size, d_model), "max_len": max_len}
        options["preset"] = "notebook_000"
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    module = reference.InputEmbedding(11, 36, 77)
    options = {**token_options(11, 36), "max_len": 77, "preset": "notebook_000"}
    inputs = {"ids": REPEATED}
    written.append(module_case(folder, NOTEBOOK, stem, "repeated_ids", module, inputs, options))
    return written

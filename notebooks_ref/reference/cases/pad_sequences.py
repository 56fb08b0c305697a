"""Notebook 01: pad_sequences, and nn.Embedding itself."""

from pathlib import Path
from typing import List

import torch
from torch import nn

from reference import pad_sequences as reference
from reference.cases.common import REPEATED, module_case, tables, token_options
from reference.fixture import fill_parameters, forward_and_backward, generator, live, seed_of, write

NOTEBOOK = "01_pad_sequences"


def write_all(folder: Path) -> List[str]:
    """Every case of this notebook; the names that were written."""
    return _paddings(folder) + _bare_embeddings(folder) + _initialised(folder)


def _paddings(folder: Path) -> List[str]:
    stem, written = "pad_sequences", []
    cases = {  # lengths, max_len, pad_id, token count
        "inputs": ([2, 4], 5, 0, 8),
        "labels": ([4, 3], 5, 0, 8),
        "pad_id_seven": ([3, 1, 2], 4, 7, 8),
        "full_length": ([6, 6], 6, 0, 211),
        "empty_sequence": ([0, 3, 0], 3, 0, 8),
        "one_sequence": ([1], 9, 0, 8),
    }
    for case, (sizes, max_len, pad_id, count) in cases.items():
        source = generator(stem, case)
        sequences = [torch.randint(1, count, (size,), generator=source) for size in sizes]
        ids, mask, lengths = reference.pad_sequences(sequences, max_len, pad_id)
        tensors = {
            "in.sequences": torch.cat(sequences),  # end to end, to be cut by in.lengths
            "in.lengths": lengths,
            "out.output": ids,
            "out.mask": mask,
        }
        options = {"max_len": max_len, "pad_id": pad_id}
        written.append(write(folder, NOTEBOOK, "pad_sequences", stem, case, tensors, options))
    written.append(_padded_lookup(folder))
    build = reference.positional_encoding_table
    return written + tables(folder, NOTEBOOK, "notebook_001", build, [(5, 8)])


def _padded_lookup(folder: Path) -> str:
    """The notebook's whole flow: pad, look up in TOKEN_CNT + 1 rows, the table beside it."""
    stem, case, count, dim, max_len = "pad_sequences", "lookup", 8, 8, 5
    source = generator(stem, case)
    sequences = [torch.randint(1, count, (size,), generator=source) for size in (2, 4)]
    ids, mask, lengths = reference.pad_sequences(sequences, max_len)
    table = nn.Embedding(count + 1, dim)
    fill_parameters(table, source)
    tensors = forward_and_backward(table, {"ids": ids}, source)
    tensors["out.embedded"] = tensors.pop("out.output")
    tensors.update({"in.sequences": torch.cat(sequences), "in.lengths": lengths})
    tensors.update({"out.output": ids, "out.mask": mask})
    tensors["out.table"] = reference.positional_encoding_table(max_len, dim)
    options = {**token_options(count + 1, dim), "max_len": max_len, "pad_id": 0}
    options.update({"preset": "notebook_001", "dtype": "float32"})
    return write(folder, NOTEBOOK, "pad_sequences", stem, case, tensors, options)


def _bare_embeddings(folder: Path) -> List[str]:
    stem, written = "token_embedding", []
    for case, padding_idx in (("bare", None), ("padding_idx", 0), ("padding_idx_last", 10)):
        module = nn.Embedding(11, 18, padding_idx=padding_idx)
        options = token_options(11, 18, padding_idx=padding_idx)
        inputs = {"ids": REPEATED}
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    return written


def _initialised(folder: Path) -> List[str]:
    """nn.Embedding right after torch.manual_seed, live only: randn depends on the CPU."""
    if not live():
        return []
    stem, written = "token_embedding", []
    cases = {  # vocab_size, d_model, padding_idx; below 16 elements randn takes another path
        "init_seed": (211, 36, None),
        "init_seed_padding_idx": (211, 36, 0),
        "init_seed_padding_idx_middle": (50, 18, 7),
        "init_seed_one_element": (1, 1, None),
        "init_seed_below_16": (5, 3, None),
        "init_seed_16": (8, 2, None),
        "init_seed_17": (17, 1, None),
        "init_seed_large": (1000, 512, None),
    }
    for case, (vocab_size, d_model, padding_idx) in cases.items():
        seed = seed_of(stem, case) % 100000
        torch.manual_seed(seed)
        module = nn.Embedding(vocab_size, d_model, padding_idx=padding_idx)
        options = token_options(vocab_size, d_model, padding_idx=padding_idx)
        options.update({"dtype": "float32", "init": "seed"})
        tensors = {"out.output": module.weight}
        written.append(
            write(folder, NOTEBOOK, "Embedding", stem, case, tensors, options, False, seed)
        )
    return written

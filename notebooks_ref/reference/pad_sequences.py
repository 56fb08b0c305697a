"""Sentences of unequal length as one batch, and the table pos / 10000**(i/D) (notebook 01)."""

from typing import List, Tuple

import torch
from torch import Tensor
from torch.nn import functional as F


def pad_sequences(
    sequences: List[Tensor], max_len: int, pad_id: int = 0
) -> Tuple[Tensor, Tensor, Tensor]:
    """B sequences of ids -> ids (B, L) int64, mask (B, L) true at tokens, lengths (B,) int64.

    The mask comes from the lengths, so an id equal to pad_id inside a sentence stays a token.
    """
    rows: List[Tensor] = []
    sizes: List[int] = []
    for index, sequence in enumerate(sequences):
        length = sequence.numel()
        # F.pad with a negative amount would cut the sentence without a word.
        if length > max_len:
            raise ValueError(f"sequence {index} has {length} tokens, max_len is {max_len}")
        row = sequence.reshape(-1).to(torch.int64)
        row = F.pad(row, (0, max_len - length), value=float(pad_id))
        rows.append(row.unsqueeze(0))  # (1, L)
        sizes.append(length)
    ids = torch.cat(rows, dim=0)  # (B, L)
    lengths = torch.tensor(sizes, dtype=torch.int64)
    mask = torch.arange(max_len).unsqueeze(0) < lengths.unsqueeze(1)
    return ids, mask, lengths


def positional_encoding_table(max_len: int, dim: int) -> Tensor:
    """(L, D), the power taken over one row of exponents: sin and cos of pos / 10000**(i/D)."""
    pos = torch.arange(max_len).reshape((-1, 1))  # (L, 1) int64
    i = torch.arange(0, dim, 2).reshape((1, -1))  # (1, D/2) int64
    angle = pos / torch.pow(10000, i / dim)  # (L, D/2)

    table = torch.zeros(max_len, dim)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table

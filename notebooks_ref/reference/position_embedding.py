"""Positions looked up by explicit ids (notebook 04)."""

import torch
from torch import Tensor, nn


class MyPositionEncoding(nn.Module):
    """position_ids of any shape -> rows (..., D) of the table. Key: pos_enc (L, D). D is even."""

    pos_enc: Tensor

    def __init__(self, max_seq_len: int, hidden_size: int):
        super().__init__()
        self.max_seq_len = max_seq_len
        self.hidden_size = hidden_size
        self.build_pos_enc()

    @torch.jit.unused
    def build_pos_enc(self) -> None:
        pos_enc = torch.zeros(self.max_seq_len, self.hidden_size)
        position = torch.arange(0, self.max_seq_len).unsqueeze(1)  # (L, 1) int64
        # One frequency a pair of dimensions; the reciprocal is taken before the product.
        inv_freq = 1.0 / (
            10000 ** (torch.arange(0, self.hidden_size, 2).float() / self.hidden_size)
        )
        pos_enc[:, 0::2] = torch.sin(position * inv_freq)
        pos_enc[:, 1::2] = torch.cos(position * inv_freq)
        self.register_buffer("pos_enc", pos_enc)

    def forward(self, position_ids: Tensor) -> Tensor:
        return self.pos_enc[position_ids]

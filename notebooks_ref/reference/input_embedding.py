"""Token embedding plus sinusoidal position (notebook 00).

PE[p, 2i] = sin(p * w_i), PE[p, 2i+1] = cos(p * w_i), w_i = exp(2i * -(ln 10000 / D)).
"""

import math

import torch
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """ids (...) -> vectors (..., D). No scaling. Key: embedding.weight."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.embedding(x)


class PositionalEncoding(nn.Module):
    """x (B, L, D) -> x + pe[:, :L]. Key: pe (1, max_len, D). D is even."""

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000):
        super().__init__()
        position = torch.arange(0, max_len).unsqueeze(1).float()  # (L, 1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))

        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))  # (1, L, D)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[:, : x.size(1)].to(x.device)


class InputEmbedding(nn.Module):
    """ids (B, L) -> (B, L, D). Keys: token_embedding.embedding.weight, pos_encoding.pe."""

    def __init__(self, vocab_size: int, d_model: int, max_len: int = 5000):
        super().__init__()
        self.token_embedding = TokenEmbedding(vocab_size, d_model)
        self.pos_encoding = PositionalEncoding(d_model, max_len)

    def forward(self, x: Tensor) -> Tensor:
        x = self.token_embedding(x)
        return self.pos_encoding(x)

"""A diffusion timestep as a vector, and as a shift of an image's channels (notebook 02)."""

import torch
from torch import Tensor, nn


class PositionalEncoding(nn.Module):
    """t of any shape -> rows (..., D) of a frozen table. Key: embedding.weight (L, D)."""

    def __init__(self, max_seq_len: int, d_model: int):
        super().__init__()
        assert d_model % 2 == 0, "d_model must be even"
        # The power runs over the whole (L, D/2) grid; over one row it would give other bits.
        i_seq = torch.linspace(0, max_seq_len - 1, max_seq_len)
        j_seq = torch.linspace(0, d_model - 2, d_model // 2)
        pos, two_i = torch.meshgrid(i_seq, j_seq, indexing="ij")
        pe_2i = torch.sin(pos / 10000 ** (two_i / d_model))
        pe_2i_1 = torch.cos(pos / 10000 ** (two_i / d_model))
        pe = torch.stack((pe_2i, pe_2i_1), 2).reshape(max_seq_len, d_model)

        self.embedding = nn.Embedding(max_seq_len, d_model)
        self.embedding.weight.data = pe
        self.embedding.requires_grad_(False)

    def forward(self, t: Tensor) -> Tensor:
        return self.embedding(t)


class TimestepEmbedding(nn.Module):
    """t (N,) or (N, 1) -> (N, C, 1, 1), ready to be added to an image.

    Keys: pe.embedding.weight, pe_linear.0.weight, pe_linear.0.bias, pe_linear.2.weight,
    pe_linear.2.bias.
    """

    def __init__(self, max_seq_len: int, d_model: int, channels: int):
        super().__init__()
        self.pe = PositionalEncoding(max_seq_len, d_model)
        self.pe_linear = nn.Sequential(
            nn.Linear(d_model, channels), nn.ReLU(), nn.Linear(channels, channels)
        )

    def forward(self, t: Tensor) -> Tensor:
        return self.pe_linear(self.pe(t)).reshape(t.size(0), -1, 1, 1)

    def add_to(self, image: Tensor, t: Tensor) -> Tensor:
        """image (C, H, W) or (N, C, H, W) -> (N, C, H, W): each timestep shifts each channel."""
        return image + self.forward(t)

"""Scaled token embedding, sinusoidal position, dropout, in that order (notebook 03)."""

import math

import torch
from torch import Tensor, nn


class TransformerEmbedding(nn.Module):
    """ids (...) -> embedding(ids) * sqrt(D). Key: embedding.weight."""

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        return self.embedding(x) * (self.d_model**0.5)


class PositionalEncoding(nn.Module):
    """x (B, L, D) -> x + pe[:, :L]. Key: pe (1, max_len, D). D is even."""

    pe: Tensor

    def __init__(self, d_model: int, max_len: int = 5000):
        super().__init__()
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)  # (L, 1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))

        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))  # (1, L, D)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.pe[:, : x.size(1), :]


class TokenAndPositionEmbedding(nn.Module):
    """ids (B, L) -> dropout(embedding(ids) * sqrt(D) + pe[:, :L]), (B, L, D).

    Keys: token_embedding.weight, position_encoding.pe.
    """

    def __init__(
        self, vocab_size: int, d_model: int, max_len: int = 5000, dropout_rate: float = 0.1
    ):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_encoding = PositionalEncoding(d_model, max_len)
        self.dropout = nn.Dropout(dropout_rate)
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        token_embedded = self.token_embedding(x) * (self.d_model**0.5)
        encoded = self.position_encoding(token_embedded)
        return self.dropout(encoded)


def visualize_positional_encoding(d_model: int = 128, max_len: int = 100):
    """Two matplotlib figures of the table (L, D): heat map, and waveforms of six dimensions.

    Drawn from float64, since a picture needs no particular last bit.
    """
    from matplotlib.figure import Figure  # the oracle itself must not need matplotlib

    position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(
        torch.arange(0, d_model, 2, dtype=torch.float64) * -(math.log(10000.0) / d_model)
    )
    pe = torch.stack((torch.sin(position * frequency), torch.cos(position * frequency)), 2)
    pe = pe.reshape(max_len, d_model)

    heat_map = Figure(figsize=(8, 5.2), layout="constrained")
    axes = heat_map.subplots()
    image = axes.imshow(pe, cmap="viridis", aspect="auto", interpolation="nearest", vmin=-1, vmax=1)
    axes.set(xlabel="embedding dimension", ylabel="position in the sequence")
    axes.set_title(f"Sinusoidal positional encoding, D = {d_model}, L = {max_len}")
    heat_map.colorbar(image, ax=axes, label="value", ticks=[-1, -0.5, 0, 0.5, 1])

    dimensions = list(dict.fromkeys([0, 1, 4, 5, d_model // 2 - 2, d_model // 2 - 1]))
    dimensions = [d for d in dimensions if 0 <= d < d_model]
    waveforms = Figure(figsize=(8, 1.25 * len(dimensions) + 0.6), layout="constrained")
    rows = waveforms.subplots(len(dimensions), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, dimension in zip(rows, dimensions):
        kind, colour = ("sin", "#31688e") if dimension % 2 == 0 else ("cos", "#d1662a")
        wavelength = 2 * math.pi / frequency[dimension // 2].item()
        axes.axhline(0, color="0.85", linewidth=0.8, zorder=0)
        axes.plot(pe[:, dimension], color=colour, linewidth=1.5)
        axes.set_title(
            f"dimension {dimension} ({kind}), wavelength {wavelength:,.1f}", loc="left", fontsize=9
        )
        axes.set(ylim=(-1.15, 1.15), yticks=[-1, 0, 1], xlim=(0, max(max_len - 1, 1)))
        axes.spines[["top", "right"]].set_visible(False)
    rows[-1].set_xlabel("position in the sequence")
    waveforms.supylabel("value", fontsize=10)
    return heat_map, waveforms

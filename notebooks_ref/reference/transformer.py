"""The whole encoder-decoder model with its three weight sharings (notebook 03, sections 4 and 5).

The notebook leaves encoder and decoder undefined: here they are stacks of torch.nn's own layers.
Masks follow torch.nn: a bool tensor is true where a query may NOT attend, a real one is added.
"""

from typing import Callable, Optional, Union

import torch
from torch import Tensor, nn

from reference.token_and_position_embedding import TokenAndPositionEmbedding

Activation = Union[str, Callable[[Tensor], Tensor]]


class TransformerEncoder(nn.Module):
    """x (B, S, D) -> (B, S, D). Keys: layers.N.*, norm.* with final_norm."""

    def __init__(
        self,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout_rate: float,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        norm_first: bool = False,
        bias: bool = True,
        final_norm: bool = False,
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                d_model, num_heads, d_ff, dropout_rate, activation, layer_norm_eps,
                batch_first=True, norm_first=norm_first, bias=bias,
            )
            for _ in range(num_layers)
        )  # fmt: skip
        norm = nn.LayerNorm(d_model, layer_norm_eps, bias=bias) if final_norm else None
        self.norm = norm

    def forward(
        self, x: Tensor, mask: Optional[Tensor] = None, key_padding_mask: Optional[Tensor] = None
    ) -> Tensor:
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=key_padding_mask)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(nn.Module):
    """x (B, L, D), memory (B, S, D) -> (B, L, D). Keys: layers.N.*, norm.* with final_norm."""

    def __init__(
        self,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout_rate: float,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        norm_first: bool = False,
        bias: bool = True,
        final_norm: bool = False,
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerDecoderLayer(
                d_model, num_heads, d_ff, dropout_rate, activation, layer_norm_eps,
                batch_first=True, norm_first=norm_first, bias=bias,
            )
            for _ in range(num_layers)
        )  # fmt: skip
        norm = nn.LayerNorm(d_model, layer_norm_eps, bias=bias) if final_norm else None
        self.norm = norm

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
    ) -> Tensor:
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=mask,
                memory_mask=memory_mask,
                memory_key_padding_mask=memory_key_padding_mask,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(nn.Module):
    """src (B, S), tgt (B, L) -> logits (B, L, V).

    tying: `none`, `encoder_decoder` (5.1), `decoder_output` (5.2), `three_way` (5.3).
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        d_model: int = 512,
        num_heads: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        d_ff: int = 2048,
        max_seq_length: int = 5000,
        dropout_rate: float = 0.1,
        tying: str = "none",
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        norm_first: bool = False,
        bias: bool = True,
        final_norm: Optional[bool] = None,
    ):
        super().__init__()
        last = norm_first if final_norm is None else final_norm
        how = (activation, layer_norm_eps, norm_first, bias, last)
        self.src_embedding = TokenAndPositionEmbedding(
            src_vocab_size, d_model, max_seq_length, dropout_rate
        )
        self.tgt_embedding = TokenAndPositionEmbedding(
            tgt_vocab_size, d_model, max_seq_length, dropout_rate
        )
        self.encoder = TransformerEncoder(
            num_encoder_layers, d_model, num_heads, d_ff, dropout_rate, *how
        )
        self.decoder = TransformerDecoder(
            num_decoder_layers, d_model, num_heads, d_ff, dropout_rate, *how
        )
        self.final_layer = nn.Linear(d_model, tgt_vocab_size)
        for stack in (self.encoder, self.decoder):
            for parameter in stack.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
        if tying in ("encoder_decoder", "three_way"):
            self.tgt_embedding.token_embedding = self.src_embedding.token_embedding
        if tying in ("decoder_output", "three_way"):
            self.final_layer.weight = self.tgt_embedding.token_embedding.weight

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Optional[Tensor] = None,
        tgt_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
    ) -> Tensor:
        src_embedded = self.src_embedding(src)
        tgt_embedded = self.tgt_embedding(tgt)
        encoder_output = self.encoder(src_embedded, src_mask, src_key_padding_mask)
        decoder_output = self.decoder(
            tgt_embedded,
            encoder_output,
            tgt_mask,
            src_mask if memory_mask is None else memory_mask,
            src_key_padding_mask,
        )
        return self.final_layer(decoder_output)


def causal(length: int) -> Tensor:
    """(L, L) bool, true above the diagonal: torch.nn's rule."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)

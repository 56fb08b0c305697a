"""Attention, layers, stacks and the whole model at random shapes, norms, masks and tyings.

Live only: sums of products have other last bits on another CPU, and dropout masks too.
"""

import random
from pathlib import Path
from typing import Dict, List, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from reference import transformer as reference
from reference.cases.common import module_case
from reference.fixture import generator, live, normal_like, parameters_of, seed_of, write

NOTEBOOK = "03_token_and_position_embedding"
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": F.silu}
TYINGS = ["none", "encoder_decoder", "decoder_output", "three_way"]
MASKS = ["none", "bool", "real", "padding", "causal", "heads", "causal_padding", "nothing"]


def write_all(folder: Path) -> List[str]:
    """Every case; the names that were written."""
    if not live():
        return []
    written: List[str] = []
    for number, mask in enumerate(MASKS):
        for way in ("eval", "train"):
            name = f"{way}_{number}_{mask}"
            written.append(_attention(folder, name, mask, way == "train"))
            for decoder in (False, True):
                written.append(_layer(folder, name, mask, way == "train", decoder))
                written.append(_stack(folder, name, mask, way == "train", decoder))
    for number, tying in enumerate(TYINGS * 3):
        for way in ("eval", "train"):
            mask = MASKS[(number + 3) % len(MASKS)] if number < 8 else "padding"
            written.append(_model(folder, f"{way}_{number}_{tying}", tying, mask, way == "train"))
    for number in range(4):
        written.append(_whole(folder, f"eval_{number}"))
    return written + _initialised(folder)


class _Draw:
    """Small random sizes and switches of one case."""

    def __init__(self, stem: str, case: str):
        dice = random.Random(seed_of(stem, case))
        self.source = generator(stem, case, "inputs")
        self.heads = dice.choice([1, 2, 3, 4])
        self.width = self.heads * dice.choice([4, 6, 8])  # even, as the sinusoid wants it
        self.d_ff = dice.choice([5, 16, 33])
        self.batch = dice.choice([1, 2, 3])
        self.keys, self.queries = dice.randint(2, 9), dice.randint(2, 9)
        self.layers = dice.choice([1, 2, 3])
        self.activation = dice.choice(list(ACTIVATIONS))
        self.norm_first, self.bias = dice.random() < 0.5, dice.random() < 0.75
        self.batch_first, self.final_norm = dice.random() < 0.7, dice.random() < 0.5
        self.eps = dice.choice([1e-5, 1e-3])
        self.kdim, self.vdim = dice.choice([None, 5]), dice.choice([None, 7])

    def mask(self, kind: str, queries: int, keys: int) -> Dict[str, Tensor]:
        """mask: torch.nn's attention mask; key_padding_mask: (B, S)."""
        bits = lambda *shape: torch.rand(*shape, generator=self.source) < 0.4  # noqa: E731
        causal = torch.ones(queries, keys, dtype=torch.bool).triu(1)
        padding = bits(self.batch, keys)
        padding[:, 0] = False
        whole = {
            "none": {},
            "bool": {"mask": bits(queries, keys)},
            "real": {"mask": normal_like(self.source, queries, keys)},
            "padding": {"key_padding_mask": padding},
            "causal": {"mask": causal},
            "heads": {"mask": bits(self.batch * self.heads, queries, keys)},
            "causal_padding": {"mask": causal, "key_padding_mask": padding},
            "nothing": {"key_padding_mask": padding | True},
        }
        return whole[kind]

    def sequence(self, length: int, width: int, batch_first: bool) -> Tensor:
        x = normal_like(self.source, self.batch, length, width)
        return x if batch_first else x.transpose(0, 1).contiguous()

    def layer(self, kind, dropout: float, batch_first: bool = True) -> nn.Module:
        return kind(
            self.width, self.heads, self.d_ff, dropout, ACTIVATIONS[self.activation], self.eps,
            batch_first=batch_first, norm_first=self.norm_first, bias=self.bias,
        )  # fmt: skip

    def options(self, **more: object) -> Dict[str, object]:
        names = ["heads", "width", "d_ff", "layers", "activation", "norm_first", "bias"]
        values = {name: getattr(self, name) for name in names}
        return {**values, "layer_norm_eps": self.eps, **more}


def _write(folder, stem, case, module, inputs, options, train, call) -> str:
    """inputs: what is there of `x`, `memory`, masks; call(**inputs)."""
    return module_case(
        folder, NOTEBOOK, stem, case, module.train(train), inputs, options, gain=0.25,
        call=lambda *values: call(**dict(zip(inputs, values))), portable=False,
        dropout_seed=seed_of(stem, case) % 100000,
    )  # fmt: skip


def _attention(folder: Path, case: str, mask: str, train: bool) -> str:
    stem = "multihead_attention"
    draw = _Draw(stem, case)
    dropout = 0.3 if train else 0.0
    module = nn.MultiheadAttention(
        draw.width, draw.heads, dropout, draw.bias,
        kdim=draw.kdim, vdim=draw.vdim, batch_first=draw.batch_first,
    )  # fmt: skip
    inputs = {
        "query": draw.sequence(draw.queries, draw.width, draw.batch_first),
        "key": draw.sequence(draw.keys, draw.kdim or draw.width, draw.batch_first),
        "value": draw.sequence(draw.keys, draw.vdim or draw.width, draw.batch_first),
        **draw.mask(mask, draw.queries, draw.keys),
    }
    options = draw.options(dropout=dropout, batch_first=draw.batch_first)
    options.update(kdim=draw.kdim, vdim=draw.vdim)

    def call(query, key, value, mask=None, key_padding_mask=None):
        return module(query, key, value, key_padding_mask, need_weights=False, attn_mask=mask)[0]

    return _write(folder, stem, case, module, inputs, options, train, call)


def _sequences(draw: _Draw, mask: str, decoder: bool, batch_first: bool) -> Dict[str, Tensor]:
    """Inputs of an encoder, or of a decoder that is causal and whose memory is masked."""
    x = draw.sequence(draw.queries, draw.width, batch_first)
    if not decoder:
        return {"x": x, **draw.mask(mask, draw.queries, draw.queries)}
    memory = draw.sequence(draw.keys, draw.width, batch_first)
    return {
        "x": x,
        "memory": memory,
        "tgt_mask": reference.causal(draw.queries),
        **draw.mask(mask, draw.queries, draw.keys),
    }


def _call(module: nn.Module, decoder: bool, stack: bool):
    first = "mask" if stack else "src_mask"

    def encode(x, mask=None, key_padding_mask=None):
        return module(x, **{first: mask}, src_key_padding_mask=key_padding_mask)

    def decode(x, memory, tgt_mask, mask=None, key_padding_mask=None):
        return module(
            x, memory, tgt_mask, memory_mask=mask, memory_key_padding_mask=key_padding_mask
        )

    return decode if decoder else encode


def _layer(folder: Path, case: str, mask: str, train: bool, decoder: bool) -> str:
    stem = "transformer_decoder_layer" if decoder else "transformer_encoder_layer"
    draw = _Draw(stem, case)
    dropout = 0.3 if train else 0.0
    kind = nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer
    module = draw.layer(kind, dropout, draw.batch_first)
    inputs = _sequences(draw, mask, decoder, draw.batch_first)
    options = draw.options(dropout=dropout, batch_first=draw.batch_first)
    return _write(folder, stem, case, module, inputs, options, train, _call(module, decoder, False))


def _stack(folder: Path, case: str, mask: str, train: bool, decoder: bool) -> str:
    stem = "transformer_decoder" if decoder else "transformer_encoder"
    draw = _Draw(stem, case)
    dropout = 0.3 if train else 0.0
    norm = nn.LayerNorm(draw.width, draw.eps, bias=draw.bias) if draw.final_norm else None
    if decoder:
        layer = draw.layer(nn.TransformerDecoderLayer, dropout, draw.batch_first)
        module: nn.Module = nn.TransformerDecoder(layer, draw.layers, norm)
    else:
        layer = draw.layer(nn.TransformerEncoderLayer, dropout, draw.batch_first)
        module = nn.TransformerEncoder(layer, draw.layers, norm, enable_nested_tensor=False)
    inputs = _sequences(draw, mask, decoder, draw.batch_first)
    options = draw.options(dropout=dropout, batch_first=draw.batch_first, norm=draw.final_norm)
    return _write(folder, stem, case, module, inputs, options, train, _call(module, decoder, True))


def _build(draw: _Draw, tying: str, dropout: float, tgt_vocab: int) -> reference.Transformer:
    return reference.Transformer(
        23, tgt_vocab, draw.width, draw.heads, draw.layers, 3 - draw.layers // 2, draw.d_ff, 12,
        dropout, tying, ACTIVATIONS[draw.activation], draw.eps, draw.norm_first, draw.bias,
        draw.final_norm,
    )  # fmt: skip


def _model_options(draw: _Draw, tying: str, dropout: float, tgt_vocab: int) -> Dict[str, object]:
    return draw.options(
        src_vocab=23, tgt_vocab=tgt_vocab, decoder_layers=3 - draw.layers // 2, max_len=12,
        dropout=dropout, tying=tying, final_norm=draw.final_norm,
    )  # fmt: skip


def _model(folder: Path, case: str, tying: str, mask: str, train: bool) -> str:
    stem = "transformer"
    draw = _Draw(stem, case)
    dropout = 0.3 if train else 0.0
    tgt_vocab = 23 if tying in ("encoder_decoder", "three_way") else 17
    module = _build(draw, tying, dropout, tgt_vocab)
    draw.keys = draw.queries  # one src_mask fits both attentions
    ids = lambda vocab, n: torch.randint(0, vocab, (draw.batch, n), generator=draw.source)  # noqa: E731
    masks = draw.mask(mask, draw.queries, draw.keys)
    inputs = {"src": ids(23, draw.keys), "tgt": ids(tgt_vocab, draw.queries)}
    inputs["tgt_mask"] = reference.causal(draw.queries)
    renamed = {"mask": "src_mask", "key_padding_mask": "src_key_padding_mask"}
    inputs.update({renamed[name]: value for name, value in masks.items()})
    if draw.source.initial_seed() % 2 == 0:
        inputs["memory_mask"] = normal_like(draw.source, draw.queries, draw.keys)
    options = _model_options(draw, tying, dropout, tgt_vocab)
    return _write(folder, stem, case, module, inputs, options, train, module)


def _whole(folder: Path, case: str) -> str:
    """torch.nn.Transformer, whose state_dict is that of two stacks."""
    stem = "torch_transformer"
    draw = _Draw(stem, case)
    module = nn.Transformer(
        draw.width, draw.heads, draw.layers, 3 - draw.layers // 2, draw.d_ff, 0.0,
        ACTIVATIONS[draw.activation], layer_norm_eps=draw.eps, batch_first=draw.batch_first,
        norm_first=draw.norm_first, bias=draw.bias,
    )  # fmt: skip
    inputs = {
        "src": draw.sequence(draw.keys, draw.width, draw.batch_first),
        "tgt": draw.sequence(draw.queries, draw.width, draw.batch_first),
        "tgt_mask": reference.causal(draw.queries),
    }
    options = draw.options(
        dropout=0.0, batch_first=draw.batch_first, decoder_layers=3 - draw.layers // 2
    )
    return _write(folder, stem, case, module, inputs, options, False, module)


def _initialised(folder: Path) -> List[str]:
    """What the constructors draw from a seed."""
    written = []
    for stem in ("multihead_attention", "transformer_encoder_layer", "transformer_decoder_layer"):
        for case in ("init_0", "init_1", "init_2"):
            written.append(_drawn(folder, stem, case, None))
    for tying in TYINGS:
        written.append(_drawn(folder, "transformer", f"init_{tying}", tying))
    return written


def _drawn(folder: Path, stem: str, case: str, tying: Optional[str]) -> str:
    draw = _Draw(stem, case)
    seed = seed_of(stem, case) % 100000
    torch.manual_seed(seed)
    options = draw.options(dropout=0.0, batch_first=True, kdim=draw.kdim, vdim=draw.vdim)
    if tying is not None:
        options = _model_options(draw, tying, 0.0, 23)
        module: nn.Module = _build(draw, tying, 0.0, 23)
    elif stem == "multihead_attention":
        module = nn.MultiheadAttention(
            draw.width, draw.heads, 0.0, draw.bias, kdim=draw.kdim, vdim=draw.vdim, batch_first=True
        )
    elif stem == "transformer_encoder_layer":
        module = draw.layer(nn.TransformerEncoderLayer, 0.0)
    else:
        module = draw.layer(nn.TransformerDecoderLayer, 0.0)
    name = type(module).__name__
    return write(
        folder, NOTEBOOK, name, stem, case, parameters_of(module), options, False, seed=seed
    )

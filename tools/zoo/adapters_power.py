"""Tables computed in float64 and cast last, and float32 tables whose frequencies come from pow."""

import math

import numpy as np
import torch

from registry import module, package, real_positions, repository, zeros
from sources import installed

HF = "transformers==5.23.0"
VIT = "vit-pytorch==1.26.11"


def _hf(model: str):
    return installed(f"transformers.models.{model}.modeling_{model}")


# --- float64 -------------------------------------------------------------------------------------


def _marian(model, cls):
    def build(length, dim):
        return getattr(_hf(model), cls)(length, dim).create_weight()  # the constructor leaves it random

    return build


for _name, _model, _cls in (
    ("hf_marian", "marian", "MarianSinusoidalPositionalEmbedding"),
    ("hf_pegasus", "pegasus", "PegasusSinusoidalPositionalEmbedding"),
    ("hf_roformer", "roformer", "RoFormerSinusoidalPositionalEmbedding"),
    ("hf_informer", "informer", "InformerSinusoidalPositionalEmbedding"),
    ("hf_autoformer", "autoformer", "AutoformerSinusoidalPositionalEmbedding"),
    ("hf_time_series_transformer", "time_series_transformer", "TimeSeriesSinusoidalPositionalEmbedding"),
):
    package(_name, HF, _cls, element_loop=True)(_marian(_model, _cls))


def _xlm(model, function):
    def build(length, dim):
        out = torch.empty(length, dim)
        getattr(_hf(model), function)(length, dim, out)
        return out

    return build


for _name, _function in (
    ("xlm", "create_sinusoidal_embeddings"),
    ("flaubert", "create_sinusoidal_embeddings"),
    ("distilbert", "_create_sinusoidal_embeddings"),
):
    package(_name, HF, f"{_name} {_function}", element_loop=True)(_xlm(_name, _function))


@package("videomae", HF, "VideoMAE get_sinusoid_encoding_table", element_loop=True)
def videomae(length, dim):
    return _hf("videomae").get_sinusoid_encoding_table(length, dim)[0]


@package("diffusers_1d_sincos", "diffusers==0.42.1", "diffusers get_1d_sincos_pos_embed_from_grid")
def diffusers_1d_sincos(length, dim, start, step, flip_sin_to_cos):
    return installed("diffusers.models.embeddings").get_1d_sincos_pos_embed_from_grid(
        dim, real_positions(length, start, step), flip_sin_to_cos=bool(flip_sin_to_cos)
    )


@package("cct", VIT, "vit-pytorch CCT sinusoidal_embedding", element_loop=True)
def cct(length, dim):
    return module(VIT, "vit_pytorch/cct.py").sinusoidal_embedding(length, dim)[0]


@repository(
    "attention_is_all_you_need_pytorch",
    "jadore801120/attention-is-all-you-need-pytorch@132907dd",
    "attention-is-all-you-need-pytorch PositionalEncoding",
    element_loop=True,
)
def attention_is_all_you_need_pytorch(length, dim):
    divisors = [np.power(10000, 2 * (j // 2) / dim) for j in range(dim)]
    angle = np.array([[p / d for d in divisors] for p in range(length)])
    even = np.arange(dim) % 2 == 0
    return torch.from_numpy(np.where(even, np.sin(angle), np.cos(angle)))


@repository("flax_wmt", "google/flax@18f8f311", "flax WMT sinusoidal_init (numpy)")
def flax_wmt(length, dim):
    n = dim // 2
    f = np.exp(np.arange(n) * (-np.log(10000.0) / (n - 1)))
    angle = np.multiply.outer(np.arange(length), f)
    table = np.zeros((length, dim), dtype=np.float32)
    table[:, :n], table[:, n : 2 * n] = np.sin(angle), np.cos(angle)
    return torch.from_numpy(table)


@repository("sam_lynn_evans", "SamLynnEvans/Transformer@49e01800", "SamLynnEvans PositionalEncoder", element_loop=True)
def sam_lynn_evans(length, dim):
    if dim % 2:
        raise IndexError(f"channel {dim} of {dim}")
    functions = (math.sin, math.cos)
    divisors = [10000 ** ((2 * c) / dim) for c in range(dim)]  # the channel, not the pair
    return torch.tensor([[functions[c % 2](p / divisors[c]) for c in range(dim)] for p in range(length)])


# --- power, float32 ------------------------------------------------------------------------------


@package("ctrl", HF, "CTRL positional_encoding")
def ctrl(length, dim):
    return _hf("ctrl").positional_encoding(length, dim, torch.float32)


@package("d2l", "d2l==1.0.3", "d2l PositionalEncoding")
def d2l(length, dim):
    return module("d2l==1.0.3", "d2l/torch.py").PositionalEncoding(dim, 0.0, length).P[0]


@package("x_transformers", "x-transformers==2.31.10", "x-transformers ScaledSinusoidalEmbedding")
def x_transformers(length, dim, theta):
    m = module("x-transformers==2.31.10", "x_transformers/x_transformers.py")
    return m.ScaledSinusoidalEmbedding(dim, theta)(zeros(1, length, dim))


@package("keras_sine", "keras-hub==0.32.0", "KerasHub SinePositionEncoding (torch backend)")
def keras_sine(length, dim, max_wavelength, start_index):
    m = module("keras-hub==0.32.0", "keras_hub/src/layers/modeling/sine_position_encoding.py")
    return m.SinePositionEncoding(max_wavelength)(zeros(1, length, dim), start_index=start_index)[0]


@package("simple_vit_1d", VIT, "vit-pytorch posemb_sincos_1d")
def simple_vit_1d(length, dim, temperature):
    return module(VIT, "vit_pytorch/simple_vit_1d.py").posemb_sincos_1d(zeros(1, length, dim), temperature)


@package("sam2_1d", "sam2==1.1.0", "SAM 2 get_1d_sine_pe")
def sam2_1d(length, dim, start, step):
    m = module("sam2==1.1.0", "sam2/modeling/sam2_utils.py")
    return m.get_1d_sine_pe(real_positions(length, start, step), dim)


@package("positional_encodings_1d", "positional-encodings==6.0.3", "positional_encodings PositionalEncoding1D")
def positional_encodings_1d(length, dim):
    m = module("positional-encodings==6.0.3", "positional_encodings/torch_encodings.py")
    return m.PositionalEncoding1D(dim)(zeros(1, length, dim))[0]


@package(
    "positional_encodings_1d_v5_0",
    "positional-encodings==5.0.0",
    "positional_encodings PositionalEncoding1D, up to 5.0.0",
)
def positional_encodings_1d_v5_0(length, dim):
    m = module("positional-encodings==5.0.0", "positional_encodings/positional_encodings.py")
    return m.PositionalEncoding1D(dim)(zeros(1, length, dim))[0]

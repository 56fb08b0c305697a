"""Grids in two and three dimensions, and coordinates."""

import warnings
from types import SimpleNamespace as Namespace

import numpy as np
import torch

from registry import module, package, real_positions, repository, zeros
from sources import installed

HF = "transformers==5.23.0"
HF4 = "transformers==4.46.3"
VIT = "vit-pytorch==1.26.11"
TATP = ("positional-encodings==6.0.3", "positional_encodings/torch_encodings.py")


def _hf(model: str):
    return installed(f"transformers.models.{model}.modeling_{model}")


def _rows(nchw):
    """[1, D, H, W] -> [H*W, D]"""
    return nchw[0].permute(1, 2, 0).flatten(0, 1)


# --- MAE and its family --------------------------------------------------------------------------


@repository("mae_2d", "facebookresearch/mae@efb2a806", "MAE get_2d_sincos_pos_embed (numpy)")
def mae_2d(length, dim, height, cls_token):
    assert dim % 4 == 0
    n = dim // 4
    omega = 1.0 / 10000 ** (np.arange(n, dtype=np.float64) / (dim / 4.0))
    angle = np.multiply.outer(np.arange(height, dtype=np.float32), omega)  # float64
    one_axis = np.hstack([np.sin(angle), np.cos(angle)])
    column, row = np.tile(one_axis, (height, 1)), np.repeat(one_axis, height, axis=0)
    first = np.zeros((1 if cls_token else 0, dim))
    return torch.from_numpy(np.vstack([first, np.hstack([column, row])]))


@package("vit_mae", HF, "ViTMAEEmbeddings")
def vit_mae(length, dim, height):
    config = installed("transformers").ViTMAEConfig(hidden_size=dim, image_size=height, patch_size=1, num_channels=1)
    embeddings = _hf("vit_mae").ViTMAEEmbeddings(config)
    embeddings.initialize_weights()
    return embeddings.position_embeddings[0]


@package("diffusers_2d_sincos", "diffusers==0.42.1", "diffusers get_2d_sincos_pos_embed")
def diffusers_2d_sincos(length, dim, height, width, base_size, interpolation_scale):
    return installed("diffusers.models.embeddings").get_2d_sincos_pos_embed(
        dim, (height, width), base_size=base_size, interpolation_scale=interpolation_scale
    )


# --- DETR and its family -------------------------------------------------------------------------


def _detr_axis(extent, channels, normalize):
    """[extent, channels], positions counted from 1."""
    v = torch.arange(1, extent + 1, dtype=torch.float32)
    if normalize:
        v = v / (v[-1] + 1e-6) * (2 * np.pi)
    exponent = 2 * (torch.arange(channels, dtype=torch.float32) // 2) / channels
    angle = v[:, None] / 10000**exponent
    return torch.stack([angle[:, 0::2].sin(), angle[:, 1::2].cos()], dim=2).flatten(1)


def _detr_original(length, dim, height, width, normalize):
    y, x = _detr_axis(height, dim // 2, normalize), _detr_axis(width, dim // 2, normalize)
    return torch.cat([y.repeat_interleave(width, dim=0), x.repeat(height, 1)], dim=1)


repository("detr_2d", "facebookresearch/detr@29901c51", "DETR PositionEmbeddingSine")(_detr_original)
repository("mask2former_2d", "facebookresearch/Mask2Former@9b0651c6", "Mask2Former PositionEmbeddingSine")(
    _detr_original
)


def _hf_detr(model, cls):
    def build(length, dim, height, width, normalize=1):
        embedding = getattr(_hf(model), cls)(dim // 2, normalize=bool(normalize))
        return _rows(embedding(torch.Size((1, dim, height, width)), "cpu", torch.float32))

    return build


for _name, _model, _cls in (
    ("hf_detr_2d", "detr", "DetrSinePositionEmbedding"),
    ("maskformer_2d", "maskformer", "MaskFormerSinePositionEmbedding"),
    ("deformable_detr_2d", "deformable_detr", "DeformableDetrSinePositionEmbedding"),
):
    package(_name, HF, _cls)(_hf_detr(_model, _cls))


class _MMBase(torch.nn.Module):
    """mmengine's BaseModule only keeps init_cfg, as far as the table is concerned."""

    def __init__(self, init_cfg=None):
        super().__init__()


@package("mmdet_2d", "mmdet==3.3.0", "MMDetection SinePositionalEncoding")
def mmdet_2d(length, dim, height, width, normalize):
    m = module(
        "mmdet==3.3.0",
        "mmdet/models/layers/positional_encoding.py",
        {"mmengine.model": Namespace(BaseModule=_MMBase)},
    )
    encoding = m.SinePositionalEncoding(dim // 2, normalize=bool(normalize))
    return _rows(encoding(torch.zeros(1, height, width, dtype=torch.bool)))


@package("sam2_2d", "sam2==1.1.0", "SAM 2 PositionEmbeddingSine")
def sam2_2d(length, dim, height, width, normalize):
    m = module("sam2==1.1.0", "sam2/modeling/position_encoding.py")
    return _rows(m.PositionEmbeddingSine(dim, normalize=bool(normalize))(zeros(1, 1, height, width)))


@package("dab_detr_2d", HF, "DabDetrSinePositionEmbedding")
def dab_detr_2d(length, dim, height, width, temperature):
    config = Namespace(
        hidden_size=dim,
        temperature_height=temperature,
        temperature_width=temperature,
        sine_position_embedding_scale=None,
    )
    embedding = _hf("dab_detr").DabDetrSinePositionEmbedding(config)
    return _rows(embedding(zeros(1, 3, height, width), torch.ones(1, height, width, dtype=torch.bool)))


@package("conditional_detr_points", HF, "Conditional DETR encode_sinusoidal_position_embedding")
def conditional_detr_points(length, dim, start, step):
    x = real_positions(length, start, step)
    points = torch.stack([x, 1 - x], dim=-1)
    return _hf("conditional_detr").encode_sinusoidal_position_embedding(points, num_pos_feats=dim // 2)


# --- others in two dimensions --------------------------------------------------------------------


@package("timm_2d", "timm==1.0.31", "timm build_sincos2d_pos_embed")
def timm_2d(length, dim, height, width, interleave_sin_cos, reverse_coord, temperature):
    grid = module("timm==1.0.31", "timm/layers/grid.py")
    m = module("timm==1.0.31", "timm/layers/pos_embed_sincos.py", {"timm.layers.grid": grid})
    return m.build_sincos2d_pos_embed(
        [height, width],
        dim,
        temperature=temperature,
        interleave_sin_cos=bool(interleave_sin_cos),
        reverse_coord=bool(reverse_coord),
    )


@package("rt_detr_2d", HF, "RTDetrSinePositionEmbedding")
def rt_detr_2d(length, dim, height, width, temperature):
    embedding = _hf("rt_detr").RTDetrSinePositionEmbedding(dim, temperature)
    return embedding(width, height, torch.device("cpu"), torch.float32)[0]


@package("rt_detr_2d_v4", HF4, "RTDetrHybridEncoder.build_2d_sincos_position_embedding, transformers 4")
def rt_detr_2d_v4(length, dim, height, width, temperature):
    m = module(HF4, "transformers/models/rt_detr/modeling_rt_detr.py")
    build = m.RTDetrHybridEncoder.build_2d_sincos_position_embedding
    return build(width, height, dim, float(temperature))[0]


@repository("moco_v3_2d", "facebookresearch/moco-v3@c349e6e2", "MoCo v3 build_2d_sincos_position_embedding")
def moco_v3_2d(length, dim, height, width):
    assert dim % 4 == 0, "dim must be a multiple of 4"
    n = dim // 4
    f = 1.0 / 10000.0 ** (torch.arange(n, dtype=torch.float32) / n)
    table = torch.zeros(1 + width * height, dim)  # row 0 is the CLS token's
    body = table[1:].view(width, height, 4, n)  # width outermost
    across = torch.arange(width, dtype=torch.float32)[:, None, None] * f
    down = torch.arange(height, dtype=torch.float32)[None, :, None] * f
    body[:, :, 0], body[:, :, 1] = across.sin(), across.cos()
    body[:, :, 2], body[:, :, 3] = down.sin(), down.cos()
    return table


@package("monai_2d", "monai==1.6.1", "MONAI build_sincos_position_embedding")
def monai_2d(length, dim, height, width):
    m = module("monai==1.6.1", "monai/networks/blocks/pos_embed_utils.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # meshgrid without indexing
        return m.build_sincos_position_embedding([height, width], dim, 2)[0]


@package("simple_vit_2d", VIT, "vit-pytorch posemb_sincos_2d")
def simple_vit_2d(length, dim, height, width, temperature):
    return module(VIT, "vit_pytorch/simple_vit.py").posemb_sincos_2d(height, width, dim, temperature)


@package("loftr_2d", "kornia==0.9.0", "kornia LoFTR PositionEncodingSine")
def loftr_2d(length, dim, height, width, temp_bug_fix):
    m = module("kornia==0.9.0", "kornia/feature/loftr/utils/position_encoding.py")
    return _rows(m.PositionEncodingSine(dim, (height, width), bool(temp_bug_fix)).pe)


@package("positional_encodings_2d", TATP[0], "positional_encodings PositionalEncoding2D")
def positional_encodings_2d(length, dim, height, width):
    return module(*TATP).PositionalEncoding2D(dim)(zeros(1, height, width, dim)).reshape(-1, dim)


# --- three dimensions ----------------------------------------------------------------------------


@package("diffusers_3d_sincos", "diffusers==0.42.1", "diffusers get_3d_sincos_pos_embed")
def diffusers_3d_sincos(length, dim, height, width, depth):
    m = installed("diffusers.models.embeddings")
    return m.get_3d_sincos_pos_embed(dim, (width, height), depth).reshape(-1, dim)


@package("positional_encodings_3d", TATP[0], "positional_encodings PositionalEncoding3D")
def positional_encodings_3d(length, dim, height, width, depth):
    return module(*TATP).PositionalEncoding3D(dim)(zeros(1, depth, height, width, dim)).reshape(-1, dim)


@package("simple_vit_3d", VIT, "vit-pytorch posemb_sincos_3d")
def simple_vit_3d(length, dim, height, width, depth):
    return module(VIT, "vit_pytorch/simple_vit_3d.py").posemb_sincos_3d(zeros(1, depth, height, width, dim))


# --- coordinates ---------------------------------------------------------------------------------


@repository("nerf", "yenchenlin/nerf-pytorch@63a5a630", "NeRF Embedder")
def nerf(length, dim, multires, step, start):
    if dim != 3 + 6 * multires:
        raise ValueError(f"dim must be {3 + 6 * multires}")
    p = real_positions(length, start, step)
    table = torch.empty(length, 1 + 2 * multires, 3)
    table[:, 0, 0], table[:, 0, 1], table[:, 0, 2] = p, p / 2, -p
    for k, band in enumerate(2.0 ** torch.linspace(0, multires - 1, multires)):
        angle = table[:, 0] * band
        table[:, 1 + 2 * k], table[:, 2 + 2 * k] = angle.sin(), angle.cos()
    return table.flatten(1)


@package("perceiver_fourier", HF, "Perceiver generate_fourier_features")
def perceiver_fourier(length, dim, num_bands, max_resolution, start, step):
    if dim != 1 + 2 * num_bands:
        raise ValueError(f"dim must be {1 + 2 * num_bands}")
    pos = real_positions(length, start, step)[None, :, None]
    return _hf("perceiver").generate_fourier_features(pos, num_bands, (max_resolution,))[0]

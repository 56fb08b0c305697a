"""Rotary embeddings of torchtune, torchtitan, x-transformers and timm."""

import torch

from registry import module
from rotary_registry import Case, Draw, even, rotary

TORCHTUNE = "torchtune==0.6.1"
TORCHTITAN = "torchtitan==0.3.0"
X_TRANSFORMERS = "x-transformers==2.31.10"
TIMM = "timm==1.0.31"


def _timm():
    grid = module(TIMM, "timm/layers/grid.py")
    return module(TIMM, "timm/layers/pos_embed_sincos.py", {"timm.layers.grid": grid})


def _llama3(draw: Draw) -> dict:
    return {"factor": draw.choice([4, 8, 32]), "low_freq_factor": 1, "high_freq_factor": draw.choice([2, 4]),
            "original_max_position_embeddings": draw.choice([64, 8192])}  # fmt: skip


@rotary("torchtune", TORCHTUNE, "RotaryPositionalEmbeddings, Llama3ScaledRoPE")
def torchtune(draw):
    dim, base, longest, length = even(draw, 2, 160), draw.choice([10_000, 500_000]), 3000, draw.integer(1, 40)
    params = {"head_dim": dim, "rope_theta": base}
    if draw.choice([True, False]):
        scaled = _llama3(draw)
        params |= {"rope_type": "llama3"} | scaled
        rope = module(TORCHTUNE, "torchtune/models/llama3_1/_position_embeddings.py").Llama3ScaledRoPE(
            dim, longest, base, *scaled.values()
        )
    else:
        rope = module(TORCHTUNE, "torchtune/modules/position_embeddings.py").RotaryPositionalEmbeddings(
            dim, longest, base
        )
    ids = draw.positions(longest, 2, length)
    q, k = draw.query_key(2, length, 3, dim)
    cache = rope.cache[ids]
    return Case(params, ids, cache[..., 0], cache[..., 1], q, k, rope(q, input_pos=ids), rope(k, input_pos=ids))


@rotary("meta_llama", TORCHTITAN, "ComplexRoPE")
def meta_llama(draw):
    dim, theta, longest, length = even(draw, 2, 160), draw.choice([1e4, 5e5]), 3000, draw.integer(1, 40)
    settings, params = {}, {"head_dim": dim, "rope_theta": theta}
    if draw.choice([True, False]):
        scaled = _llama3(draw)
        params |= {"rope_type": "llama3"} | scaled
        settings = {"scaling": "llama", "scaling_factor": scaled.pop("factor"), **scaled}
    complex_rope = module(TORCHTITAN, "torchtitan/models/common/rope.py").ComplexRoPE
    rope = complex_rope(complex_rope.Config(dim=dim, max_seq_len=longest, theta=theta, **settings))
    ids = draw.positions(longest, 2, length)
    q, k = draw.query_key(2, length, 3, dim)
    table = rope.cache[ids]
    return Case(params, ids, table.real, table.imag, q, k, *rope(q, k, ids))


def _x_transformers(draw, xpos: bool):
    m = module(X_TRANSFORMERS, "x_transformers/x_transformers.py")
    dim, base, length = even(draw, 4, 130), draw.choice([10000, 500000]), draw.integer(1, 40)
    head = dim * draw.choice([1, 2])
    alpha, factor = draw.choice([1.0, 4.0]), draw.choice([1.0, 2.0, 3.7])
    rope = m.RotaryEmbedding(dim, xpos, base=base, base_rescale_factor=alpha, interpolation_factor=factor)
    ids = draw.positions(draw.choice([50, 5000]), length)
    ids = torch.arange(length) if xpos else ids
    freqs, scale = rope(ids)
    q, k = draw.query_key(2, 3, length, head)
    params = {"head_dim": head, "partial_rotary_factor": dim / head, "rope_theta": base}
    if alpha != 1.0:
        params |= {"base_rescale_factor": alpha}
    if factor != 1.0:
        params |= {"interpolation_factor": factor}
    if xpos:
        params |= {"scale_base": 512}
    return Case(
        params, ids, freqs[0].cos(), freqs[0].sin(), q, k,
        m.apply_rotary_pos_emb(q, freqs, scale), m.apply_rotary_pos_emb(k, freqs, scale**-1.0),
    )  # fmt: skip


@rotary("x_transformers", X_TRANSFORMERS, "RotaryEmbedding")
def x_transformers(draw):
    return _x_transformers(draw, xpos=False)


@rotary("xpos", X_TRANSFORMERS, "RotaryEmbedding with use_xpos")
def xpos(draw):
    return _x_transformers(draw, xpos=True)


def _split(embed):
    sin, cos = embed.chunk(2, -1)
    return cos, sin


def _axial(draw, rope_class):
    """A class of timm for patches, with its positions."""
    dim, shape = 4 * draw.integer(1, 40), [draw.integer(1, 9), draw.integer(1, 9)]
    half, offset, indexing = draw.choice([True, False]), draw.choice([0.0, 0.5]), draw.choice(["ij", "xy"])
    reference = draw.choice([None, [16, 16], [7, 12]])
    pixels = draw.choice([True, False])
    resolution, linear, temperature = draw.choice([224, 512]), draw.choice([True, False]), draw.choice([100.0, 10000.0])
    settings = {"in_pixels": pixels, "ref_feat_shape": reference, "grid_offset": offset, "grid_indexing": indexing}
    rope = rope_class(
        dim, rotate_half=half, max_res=resolution, linear_bands=linear, temperature=temperature, **settings
    )
    grid = _timm()._build_grid(
        shape, grid_type="pixel" if pixels else "index", ref_feat_shape=reference, grid_offset=offset,
        grid_indexing=indexing,
    )  # fmt: skip
    params = {"head_dim": dim, "rotate_half": half}
    if pixels:
        params |= {"in_pixels": True, "max_res": resolution, "linear_bands": linear}
    else:
        params |= {"rope_theta": temperature}
    return rope, shape, half, grid.flatten(0, -2), params


@rotary("timm_cat", TIMM, "RotaryEmbeddingCat")
def timm_cat(draw):
    rope, shape, half, ids, params = _axial(draw, _timm().RotaryEmbeddingCat)
    embed = rope.get_embed(shape)
    q, k = draw.query_key(2, 3, embed.shape[0], rope.dim)
    apply = _timm().apply_rot_embed_cat
    return Case(params, ids, *_split(embed), q, k, apply(q, embed, half=half), apply(k, embed, half=half))


@rotary("timm_rope", TIMM, "RotaryEmbedding")
def timm_rope(draw):
    rope, shape, half, ids, params = _axial(draw, _timm().RotaryEmbedding)
    sin, cos = rope.get_embed(shape)
    q, k = draw.query_key(2, 3, cos.shape[0], rope.dim)
    apply = _timm().apply_rot_embed
    return Case(params, ids, cos, sin, q, k, apply(q, sin, cos, half), apply(k, sin, cos, half))


@rotary("timm_dinov3", TIMM, "RotaryEmbeddingDinoV3")
def timm_dinov3(draw):
    dim, shape = 4 * draw.integer(1, 40), [draw.integer(1, 9), draw.integer(1, 9)]
    half, temperature = draw.choice([True, False]), draw.choice([100.0, 10000.0])
    settings = {"normalize_coords": draw.choice(["separate", "min", "max"]), "grid_indexing": draw.choice(["ij", "xy"])}
    rope = _timm().RotaryEmbeddingDinoV3(dim, temperature, rotate_half=half, **settings)
    embed = rope.get_embed(shape)
    ids = _timm()._build_grid(shape, grid_type="centered", **settings).flatten(0, -2)
    q, k = draw.query_key(2, 3, embed.shape[0], dim)
    apply = _timm().apply_rot_embed_cat
    params = {"head_dim": dim, "rope_theta": temperature, "rotate_half": half}
    return Case(params, ids, *_split(embed), q, k, apply(q, embed, half=half), apply(k, embed, half=half))


@rotary("timm_mixed", TIMM, "RotaryEmbeddingMixed")
def timm_mixed(draw):
    heads, head, shape = draw.integer(1, 4), 4 * draw.integer(1, 20), [draw.integer(1, 6), draw.integer(1, 6)]
    torch.manual_seed(draw.integer(0, 1000))
    rope = _timm().RotaryEmbeddingMixed(heads * head, 2, heads)
    embed = rope.get_embed(shape)[1:]  # (1, H, N, 2 * head)
    q, k = draw.query_key(2, heads, embed.shape[2], head)
    apply = _timm().apply_rot_embed_cat
    return Case({"head_dim": head}, None, *_split(embed), q, k, apply(q, embed), apply(k, embed))


@rotary("timm_mrope", TIMM, "RotaryEmbeddingMRope")
def timm_mrope(draw):
    dim, shape, temperature = even(draw, 2, 130), [draw.integer(1, 9), draw.integer(1, 9)], draw.choice([100.0, 10000.0])
    sections = [draw.integer(0, 24) for _ in range(3)]
    rope = _timm().RotaryEmbeddingMRope(dim, sections, temperature)
    embed = rope.get_embed(shape)
    ids = _timm()._build_grid(shape).flatten(0, -2)
    q, k = draw.query_key(2, 3, embed.shape[0], dim)
    apply = _timm().apply_rot_embed_cat
    params = {"head_dim": dim, "rope_theta": temperature, "mrope_section": sections}
    return Case(params, ids, *_split(embed), q, k, apply(q, embed, half=True), apply(k, embed, half=True))

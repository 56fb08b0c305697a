"""Rotary embeddings of the image, video and audio transformers of diffusers."""

import torch

from rotary_registry import Case, Draw, even, nested, rotary
from sources import installed

DIFFUSERS = "diffusers==0.42.1"


def _model(name: str):
    return installed(f"diffusers.models.transformers.transformer_{name}")


def _embeddings():
    return installed("diffusers.models.embeddings")


def _theta(draw: Draw) -> int:
    return draw.choice([256, 2000, 10000, 500000])


def _video(draw: Draw, most: int = 9) -> tuple[int, int, int]:
    return draw.integer(1, 4), draw.integer(1, most), draw.integer(1, most)


def _grid(frames: int, height: int, width: int) -> torch.Tensor:
    """(frames * height * width, 3)"""
    axes = torch.meshgrid(*(torch.arange(s) for s in (frames, height, width)), indexing="ij")
    return torch.stack(axes, dim=-1).view(-1, 3)


def _latents(patches, patch_size=(1, 1, 1)) -> torch.Tensor:
    return torch.zeros(1, 1, *(s * p for s, p in zip(patches, patch_size)))


def _rotated(q, k, turn):
    return {"q": q, "k": k, "rotated_q": turn(q), "rotated_k": turn(k)}


@rotary("flux", DIFFUSERS, "FluxPosEmbed")
def flux(draw):
    axes = [even(draw, 2, 66) for _ in range(draw.choice([2, 3, 4]))]
    theta, length = _theta(draw), draw.integer(1, 40)
    ids = draw.positions(draw.choice([8, 128, 4096]), length, len(axes))
    cos, sin = _model("flux").FluxPosEmbed(theta, axes)(ids)
    q, k = draw.query_key(2, length, 3, sum(axes))
    apply = _embeddings().apply_rotary_emb
    turned = _rotated(q, k, lambda x: apply(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("wan", DIFFUSERS, "WanRotaryPosEmbed")
def wan(draw):
    dim, theta, patches = even(draw, 12, 160), float(_theta(draw)), _video(draw)
    cos, sin = _model("wan").WanRotaryPosEmbed(dim, (1, 2, 2), 1024, theta)(_latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[1], 3, dim)
    apply = nested(_model("wan").WanAttnProcessor.__call__, "apply_rotary_emb")
    turned = _rotated(q, k, lambda x: apply(x, cos, sin))
    return Case({"head_dim": dim, "rope_theta": theta}, _grid(*patches), cos, sin, **turned)


@rotary("hunyuan_video", DIFFUSERS, "HunyuanVideoRotaryPosEmbed")
def hunyuan_video(draw):
    axes, theta, patches = [even(draw, 2, 66) for _ in range(3)], float(_theta(draw)), _video(draw)
    embed = _model("hunyuan_video").HunyuanVideoRotaryPosEmbed(2, 1, axes, theta)
    cos, sin = embed(_latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[0], 3, sum(axes))
    apply = _embeddings().apply_rotary_emb
    turned = _rotated(q, k, lambda x: apply(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, _grid(*patches), cos, sin, **turned)


def _complex_case(draw, params, ids, table, apply, width):
    q, k = draw.query_key(table.shape[0], table.shape[1], 3, width)
    turned = _rotated(q, k, lambda x: apply(x, table))
    return Case(params, ids, table.real, table.imag, **turned)


@rotary("lumina2", DIFFUSERS, "Lumina2RotaryPosEmbed")
def lumina2(draw):
    axes, theta = [even(draw, 2, 66) for _ in range(3)], _theta(draw)
    embed = _model("lumina2").Lumina2RotaryPosEmbed(theta, axes, axes_lens=(300, 512, 512))
    ids = draw.positions(draw.choice([8, 300]), 2, draw.integer(1, 30), 3)
    apply = _embeddings().apply_rotary_emb
    table = embed._get_freqs_cis(ids)
    params = {"axes_dim": axes, "rope_theta": theta}
    return _complex_case(draw, params, ids, table, lambda x, f: apply(x, f, use_real=False), sum(axes))


@rotary("z_image", DIFFUSERS, "RopeEmbedder of Z-Image")
def z_image(draw):
    axes, theta = [even(draw, 2, 66) for _ in range(3)], float(_theta(draw))
    embed = _model("z_image").RopeEmbedder(theta, axes, (300, 512, 512))
    ids = draw.positions(draw.choice([8, 300]), draw.integer(1, 30), 3)
    apply = nested(_model("z_image").ZSingleStreamAttnProcessor.__call__, "apply_rotary_emb")
    table = embed(ids).unsqueeze(0)
    return _complex_case(draw, {"axes_dim": axes, "rope_theta": theta}, ids, table, apply, sum(axes))


@rotary("qwen_image", DIFFUSERS, "QwenEmbedRope")
def qwen_image(draw):
    axes, theta, centred = [even(draw, 2, 66) for _ in range(3)], _theta(draw), draw.choice([True, False])
    frames, height, width = _video(draw)
    embed = _model("qwenimage").QwenEmbedRope(theta, axes, scale_rope=centred)
    image, text = embed([(frames, height, width)], max_txt_seq_len=5)
    ids = _grid(frames, height, width)
    if centred:
        ids = ids - torch.tensor([0, height - height // 2, width - width // 2])
    start = max(height // 2, width // 2) if centred else max(height, width)
    ids = torch.cat([ids, torch.arange(start, start + 5)[:, None].expand(5, 3)])
    table = torch.cat([image, text])
    apply = _model("qwenimage").apply_rotary_emb_qwen
    q, k = draw.query_key(2, table.shape[0], 3, sum(axes))
    turned = _rotated(q, k, lambda x: apply(x, table, use_real=False))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, table.real, table.imag, **turned)


@rotary("cogview4", DIFFUSERS, "CogView4RotaryPosEmbed")
def cogview4(draw):
    dim, theta = 4 * draw.integer(1, 40), float(_theta(draw))
    size, (_, height, width) = (draw.integer(9, 256), draw.integer(9, 256)), _video(draw)
    cos, sin = _model("cogview4").CogView4RotaryPosEmbed(dim, 2, size, theta)(torch.zeros(1, 1, 2 * height, 2 * width))
    ids = _grid(1, height, width)[:, 1:] * torch.tensor(size) // torch.tensor([height, width])
    q, k = draw.query_key(2, 3, cos.shape[0], dim)
    apply = _embeddings().apply_rotary_emb
    turned = _rotated(q, k, lambda x: apply(x, (cos, sin), use_real_unbind_dim=-2))
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("cosmos", DIFFUSERS, "CosmosRotaryPosEmbed")
def cosmos(draw):
    dim = even(draw, 18, 160)
    patches, scale = _video(draw), [draw.choice([1.0, 2.0, 3.0, 20 / 24]) for _ in range(3)]
    fps, base_fps = draw.choice([None, 8, 16, 30]), 24
    embed = _model("cosmos").CosmosRotaryPosEmbed(dim, (128, 240, 240), (1, 2, 2), base_fps, scale)
    cos, sin = embed(_latents(patches, (1, 2, 2)), fps)
    ids = _grid(*patches).float()
    if fps is not None:
        ids[:, 0] = ids[:, 0] / fps * base_fps
    q, k = draw.query_key(2, 3, cos.shape[0], dim)
    apply = _embeddings().apply_rotary_emb
    turned = _rotated(q, k, lambda x: apply(x, (cos, sin), use_real_unbind_dim=-2))
    return Case({"head_dim": dim, "rope_scale": scale}, ids, cos, sin, **turned)


@rotary("ltx", DIFFUSERS, "LTXVideoRotaryPosEmbed")
def ltx(draw):
    dim, theta, patches = even(draw, 12, 200), float(_theta(draw)), _video(draw)
    base = (20, 2048, 2048)
    embed = _model("ltx").LTXVideoRotaryPosEmbed(dim, *base, theta=theta)
    coords = torch.rand(2, 3, draw.integer(1, 20), generator=draw.generator) * 3000
    cos, sin = embed(torch.zeros(2, 1, 1), video_coords=coords)
    ids = torch.stack([coords[:, i] / base[i] for i in range(3)], dim=-1) * 2 - 1
    q, k = draw.query_key(2, coords.shape[-1], dim)
    apply = _model("ltx").apply_rotary_emb
    turned = {name: t.unsqueeze(2) for name, t in _rotated(q, k, lambda x: apply(x, (cos, sin))).items()}
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("mochi", DIFFUSERS, "MochiRoPE")
def mochi(draw):
    heads, n, patches = draw.integer(1, 4), draw.integer(1, 40), _video(draw, 6)
    frequencies = draw.normal(3, heads, n)
    cos, sin = _model("mochi").MochiRoPE()(frequencies, *patches, dtype=torch.float32)
    q, k = draw.query_key(2, cos.shape[0], heads, 2 * n)
    processor = installed("diffusers.models.attention_processor").MochiAttnProcessor2_0
    apply = nested(processor.__call__, "apply_rotary_emb")
    turned = _rotated(q, k, lambda x: apply(x, cos, sin))
    table = (t.transpose(0, 1).unsqueeze(0) for t in (cos, sin))  # (1, H, N, n)
    return Case({"head_dim": 2 * n}, None, *table, **turned)


@rotary("stable_audio3", DIFFUSERS, "StableAudio3RotaryEmbedding")
def stable_audio3(draw):
    head, base, length = 2 * draw.integer(2, 80), _theta(draw), draw.integer(1, 40)
    m = _model("stable_audio3")
    angles = m.StableAudio3RotaryEmbedding(head // 2, base)(length, "cpu")
    q, k = draw.query_key(2, length, 3, head)
    turned = _rotated(q, k, lambda x: m._apply_rotary_partial(x, angles))
    params = {"head_dim": head, "rope_theta": base, "partial_rotary_factor": 0.5}
    return Case(params, torch.arange(length), angles.cos(), angles.sin(), **turned)

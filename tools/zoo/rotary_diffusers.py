"""Rotary embeddings of the image, video and audio transformers of diffusers."""

from types import SimpleNamespace
from unittest import mock

import torch

from rotary_registry import Case, Draw, even, nested, rotary
from sources import installed

DIFFUSERS = "diffusers==0.42.1"


def model(name: str):
    return installed(f"diffusers.models.transformers.transformer_{name}")


def embeddings():
    return installed("diffusers.models.embeddings")


def drawn_base(draw: Draw) -> int:
    return draw.choice([256, 2000, 10000, 500000])


def video(draw: Draw, most: int = 9) -> tuple[int, int, int]:
    return draw.integer(1, 4), draw.integer(1, most), draw.integer(1, most)


def grid(frames: int, height: int, width: int) -> torch.Tensor:
    """(frames * height * width, 3)"""
    axes = torch.meshgrid(*(torch.arange(s) for s in (frames, height, width)), indexing="ij")
    return torch.stack(axes, dim=-1).view(-1, 3)


def latents(patches, patch_size=(1, 1, 1)) -> torch.Tensor:
    return torch.zeros(1, 1, *(s * p for s, p in zip(patches, patch_size)))


def recorded(module, processor, *arguments) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The queries and keys that a processor, which rotates them in its own code, gives to each attention."""
    with mock.patch.object(module, "dispatch_attention_fn", side_effect=lambda query, *_, **__: query) as attention:
        processor(*arguments)
    return [call.args[:2] for call in attention.call_args_list]


def attention_of(q: torch.Tensor, k: torch.Tensor) -> SimpleNamespace:
    """An attention whose projections of 1 are q and k, (B, L, H, D)."""
    project_q, project_k = (x.flatten(2).__mul__ for x in (q, k))
    return SimpleNamespace(to_q=project_q, to_k=project_k, to_v=project_k, heads=q.shape[2], num_heads=q.shape[2], head_dim=q.shape[3],
                           norm_q=torch.clone, norm_k=torch.clone, to_out=[torch.clone] * 2)  # fmt: skip


def across(turn):
    """A rotation of (B, H, L, D) as one of (B, L, H, D), which is the preset's order of axes, or the other way round."""
    return lambda x: turn(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous()


def rotated(q, k, turn):
    return {"q": q, "k": k, "rotated_q": turn(q), "rotated_k": turn(k)}


@rotary("flux", DIFFUSERS, "FluxPosEmbed")
def flux(draw):
    axes = [even(draw, 2, 66) for _ in range(draw.choice([2, 3, 4]))]
    theta, length = drawn_base(draw), draw.integer(1, 40)
    ids = draw.positions(draw.choice([8, 128, 4096]), length, len(axes))
    cos, sin = model("flux").FluxPosEmbed(theta, axes)(ids)
    q, k = draw.query_key(2, length, 3, sum(axes))
    apply = embeddings().apply_rotary_emb
    turned = rotated(q, k, lambda x: apply(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("wan", DIFFUSERS, "WanRotaryPosEmbed")
def wan(draw):
    dim, theta, patches = even(draw, 12, 160), float(drawn_base(draw)), video(draw)
    cos, sin = model("wan").WanRotaryPosEmbed(dim, (1, 2, 2), 1024, theta)(latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[1], 3, dim)
    apply = nested(model("wan").WanAttnProcessor.__call__, "apply_rotary_emb")
    turned = rotated(q, k, lambda x: apply(x, cos, sin))
    return Case({"head_dim": dim, "rope_theta": theta}, grid(*patches), cos, sin, **turned)


@rotary("hunyuan_video", DIFFUSERS, "HunyuanVideoRotaryPosEmbed")
def hunyuan_video(draw):
    axes, theta, patches = [even(draw, 2, 66) for _ in range(3)], float(drawn_base(draw)), video(draw)
    embed = model("hunyuan_video").HunyuanVideoRotaryPosEmbed(2, 1, axes, theta)
    cos, sin = embed(latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[0], 3, sum(axes))
    apply = embeddings().apply_rotary_emb
    turned = rotated(q, k, lambda x: apply(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, grid(*patches), cos, sin, **turned)


def complex_case(draw, params, ids, table, apply, width):
    q, k = draw.query_key(table.shape[0], table.shape[1], 3, width)
    turned = rotated(q, k, lambda x: apply(x, table))
    return Case(params, ids, table.real, table.imag, **turned)


@rotary("lumina2", DIFFUSERS, "Lumina2RotaryPosEmbed")
def lumina2(draw):
    axes, theta = [even(draw, 2, 66) for _ in range(3)], drawn_base(draw)
    embed = model("lumina2").Lumina2RotaryPosEmbed(theta, axes, axes_lens=(300, 512, 512))
    ids = draw.positions(draw.choice([8, 300]), 2, draw.integer(1, 30), 3)
    apply = embeddings().apply_rotary_emb
    table = embed._get_freqs_cis(ids)
    params = {"axes_dim": axes, "rope_theta": theta}
    return complex_case(draw, params, ids, table, lambda x, f: apply(x, f, use_real=False), sum(axes))


@rotary("z_image", DIFFUSERS, "RopeEmbedder of Z-Image")
def z_image(draw):
    axes, theta = [even(draw, 2, 66) for _ in range(3)], float(drawn_base(draw))
    embed = model("z_image").RopeEmbedder(theta, axes, (300, 512, 512))
    ids = draw.positions(draw.choice([8, 300]), draw.integer(1, 30), 3)
    apply = nested(model("z_image").ZSingleStreamAttnProcessor.__call__, "apply_rotary_emb")
    table = embed(ids).unsqueeze(0)
    return complex_case(draw, {"axes_dim": axes, "rope_theta": theta}, ids, table, apply, sum(axes))


@rotary("qwen_image", DIFFUSERS, "QwenEmbedRope")
def qwen_image(draw):
    axes, theta, centred = [even(draw, 2, 66) for _ in range(3)], drawn_base(draw), draw.choice([True, False])
    frames, height, width = video(draw)
    embed = model("qwenimage").QwenEmbedRope(theta, axes, scale_rope=centred)
    image, text = embed([(frames, height, width)], max_txt_seq_len=5)
    ids = grid(frames, height, width)
    if centred:
        ids = ids - torch.tensor([0, height - height // 2, width - width // 2])
    start = max(height // 2, width // 2) if centred else max(height, width)
    ids = torch.cat([ids, torch.arange(start, start + 5)[:, None].expand(5, 3)])
    table = torch.cat([image, text])
    apply = model("qwenimage").apply_rotary_emb_qwen
    q, k = draw.query_key(2, table.shape[0], 3, sum(axes))
    turned = rotated(q, k, lambda x: apply(x, table, use_real=False))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, table.real, table.imag, **turned)


@rotary("cogview4", DIFFUSERS, "CogView4RotaryPosEmbed")
def cogview4(draw):
    dim, theta = 4 * draw.integer(1, 40), float(drawn_base(draw))
    size, (_, height, width) = (draw.integer(9, 256), draw.integer(9, 256)), video(draw)
    cos, sin = model("cogview4").CogView4RotaryPosEmbed(dim, 2, size, theta)(torch.zeros(1, 1, 2 * height, 2 * width))
    ids = grid(1, height, width)[:, 1:] * torch.tensor(size) // torch.tensor([height, width])
    q, k = draw.query_key(2, 3, cos.shape[0], dim)
    apply = embeddings().apply_rotary_emb
    turned = rotated(q, k, lambda x: apply(x, (cos, sin), use_real_unbind_dim=-2))
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("cosmos", DIFFUSERS, "CosmosRotaryPosEmbed")
def cosmos(draw):
    dim = even(draw, 18, 160)
    patches, scale = video(draw), [draw.choice([1.0, 2.0, 3.0, 20 / 24]) for _ in range(3)]
    fps, base_fps = draw.choice([None, 8, 16, 30]), 24
    embed = model("cosmos").CosmosRotaryPosEmbed(dim, (128, 240, 240), (1, 2, 2), base_fps, scale)
    cos, sin = embed(latents(patches, (1, 2, 2)), fps)
    ids = grid(*patches).float()
    if fps is not None:
        ids[:, 0] = ids[:, 0] / fps * base_fps
    q, k = draw.query_key(2, 3, cos.shape[0], dim)
    apply = embeddings().apply_rotary_emb
    turned = rotated(q, k, lambda x: apply(x, (cos, sin), use_real_unbind_dim=-2))
    return Case({"head_dim": dim, "rope_scale": scale}, ids, cos, sin, **turned)


@rotary("ltx", DIFFUSERS, "LTXVideoRotaryPosEmbed")
def ltx(draw):
    dim, theta, patches = even(draw, 12, 200), float(drawn_base(draw)), video(draw)
    base = (20, 2048, 2048)
    embed = model("ltx").LTXVideoRotaryPosEmbed(dim, *base, theta=theta)
    coords = torch.rand(2, 3, draw.integer(1, 20), generator=draw.generator) * 3000
    cos, sin = embed(torch.zeros(2, 1, 1), video_coords=coords)
    ids = torch.stack([coords[:, i] / base[i] for i in range(3)], dim=-1) * 2 - 1
    q, k = draw.query_key(2, coords.shape[-1], dim)
    apply = model("ltx").apply_rotary_emb
    turned = {name: t.unsqueeze(2) for name, t in rotated(q, k, lambda x: apply(x, (cos, sin))).items()}
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **turned)


@rotary("mochi", DIFFUSERS, "MochiRoPE")
def mochi(draw):
    heads, n, patches = draw.integer(1, 4), draw.integer(1, 40), video(draw, 6)
    frequencies = draw.normal(3, heads, n)
    cos, sin = model("mochi").MochiRoPE()(frequencies, *patches, dtype=torch.float32)
    q, k = draw.query_key(2, cos.shape[0], heads, 2 * n)
    processor = installed("diffusers.models.attention_processor").MochiAttnProcessor2_0
    apply = nested(processor.__call__, "apply_rotary_emb")
    turned = rotated(q, k, lambda x: apply(x, cos, sin))
    table = (t.transpose(0, 1).unsqueeze(0) for t in (cos, sin))  # (1, H, N, n)
    return Case({"head_dim": 2 * n}, None, *table, **turned)


@rotary("stable_audio3", DIFFUSERS, "StableAudio3RotaryEmbedding")
def stable_audio3(draw):
    head, base, length = 2 * draw.integer(2, 80), drawn_base(draw), draw.integer(1, 40)
    m = model("stable_audio3")
    angles = m.StableAudio3RotaryEmbedding(head // 2, base)(length, "cpu")
    q, k = draw.query_key(2, length, 3, head)
    turned = rotated(q, k, lambda x: m._apply_rotary_partial(x, angles))
    params = {"head_dim": head, "rope_theta": base, "partial_rotary_factor": 0.5}
    return Case(params, torch.arange(length), angles.cos(), angles.sin(), **turned)


@rotary("lumina_next", DIFFUSERS, "get_2d_rotary_pos_embed_lumina")
def lumina_next(draw):
    dim, (_, height, width) = 4 * draw.integer(1, 40), video(draw)
    table = embeddings().get_2d_rotary_pos_embed_lumina(dim, height, width).flatten(0, 1).unsqueeze(0)
    apply = embeddings().apply_rotary_emb
    ids = grid(1, height, width)[:, 1:]
    return complex_case(draw, {"head_dim": dim}, ids, table, lambda x, f: apply(x, f, use_real=False), dim)


def ltx_coordinates(draw: Draw, sizes=(20, 2048, 2048)) -> tuple[torch.Tensor, torch.Tensor]:
    """Coordinates (2, axes, N) as LTX-2's class takes them, and the positions."""
    coords = torch.rand(2, len(sizes), draw.integer(1, 20), generator=draw.generator) * 3000
    return coords, torch.stack([coords[:, i] / size for i, size in enumerate(sizes)], dim=-1) * 2 - 1


def one_head(turned: dict) -> dict:
    return {name: t.unsqueeze(2) for name, t in turned.items()}


def ltx2_interleaved(draw, module, double_precision: bool):
    dim, theta, audio = even(draw, 12, 200), float(drawn_base(draw)), double_precision and draw.choice([True, False])
    coords, ids = ltx_coordinates(draw, (20,)) if audio else ltx_coordinates(draw)
    rope = next(c for name, c in vars(module).items() if name.endswith("LTX2AudioVideoRotaryPosEmbed"))
    cos, sin = rope(dim, theta=theta, modality="audio" if audio else "video", double_precision=double_precision)(coords)
    q, k = draw.query_key(2, coords.shape[-1], dim)
    turned = one_head(rotated(q, k, lambda x: module.apply_interleaved_rotary_emb(x, (cos, sin))))
    return Case({"head_dim": dim, "rope_theta": theta} | ({"num_axes": 1} if audio else {}), ids, cos, sin, **turned)


def joined(table: torch.Tensor) -> torch.Tensor:
    """(B, H, N, n) -> (B, N, H n): a row for all heads."""
    return table.transpose(1, 2).flatten(2)


def ltx2_split_case(draw, module):
    heads, theta, audio = draw.integer(1, 5), float(drawn_base(draw)), draw.choice([True, False])
    dim = heads * 2 * draw.integer(3, 40)
    coords, ids = ltx_coordinates(draw, (20,)) if audio else ltx_coordinates(draw)
    rope = next(c for name, c in vars(module).items() if name.endswith("LTX2AudioVideoRotaryPosEmbed"))
    embed = rope(dim, theta=theta, modality="audio" if audio else "video", rope_type="split", num_attention_heads=heads)
    cos, sin = embed(coords)
    q, k = draw.query_key(2, coords.shape[-1], dim)
    turned = one_head(rotated(q, k, lambda x: module.apply_split_rotary_emb(x, (cos, sin))))
    params = {"head_dim": dim, "rope_theta": theta, "num_attention_heads": heads} | ({"num_axes": 1} if audio else {})
    return Case(params, ids, joined(cos), joined(sin), **turned)


@rotary("ltx2", DIFFUSERS, "LTX2AudioVideoRotaryPosEmbed")
def ltx2(draw):
    return ltx2_interleaved(draw, model("ltx2"), double_precision=True)


@rotary("ltx2_split", DIFFUSERS, "LTX2AudioVideoRotaryPosEmbed with rope_type split")
def ltx2_split(draw):
    return ltx2_split_case(draw, model("ltx2"))


@rotary("ltx2_vae", DIFFUSERS, "LTX2VideoVaeRotaryPosEmbed3D")
def ltx2_vae(draw):
    dim, theta, patches = 8 * draw.integer(1, 20), float(drawn_base(draw)), video(draw, 6)
    rope = installed("diffusers.models.autoencoders.ltx2_diffusion_decoder").LTX2VideoVaeRotaryPosEmbed3D(dim, theta)
    ids = grid(*patches)
    cells = [rope._inv_freqs(d, torch.device("cpu")) * ids[:, i, None].float() for i, d in enumerate(rope.rope_dim_split)]
    angles = torch.cat(cells, -1).repeat_interleave(2, -1)
    q, k = draw.query_key(2, len(ids), 3, dim)
    turned = rotated(q, k, lambda x: rope(x.unflatten(1, patches)).flatten(1, 3))
    return Case({"head_dim": dim, "rope_theta": theta}, ids, angles.cos(), angles.sin(), **turned)


def of_matrices(draw, params, ids, rope, apply, shape) -> Case:
    """Of a class that returns [[cos, -sin], [sin, cos]]."""
    q, k = draw.query_key(*shape)
    cos, sin = rope[..., 0, 0], rope[..., 1, 0]
    return Case(params, ids, cos, sin, **rotated(q, k, lambda x: apply(x, rope)))


@rotary("hidream_image", DIFFUSERS, "HiDreamImageEmbedND")
def hidream_image(draw):
    axes, theta, length = [even(draw, 2, 66) for _ in range(draw.choice([2, 3]))], drawn_base(draw), draw.integer(1, 40)
    ids = draw.positions(draw.choice([8, 128, 4096]), 2, length, len(axes))
    m = model("hidream_image")
    rope = m.HiDreamImageEmbedND(theta, axes)(ids.float() if draw.choice([True, False]) else ids)
    shape = (2, length, 3, sum(axes))
    return of_matrices(draw, {"axes_dim": axes, "rope_theta": theta}, ids, rope, lambda x, r: m.apply_rope(x, x, r)[0], shape)


def kandinsky(draw, rope_class, apply, batched: bool) -> Case:
    axes, theta, patches = [even(draw, 2, 66) for _ in range(3)], float(drawn_base(draw)), video(draw)
    factor = draw.choice([(1.0, 1.0, 1.0), (1.0, 2.0, 2.0), (1.0, 3.16, 3.16), (0.5, 1.3, 2.7)])
    first = [draw.integer(0, 60) for _ in range(3)]
    places = [torch.arange(begin, begin + size) for begin, size in zip(first, patches)]
    embed = rope_class(axes, max_period=theta)
    rope = embed((1, *patches), places, factor).flatten(1, 3) if batched else embed(places, factor).flatten(0, 2).unsqueeze(0)
    ids = grid(*patches) + torch.tensor(first)
    params = {"axes_dim": axes, "rope_theta": theta, "scale_factor": list(factor)}
    return of_matrices(draw, params, ids, rope, apply, (1, len(ids), 3, sum(axes)))


def kandinsky_1d(draw, rope_class, apply) -> Case:
    dim, theta, length = even(draw, 2, 130), float(drawn_base(draw)), draw.integer(1, 40)
    ids = draw.positions(1000, length)
    rope = rope_class(dim, max_period=theta)(ids).unsqueeze(0)
    params = {"head_dim": dim, "num_axes": 1, "rope_theta": theta}
    return of_matrices(draw, params, ids[:, None], rope, apply, (1, length, 3, dim))


@rotary("kandinsky5", DIFFUSERS, "Kandinsky5RoPE3D, Kandinsky5RoPE1D")
def kandinsky5(draw):
    m = model("kandinsky")
    turn = nested(m.Kandinsky5AttnProcessor.__call__, "apply_rotary")
    apply = lambda x, rope: turn(x, rope).type_as(x)  # noqa: E731
    if draw.choice([True, False]):
        return kandinsky_1d(draw, m.Kandinsky5RoPE1D, apply)
    return kandinsky(draw, m.Kandinsky5RoPE3D, apply, batched=True)


@rotary("kandinsky6", DIFFUSERS, "Kandinsky6RoPE3D, Kandinsky6RoPE1D")
def kandinsky6(draw):
    m = model("kandinsky6")
    if draw.choice([True, False]):
        return kandinsky_1d(draw, m.Kandinsky6RoPE1D, m.apply_rotary)
    return kandinsky(draw, m.Kandinsky6RoPE3D, m.apply_rotary, batched=False)


@rotary("ernie_image", DIFFUSERS, "ErnieImageEmbedND3")
def ernie_image(draw):
    axes, theta, length = [even(draw, 2, 66) for _ in range(3)], drawn_base(draw), draw.integer(1, 40)
    ids = draw.positions(draw.choice([8, 128, 4096]), 2, length, 3)
    m = model("ernie_image")
    angles = m.ErnieImageEmbedND3(sum(axes), theta, axes)(ids.float())
    width = sum(axes) * draw.choice([1, 2])
    q, k = draw.query_key(2, length, 3, width)
    apply = nested(m.ErnieImageSingleStreamAttnProcessor.__call__, "apply_rotary_emb")
    turned = rotated(q, k, lambda x: apply(x, angles))
    params = {"head_dim": width, "partial_rotary_factor": sum(axes) / width, "axes_dim": axes, "rope_theta": theta}
    return Case(params, ids, angles.cos().to(q.dtype), angles.sin().to(q.dtype), **turned)


@rotary("allegro", DIFFUSERS, "get_3d_rotary_pos_embed_allegro")
def allegro(draw):
    dim, patches, m = 6 * draw.integer(1, 24), video(draw), embeddings()
    scale = draw.choice([(1.0, 1.0, 1.0), (2.0, 2.0, 2.0), (1.5, 2.3, 0.7)])
    corners = ((0, 0), patches[1:])
    *tables, t, h, w = m.get_3d_rotary_pos_embed_allegro(dim, corners, patches[1:], patches[0], scale)
    ids = grid(*patches)
    places = [index.unsqueeze(0) for index in ids.unbind(-1)]
    cos, sin = (torch.cat([table[kind][index] for table, index in zip(tables, ids.unbind(-1))], -1) for kind in (0, 1))
    q, k = draw.query_key(1, 3, len(ids), dim)
    turned = rotated(q, k, lambda x: m.apply_rotary_emb_allegro(x, tables, places))
    real = torch.stack([axis[index] / factor for axis, index, factor in zip((t, h, w), ids.unbind(-1), scale)], -1)
    return Case({"head_dim": dim}, real, cos, sin, **turned)


@rotary("minimax_h3_video", DIFFUSERS, "MiniMaxH3VideoRotaryPosEmbed")
def minimax_h3_video(draw):
    dim, theta = 6 * draw.choice([1, 2, 4, 5, 8, 16, 20]), draw.choice([100.0, 10000.0])
    m = installed("diffusers.models.autoencoders.autoencoder_kl_minimax_h3")
    ids = torch.rand(2, draw.integer(1, 40), 3, generator=draw.generator) * 2 - 1
    table = m.MiniMaxH3VideoRotaryPosEmbed(dim, theta)(ids)
    width = dim * draw.choice([1, 2])
    q, k = draw.query_key(2, ids.shape[1], 3, width)
    ones = torch.ones((), dtype=q.dtype)
    [seen] = recorded(m, m.MiniMaxH3VideoAttnProcessor(), attention_of(q, k), ones, table)
    cos, sin = (t.to(q.dtype) for t in table)
    params = {"head_dim": width, "partial_rotary_factor": dim / width, "rope_theta": theta}
    return Case(params, ids, cos, sin, q, k, *seen)

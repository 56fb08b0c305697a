"""Classes of diffusers that have the bits of another preset."""

from types import SimpleNamespace

import torch

from rotary_diffusers import (
    DIFFUSERS, across, attention_of, drawn_base, embeddings, grid, joined, latents, ltx2_interleaved, ltx2_split_case, kandinsky,
    model, of_matrices, one_head, recorded, rotated, video,
)  # fmt: skip
from rotary_registry import Case, copy, even, nested
from sources import installed


def _axes(draw, counts=(3,), step: int = 2) -> list[int]:
    return [step * draw.integer(1, 66 // step) for _ in range(draw.choice(counts))]


# --- flux ---


def _flux(draw, name: str, rope: str, counts=(2, 3, 4)) -> Case:
    axes, theta, length = _axes(draw, counts), drawn_base(draw), draw.integer(1, 40)
    ids = draw.positions(draw.choice([8, 128, 4096]), length, len(axes))
    m = model(name)
    table = getattr(m, rope)(theta, axes)(ids)
    q, k = draw.query_key(2, length, 3, sum(axes))
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, table, sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, *table, **turned)


for _name, _rope in (("bria", "BriaEmbedND"), ("bria", "BriaPosEmbed"), ("bria_fibo", "BriaFiboEmbedND"), ("flux2", "Flux2PosEmbed"),
                     ("flux3", "Flux3PosEmbed"), ("krea2", "Krea2RotaryPosEmbed"), ("longcat_image", "LongCatImagePosEmbed"),
                     ("ovis_image", "OvisImagePosEmbed")):  # fmt: skip
    copy("flux", DIFFUSERS, _rope)(lambda draw, name=_name, rope=_rope: _flux(draw, name, rope))


def _of_video(draw, name: str, rope: str) -> Case:
    """The interface of HunyuanVideo's class."""
    axes, theta, patches = _axes(draw), float(drawn_base(draw)), video(draw)
    cos, sin = getattr(model(name), rope)(2, 1, axes, theta)(latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[0], 3, sum(axes))
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, grid(*patches), cos, sin, **turned)


@copy("flux", DIFFUSERS, "MotifVideoRotaryPosEmbed")
def motif_video(draw):
    return _of_video(draw, "motif_video", "MotifVideoRotaryPosEmbed")


# --- wan ---


@copy("wan", DIFFUSERS, "SkyReelsV2RotaryPosEmbed")
def skyreels_v2(draw):
    dim, theta, patches = even(draw, 12, 160), float(drawn_base(draw)), video(draw)
    m = model("skyreels_v2")
    cos, sin = m.SkyReelsV2RotaryPosEmbed(dim, (1, 2, 2), 1024, theta)(latents(patches, (1, 2, 2)))
    q, k = draw.query_key(2, cos.shape[1], 3, dim)
    apply = nested(m.SkyReelsV2AttnProcessor.__call__, "apply_rotary_emb")
    return Case({"head_dim": dim, "rope_theta": theta}, grid(*patches), cos, sin, **rotated(q, k, lambda x: apply(x, cos, sin)))


@copy("wan", DIFFUSERS, "ChronoEditRotaryPosEmbed")
def chronoedit(draw):
    dim, theta, (frames, height, width) = 6 * draw.integer(2, 26) + draw.choice([0, 2]), float(drawn_base(draw)), video(draw)
    m, skipped = model("chronoedit"), draw.choice([8, 5])
    cos, sin = m.ChronoEditRotaryPosEmbed(dim, (1, 2, 2), 1024, theta, skipped)(latents((frames, height, width), (1, 2, 2)))
    ids = grid(frames, height, width)
    if frames == 2:
        ids[:, 0] *= skipped - 1
    q, k = draw.query_key(2, cos.shape[1], 3, dim)
    apply = nested(m.WanAttnProcessor.__call__, "apply_rotary_emb")
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **rotated(q, k, lambda x: apply(x, cos, sin)))


# --- hunyuan_video ---


@copy("hunyuan_video", DIFFUSERS, "HunyuanVideo15RotaryPosEmbed")
def hunyuan_video15(draw):
    return _of_video(draw, "hunyuan_video15", "HunyuanVideo15RotaryPosEmbed")


@copy("hunyuan_video", DIFFUSERS, "HunyuanVideoFramepackRotaryPosEmbed")
def hunyuan_video_framepack(draw):
    axes, theta, (frames, height, width) = _axes(draw), float(drawn_base(draw)), video(draw)
    embed = model("hunyuan_video_framepack").HunyuanVideoFramepackRotaryPosEmbed(2, 1, axes, theta)
    places = draw.positions(100, frames).sort().values
    cos, sin = embed(places, 2 * height, 2 * width, torch.device("cpu"))
    ids = grid(frames, height, width)
    ids[:, 0] = places[ids[:, 0]]
    q, k = draw.query_key(2, len(ids), 3, sum(axes))
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, cos, sin, **turned)


@copy("hunyuan_video", DIFFUSERS, "HunyuanImageRotaryPosEmbed")
def hunyuanimage(draw):
    axes, theta, patches = _axes(draw, (2, 3)), float(drawn_base(draw)), video(draw)
    size = patches[-len(axes) :]
    cos, sin = model("hunyuanimage").HunyuanImageRotaryPosEmbed([1] * len(axes), axes, theta)(latents(size))
    ids = grid(*((1,) * (3 - len(size)) + size))[:, -len(axes) :]
    q, k = draw.query_key(2, len(ids), 3, sum(axes))
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, (cos, sin), sequence_dim=1))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, cos, sin, **turned)


@copy("hunyuan_video", DIFFUSERS, "get_rotary_pos_embed of JoyImage")
def joyimage(draw):
    axes, theta, patches = _axes(draw), drawn_base(draw), video(draw)
    m = model("joyimage")
    own = SimpleNamespace(hidden_size=sum(axes), num_attention_heads=1, rope_dim_list=axes, theta=theta)
    (cos, sin), _ = m.JoyImageEditTransformer3DModel.get_rotary_pos_embed(own, list(patches))
    q, k = draw.query_key(2, len(cos), 3, sum(axes))
    turned = rotated(q, k, lambda x: m._apply_rotary_emb(x, x, (cos, sin))[0])
    return Case({"axes_dim": axes, "rope_theta": theta}, grid(*patches), cos, sin, **turned)


@copy("hunyuan_video", DIFFUSERS, "HeliosRotaryPosEmbed")
def helios(draw):
    axes, theta, (frames, height, width) = _axes(draw), float(drawn_base(draw)), video(draw)
    m, places = model("helios"), draw.positions(100, 2, frames)
    table = m.HeliosRotaryPosEmbed(axes, theta)(places, height, width, "cpu").flatten(2).transpose(1, 2)
    ids = grid(frames, height, width).repeat(2, 1, 1)
    for row in (0, 1):
        ids[row, :, 0] = places[row][ids[row, :, 0]]
    q, k = draw.query_key(2, ids.shape[1], 3, sum(axes))
    turned = rotated(q, k, lambda x: m.apply_rotary_emb_transposed(x, table))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, *table.chunk(2, -1), **turned)


def _places(axes: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)


def _along(start, stop, count: int) -> torch.Tensor:
    return torch.linspace(start, stop * (count - 1) / count, count)


@copy("hunyuan_video", DIFFUSERS, "EasyAnimateRotaryPosEmbed")
def easyanimate(draw):
    dim, (frames, height, width), patch = 16 * draw.integer(1, 9), video(draw), draw.choice([1, 2])
    embed = model("easyanimate").EasyAnimateRotaryPosEmbed(patch, dim)
    table = embed(latents((frames, height, width), (1, patch, patch)))
    start, stop = embed.get_resize_crop_region_for_grid((height, width), 90 // patch, 60 // patch)
    ids = _places([_along(0, frames, frames), _along(start[0], stop[0], height), _along(start[1], stop[1], width)])
    q, k = draw.query_key(2, len(ids), 3, dim)
    turned = rotated(q, k, across(lambda x: embeddings().apply_rotary_emb(x, table)))
    return Case({"axes_dim": [dim // 4, dim // 8 * 3, dim // 8 * 3], "rope_theta": 10000}, ids, *table, **turned)


@copy("hunyuan_video", DIFFUSERS, "get_3d_rotary_pos_embed of CogVideoX and ConsisID")
def cogvideox(draw):
    dim, (frames, height, width), theta = 16 * draw.integer(1, 9), video(draw), drawn_base(draw)
    if draw.choice([True, False]):
        start, stop = (draw.integer(0, 9), draw.integer(0, 9)), (draw.integer(10, 40), draw.integer(10, 40))
        table = embeddings().get_3d_rotary_pos_embed(dim, (start, stop), (height, width), frames, theta)
        ids = _places([_along(0, frames, frames), _along(start[0], stop[0], height), _along(start[1], stop[1], width)])
    else:
        table = embeddings().get_3d_rotary_pos_embed(dim, None, (height, width), frames, theta, grid_type="slice", max_size=(20, 20))
        ids = grid(frames, height, width)
    q, k = draw.query_key(2, len(ids), 3, dim)
    turned = rotated(q, k, across(lambda x: embeddings().apply_rotary_emb(x, table)))
    return Case({"axes_dim": [dim // 4, dim // 8 * 3, dim // 8 * 3], "rope_theta": theta}, ids, *table, **turned)


@copy("hunyuan_video", DIFFUSERS, "get_2d_rotary_pos_embed of Hunyuan-DiT")
def hunyuan_dit(draw):
    dim, (_, height, width) = 4 * draw.integer(1, 40), video(draw)
    start, stop = (draw.integer(0, 9), draw.integer(0, 9)), (draw.integer(10, 40), draw.integer(10, 40))
    table = embeddings().get_2d_rotary_pos_embed(dim, (start, stop), (height, width))
    ids = _places([_along(start[0], stop[0], height), _along(start[1], stop[1], width)]).flip(-1)
    q, k = draw.query_key(2, len(ids), 3, dim)
    turned = rotated(q, k, across(lambda x: embeddings().apply_rotary_emb(x, table)))
    return Case({"axes_dim": [dim // 2, dim // 2], "rope_theta": 10000}, ids, *table, **turned)


# --- complex numbers ---


def _wan_axes(dim: int) -> list[int]:
    return [dim - 4 * (dim // 6), 2 * (dim // 6), 2 * (dim // 6)]


def _anyflow(draw, name: str, rope_class: str, arguments, layout) -> Case:
    dim, theta, (frames, height, width) = even(draw, 12, 160), float(drawn_base(draw)), video(draw)
    m = model(name)
    table = getattr(m, rope_class)(dim, *arguments, 64, theta)(layout(frames, (height, width)), torch.device("cpu"))["query"]
    q, k = draw.query_key(2, table.shape[-2], 3, dim)
    params = {"axes_dim": _wan_axes(dim), "rope_theta": theta}
    turned = rotated(q, k, across(lambda x: m.apply_rotary_emb(x, table)))
    return Case(params, grid(frames, height, width), table.real, table.imag, **turned)


@copy("lumina2", DIFFUSERS, "AnyFlowRotaryPosEmbed")
def anyflow(draw):
    return _anyflow(draw, "anyflow", "AnyFlowRotaryPosEmbed", [(1, 2, 2)],
                    lambda frames, shape: {"total_frames": frames, "full_frame_shape": shape})  # fmt: skip


@copy("lumina2", DIFFUSERS, "AnyFlowCausalRotaryPosEmbed")
def anyflow_far(draw):
    return _anyflow(draw, "anyflow_far", "AnyFlowCausalRotaryPosEmbed", [(1, 2, 2), (1, 4, 4)],
                    lambda frames, shape: {"total_frames": frames, "full_frame_shape": shape, "compressed_frame_shape": (1, 1),
                                           "num_compressed_frames": 0})  # fmt: skip


@copy("lumina2", DIFFUSERS, "rope_apply of Wan-Animate 2")
def wan_animate_2(draw):
    dim, patches, m = even(draw, 12, 160), video(draw), model("wan_animate_2")
    axes = _wan_axes(dim)
    table = torch.cat([m.rope_params(64, width) for width in axes], dim=1)
    ids = grid(*patches)
    q, k = draw.normal(2, len(ids), 3, dim), draw.normal(2, len(ids), 3, dim)
    turned = rotated(q, k, lambda x: m.rope_apply(x, torch.tensor([patches] * 2), table))
    rows = torch.cat([part[index] for part, index in zip(table.split([a // 2 for a in axes], dim=1), ids.unbind(-1))], -1)
    return Case({"axes_dim": axes}, ids, rows.real, rows.imag, **turned)


def _qwen(draw, name: str, rope_class: str, apply: str, layers: int) -> Case:
    """`layers`: how many images lie over each other before one at the frame -1."""
    axes, theta, centred = _axes(draw), drawn_base(draw), draw.choice([True, False])
    frames, height, width = (1 if layers else draw.integer(1, 4)), draw.integer(1, 9), draw.integer(1, 9)
    m = model(name)
    sizes = [(frames, height, width)] * (layers + 1)
    image, text = getattr(m, rope_class)(theta, axes, scale_rope=centred)([sizes], max_txt_seq_len=5)
    middle = torch.tensor([0, height - height // 2, width - width // 2]) * centred
    places = [grid(frames, height, width) - middle + torch.tensor([i if i < layers or not layers else -1, 0, 0]) for i in range(layers + 1)]
    start = max(height // 2, width // 2) if centred else max(height, width)
    start = max(start, layers)
    ids = torch.cat([*places, torch.arange(start, start + 5)[:, None].expand(5, 3)])
    table = torch.cat([image, text])
    q, k = draw.query_key(2, len(ids), 3, sum(axes))
    turned = rotated(q, k, lambda x: getattr(m, apply)(x, table, use_real=False))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, table.real, table.imag, **turned)


@copy("qwen_image", DIFFUSERS, "QwenEmbedLayer3DRope")
def qwen_layers(draw):
    return _qwen(draw, "qwenimage", "QwenEmbedLayer3DRope", "apply_rotary_emb_qwen", draw.integer(1, 3))


@copy("qwen_image", DIFFUSERS, "NucleusMoEEmbedRope")
def nucleusmoe(draw):
    return _qwen(draw, "nucleusmoe_image", "NucleusMoEEmbedRope", "_apply_rotary_emb_nucleus", 0)


@copy("qwen_image", DIFFUSERS, "QwenImage21Rope")
def qwen_image_21(draw):
    axes, theta, m = _axes(draw), drawn_base(draw), model("qwenimage21")
    before, height, width, after = draw.integer(0, 4), draw.integer(1, 9), draw.integer(1, 9), draw.integer(0, 4)
    mask = torch.tensor([False] * before + [True] * height * width + [False] * after)
    table = m.QwenImage21Rope(theta, axes)([(1, height, width)], mask, torch.device("cpu"))
    image = grid(1, height, width) - torch.tensor([0, height - height // 2, width - width // 2]) + torch.tensor([before, 0, 0])
    words = [torch.arange(begin, begin + count)[:, None].expand(count, 3) for begin, count in ((0, before), (before + max(height, width), after))]
    ids = torch.cat([words[0], image, words[1]])
    q, k = draw.query_key(2, len(ids), 3, sum(axes))
    turned = rotated(q, k, lambda x: m.apply_rotary_emb_qwen(x, table, use_real=False))
    return Case({"axes_dim": axes, "rope_theta": theta}, ids, table.real, table.imag, **turned)


@copy("qwen_image", DIFFUSERS, "SanaWMRotaryPosEmbed")
def sana_wm(draw):
    dim, theta, patches, m = even(draw, 12, 160), float(drawn_base(draw)), video(draw), model("sana_wm")
    table = m.SanaWMRotaryPosEmbed(dim, (1, 1, 1), 64, theta)(patches)
    q, k = draw.query_key(2, table.shape[-2], 3, dim)

    def turn(x):  # (B, N, H, D) as (B, H, D, N)
        return m._apply_rotary_emb(x.permute(0, 2, 3, 1), table).permute(0, 3, 1, 2)

    params = {"axes_dim": _wan_axes(dim), "rope_theta": theta}
    return Case(params, grid(*patches), table.real, table.imag, **rotated(q, k, turn))


# --- others of several axes ---


@copy("cogview4", DIFFUSERS, "GlmImageRotaryPosEmbed")
def glm_image(draw):
    dim, theta, (_, height, width) = 4 * draw.integer(1, 40), float(drawn_base(draw)), video(draw)
    table = model("glm_image").GlmImageRotaryPosEmbed(dim, 2, theta)(torch.zeros(1, 1, 2 * height, 2 * width))
    q, k = draw.query_key(2, 3, height * width, dim)
    apply = embeddings().apply_rotary_emb
    turned = rotated(q, k, across(lambda x: apply(x, table, use_real_unbind_dim=-2, sequence_dim=1)))
    return Case({"head_dim": dim, "rope_theta": theta}, grid(1, height, width)[:, 1:], *table, **turned)


@copy("ltx", DIFFUSERS, "LTX2AudioVideoRotaryPosEmbed")
def ltx2_single(draw):
    return ltx2_interleaved(draw, model("ltx2"), double_precision=False)


@copy("ltx2", DIFFUSERS, "SanaWMLTX2AudioVideoRotaryPosEmbed")
def sana_wm_refiner(draw):
    return ltx2_interleaved(draw, model("sana_wm_refiner"), double_precision=True)


@copy("ltx2_split", DIFFUSERS, "SanaWMLTX2AudioVideoRotaryPosEmbed with rope_type split")
def sana_wm_refiner_split(draw):
    return ltx2_split_case(draw, model("sana_wm_refiner"))


def _ltx2_1d(draw, split: bool) -> Case:
    heads, theta, length, base = draw.integer(1, 5), float(drawn_base(draw)), draw.integer(1, 40), draw.choice([4096, 100])
    dim = heads * 2 * draw.integer(1, 30)
    rope = installed("diffusers.pipelines.ltx2.connectors").LTX2RotaryPosEmbed1d
    embed = rope(dim, base, theta, rope_type="split" if split else "interleaved", num_attention_heads=heads)
    cos, sin = embed(2, length, torch.device("cpu"))
    ids = (torch.arange(length, dtype=torch.float32) / base * 2 - 1)[None, :, None].repeat(2, 1, 1)
    m = model("ltx2")
    apply = m.apply_split_rotary_emb if split else m.apply_interleaved_rotary_emb
    q, k = draw.query_key(2, length, dim)
    turned = one_head(rotated(q, k, lambda x: apply(x, (cos, sin))))
    params = {"head_dim": dim, "num_axes": 1, "rope_theta": theta} | ({"num_attention_heads": heads} if split else {})
    return Case(params, ids, *(map(joined, (cos, sin)) if split else (cos, sin)), **turned)


@copy("ltx2", DIFFUSERS, "LTX2RotaryPosEmbed1d")
def ltx2_1d(draw):
    return _ltx2_1d(draw, split=False)


@copy("ltx2_split", DIFFUSERS, "LTX2RotaryPosEmbed1d with rope_type split")
def ltx2_1d_split(draw):
    return _ltx2_1d(draw, split=True)


@copy("hidream_image", DIFFUSERS, "PRXEmbedND")
def prx(draw):
    axes, theta, length, m = _axes(draw, (2, 3)), drawn_base(draw), draw.integer(1, 40), model("prx")
    ids = draw.positions(draw.choice([8, 128, 4096]), 2, length, len(axes))
    rope = m.PRXEmbedND(sum(axes), theta, axes)(ids)
    shape = (2, length, 3, sum(axes))
    return of_matrices(draw, {"axes_dim": axes, "rope_theta": theta}, ids, rope, lambda x, r: across(lambda y: m.apply_rope(y, r))(x), shape)


@copy("kandinsky6", DIFFUSERS, "Kandinsky6SRRoPE3D")
def kandinsky6_sr(draw):
    m = model("kandinsky6_sr")
    return kandinsky(draw, m.Kandinsky6SRRoPE3D, m.apply_rotary, batched=False)


@copy("minimax_m3_vision", DIFFUSERS, "MiniMaxH3RotaryPosEmbed")
def minimax_h3(draw):
    each, theta, m = draw.integer(1, 20), float(drawn_base(draw)), model("minimax_h3")
    ids = draw.positions(200, draw.integer(1, 40), 3)
    cos, sin = m.MiniMaxH3RotaryPosEmbed(each, theta)(ids)
    q, k = draw.query_key(2, len(ids), 3, 6 * each + draw.choice([0, 2, 4]))
    turned = rotated(q, k, lambda x: m._apply_rotary_emb(x, cos, sin))
    return Case({"rope_theta": theta}, ids, cos.to(q.dtype), sin.to(q.dtype), **turned)


# --- one axis ---


def _line(draw, width_step: int = 2) -> tuple[int, float, int]:
    return width_step * draw.integer(2, 80), float(drawn_base(draw)), draw.integer(1, 40)


def _partial(dim: int, head: int, theta: float) -> dict:
    return {"head_dim": head, "partial_rotary_factor": dim / head, "rope_theta": theta}


@copy("stable_audio3", DIFFUSERS, "RotaryEmbedding")
def same_autoencoder(draw):
    head, base, length = 2 * draw.integer(2, 80), drawn_base(draw), draw.integer(1, 40)
    m = installed("diffusers.models.autoencoders.autoencoder_same")
    angles = m.RotaryEmbedding(head // 2, base)(length, "cpu")
    q, k = draw.query_key(2, length, 3, head)
    turned = rotated(q, k, lambda x: m._apply_rotary_partial(x, angles))
    return Case(_partial(head // 2, head, base), torch.arange(length), angles.cos(), angles.sin(), **turned)


@copy("stable_audio3", DIFFUSERS, "StableAudioAttnProcessor2_0")
def stable_audio(draw):
    dim, theta, length = _line(draw)
    table = embeddings().get_1d_rotary_pos_embed(dim, length, theta, use_real=True, repeat_interleave_real=False)
    q, k = draw.query_key(2, length, 3, dim * draw.choice([1, 2]))
    own = installed("diffusers.models.attention_processor").StableAudioAttnProcessor2_0
    turned = rotated(q, k, across(lambda x: own.apply_partial_rotary_emb(None, x, table)))
    return Case(_partial(dim, q.shape[-1], theta), torch.arange(length), *table, **turned)


@copy("llama", DIFFUSERS, "AnimaRotaryEmbedding")
def anima(draw):
    dim, theta, length = _line(draw)
    m = installed("diffusers.models.condition_embedders.condition_embedder_anima")
    ids = draw.positions(3000, 2, length)
    q, k = draw.query_key(2, 3, length, dim)
    cos, sin = m.AnimaRotaryEmbedding(dim, theta)(q, ids)
    turned = rotated(q, k, lambda x: m._apply_rotary_pos_emb(x, cos, sin))
    return Case({"head_dim": dim, "rope_theta": theta}, ids, cos, sin, **turned)


@copy("gpt_neox", DIFFUSERS, "MiniMaxMusic3RotaryEmbedding")
def minimax_music3(draw):
    dim, theta, length = _line(draw)
    m = model("minimax_music3")
    table = m.MiniMaxMusic3RotaryEmbedding(dim, theta)(length, "cpu")
    q, k = draw.query_key(2, 3, length, dim * draw.choice([1, 2]))
    turned = rotated(q, k, across(lambda x: m._apply_partial_rotary_emb(x, table)))
    cos, sin = (t.to(q.dtype) for t in table)
    return Case(_partial(dim, q.shape[-1], theta), torch.arange(length), cos, sin, **turned)


@copy("olmo", DIFFUSERS, "OmniGenSuScaledRotaryEmbedding")
def omnigen(draw):
    dim, theta, length = _line(draw)
    original, factor = draw.choice([64, 4096]), draw.choice([1.0, 8.0, 32.0])
    factors = [[round(draw.random.uniform(0.5, 40), 3) for _ in range(dim // 2)] for _ in range(2)]
    scaling = dict(zip(("short_factor", "long_factor"), factors))
    embed = model("omnigen").OmniGenSuScaledRotaryEmbedding(dim, int(original * factor), original, theta, scaling)
    q, k = draw.query_key(2, 3, length, dim)
    ids = draw.positions(draw.choice([60, 5000]), 1, length)
    table = embed(q, ids)
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, table, use_real_unbind_dim=-2))
    params = {"head_dim": dim, "rope_theta": theta, "rope_type": "longrope", "original_max_position_embeddings": original,
              "factor": factor} | scaling  # fmt: skip
    return Case(params, ids, *table, **turned)


@copy("esm", DIFFUSERS, "AudioDiTRotaryEmbedding")
def audio_dit(draw):
    dim, theta, length = _line(draw)
    m = model("longcat_audio_dit")
    q, k = draw.query_key(2, 3, length, dim)
    cos, sin = m.AudioDiTRotaryEmbedding(dim, 50, theta)(q.transpose(1, 2))
    turned = rotated(q, k, across(lambda x: m._apply_rotary_emb(x, (cos, sin))))
    return Case({"head_dim": dim, "rope_theta": theta}, torch.arange(length), cos, sin, **turned)


@copy("esm", DIFFUSERS, "_ace_step_rotary_freqs of ACE-Step")
def ace_step(draw):
    dim, theta, length = _line(draw)
    m = installed("diffusers.models.transformers.ace_step_transformer")
    q, k = draw.query_key(2, 3, length, dim)
    table = m._ace_step_rotary_freqs(length, dim, theta, torch.device("cpu"), q.dtype)
    turned = rotated(q, k, lambda x: embeddings().apply_rotary_emb(x, table, use_real_unbind_dim=-2))
    return Case({"head_dim": dim, "rope_theta": theta}, torch.arange(length), *table, **turned)


@copy("gptj", DIFFUSERS, "RotaryEmbedding")
def kolors(draw):
    dim, _, length = _line(draw)
    m = installed("diffusers.pipelines.kolors.text_encoder")
    q, k = draw.query_key(2, length, 3, dim * draw.choice([1, 2]))
    cache = m.RotaryEmbedding(dim, dtype=q.dtype)(length)
    turned = rotated(q, k, lambda x: m.apply_rotary_pos_emb(x.transpose(0, 1), cache.unsqueeze(1)).transpose(0, 1))
    return Case(_partial(dim, q.shape[-1], 10000), torch.arange(length), cache[..., 0], cache[..., 1], **turned)


def _sections(draw, least: int) -> tuple[int, list[int]]:
    """A width, and sections that fill its frequencies or leave some of them to time."""
    third = draw.integer(2, 26)
    half = 3 * third + draw.integer(0, 2)
    height, width = draw.integer(least, third), draw.integer(least, third)
    return 2 * half, draw.choice([[half - 2 * third, third, third], [0, height, width]])


@copy("qwen3_vl", DIFFUSERS, "Cosmos3VLTextRotaryEmbedding")
def cosmos3(draw):
    _, theta, length = _line(draw)
    (dim, sections), m = _sections(draw, 0), model("cosmos3")
    ids = draw.positions(3000, 3, 1, length)
    q, k = draw.query_key(length, 3, dim)
    cos, sin = m.Cosmos3VLTextRotaryEmbedding(dim, theta, sections)(ids, torch.device("cpu"), q.dtype)
    und, ones = draw.integer(0, length), torch.ones((), dtype=q.dtype)
    parts = [t[0, part] for part in (slice(None, und), slice(und, None)) for t in (cos, sin)]
    attn = SimpleNamespace(num_attention_heads=3, num_key_value_heads=3, head_dim=dim, k_norm_und_for_gen=None)
    projections = {"to_q": q[:und], "to_k": k[:und], "to_v": k[:und], "add_q_proj": q[und:], "add_k_proj": k[und:], "add_v_proj": k[und:]}
    vars(attn).update({name: x.__mul__ for name, x in projections.items()})
    vars(attn).update(dict.fromkeys(("norm_q", "norm_k", "norm_added_q", "norm_added_k", "to_out", "to_add_out"), torch.clone))
    first, second = recorded(m, m.Cosmos3AttnProcessor(), attn, ones, ones, parts)
    turned = (x.transpose(1, 2).contiguous() for x in (torch.cat([first[0], second[0]], dim=1), second[1]))
    params = {"head_dim": dim, "rope_theta": theta, "mrope_section": sections}
    return Case(params, ids, cos, sin, q.transpose(0, 1)[None], k.transpose(0, 1)[None], *turned)


@copy("qwen3_vl", DIFFUSERS, "Ideogram4MRoPE")
def ideogram4(draw):
    _, theta, length = _line(draw)
    (dim, sections), m = _sections(draw, 1), model("ideogram4")
    ids = draw.positions(3000, 2, length, 3)
    q, k = draw.query_key(2, length, 3, dim)
    cos, sin = (t.to(q.dtype) for t in m.Ideogram4MRoPE(dim, theta, sections)(ids))
    ones = torch.ones((), dtype=q.dtype)
    [seen] = recorded(m, m.Ideogram4AttnProcessor(), attention_of(q, k), ones, None, (cos, sin))
    params = {"head_dim": dim, "rope_theta": theta, "mrope_section": sections}
    return Case(params, ids.permute(2, 0, 1), cos, sin, *(x.transpose(1, 2).contiguous() for x in (q, k, *seen)))

"""Rotary embeddings whose classes in transformers have special inputs: patches of images, coordinates, tables."""

import json
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from transformers.vision_utils import get_vision_position_ids

from harness import Case, Draw
from rotary_models import config_class, modeling
from written import written

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
WIDTHS = [16, 32, 48, 64, 80, 96, 104, 128]


def heads(draw: Draw, dtype: torch.dtype, *shape: int) -> tuple[Tensor, Tensor]:
    return draw.normal(*shape).to(dtype), draw.normal(*shape).to(dtype)


def theta(draw: Draw) -> float:
    return draw.choice([100.0, 10000.0, 500000.0, 20011.7])


def of_config(config, grid: dict | None = None) -> dict:
    """The options of a case for the driver."""
    text = config.to_json_string(use_diff=True)
    text = json.dumps(written(Draw(text), type(config), json.loads(text), same=True))
    return {"op": "rotary_grid" if grid else "rotary", "config": text} | (grid or {})


def result(cos: Tensor, sin: Tensor, **rest: Tensor) -> dict[str, Tensor]:
    return {name: t.contiguous() for name, t in ({"cos": cos, "sin": sin} | rest).items()}


def llama4_vision(draw: Draw, model_type: str) -> Case:
    module, dtype, side = modeling(model_type), draw.choice(DTYPES), draw.randint(1, 9)
    width, count = draw.choice(WIDTHS), draw.choice([1, 3])
    config = config_class(model_type)(hidden_size=count * width, num_attention_heads=count, image_size=side * 14,
                                      patch_size=14, rope_parameters={"rope_theta": theta(draw), "rope_type": "default"})  # fmt: skip
    table = module.Llama4VisionRotaryEmbedding(config)(torch.zeros(1))
    q, k = heads(draw, dtype, 2, side * side + 1, count, width)
    rotated = module.vision_apply_rotary_emb(q, k, table)
    expected = result(table.real.squeeze(1), table.imag.squeeze(1), q=rotated[0], k=rotated[1])
    return Case(of_config(config, {"height": side, "width": side}), {"q": q, "k": k}, expected, "bits")


def dinov3(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    name = {"eomt_dinov3": "EomtDinov3RotaryEmbedding", "sapiens2": "Sapiens2RopePositionEmbedding"}
    width, count, height, columns = draw.choice(WIDTHS), draw.choice([1, 2]), draw.randint(1, 20), draw.randint(1, 20)
    base = {"rope_parameters": {"rope_theta": theta(draw), "rope_type": "default"}} if model_type == "eomt_dinov3" else {"rope_theta": theta(draw)}
    config = config_class(model_type)(hidden_size=count * width, num_attention_heads=count, patch_size=2, image_size=32, **base)
    grid = {"height": height, "width": columns, "prefix_tokens": draw.choice([0, 1, 5])}
    own = getattr(module, name.get(model_type, "DINOv3ViTRopePositionEmbedding"))(config).eval()
    if draw.coin(0.4):  # the coordinates of training
        amounts = {"shift": draw.choice([0.0, 0.5]), "jitter": draw.choice([0.0, 1.1]), "rescale": draw.choice([0.0, 2.0])}
        for key, value in amounts.items():
            setattr(config, f"pos_embed_{key}", value or None)
        grid |= amounts | {"seed": draw.randint(0, 1000)}
        own.train()
        torch.manual_seed(grid["seed"])
    cos, sin = own(torch.zeros(1, 3, 2 * height, 2 * columns, dtype=dtype))
    q, k = heads(draw, dtype, 2, count, grid["prefix_tokens"] + height * columns, width)
    rotated = module.apply_rotary_pos_emb(q, k, cos, sin)
    return Case(of_config(config, grid), {"q": q, "k": k}, result(cos, sin, q=rotated[0], k=rotated[1]), "bits")


def wav2vec2(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    prefix = {"wav2vec2-bert": "Wav2Vec2Bert", "wav2vec2-conformer": "Wav2Vec2Conformer"}.get(model_type, "SeamlessM4TConformer")
    width, count, length = draw.choice([*WIDTHS, 38, 118]), draw.choice([1, 2, 4]), draw.randint(1, 60)
    counts = {"speech_encoder_attention_heads" if model_type == "seamless_m4t" else "num_attention_heads": count}
    config = config_class(model_type)(hidden_size=count * width, rotary_embedding_base=draw.choice([10000, 5000, 500000]),
                                      position_embeddings_type="rotary", **counts)  # fmt: skip
    q, k = heads(draw, dtype, 2, length, count * width)
    table = getattr(module, f"{prefix}RotaryPositionalEmbedding")(config)(q)
    apply = getattr(module, f"{prefix}SelfAttention")._apply_rotary_embedding
    split = (2, length, count, width)
    rotated = [apply(SimpleNamespace(num_heads=count, head_size=width), x, table).view(split) for x in (q, k)]
    ids = torch.arange(length)
    expected = result(table[0, :, 0, 0], table[1, :, 0, 0], q=rotated[0], k=rotated[1])
    return Case(of_config(config), {"position_ids": ids, "q": q.view(split), "k": k.view(split)}, expected, "bits")


def roformer(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    width, count, length = draw.choice([*WIDTHS, 38, 118]), draw.choice([1, 2]), draw.randint(1, 30)
    config = config_class(model_type)(hidden_size=count * width, num_attention_heads=count, max_position_embeddings=512,
                                      rotary_value=draw.coin())  # fmt: skip
    table = module.RoFormerSinusoidalPositionalEmbedding(512, width)
    table.weight = nn.Parameter(table.create_weight().to(dtype), requires_grad=False)
    ids = draw.integers(512, length)
    q, k = heads(draw, dtype, 2, count, length, width)
    v = draw.normal(2, count, length, width).to(dtype)
    rows = table(None, position_ids=ids)
    values = [v] if config.rotary_value else []
    rotated = module.RoFormerSelfAttention.apply_rotary_position_embeddings(rows[None, None], q, k, *values)
    sin, cos = rows.chunk(2, dim=-1)
    expected = result(cos, sin, **dict(zip("qkv", rotated)))
    return Case(of_config(config), {"position_ids": ids, "q": q, "k": k, "v": v}, expected, "bits")


def clvp(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    count, length, longest = draw.choice([1, 2, 4]), draw.randint(1, 20), draw.choice([20, 300])
    config = config_class(model_type)(projection_dim=draw.choice([64, 192, 512, 768]), num_attention_heads=count,
                                      hidden_size=512)  # fmt: skip
    angles = module.ClvpRotaryPositionalEmbedding(config)(torch.zeros(1, longest, 1))
    cos, sin, rotating = angles.cos().squeeze(0), angles.sin().squeeze(0), angles.shape[-1]
    ids = draw.integers(longest, 2, length)
    width = rotating + draw.choice([0, 8, 20])
    q, k = heads(draw, dtype, 2, count, length, width)
    v = draw.normal(2, count, length, width).to(dtype)
    turned = module.apply_rotary_pos_emb(*(x[..., :rotating] for x in (q, k, v)), cos, sin, ids)
    rotated = {name: torch.cat((y, x[..., rotating:]), dim=-1) for name, x, y in zip("qkv", (q, k, v), turned)}
    return Case(of_config(config), {"position_ids": ids, "q": q, "k": k, "v": v}, result(cos[ids], sin[ids], **rotated), "bits")


def sam(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    prefix = {"sam2_video": "Sam2VideoVision", "edgetam_video": "EdgeTamVideoVision",
              "sam3_tracker_video": "Sam3TrackerVideoVision", "sam3_vit_model": "Sam3ViT"}[model_type]  # fmt: skip
    rope = {"rope_parameters": {"rope_theta": theta(draw), "rope_type": "axial"}}
    rate, count, width = draw.choice([1, 2]), draw.choice([1, 2]), draw.choice(WIDTHS)
    height, columns = draw.randint(1, 12), draw.randint(1, 12)
    if model_type == "sam3_vit_model":
        columns, rate = height, 1
        config = config_class(model_type)(hidden_size=count * width, num_attention_heads=count, image_size=14 * height,
                                          patch_size=14, window_size=draw.choice([24, 7, 10]), **rope)  # fmt: skip
        ids = module.Sam3ViTLayer.precompute_positions(config, window_size=0)
    else:
        config = config_class(model_type)(memory_attention_hidden_size=rate * count * width, memory_attention_num_attention_heads=count,
                                          memory_attention_downsample_rate=rate, **rope)  # fmt: skip
        config.memory_attention_rope_feat_sizes = [columns, height]
        attention = getattr(module, prefix.removesuffix("Vision") + "MemoryAttention")
        ids = attention.precompute_positions(config)
    cos, sin = getattr(module, f"{prefix}RotaryEmbedding")(config)(torch.zeros(1), ids)
    apply = getattr(module, "apply_rotary_pos_emb_2d", None) or module.apply_rotary_pos_emb_2d_self_attn
    q, k = heads(draw, dtype, 2, count, height * columns, width)
    rotated = apply(q, k, cos, sin)
    expected = result(cos[0], sin[0], q=rotated[0], k=rotated[1])
    if draw.coin():
        return Case(of_config(config, {"height": height, "width": columns}), {"q": q, "k": k}, expected, "bits")
    return Case(of_config(config), {"position_ids": ids, "q": q, "k": k}, expected, "bits")


def vjepa2(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    count, width, length = draw.choice([1, 2]), draw.choice([*WIDTHS, 22, 88]), draw.randint(1, 40)
    config = config_class(model_type)(hidden_size=count * width, num_attention_heads=count)
    part = 2 * ((width // 3) // 2)
    own = SimpleNamespace(d_dim=part, h_dim=part, w_dim=part, attention_head_size=width)
    ids = draw.integers(draw.choice([8, 40, 700]), length, 3)
    q, k = heads(draw, dtype, 2, count, length, width)
    rotated = [module.VJEPA2RopeAttention.apply_rotary_embeddings(own, x, ids.unbind(-1)) for x in (q, k)]
    return Case(of_config(config), {"position_ids": ids, "q": q, "k": k}, {"q": rotated[0], "k": rotated[1]}, "bits")


def efficientloftr(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    count, width = draw.choice([2, 4, 8]), draw.choice([64, 128, 256])
    height, columns = draw.randint(1, 9), draw.randint(1, 9)
    config = config_class(model_type)(hidden_size=width, num_attention_heads=count, out_features=[64, 64, 128, width],
                                      rope_parameters={"rope_theta": theta(draw), "rope_type": "default",
                                                       "partial_rotary_factor": count / 2})  # fmt: skip
    size, stride = config.q_aggregation_kernel_size, config.q_aggregation_stride
    features = torch.zeros(1, 1, size + stride * (height - 1), size + stride * (columns - 1), dtype=dtype)
    cos, sin = (t.reshape(height * columns, width) for t in module.EfficientLoFTRRotaryEmbedding(config)(features))
    q, k = heads(draw, dtype, 2, height * columns, 1, width)
    rotated = module.apply_rotary_pos_emb(q, k, cos[None], sin[None], unsqueeze_dim=2)
    grid = {"height": height, "width": columns}
    return Case(of_config(config, grid), {"q": q, "k": k}, result(cos, sin, q=rotated[0], k=rotated[1]), "bits")


def qwen2_5_omni_dit(draw: Draw, model_type: str) -> Case:
    module, dtype = modeling(model_type), draw.choice(DTYPES)
    count, width, length = draw.choice([1, 2, 5]), draw.choice([*WIDTHS, 38]), draw.randint(1, 40)
    rope = draw.choice([{"rope_type": "default"}, {"rope_type": "linear", "factor": 3.7}, {"rope_type": "dynamic", "factor": 4.0}])
    config = config_class(model_type)(head_dim=width, num_attention_heads=count, max_position_embeddings=200,
                                      rope_parameters=rope | {"rope_theta": theta(draw)})  # fmt: skip
    ids = draw.integers(draw.choice([100, 1000]), 2, length)
    cos, sin = module.Qwen2_5OmniDiTRotaryEmbedding(config)(torch.zeros(1, dtype=dtype), ids)
    q, k = heads(draw, dtype, 2, count, length, width)
    first = module.apply_rotary_pos_emb(module.deinterleave_head_dim(q[:, :1]), module.deinterleave_head_dim(k[:, :1]), cos, sin)
    rotated = {name: torch.cat((y, x[:, 1:]), 1) for name, x, y in zip("qk", (q, k), first)}
    return Case(of_config(config), {"position_ids": ids, "q": q, "k": k}, result(cos, sin, **rotated), "bits")


def musicflamingo(draw: Draw, _: str) -> Case:
    module, dtype = modeling("musicflamingo"), draw.choice(DTYPES)
    length, channels, share = draw.randint(1, 30), draw.choice([80, 160, 320]), draw.choice([0.2, 0.25, 0.5])
    base = draw.choice([1200.0, 500.0])
    config = SimpleNamespace(rope_parameters={"rope_type": "default", "rope_theta": base, "partial_rotary_factor": share},
                             max_position_embeddings=base, head_dim=channels, audio_frame_step=0.01)  # fmt: skip
    stamps = draw.uniform(0, 40) + torch.arange(2 * length).view(2, length) * 0.04
    cos, sin = module.MusicFlamingoRotaryEmbedding(config)(stamps, seq_len=length)
    window = torch.round(stamps[:, 0] / (config.audio_frame_step * 4 * length)) / base
    time = torch.arange(length, dtype=torch.float32) / base * (2 * torch.pi)
    ids = torch.stack((window[:, None].expand(2, length), time.expand(2, length), -stamps * 2 * torch.pi), -1)
    q, k = (x[:, 0] for x in heads(draw, dtype, 2, 1, length, channels))
    rotated = [module.apply_rotary_time_emb(x, cos, sin)[:, None] for x in (q, k)]
    options = {"op": "rotary", "preset": "musicflamingo", "dim": cos.shape[-1], "base": base}
    tensors = {"position_ids": ids, "q": q[:, None], "k": k[:, None]}
    return Case(options, tensors, result(cos, sin, q=rotated[0], k=rotated[1]), "bits")


def esmfold2(draw: Draw, _: str) -> Case:
    module, dtype = modeling("esmfold2"), draw.choice(DTYPES)
    width, pairs, more, count, length = draw.choice([32, 64]), draw.randint(1, 3), draw.randint(1, 7), draw.choice([1, 4]), draw.randint(1, 30)
    bases = draw.choice([(20.0, 10000.0), (100.0, 1000.0)])
    own = module.EsmFold2RotaryEmbedding(SimpleNamespace(
        num_spatial_rope_pairs_per_axis=pairs, num_uid_rope_pairs=more, head_dim=width,
        spatial_rope_base_frequency=bases[0], uid_rope_base_frequency=bases[1]))  # fmt: skip
    places, uid = draw.normal(2, length, 3) * 10, draw.integers(500, 2, length)
    cos, sin = own(places, uid, dtype)
    q, k = heads(draw, dtype, 2, count, length, width)
    rotated = module.apply_rotary_pos_emb(q, k, cos, sin)
    options = {"op": "rotary", "preset": "esmfold2", "dim": width, "axis_dims": [2 * pairs] * 3 + [2 * more],
               "axis_bases": [bases[0]] * 3 + [bases[1]]}  # fmt: skip
    ids = torch.cat((places, uid[..., None].float()), -1)
    return Case(options, {"position_ids": ids, "q": q, "k": k}, result(cos, sin, q=rotated[0], k=rotated[1]), "bits")


def lightglue(draw: Draw, _: str) -> Case:
    module, dtype = modeling("lightglue"), draw.choice(DTYPES)
    count, width, points = draw.choice([1, 4]), draw.choice(WIDTHS), draw.randint(1, 30)
    config = config_class("lightglue")(descriptor_dim=count * width, num_attention_heads=count)
    with torch.no_grad():
        ((cos, sin),) = module.LightGluePositionalEncoder(config)(draw.normal(2, points, 2))
    q, k = heads(draw, dtype, 2, count, points, width)
    rotated = module.apply_rotary_pos_emb(q, k, cos, sin)
    return Case(of_config(config), {"cos": cos, "sin": sin, "q": q, "k": k}, result(cos, sin, q=rotated[0], k=rotated[1]), "bits")


def grid_positions(draw: Draw, model_type: str, preset: str, config) -> tuple[dict, Tensor] | None:
    """A grid for the driver, and its patches' positions as the model computes them; none where a processor does."""
    if preset in ("pixtral", "gemma4_vision") or model_type in ("mlcd_vision_model", "video_llama_3_vision"):
        return None
    row_by_row = preset in ("muse_vision", "step3p7_vision", "kimi_k25_vision") or model_type == "paddleocr_vl_vision"
    merge = 1 if row_by_row else config.spatial_merge_size
    frames, height, columns = draw.randint(1, 3), merge * draw.randint(1, 5), merge * draw.randint(1, 5)
    ids = get_vision_position_ids(torch.tensor([[frames, height, columns]]), merge, include_temporal=preset == "minimax_m3_vision")
    if preset in ("muse_vision", "inkling2_vision"):
        ids = ids + 1
    grid = {"op": "rotary_grid", "height": height, "width": columns, "frames": frames}
    return grid, ids.flip(-1) if preset == "muse_vision" else ids


# By preset. Systems without a model type have the name of the preset instead.
SYSTEMS = {
    "llama4_vision": llama4_vision, "dinov3": dinov3, "wav2vec2_conformer": wav2vec2, "roformer": roformer, "clvp": clvp,
    "sam2_video": sam, "sam3_vit": sam, "vjepa2": vjepa2, "efficientloftr": efficientloftr,
    "qwen2_5_omni_dit": qwen2_5_omni_dit, "lightglue": lightglue, "musicflamingo": musicflamingo, "esmfold2": esmfold2,
}  # fmt: skip
WITHOUT_MODEL_TYPE = {"musicflamingo": "musicflamingo", "esmfold2": "esmfold2"}

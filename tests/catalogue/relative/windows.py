"""Windows of patches: Swin, BEiT."""

import types

import torch
from buckets import configuration, modeling
from relative_registry import Case, Draw, flat, parameters, relative, softmax_inputs


@relative("swin")
def swin(draw: Draw) -> Case:
    window, heads = [draw.integer(1, 8), draw.integer(1, 8)], draw.integer(1, 4)
    module = draw.module(modeling("swin").SwinRelativePositionBias(heads, window))
    return Case({"window": window, "heads": heads}, parameters(module), {"bias": module()})


@relative("swin_mask")
def swin_mask(draw: Draw) -> Case:
    window = draw.integer(2, 7)
    settings = {
        "window": window, "shift": draw.integer(1, window - 1),
        "height": window * draw.integer(1, 4), "width": window * draw.integer(1, 4),
    }  # fmt: skip
    layer = types.SimpleNamespace(shift_size=settings["shift"], window_size=window)
    mask = modeling("swin").SwinLayer.get_attn_mask(layer, settings["height"], settings["width"], draw.dtype, torch.device("cpu"))
    return Case(settings | {"heads": 1}, {}, {"mask": mask})


SCORES = {
    "swin_scores": ("swin", "", "SwinAttention"), "donut_swin": ("donut", "donut_swin", "DonutSwinSelfAttention"),
    "clap_swin": ("clap", "", "ClapAudioSelfAttention"),
    "maskformer_swin": ("maskformer", "maskformer_swin", "MaskFormerSwinSelfAttention"),
    "swinv2": ("swinv2", "", "Swinv2SelfAttention"), "swin2sr": ("swin2sr", "", "Swin2SRSelfAttention"),
}  # fmt: skip


@relative(*SCORES)
def scores(draw: Draw, name: str) -> Case:
    model, file, kind = SCORES[name]
    window, heads, width, windows = draw.integer(2, 7), draw.integer(1, 4), draw.choice([4, 7, 32]), draw.integer(1, 4)
    batch, tokens = windows * draw.integer(1, 2), window * window
    settings = {"window": window, "windows": windows, "masked": draw.coin()}
    given = draw.query_key(batch, heads, tokens, tokens, width)
    config = configuration(model, attention_probs_dropout_prob=0.0, qkv_bias=True, _attn_implementation="eager")
    make, cosine = getattr(modeling(model, file), kind), name in ("swinv2", "swin2sr")
    if cosine:
        settings["pretrained_window"] = draw.choice([0, window, 6])
        pretrained = [settings["pretrained_window"]] * 2
        module = draw.module(make(config, heads * width, heads, window, pretrained))
        module.logit_scale.data = module.logit_scale.data * 3
    else:
        module = draw.module(make(config, heads * width, heads, window))
    mask = None
    if settings["masked"]:
        hidden = torch.rand(windows, tokens, tokens, generator=draw.generator) < 0.3
        mask = torch.zeros(windows, tokens, tokens, dtype=draw.dtype).masked_fill(hidden, -100.0)
        given["mask"] = mask
    weights = parameters(module, "relative_position_bias", "logit_scale", "continuous_position_bias_mlp")
    q, k, v = flat(given["q"]), flat(given["k"]), flat(given["k"])
    if name == "swin_scores":
        module.q_proj, module.k_proj, module.v_proj = q, k, v
    else:
        module.query, module.key, module.value = q, k, v
    with softmax_inputs() as seen:
        module(draw.normal(batch, tokens, heads * width), mask)
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": tokens, "keys": tokens}
    return Case(settings | sizes, given | weights, {"scores": seen[0]})


@relative("beit", "data2vec_vision")
def beit(draw: Draw, name: str) -> Case:
    window, now = ([draw.integer(1, 7), draw.integer(1, 7)] for _ in range(2))
    settings = {"window": window, "new_window": now, "interpolate": draw.choice([0, 0, draw.integer(1, 40)])}
    if draw.coin():
        settings["new_window"] = now = window
    heads = draw.integer(1, 4)
    config = configuration(name, image_size=[4 * side for side in window], patch_size=4, num_attention_heads=heads)
    if name == "beit":
        module = modeling("beit").BeitRelativePositionBias(config)
    else:
        module = modeling("data2vec", "data2vec_vision").Data2VecVisionRelativePositionBias(config, tuple(window))
    module = draw.module(module)
    bias = module(tuple(now), interpolate_pos_encoding=settings["interpolate"] > 0, dim_size=settings["interpolate"])
    return Case(settings | {"heads": heads}, parameters(module), {"bias": bias})

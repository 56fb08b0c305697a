"""Slopes: BLOOM, Falcon, MPT."""

import math

import torch
from buckets import modeling
from relative_registry import Case, Draw, Given, additive_mask, relative, softmax_inputs


@relative("bloom", "falcon")
def alibi(draw: Draw, name: str) -> Case:
    heads, mask = draw.integer(1, 40), draw.tokens(draw.integer(1, 3), draw.integer(1, 300))
    bias = modeling(name).build_alibi_tensor(mask, heads, draw.dtype)
    sizes = {"heads": heads, "queries": 1, "keys": mask.shape[1]}
    return Case(sizes, {"mask": mask}, {"bias": bias.view(len(mask), heads, 1, -1)})


@relative("bloom_scores", "falcon_scores")
def scores(draw: Draw, name: str) -> Case:
    batch, heads, length, width = draw.integer(1, 3), draw.choice([1, 3, 8, 12]), draw.integer(1, 40), draw.choice([4, 6, 64])
    given = draw.query_key(batch, heads, length, length, width)
    mask, additive = draw.tokens(batch, length), additive_mask(draw, batch, 1, length, length)
    library, size = modeling(name.removesuffix("_scores")), heads * width
    alibi = library.build_alibi_tensor(mask, heads, draw.dtype)
    hidden = draw.normal(batch, length, size)
    of_heads = torch.stack([given["q"], given["k"], given["k"]], 3).transpose(1, 2)  # (B, L, H, 3, D)
    fused = of_heads.reshape(batch, length, -1)
    if name == "bloom_scores":
        config = library.BloomConfig(hidden_size=size, n_head=heads, n_layer=1)
        module = library.BloomAttention(config, layer_idx=0).to(draw.dtype).eval()
        module.query_key_value = Given(fused)
        arguments = {"residual": hidden, "alibi": alibi, "attention_mask": additive}
    else:
        config = library.FalconConfig(hidden_size=size, num_attention_heads=heads, num_hidden_layers=1, alibi=True, multi_query=False)
        config._attn_implementation = "eager"
        module = library.FalconAttention(config, layer_idx=0).to(draw.dtype).eval()
        module.query_key_value = Given(fused)
        arguments = {"alibi": alibi, "attention_mask": additive}
    with softmax_inputs() as seen:
        module(hidden, **arguments)
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": length, "keys": length}
    return Case(sizes, given | {"mask": mask, "additive": additive}, {"scores": seen[0]})


@relative("mpt")
def mpt(draw: Draw) -> Case:
    heads, keys = draw.integer(1, 40), draw.integer(1, 300)
    settings = {"bias_max": draw.choice([8, 4, 16])}
    bias = modeling("mpt").build_mpt_alibi_tensor(heads, keys, settings["bias_max"])
    assert math.isfinite(float(bias.sum())) and bias.dtype == torch.float32
    return Case(settings | {"heads": heads, "queries": 1, "keys": keys}, {}, {"bias": bias.unsqueeze(0)})

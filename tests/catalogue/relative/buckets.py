"""T5 and its kin."""

import importlib
import types

import torch
from relative_registry import Case, Draw, additive_mask, parameters, relative, softmax_inputs


def modeling(name: str, file: str = ""):
    return importlib.import_module(f"transformers.models.{name}.modeling_{file or name}")


def configuration(name: str, **settings):
    """What an attention class reads of its configuration."""
    return types.SimpleNamespace(**settings)


def bucket_settings(draw: Draw, bidirectional: bool | None = None) -> dict:
    both = draw.coin() if bidirectional is None else bidirectional
    buckets = draw.choice([4, 8, 32, 64]) if both else draw.choice([2, 6, 32, 33])
    return {"num_buckets": buckets, "max_distance": draw.choice([buckets, 128, 800])} | (
        {"bidirectional": both} if bidirectional is None else {}
    )


def t5_attention(name: str, prefix: str, settings: dict, heads: int, width: int = 4):
    config = configuration(
        name, is_decoder=not settings.get("bidirectional", False), num_heads=heads, d_kv=width, d_model=heads * width,
        hidden_size=heads * width, dropout_rate=0.0, relative_attention_num_buckets=settings["num_buckets"],
        relative_attention_max_distance=settings["max_distance"], _attn_implementation="eager",
    )  # fmt: skip
    return getattr(modeling(name), f"{prefix}Attention")(config, has_relative_attention_bias=True, layer_idx=0)


PREFIXES = {
    "t5": "T5", "mt5": "MT5", "umt5": "UMT5", "switch_transformers": "SwitchTransformers", "pop2piano": "Pop2Piano",
    "udop": "Udop", "longt5": "LongT5", "pix2struct": "Pix2StructText",
}  # fmt: skip


@relative(*PREFIXES)
def t5(draw: Draw, name: str) -> Case:
    settings = bucket_settings(draw, bidirectional=False if name == "pix2struct" else None)
    heads = draw.integer(1, 5)
    sizes = {"queries": draw.integer(1, 60), "keys": draw.choice([1, 33, 300, 1500])}
    module = draw.module(t5_attention(name, PREFIXES[name], settings, heads))
    settings["offset"] = draw.choice([draw.integer(0, 200), draw.integer(0, 2**20), 2**31 - 1, 2**31])
    bias = module.compute_bias(sizes["queries"], sizes["keys"], past_seen_tokens=settings["offset"])
    weights = parameters(module, "relative_attention_bias")
    return Case(settings | sizes | {"heads": heads}, weights, {"bias": bias})


@relative("t5_scores")
def t5_scores(draw: Draw) -> Case:
    settings, heads = bucket_settings(draw), draw.integer(1, 4)
    batch, queries, keys, width = draw.integer(1, 3), draw.integer(1, 40), draw.choice([2, 130, 300]), draw.choice([4, 7, 64])
    module = draw.module(t5_attention("t5", "T5", settings, heads, width))
    given = draw.query_key(batch, heads, queries, keys, width)
    settings |= {"offset": draw.integer(0, 9), "masked": draw.coin()}
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, queries, keys)
    bias = module.compute_bias(queries, keys, past_seen_tokens=settings["offset"])
    q, k = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (given["q"], given["k"]))  # as projections leave them
    with softmax_inputs() as seen:
        modeling("t5").eager_attention_forward(
            module, q, k, k, given.get("mask"), scaling=module.scaling, position_bias=bias
        )
    return Case(settings | {"heads": heads}, given | parameters(module, "relative_attention_bias"), {"scores": seen[0]})


def longt5_config(settings: dict, heads: int):
    return configuration(
        "longt5", is_decoder=not settings["bidirectional"], num_heads=heads, d_kv=4, d_model=4 * heads, dropout_rate=0.0,
        relative_attention_num_buckets=settings["num_buckets"], local_radius=settings.get("block", 3) - 1,
        relative_attention_max_distance=settings["max_distance"], global_block_size=settings.get("global_block", 1),
        layer_norm_epsilon=1e-6,
    )  # fmt: skip


@relative("longt5_local")
def longt5_local(draw: Draw) -> Case:
    settings, heads = bucket_settings(draw) | {"block": draw.integer(1, 60)}, draw.integer(1, 4)
    module = draw.module(modeling("longt5").LongT5LocalAttention(longt5_config(settings, heads), has_relative_attention_bias=True))
    bias = module.compute_bias(settings["block"])
    return Case(settings | {"heads": heads}, parameters(module, "relative_attention_bias"), {"bias": bias})


@relative("longt5_global")
def longt5_global(draw: Draw) -> Case:
    settings, heads = bucket_settings(draw) | {"global_block": draw.integer(1, 9)}, draw.integer(1, 4)
    library = modeling("longt5")
    module = draw.module(library.LongT5TransientGlobalAttention(longt5_config(settings, heads), has_relative_attention_bias=True))
    mask = draw.tokens(draw.integer(1, 3), draw.integer(settings["global_block"], 70))
    _, segments = library._make_global_fixed_block_ids(mask, settings["global_block"])
    bias = module.compute_side_bias(mask, segments)
    weights = parameters(module, "global_relative_attention_bias")
    return Case(settings | {"heads": heads}, weights | {"mask": mask}, {"bias": bias})


@relative("mpnet")
def mpnet(draw: Draw) -> Case:
    heads, batch, length = draw.integer(1, 5), draw.integer(1, 3), draw.choice([1, 40, 300])
    config = modeling("mpnet").MPNetConfig(num_attention_heads=heads, hidden_size=4 * heads, num_hidden_layers=1, intermediate_size=4)
    module = draw.module(modeling("mpnet").MPNetEncoder(config))
    bias = module.compute_position_bias(torch.zeros(batch, length, 1))
    sizes = {"batch": batch, "heads": heads, "queries": length, "keys": length}
    return Case(sizes, parameters(module, "relative_attention_bias"), {"bias": bias})


def wavlm_attention(draw: Draw, settings: dict, heads: int, width: int):
    return draw.module(
        modeling("wavlm").WavLMAttention(
            embed_dim=heads * width, num_heads=heads, num_buckets=settings["num_buckets"], max_distance=settings["max_distance"]
        )
    )


@relative("wavlm")
def wavlm(draw: Draw) -> Case:
    settings, heads, length = bucket_settings(draw, bidirectional=True), draw.integer(1, 4), draw.choice([1, 60, 900])
    module = wavlm_attention(draw, settings, heads, 4)
    bias = module.compute_bias(length, length).unsqueeze(0)
    sizes = {"heads": heads, "queries": length, "keys": length}
    return Case(settings | sizes, parameters(module, "rel_attn_embed"), {"bias": bias})


@relative("wavlm_gated")
def wavlm_gated(draw: Draw) -> Case:
    settings, heads, width = bucket_settings(draw, bidirectional=True), draw.integer(1, 4), draw.choice([4, 7])
    batch, length = draw.integer(1, 3), draw.choice([1, 20, 60])
    module = wavlm_attention(draw, settings, heads, width)
    hidden, seen = draw.normal(batch, length, heads * width), []
    module.torch_multi_head_self_attention = lambda h, mask, bias: (seen.append(bias), (h, None))[1]
    module(hidden)
    sizes = {"heads": heads, "queries": length, "keys": length}
    weights = parameters(module, "rel_attn_embed", "gru_rel_pos")
    return Case(settings | sizes, weights | {"hidden": hidden}, {"bias": seen[0].view(batch, heads, length, length)})

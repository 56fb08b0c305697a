"""Transformer-XL and its kin."""

import types

import torch
from buckets import configuration, modeling
from relative_registry import Case, Draw, Given, additive_mask, flat, parameters, relative, softmax_inputs

CONFORMERS = {
    "wav2vec2_conformer_relative": ("wav2vec2_conformer", "Wav2Vec2ConformerSelfAttention"),
    "wav2vec2_bert_relative": ("wav2vec2_bert", "Wav2Vec2BertSelfAttention"),
    "seamless_m4t_relative": ("seamless_m4t", "SeamlessM4TConformerSelfAttention"),
}


def sizes_of(draw: Draw) -> tuple[int, int, int, int]:
    return draw.integer(1, 3), draw.integer(1, 4), draw.choice([1, 8, 40]), draw.choice([4, 7, 32])


def named(batch: int, heads: int, queries: int, width: int, keys: int | None = None) -> dict:
    return {"batch": batch, "heads": heads, "head_dim": width, "queries": queries, "keys": keys or queries}


@relative(*CONFORMERS)
def conformer(draw: Draw, name: str) -> Case:
    model, kind = CONFORMERS[name]
    batch, heads, length, width = sizes_of(draw)
    size = heads * width
    config = configuration(
        model, hidden_size=size, num_attention_heads=heads, speech_encoder_attention_heads=heads, attention_dropout=0.0,
        speech_encoder_dropout=0.0, position_embeddings_type="relative", _attn_implementation="eager",
    )  # fmt: skip
    module = draw.module(getattr(modeling(model), kind)(config))
    given = draw.query_key(batch, heads, length, length, width) | {"pe": draw.normal(1, 2 * length - 1, size)}
    settings = {"masked": draw.coin()}
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, length, length)
    weights = parameters(module, "pos_bias", "linear_pos")
    module.linear_q, module.linear_k, module.linear_v = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, size), given.get("mask"), given["pe"])
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": seen[0]})


PARAKEETS = {"parakeet": "ParakeetEncoderAttention", "nemotron_asr_streaming": "NemotronAsrStreamingEncoderAttention"}


@relative(*PARAKEETS)
def parakeet(draw: Draw, name: str) -> Case:
    batch, heads, length, width = sizes_of(draw)
    size, before = heads * width, draw.choice([0, 5]) if name != "parakeet" else 0
    keys = before + length
    config = configuration(
        name, hidden_size=size, head_dim=width, num_attention_heads=heads, num_key_value_heads=heads,
        attention_dropout=0.0, attention_bias=True, _attn_implementation="eager",
    )  # fmt: skip
    module = draw.module(getattr(modeling(name), PARAKEETS[name])(config, 0))
    given = draw.query_key(batch, heads, length, keys, width) | {"pe": draw.normal(batch, 2 * keys - 1, size)}
    settings = {"masked": draw.coin()}
    if settings["masked"]:
        given["mask"] = torch.rand(batch, 1, length, keys, generator=draw.generator) < 0.7
    weights = parameters(module, "bias_", "relative_k_proj")
    new = given["k"][:, :, before:]
    module.q_proj, module.k_proj, module.v_proj = flat(given["q"]), flat(new), flat(new)
    # the keys of earlier steps, as a cache returns them beside those of this step
    cache = [types.SimpleNamespace(update=lambda k, v, layer: (given["k"], given["k"]))] if before else []
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, size), given["pe"], given.get("mask"), *cache)
    return Case(settings | named(batch, heads, length, width, keys), given | weights, {"scores": seen[0]})


@relative("fastspeech2_conformer")
def fastspeech2(draw: Draw) -> Case:
    batch, heads, length, width = sizes_of(draw)
    size = heads * width
    config = configuration("fastspeech2_conformer", hidden_size=size)
    library = modeling("fastspeech2_conformer")
    module = draw.module(
        library.FastSpeech2ConformerAttention(config, {"num_attention_heads": heads, "attention_dropout_rate": 0.0})
    )
    given = draw.query_key(batch, heads, length, length, width) | {"pe": draw.normal(1, 2 * length - 1, size)}
    settings = {"masked": draw.coin()}
    if settings["masked"]:
        given["mask"] = draw.tokens(batch, length).unsqueeze(1)
    weights = parameters(module, "pos_bias", "linear_pos")
    module.linear_q, module.linear_k, module.linear_v = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, size), given.get("mask"), given["pe"])
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": seen[0]})


@relative("xlnet")
def xlnet(draw: Draw) -> Case:
    batch, heads, queries, width = sizes_of(draw)
    settings = {"memory": draw.choice([0, 0, 5]), "segments": draw.coin(), "masked": draw.coin()}
    keys = queries + settings["memory"]
    library = modeling("xlnet")
    config = library.XLNetConfig(d_model=heads * width, n_head=heads, n_layer=1, d_inner=4)
    module = draw.module(library.XLNetRelativeAttention(config))
    given = draw.query_key(batch, heads, queries, keys, width) | {"r": draw.normal(keys + queries, batch, heads, width)}
    segment = mask = None
    if settings["masked"]:
        mask = (torch.rand(queries, keys, batch, 1, generator=draw.generator) < 0.3).to(draw.dtype)
        given["mask"] = mask
    if settings["segments"]:
        other = draw.integers(0, 2, queries, keys, batch)
        segment = torch.nn.functional.one_hot(other, num_classes=2).to(draw.dtype)
        given["segment"] = segment
    q, k = (given[name].permute(2, 0, 1, 3).contiguous() for name in ("q", "k"))
    with softmax_inputs() as seen:
        module.rel_attn_core(q, k, k, given["r"], seg_mat=segment, attn_mask=mask)
    weights = parameters(module, "r_r_bias", "r_s_bias", "r_w_bias", "seg_embed")
    return Case(settings | named(batch, heads, queries, width, keys), given | weights, {"scores": seen[0]})


FACTORS = ("phi", "pi", "psi", "omega")


@relative("funnel", "funnel_factorized")
def funnel(draw: Draw, name: str) -> Case:
    batch, heads, keys, width = sizes_of(draw)
    pooled = keys > 1 and draw.coin()
    queries, size = keys, heads * width
    if pooled:  # with truncate_seq, or one more without it
        queries = draw.choice([(keys + 1) // 2, keys // 2 + 1])
    library, kind = modeling("funnel"), "relative_shift" if name == "funnel" else "factorized"
    config = library.FunnelConfig(d_model=size, n_head=heads, d_head=width, attention_type=kind, attention_dropout=0.0)
    module = draw.module(library.FunnelRelMultiheadAttention(config, block_index=0))
    given = draw.query_key(batch, heads, queries, keys, width)
    shift = 2 if queries != keys else 1
    if name == "funnel":
        given["pe"] = draw.normal(shift * queries + keys, size)  # as get_position_embeds() makes them
        tables = [[given["pe"], given["pe"]]]
    else:
        given |= {table: draw.normal(queries if table in ("phi", "pi") else keys, size) for table in FACTORS}
        tables = [given[table] for table in FACTORS]
    settings = {"segments": draw.coin()}
    token_types = None
    if settings["segments"]:
        token_types = given["token_type"] = draw.integers(0, 2, batch, queries, keys).bool()
    weights = parameters(module, "r_", "seg_embed")
    module.q_head, module.k_head, module.v_head = flat(given["q"]), flat(given["k"]), flat(given["k"])
    hidden, context = draw.normal(batch, queries, size), draw.normal(batch, keys, size)
    with softmax_inputs() as seen:
        module(hidden, context, context, (tables, token_types, None, None))
    return Case(settings | named(batch, heads, queries, width, keys), given | weights, {"scores": seen[0]})

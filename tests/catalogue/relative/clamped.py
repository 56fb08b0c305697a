"""Shaw et al. and its kin."""

import torch
from buckets import bucket_settings, configuration, modeling
from relative_registry import Case, Draw, additive_mask, flat, parameters, relative, softmax_inputs
from transformer_xl import named, sizes_of

KEYS = {
    "wav2vec2_bert_relative_key": ("wav2vec2_bert", "Wav2Vec2BertSelfAttention"),
    "seamless_m4t_v2_relative_key": ("seamless_m4t_v2", "SeamlessM4Tv2ConformerSelfAttention"),
}


@relative("phi4_audio")
def phi4_audio(draw: Draw) -> Case:
    settings, heads = {"max_distance": draw.integer(1, 60), "symmetric": draw.coin()}, draw.integer(1, 4)
    length = draw.integer(1, settings["max_distance"]) if settings["symmetric"] else draw.integer(1, 100)
    config = configuration(
        "phi4_multimodal", bias_max_distance=settings["max_distance"], bias_symmetric=settings["symmetric"],
        num_attention_heads=heads,
    )  # fmt: skip
    module = draw.module(modeling("phi4_multimodal").Phi4MultimodalAudioRelativeAttentionBias(config))
    bias = module(torch.zeros(1, length))
    return Case(settings | {"heads": heads, "queries": length, "keys": length}, parameters(module), {"bias": bias})


@relative(*KEYS)
def relative_key(draw: Draw, name: str) -> Case:
    model, kind = KEYS[name]
    batch, heads, length, width = sizes_of(draw)
    settings = {"masked": draw.coin(), "left": draw.choice([0, 2, 64]), "right": draw.choice([0, 1, 8])}
    config = configuration(
        model, hidden_size=heads * width, num_attention_heads=heads, speech_encoder_attention_heads=heads,
        attention_dropout=0.0, speech_encoder_dropout=0.0, position_embeddings_type="relative_key",
        left_max_position_embeddings=settings["left"], right_max_position_embeddings=settings["right"],
        _attn_implementation="eager",
    )  # fmt: skip
    module = draw.module(getattr(modeling(model), kind)(config))
    given = draw.query_key(batch, heads, length, length, width)
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, length, length)
    weights = parameters(module, "distance_embedding")
    module.linear_q, module.linear_k, module.linear_v = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, heads * width), given.get("mask"))
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": seen[0]})


@relative("speecht5")
def speecht5(draw: Draw) -> Case:
    batch, heads, length, width = sizes_of(draw)
    settings = {"max_length": draw.choice([1, 16, 160]), "masked": draw.coin()}
    library = modeling("speecht5")
    positions = draw.module(library.SpeechT5RelativePositionalEncoding(width, settings["max_length"]))
    attention = library.SpeechT5Attention(embed_dim=heads * width, num_heads=heads).to(draw.dtype).eval()
    given = draw.query_key(batch, heads, length, length, width)
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, length, length)
    attention.q_proj, attention.k_proj, attention.v_proj = flat(given["q"]), flat(given["k"]), flat(given["k"])
    hidden = draw.normal(batch, length, heads * width)
    with softmax_inputs() as seen:
        attention(hidden, attention_mask=given.get("mask"), position_bias=positions(hidden))
    weights = {f"w.rel.{key.removeprefix('w.')}": value for key, value in parameters(positions).items()}
    scores = seen[0].view(batch, heads, length, length)
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": scores})


@relative("vits")
def vits(draw: Draw) -> Case:
    batch, heads, length, width = sizes_of(draw)
    settings = {"reach": draw.choice([1, 4, 20]), "masked": draw.coin()}
    config = configuration(
        "vits", hidden_size=heads * width, num_attention_heads=heads, attention_dropout=0.0, window_size=settings["reach"],
        use_bias=True,
    )  # fmt: skip
    module = draw.module(modeling("vits").VitsAttention(config))
    given = draw.query_key(batch, heads, length, length, width) | {"v": draw.normal(batch, heads, length, width)}
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, length, length)
    weights = parameters(module, "emb_rel_")
    module.q_proj, module.k_proj, module.v_proj = flat(given["q"]), flat(given["k"]), flat(given["v"])
    outputs = []
    module.out_proj.register_forward_pre_hook(lambda _, x: outputs.append(x[0]))
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, heads * width), attention_mask=given.get("mask"))
    output = outputs[0].view(batch, length, heads, width).transpose(1, 2)
    scores = seen[0].view(batch, heads, length, length)
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": scores, "output": output})


@relative("inkling", "inkling2")
def inkling(draw: Draw, name: str) -> Case:
    batch, heads, queries = draw.integer(1, 3), draw.integer(1, 4), draw.choice([1, 8, 30])
    settings = {"d_rel": draw.choice([4, 16]), "extent": draw.choice([1, 4, 40]), "offset": draw.integer(0, 9)}
    keys = queries + settings["offset"]
    module = draw.module(getattr(modeling(name), f"{name.capitalize()}RelativeLogits")(settings["d_rel"], settings["extent"]))
    states = draw.normal(batch, queries, heads, settings["d_rel"])
    bias = module(states, torch.arange(settings["offset"], settings["offset"] + queries), torch.arange(keys))
    sizes = {"batch": batch, "heads": heads, "queries": queries, "keys": keys}
    return Case(settings | sizes, {"relative": states} | parameters(module), {"bias": bias})


@relative("prophetnet")
def prophetnet(draw: Draw) -> Case:
    batch, heads, width, length = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32]), draw.choice([1, 8, 40])
    settings = {"ngram": draw.integer(1, 3), "masked": draw.coin()} | bucket_settings(draw, bidirectional=False)
    settings.pop("bidirectional", None)
    library, size, streams = modeling("prophetnet"), heads * width, 1 + settings["ngram"]
    config = configuration(
        "prophetnet", hidden_size=size, num_buckets=settings["num_buckets"], relative_max_distance=settings["max_distance"],
        num_decoder_attention_heads=heads, dropout=0.0, attention_dropout=0.0, ngram=settings["ngram"],
    )  # fmt: skip
    module = draw.module(library.ProphetNetNgramSelfAttention(config))
    given = draw.query_key(batch, heads, streams * length, streams * length, width)
    given["hidden"] = draw.normal(batch, streams * length, size)
    given["positions"] = draw.integers(1, draw.choice([200, 2**31]), batch, length).sort(-1).values
    if settings["masked"]:
        given["mask"] = additive_mask(draw, batch, 1, length, length)
        given["predict_mask"] = additive_mask(draw, batch, heads, settings["ngram"], length, 2 * length)
    weights = parameters(module, "relative_pos_embeddings")
    buckets = library.compute_all_stream_relative_buckets(settings["num_buckets"], settings["max_distance"], given["positions"])
    module.query_proj, module.key_proj, module.value_proj = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        module(
            given["hidden"], attention_mask=given.get("mask"), extended_predict_attention_mask=given.get("predict_mask"),
            main_relative_position_buckets=buckets[0], predict_relative_position_buckets=buckets[1],
            position_ids=given["positions"],
        )  # fmt: skip
    sizes = named(batch, heads, streams * length, width)
    return Case(settings | sizes, given | weights, {"scores": seen[0], "predict_scores": seen[-1]})

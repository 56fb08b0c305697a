"""Blocks of an utterance: Gemma's audio encoders and Granite's."""

from unittest import mock

import torch
from buckets import configuration, modeling
from relative_registry import Case, Draw, Given, flat, parameters, relative, softmax_inputs
from transformer_xl import named, sizes_of


@relative("gemma3n_audio")
def gemma3n_audio(draw: Draw) -> Case:
    batch, heads, chunk, width = draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 12), draw.choice([4, 6, 32])
    settings = {"left": draw.integer(0, 6), "right": draw.integer(0, 3), "chunk": chunk, "blocks": draw.integer(1, 3)}
    config = configuration(
        "gemma3n", conf_num_attention_heads=heads, hidden_size=heads * width,
        conf_attention_context_left=settings["left"], conf_attention_context_right=settings["right"],
    )  # fmt: skip
    module = draw.module(modeling("gemma3n").Gemma3nAudioRelativePositionEmbedding(config))
    context = chunk + module.max_backward + module.max_forward
    q = draw.normal(batch, settings["blocks"], chunk, heads, width)
    k = draw.normal(batch, settings["blocks"], context, heads, width)
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": chunk, "keys": context}
    return Case(settings | sizes, {"q": q, "k": k} | parameters(module), {"scores": module(q, k)})


@relative("gemma4_audio")
def gemma4_audio(draw: Draw) -> Case:
    batch, heads, length, width = sizes_of(draw)
    size = heads * width
    settings = {"left": draw.integer(1, 6), "right": draw.integer(0, 3), "chunk": draw.integer(1, 12), "masked": draw.coin(),
                "softcap": draw.choice([50.0, 30.3]), "fill": draw.choice([-1e9, -50.0])}  # fmt: skip
    library = modeling("gemma4")
    config = library.Gemma4AudioConfig(
        hidden_size=size, num_attention_heads=heads, attention_chunk_size=settings["chunk"],
        attention_context_left=settings["left"], attention_context_right=settings["right"],
        attention_logit_cap=settings["softcap"], attention_invalid_logits_value=settings["fill"],
    )  # fmt: skip
    module = draw.module(library.Gemma4AudioAttention(config, 0))
    given = draw.query_key(batch, heads, length, length, width)
    given["pe"] = draw.normal(1, module.context_size // 2 + 1, size)
    if settings["masked"]:
        blocks = -(-length // settings["chunk"])
        given["mask"] = torch.rand(batch, 1, blocks, settings["chunk"], module.context_size, generator=draw.generator) < 0.3
    weights = parameters(module, "relative_k_proj", "per_dim_scale")
    module.q_proj, module.k_proj, module.v_proj = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, size), given["pe"], given.get("mask"))
    return Case(settings | named(batch, heads, length, width), given | weights, {"scores": seen[0]})


def granite_sizes(draw: Draw) -> tuple[dict, int, int, int, int, int]:
    """Settings, then the sizes of the blocks of all sequences."""
    batch, heads, width = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32])
    context, length = draw.integer(1, 20), draw.integer(1, 50)
    settings = {"context": context, "max_pos": context + draw.choice([0, 3, 100])}
    return settings, length, batch, batch * -(-length // context), heads, width


@relative("granite_speech", "granite_speech_plus")
def granite_speech(draw: Draw, name: str) -> Case:
    settings, length, batch, blocks, heads, width = granite_sizes(draw)
    context, settings["length"] = settings["context"], length
    config = configuration(
        name, hidden_dim=6, dim_head=width, num_heads=heads, max_pos_emb=settings["max_pos"], context_size=context, dropout=0.0,
    )  # fmt: skip
    prefix = "".join(part.capitalize() for part in name.split("_"))
    module = draw.module(getattr(modeling(name), f"{prefix}ConformerAttention")(config))
    given = {key: draw.normal(blocks, heads, context, width) for key in ("q", "k", "v")}
    weights = parameters(module, "rel_pos_emb")
    padded = {key: flat(x).tensor.reshape(batch, -1, heads * width) for key, x in given.items()}
    module.to_q, module.to_kv = Given(padded["q"]), Given(torch.cat([padded["k"], padded["v"]], -1))
    distances = torch.arange(context).view(-1, 1) - torch.arange(context).view(1, -1)
    original, seen = torch.nn.functional.scaled_dot_product_attention, {}

    def attention(*args, **kwargs):
        seen.update(bias=kwargs["attn_mask"].clone())
        return original(*args, **kwargs)

    with mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attention):
        module(draw.normal(batch, length, 6), distances.clamp(-context, context) + settings["max_pos"])
    return Case(settings | named(blocks, heads, context, width), {"q": given["q"]} | weights, seen)


@relative("granite_speech5")
def granite_speech5(draw: Draw) -> Case:
    settings, length, batch, blocks, heads, width = granite_sizes(draw)
    context, settings["masked"] = settings["context"], length % settings["context"] > 0 or draw.coin()
    library = modeling("granite_speech5")
    config = configuration(
        "granite_speech5", hidden_size=heads * width, head_dim=width, num_attention_heads=heads, num_key_value_heads=heads,
        max_position_embeddings=settings["max_pos"], context_size=context, attention_dropout=0.0,
        _attn_implementation="eager",
    )  # fmt: skip
    module = draw.module(library.GraniteSpeech5EncoderAttention(config, 0))
    given = draw.query_key(blocks, heads, context, context, width)
    mask = None
    if settings["masked"]:
        mask = torch.rand(batch, length, generator=draw.generator) < 0.8
        padded = torch.nn.functional.pad(mask, (0, -length % context))
        given["mask"] = padded.view(blocks, context)
    weights = parameters(module, "rel_pos_emb")
    q, k = (flat(given[key]).tensor.reshape(batch, -1, heads * width) for key in ("q", "k"))
    module.q_proj, module.k_proj, module.v_proj = Given(q), Given(k), Given(k)
    distances = library.GraniteSpeech5Encoder.compute_attention_dists(type("Encoder", (), {"config": config}))
    with softmax_inputs() as seen:
        module(draw.normal(batch, length, heads * width), distances, mask)
    return Case(settings | named(blocks, heads, context, width), given | weights, {"scores": seen[0]})

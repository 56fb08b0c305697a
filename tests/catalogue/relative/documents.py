"""Positions of boxes, segments and documents."""

import torch
from buckets import bucket_settings, configuration, modeling
from relative_registry import Case, Draw, flat, parameters, relative, softmax_inputs

UDOP = {"udop_1d": "1D", "udop_horizontal": "Horizontal", "udop_vertical": "Vertical"}


@relative(*UDOP)
def udop(draw: Draw, name: str) -> Case:
    settings, heads, batch, length = bucket_settings(draw), draw.integer(1, 4), draw.integer(1, 3), draw.integer(2, 60)
    settings |= {"prefix_bucket": draw.coin(), "scaling_factor": 1 if name == "udop_1d" else draw.choice([50, 100, 7])}
    kind = getattr(modeling("udop"), f"RelativePositionBias{UDOP[name]}")
    module = draw.module(
        kind(
            num_heads=heads, relative_attention_num_buckets=settings["num_buckets"], bidirectional=settings["bidirectional"],
            scaling_factor=settings["scaling_factor"], max_distance=settings["max_distance"],
            prefix_bucket=settings["prefix_bucket"],
        )
    )  # fmt: skip
    boxes = torch.rand(batch, length, 4, generator=draw.generator)
    for row in boxes:
        row[: draw.integer(0, length // 2)] = -1.0
    boxes, mask = boxes.to(draw.dtype), torch.ones(batch, length, dtype=torch.int64)
    bias = module(mask, boxes)
    return Case(settings | {"heads": heads, "queries": length}, parameters(module) | {"bbox": boxes, "mask": mask}, {"bias": bias})


@relative("cpmant")
def cpmant(draw: Draw) -> Case:
    settings = bucket_settings(draw, bidirectional=True) | {"segments": draw.integer(1, 8), "bidirectional": True}
    heads, batch, length = draw.integer(1, 4), draw.integer(1, 3), draw.choice([1, 33, 200])
    config = configuration(
        "cpmant", num_attention_heads=heads, position_bias_num_buckets=settings["num_buckets"],
        position_bias_max_distance=settings["max_distance"], segment_types=settings["segments"],
    )  # fmt: skip
    module = draw.module(modeling("cpmant").CpmAntSegmentPositionEmbedding(config))
    segment = draw.integers(0, settings["segments"], batch, length)
    places = torch.arange(length).expand(batch, -1)
    bias = module(places, places, segment, segment)
    sizes = {"heads": heads, "queries": length, "keys": length}
    return Case(settings | sizes, parameters(module) | {"segment": segment}, {"bias": bias})


@relative("layoutlmv2", "layoutlmv3")
def layoutlm(draw: Draw, name: str) -> Case:
    prefix = {"layoutlmv2": "LayoutLMv2", "layoutlmv3": "LayoutLMv3"}[name]
    heads, batch, length, width = draw.integer(1, 4), draw.integer(1, 3), draw.choice([2, 20, 60]), draw.choice([4, 7])
    settings = {
        "num_buckets": draw.choice([4, 16, 32]), "max_distance": 128,
        "num_buckets_2d": draw.choice([8, 64]), "max_distance_2d": draw.choice([256, 1000]),
    }  # fmt: skip
    library = modeling(name)
    config = getattr(library, f"{prefix}Config")(
        hidden_size=heads * width, num_attention_heads=heads, num_hidden_layers=1, intermediate_size=4,
        rel_pos_bins=settings["num_buckets"], max_rel_pos=settings["max_distance"],
        rel_2d_pos_bins=settings["num_buckets_2d"], max_rel_2d_pos=settings["max_distance_2d"],
    )  # fmt: skip
    config._attn_implementation = "eager"
    encoder = draw.module(getattr(library, f"{prefix}Encoder")(config))
    # The classes take boxes outside of 0 to 1000, where their embeddings of boxes would not.
    positions = draw.integers(0, draw.choice([500, 2**31 + 1]), batch, length)
    boxes = draw.integers(*draw.choice([(0, 1001), (-2000, 70000)]), batch, length, 4)
    if name == "layoutlmv2":
        line = encoder._calculate_1d_position_embeddings(positions)
        plane = encoder._calculate_2d_position_embeddings(boxes)
    else:
        line, plane = encoder._cal_1d_pos_emb(positions), encoder._cal_2d_pos_emb(boxes)
    given = draw.query_key(batch, heads, length, length, width)
    attention = getattr(library, f"{prefix}SelfAttention")(config).to(draw.dtype).eval()
    hidden, mask = draw.normal(batch, length, heads * width), None
    if name == "layoutlmv2":
        queries, keys = flat(given["q"]).tensor, flat(given["k"]).tensor
        attention.compute_qkv = lambda h: (queries, keys, keys)
        mask = torch.zeros(batch, 1, 1, length)
    else:
        attention.query, attention.key, attention.value = flat(given["q"]), flat(given["k"]), flat(given["k"])
    with softmax_inputs() as seen:
        attention(hidden, attention_mask=mask, rel_pos=line, rel_2d_pos=plane)
    weights = parameters(encoder, "rel_pos_")
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": length, "keys": length}
    return Case(settings | sizes, weights | given | {"positions": positions, "bbox": boxes},
                {"bias_1d": line, "bias_2d": plane, "scores": seen[0]})  # fmt: skip


@relative("pp_doclayout_v2")
def pp_doclayout(draw: Draw) -> Case:
    heads, embed = draw.integer(1, 4), draw.choice([4, 8, 16])
    settings = {"embed": embed, "scale": draw.choice([100.0, 64.0]), "theta": draw.choice([10000.0, 500.0])}
    config = configuration(
        "pp_doclayout_v2", relation_bias_embed_dim=embed, relation_bias_scale=settings["scale"],
        relation_bias_theta=settings["theta"], num_attention_heads=heads,
    )  # fmt: skip
    module = draw.module(modeling("pp_doclayout_v2").PPDocLayoutV2PositionRelationEmbedding(config))
    boxes = torch.rand(draw.integer(1, 3), draw.integer(1, 20), 4, generator=draw.generator).to(draw.dtype)
    return Case(settings | {"heads": heads}, parameters(module) | {"boxes": boxes}, {"bias": module(boxes)})

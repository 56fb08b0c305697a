"""DeBERTa: content to position and back."""

import torch
from buckets import modeling
from relative_registry import Case, Draw, Given, flat, parameters, relative, softmax_inputs


DROPOUTS = dict.fromkeys(("deberta", "deberta_v2"), ("hidden_dropout_prob", "attention_probs_dropout_prob")) | {
    "sew_d": ("hidden_dropout", "activation_dropout", "attention_dropout")
}


@relative("deberta", "deberta_v2", "sew_d")
def deberta(draw: Draw, name: str) -> Case:
    batch, heads, width, length = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32]), draw.choice([1, 8, 40, 200])
    settings = {"terms": draw.choice([["c2p"], ["p2c"], ["c2p", "p2c"]]), "max_relative": draw.choice([8, 32, 512])}
    buckets, second = -1, name != "deberta"
    if second:
        buckets = draw.choice([-1, 8, 32]) if settings["max_relative"] > 20 else -1
        settings |= {"buckets": buckets, "share_key": draw.coin()}
    library = modeling(name)
    config = getattr(library, {"deberta": "DebertaConfig", "deberta_v2": "DebertaV2Config", "sew_d": "SEWDConfig"}[name])(
        hidden_size=heads * width, num_attention_heads=heads, relative_attention=True, pos_att_type=settings["terms"],
        max_relative_positions=settings["max_relative"], **dict.fromkeys(DROPOUTS[name], 0.0),
    )  # fmt: skip
    config.position_buckets, config.share_att_key = buckets, settings.get("share_key", False)
    module = draw.module(library.DisentangledSelfAttention(config))
    given = draw.query_key(batch, heads, length, length, width)
    span = buckets if buckets > 0 else settings["max_relative"]
    given["relative"] = draw.normal(2 * span, heads * width)
    given["mask"] = torch.rand(batch, 1, length, length, generator=draw.generator) < 0.8
    names = ("query_proj", "key_proj") if settings.get("share_key") else ("pos_",)
    weights = parameters(module, *names)
    hidden = draw.normal(batch, length, heads * width)
    if second:
        ends = (length, length) if name == "sew_d" else (given["q"], given["k"])
        relative_pos = library.build_relative_position(*ends, buckets, settings["max_relative"])
        # The projections of the queries and keys are those of the table too, where it shares them.
        own = {name: getattr(module, name) for name in ("query_proj", "key_proj")}
        chosen = {"query_proj": flat(given["q"]), "key_proj": flat(given["k"])}
        for key in chosen:
            setattr(module, key, Either(hidden, chosen[key].tensor, own[key]))
        module.value_proj = flat(given["k"])
    else:
        relative_pos = library.build_relative_position(given["q"], given["k"])
        module.q_bias.data.zero_()
        module.v_bias.data.zero_()
        module.in_proj = Given(torch.zeros(batch, length, 3 * heads * width, dtype=draw.dtype))
        qkv = torch.cat([given["q"], given["k"], given["k"]], -1)  # of each head in turn
        module.in_proj = Given(qkv.transpose(1, 2).reshape(batch, length, -1))
    with softmax_inputs() as seen:
        module(hidden, given["mask"], relative_pos=relative_pos, rel_embeddings=given["relative"])
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": length, "keys": length}
    return Case(settings | sizes, given | weights, {"scores": seen[0]})


class Either(torch.nn.Module):
    """Returns the given tensor for the hidden states, and what the projection makes of all else."""

    def __init__(self, hidden, tensor, projection):
        super().__init__()
        self.hidden, self.tensor, self.projection = hidden, tensor, projection

    def forward(self, x):
        return self.tensor if x is self.hidden else self.projection(x)

"""What T5, mT5 and UMT5 have of their own in the area of encoder-decoders: settings, names, and how files of older releases differ."""

import re

import torch
from torch import Tensor

from harness import Draw

KINDS = {
    "mt5": ("MT5Config", "MT5ForConditionalGeneration"),
    "t5": ("T5Config", "T5ForConditionalGeneration"),
    "umt5": ("UMT5Config", "UMT5ForConditionalGeneration"),
}
SHARED, HEAD = "shared.weight", "lm_head.weight"
ENCODER, DECODER = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
LAYERS = ("num_layers", "num_decoder_layers")
# Ours and theirs, of the parts whose names differ.
NAMES = [
    (r"src_embedding\.token_embedding", "encoder.embed_tokens"),
    (r"tgt_embedding\.token_embedding", "decoder.embed_tokens"),
    (r"(encoder|decoder)\.norm", r"\1.final_layer_norm"),
    (r"(encoder|decoder)\.relative_attention_bias", r"\1.block.0.layer.0.SelfAttention.relative_attention_bias"),
    (r"(encoder|decoder)\.layers\.(\d+)\.self_attn", r"\1.block.\2.layer.0.SelfAttention"),
    (r"decoder\.layers\.(\d+)\.multihead_attn", r"decoder.block.\1.layer.1.EncDecAttention"),
    (r"(encoder|decoder)\.layers\.(\d+)\.norm1", r"\1.block.\2.layer.0.layer_norm"),
    (r"(encoder|decoder)\.layers\.(\d+)\.norm2", r"\1.block.\2.layer.1.layer_norm"),
    (r"decoder\.layers\.(\d+)\.norm3", r"decoder.block.\1.layer.2.layer_norm"),
    (r"encoder\.layers\.(\d+)\.linear", r"encoder.block.\1.layer.1.DenseReluDense."),
    (r"decoder\.layers\.(\d+)\.linear", r"decoder.block.\1.layer.2.DenseReluDense."),
]  # fmt: skip


def network(draw: Draw) -> dict:
    """The feed-forward network in all spellings; what files have of the last two wins."""
    name = draw.choice(["relu", "gelu", "silu", "gelu_new", "gelu_pytorch_tanh", "quick_gelu"])
    chosen = draw.choice([{}, {"feed_forward_proj": name}, {"feed_forward_proj": f"gated-{name}"}, {"feed_forward_proj": "gated-gelu"}])
    if draw.coin(0.2):
        chosen["dense_act_fn"] = draw.choice(["relu", "gelu", "gelu_new"])
    return chosen | ({"is_gated_act": draw.coin()} if draw.coin(0.2) else {})


def settings(draw: Draw) -> dict:
    """Nothing relates the width of a head to the others, or the two stacks to each other."""
    buckets = draw.choice([4, 6, 8, 32, 64])
    return {"d_model": draw.randint(3, 40), "num_heads": draw.randint(1, 5), "d_kv": draw.choice([1, 3, 8, 16]), "d_ff": draw.randint(1, 60),
            "num_layers": draw.randint(1, 3), "num_decoder_layers": draw.choice([None, 1, 2, 3, 4]), "vocab_size": draw.randint(12, 60),
            "layer_norm_epsilon": draw.choice([1e-6, 1e-5, 1e-3]), "relative_attention_num_buckets": buckets,
            "relative_attention_max_distance": buckets // 2 + draw.choice([1, 2, 10, 96]), "dropout_rate": 0.0,
            "pad_token_id": draw.randint(0, 5), "eos_token_id": 7, "decoder_start_token_id": draw.choice([6, 7, 8]),
            "tie_word_embeddings": draw.coin(), **network(draw)}  # fmt: skip


def rewritten(draw: Draw, whole: dict) -> dict:
    """config.json as older releases write it: without what 5.x derives from the other settings."""
    for name in ("dense_act_fn", "is_gated_act"):
        stated = whole["feed_forward_proj"].split("-")
        derived = {"dense_act_fn": "gelu_new" if whole["feed_forward_proj"] == "gated-gelu" else stated[-1], "is_gated_act": stated[0] == "gated"}
        if whole[name] == derived[name] and draw.coin(0.7):
            del whole[name]
    if whole["num_decoder_layers"] == whole["num_layers"] and draw.coin():
        del whole["num_decoder_layers"]  # its default, whatever num_hidden_layers says
    if draw.coin():
        whole.pop("scale_decoder_outputs", None)
        whole |= draw.choice([{}, {"tie_word_embeddings": False}, {"tie_word_embeddings": True}])
    return whole


def kept(whole: dict, text: dict) -> dict:
    """`text` with what decides the shapes of the weights: a default there is none beside another feed_forward_proj, and the number of
    the decoder's layers does not follow an alias of the encoder's."""
    own = {name: whole[name] for name in ("dense_act_fn", "is_gated_act") if name in whole}
    if "num_layers" not in text:
        own["num_decoder_layers"] = whole.get("num_decoder_layers") or whole["num_layers"]
    return text | own


def old_names(draw: Draw, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """With a table of the attention to the memory, which nobody reads."""
    name = "decoder.block.0.layer.{}.relative_attention_bias.weight"
    if draw.coin(0.3):
        tensors[name.format("1.EncDecAttention")] = torch.ones_like(tensors[name.format("0.SelfAttention")])
    return tensors


def gradient(model, name: str) -> Tensor | None:
    """That of the tensor that we call `name`."""
    if name == "final_layer.weight":
        return model.get_output_embeddings().weight.grad
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for ours, theirs in NAMES:
        if not re.match(ours + r"(\.|\d)", name):
            continue
        place = re.sub(ours, theirs, name, count=1)
        for ending, parts in (("in_proj_weight", ["q", "k", "v"]), ("out_proj.weight", ["o"]), ("2.weight", ["wo"]), ("1.weight", ["wi"])):
            if not place.endswith(ending):
                continue
            place = place.removesuffix(ending)
            if parts == ["wi"] and f"{place}wi.weight" not in parameters:
                parts = ["wi_0", "wi_1"]
            return torch.cat([parameters[f"{place}{part}.weight"].grad for part in parts])
        return parameters[place].grad
    raise KeyError(name)

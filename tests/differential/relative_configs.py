"""Relative positions of random configurations: the settings that transformers' own class has, from what it saves."""

import json

import torch
from torch import Tensor
from transformers import AutoConfig

from harness import Case, Draw

T5 = ("t5", "mt5", "umt5", "switch_transformers", "pop2piano", "udop", "longt5")
SWIN = {"swin": "swin_scores", "donut-swin": "donut_swin", "maskformer-swin": "maskformer_swin", "clap_audio_model": "clap_swin"}
WHOLE = {  # settings of the preset by the class's names
    "wavlm": ("wavlm_gated", {"num_buckets": "num_buckets", "max_distance": "max_bucket_distance", "heads": "num_attention_heads"}),
    "cpmant": ("cpmant", {"num_buckets": "position_bias_num_buckets", "max_distance": "position_bias_max_distance",
                          "segments": "segment_types", "heads": "num_attention_heads"}),
    "layoutlmv2": ("layoutlmv2", {"num_buckets": "rel_pos_bins", "max_distance": "max_rel_pos", "num_buckets_2d": "rel_2d_pos_bins",
                                  "max_distance_2d": "max_rel_2d_pos"}),
    "prophetnet": ("prophetnet", {"num_buckets": "num_buckets", "max_distance": "relative_max_distance", "ngram": "ngram"}),
    "mpnet": ("mpnet", {"heads": "num_attention_heads"}), "bloom": ("bloom_scores", {"heads": "n_head"}),
    "vits": ("vits", {"reach": "window_size"}), "speecht5": ("speecht5", {"max_length": "encoder_max_relative_position"}),
}  # fmt: skip
WHOLE["layoutlmv3"] = ("layoutlmv3", WHOLE["layoutlmv2"][1])
KINDS = {
    "wav2vec2-bert": {"relative": "wav2vec2_bert_relative", "relative_key": "wav2vec2_bert_relative_key"},
    "wav2vec2-conformer": {"relative": "wav2vec2_conformer_relative"}, "seamless_m4t": {"relative": "seamless_m4t_relative"},
    "seamless_m4t_v2": {"relative_key": "seamless_m4t_v2_relative_key"},
}  # fmt: skip
TYPES = [*T5, *SWIN, *WHOLE, *KINDS, "deberta", "deberta-v2", "sew-d", "swinv2", "beit", "data2vec-vision", "sam_vision_model", "mpt",
         "falcon", "funnel"]  # fmt: skip


def tensor_of(value: object) -> Tensor:
    if isinstance(value, str) or (isinstance(value, list) and value and isinstance(value[0], str)):
        return torch.tensor(list(("|".join(value) if isinstance(value, list) else value).encode()), dtype=torch.uint8)
    dtype = torch.bool if isinstance(value, bool) else torch.float64 if isinstance(value, float) else torch.int64
    return torch.tensor(value if isinstance(value, list) else [value], dtype=dtype)


def drawn(draw: Draw, model_type: str) -> tuple[dict, dict]:
    """Arguments of the class, and the settings that follow."""
    some = lambda: draw.randint(1, 500)  # noqa: E731
    if model_type in T5:
        names = {"num_buckets": "relative_attention_num_buckets", "max_distance": "relative_attention_max_distance", "heads": "num_heads"}
        return {name: some() for name in names.values()}, {"preset": model_type} | names
    if model_type in SWIN:
        return {"window_size": draw.randint(1, 12)}, {"preset": SWIN[model_type], "window": "window_size"}
    if model_type in WHOLE:
        preset, names = WHOLE[model_type]
        return {name: some() for name in names.values()}, {"preset": preset} | names
    if model_type in KINDS:
        kind = draw.choice(list(KINDS[model_type]))
        sides = {"left": "left_max_position_embeddings", "right": "right_max_position_embeddings"} if kind == "relative_key" else {}
        return {"position_embeddings_type": kind} | {name: some() for name in sides.values()}, {"preset": KINDS[model_type][kind]} | sides
    if model_type in ("deberta", "deberta-v2", "sew-d"):
        preset = model_type.replace("-", "_")
        arguments = {"relative_attention": True, "max_relative_positions": draw.choice([-1, some()]), "max_position_embeddings": some(),
                     "pos_att_type": draw.choice([["c2p"], ["p2c", "c2p"]])}  # fmt: skip
        if model_type != "deberta":
            arguments |= {"position_buckets": draw.choice([-1, some()]), "share_att_key": draw.coin()}
        most = max(arguments["max_relative_positions"], -1)
        settings = {"preset": preset, "terms": "pos_att_type",
                    "max_relative": "max_relative_positions" if most > 0 else "max_position_embeddings"}  # fmt: skip
        return arguments, settings | ({} if model_type == "deberta" else {"buckets": "position_buckets", "share_key": "share_att_key"})
    if model_type == "swinv2":
        arguments = {"window_size": draw.randint(1, 12), "pretrained_window_sizes": [draw.choice([0, 6])] * 4}
        return arguments, {"preset": model_type, "window": "window_size", "pretrained_window": "pretrained_window_sizes"}
    if model_type in ("beit", "data2vec-vision", "sam_vision_model"):
        patch = draw.choice([4, 16])
        arguments = {"image_size": patch * draw.randint(1, 20), "patch_size": patch, "num_attention_heads": draw.randint(1, 12)}
        if model_type == "sam_vision_model":
            return arguments, {"preset": "sam", "table_grid": "patches"}
        arguments |= {draw.choice(["use_relative_position_bias", "use_shared_relative_position_bias"]): True}
        return arguments, {"preset": model_type.replace("-", "_"), "window": "patches", "heads": "num_attention_heads"}
    if model_type == "mpt":
        bias = draw.choice([8, 4])
        return {"n_heads": some(), "attn_config": {"alibi_bias_max": bias}}, {"preset": "mpt", "heads": "n_heads", "bias_max": float(bias)}
    if model_type == "falcon":
        heads = some()
        return {"alibi": True, "num_attention_heads": heads, "hidden_size": 64 * heads}, {"preset": "falcon_scores", "heads": "num_attention_heads"}
    kind = draw.choice(["relative_shift", "factorized"])
    return {"attention_type": kind}, {"preset": "funnel" if kind == "relative_shift" else "funnel_factorized"}


def case(draw: Draw, model_type: str) -> Case:
    arguments, names = drawn(draw, model_type)
    if draw.coin(0.2) and model_type not in ("falcon", "deberta", "deberta-v2", "beit", "data2vec-vision", *KINDS):
        arguments = {}  # as the class has it
        if model_type == "sew-d":
            names["max_relative"] = "max_position_embeddings"
        if model_type == "mpt":
            names["bias_max"] = 8.0
        if model_type == "funnel":
            names["preset"] = "funnel"
    config = AutoConfig.for_model(model_type, **arguments)
    decoder = model_type in T5 and draw.coin()
    settings = {"bidirectional": not decoder} if model_type in T5 else {}
    for name, key in names.items():
        value = getattr(config, key) if isinstance(key, str) and name != "preset" and key != "patches" else key
        if key == "patches":
            value = [config.image_size // config.patch_size] * 2
        elif name == "window":
            value = list(value) if isinstance(value, (list, tuple)) else [value, value]
        elif name == "pretrained_window":
            value = value[0]
        elif name == "terms":
            value = list(value)
        settings[name] = value
    if model_type == "sew-d" and getattr(config, "max_relative_positions", -1) < 1:
        settings["max_relative"] = config.max_position_embeddings
    text = json.loads(config.to_json_string(use_diff=draw.coin())) | {"model_type": model_type}
    return Case({"op": "relative_config", "config": json.dumps(text), "stack": "decoder" if decoder else "encoder"}, {},
                {name: tensor_of(value) for name, value in settings.items()}, "bits")  # fmt: skip

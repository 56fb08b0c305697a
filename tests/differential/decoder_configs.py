"""Random configurations of decoder-only language models: each setting of their classes that is computed with."""

import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as CLASSES

from harness import Draw
from written import read

KINDS = ("arcee", "bloom", "codegen", "cohere", "cohere2", "ernie4_5", "exaone4", "falcon", "gemma", "gemma2", "gemma3_text", "glm", "glm4",
         "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "granite", "helium", "hunyuan_v1_dense", "llama", "ministral", "ministral3",
         "mistral", "mpt", "nemotron", "olmo", "olmo2", "olmo3", "opt", "phi", "phi3", "qwen2", "qwen3", "seed_oss", "smollm3", "stablelm",
         "starcoder2")  # fmt: skip
ACTIVATIONS = ["gelu", "relu", "gelu_new", "silu", "gelu_pytorch_tanh", "quick_gelu", "relu2"]
LEAST_POSITIONS = 30  # more than any input has, where there is a table of them
# What part of a head rotates where a file does not say, and whether a file of the type may say.
PARTS = {"glm": 0.5, "glm4": 0.5, "gpt_neox": 0.25, "nemotron": 0.5, "phi": 0.5, "stablelm": 0.25}
TAKES_PART = ("gpt_neox", "nemotron", "phi", "phi3", "stablelm")
FLAGS = ("_remove_final_layer_norm", "alibi", "apply_residual_connection_post_layernorm", "attention_bias", "attention_out_bias", "bias",
         "do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine", "mlp_bias", "multi_query", "new_decoder_architecture",
         "parallel_attn", "qk_layernorm", "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx", "scale_attn_weights",
         "slow_but_exact", "tie_word_embeddings", "use_bias", "use_parallel_residual", "use_qk_norm", "use_qkv_bias", "use_sliding_window")  # fmt: skip
NUMBERS = {
    "attention_multiplier": [0.05, 0.5, 1.0], "attn_logit_softcapping": [None, 0.7, 5.0], "clip_qkv": [None, 0.05, 0.4],
    "embedding_multiplier": [0.3, 1.0, 12.0], "final_logit_softcapping": [None, 30.0, 3.0], "layer_norm_eps": [1e-12, 1e-5, 1e-3],
    "layer_norm_epsilon": [1e-12, 1e-5, 1e-3], "logit_scale": [0.0625, 0.5, 3.0], "logits_scaling": [0.25, 1.0, 8.0],
    "norm_eps": [1e-6, 1e-5, 1e-3], "norm_epsilon": [1e-6, 1e-5, 1e-3], "num_ln_in_parallel_attn": [None, 1, 2],
    "query_pre_attn_scalar": [1, 24, 256], "residual_multiplier": [0.22, 1.0, 1.7], "rms_norm_eps": [1e-8, 1e-6, 1e-5, 1e-3],
    "sliding_window": [None, 2, 3, 5, 9, 64], "window_size": [2, 3, 5, 64],
}  # fmt: skip
WIDTHS = ("ffn_dim", "ffn_hidden_size", "intermediate_size", "n_inner", "word_embed_proj_dim")


def config_class(kind: str) -> type:
    return CONFIG_MAPPING[kind]


def model_class(kind: str) -> type:
    return getattr(transformers, CLASSES[kind])


def divisors(count: int) -> list[int]:
    return [one for one in range(1, count + 1) if count % one == 0]


def scaling(draw: Draw, kind: str, pairs: int, positions: int) -> dict:
    """A scaling of the rotary embedding, of `pairs` pairs of channels."""
    first = draw.randint(6, 12)
    yarn = {"rope_type": "yarn", "factor": draw.choice([2.0, 4.0]), "original_max_position_embeddings": first}
    llama = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": first}
    lengths = {"rope_type": "longrope", "short_factor": [1.0 + draw.random() for _ in range(pairs)],
               "long_factor": [1.0 + 4.0 * draw.random() for _ in range(pairs)], "original_max_position_embeddings": first}  # fmt: skip
    if kind == "phi3":
        return draw.choice([{"rope_type": "default"}, lengths, lengths])
    if kind == "hunyuan_v1_dense":
        return draw.choice([{"rope_type": "default"}, {"rope_type": "dynamic", "alpha": draw.choice([1.0, 50.0]), "factor": 1.0}])
    if kind == "ministral3":
        beta = {"llama_4_scaling_beta": draw.choice([0.1, 0.5]), "original_max_position_embeddings": first}
        return draw.choice([beta | {"rope_type": "default"}, yarn | beta])
    return draw.choice([{"rope_type": "default"}, {"rope_type": "default"}, {"rope_type": "linear", "factor": 2.5},
                        {"rope_type": "dynamic", "factor": 2.0}, yarn, yarn | {"beta_fast": 16.0, "beta_slow": 2.0},
                        yarn | {"attention_factor": 1.2}, llama, lengths | {"factor": 3.0}])  # fmt: skip


def rotary(draw: Draw, kind: str, head: int, positions: int) -> dict:
    part = PARTS.get(kind, 1.0)
    if kind in TAKES_PART and draw.coin():
        part = draw.choice([0.25, 0.5, 0.75, 1.0])
    theta = {"rope_theta": draw.choice([100.0, 1000.0, 10000.0, 160000.0])}
    whole = part == 1.0 and kind not in TAKES_PART
    more = scaling(draw, kind, int(head * part) // 2, positions)
    if more["rope_type"] == "dynamic" and (part != 1.0 or head < 4):
        more = {"rope_type": "default"}
    return theta | more | ({} if whole else {"partial_rotary_factor": part})


def kinds_of_layers(draw: Draw, layers: int) -> list[str]:
    return [draw.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


def heads_of(draw: Draw, kind: str, fields: dict) -> dict:
    """The numbers of heads and their width; sometimes those that the class has by default, which no file needs to state."""
    free, default = "head_dim" in fields, fields.get("num_key_value_heads")
    heads, head = draw.choice([1, 2, 3, 4, 6]), 8 * draw.randint(1, 2) if kind in PARTS or kind in TAKES_PART else 4 * draw.randint(1, 4)
    if kind in ("glm", "glm4") or draw.coin(0.3):
        head = 8 * draw.randint(1, 3)
    if kind == "codegen":
        heads = draw.choice([4, 8])
    found = {}
    if default is not None and kind != "nemotron" and draw.coin(0.2):
        if isinstance(default.default, int):
            heads = default.default * draw.choice([1, 2])
            head = 8 if kind in PARTS or kind in TAKES_PART else draw.choice([2, 4])
        else:
            heads = draw.choice([2, 4])
    elif default is not None:
        found["num_key_value_heads"] = draw.choice(divisors(heads))
    if kind == "falcon" and draw.coin(0.8):
        found["num_kv_heads"] = draw.choice(divisors(heads))
    width = heads * head
    if free and draw.coin(0.7):
        found["head_dim"] = head
        width = heads * draw.randint(1, 9)
    elif free and fields["head_dim"].default is not None:
        head, width = fields["head_dim"].default, heads * draw.randint(1, 9)
    elif kind in ("hunyuan_v1_dense", "ministral"):  # whose classes do not take the null that they have by default
        found["head_dim"] = head
    if kind == "helium":
        width = heads * head
    return found | {"num_attention_heads": heads, "hidden_size": width, "head": head}


def settings_of(draw: Draw, kind: str) -> dict:
    """By the names of transformers' class, some left to their defaults."""
    fields = config_class(kind).__dataclass_fields__
    names = config_class(kind).attribute_map
    found = heads_of(draw, kind, fields)
    head, heads, width = found.pop("head"), found["num_attention_heads"], found["hidden_size"]
    layers, positions, vocab = draw.randint(1, 4), draw.randint(LEAST_POSITIONS, 40), draw.randint(14, 60)
    found |= {"num_hidden_layers": layers, "vocab_size": vocab, "pad_token_id": draw.choice([0, 1, 2, 5]), "bos_token_id": 3,
              "eos_token_id": draw.choice([4, 7])}  # fmt: skip
    found["max_seq_len" if kind == "mpt" else "max_position_embeddings"] = positions
    if "rope_parameters" in fields and kind != "falcon" and draw.coin(0.5):
        found["max_position_embeddings"] = draw.randint(6, 12)  # nothing ends there
    found |= {name: draw.coin() for name in FLAGS if name in fields and draw.coin(0.8)}
    found |= {name: draw.choice(values) for name, values in NUMBERS.items() if name in fields and draw.coin(0.8)}
    found |= {name: draw.randint(3, 50) for name in WIDTHS if name in fields and (fields[name].default is not None or draw.coin())}
    for name in ("hidden_act", "activation_function", "hidden_activation", "activation"):
        if name in fields and draw.coin(0.8):
            found[name] = draw.choice(ACTIVATIONS)
    if "layer_types" in fields and draw.coin():
        found["layer_types"] = kinds_of_layers(draw, layers)
    if "max_window_layers" in fields:
        found["max_window_layers"] = draw.randint(0, layers)
    if "rotary_dim" in fields:
        found["rotary_dim"] = 2 * draw.randint(1, head // 2)
    if "rope_parameters" in fields and draw.coin(0.9):
        found["rope_parameters"] = rotary(draw, kind, head, positions)
    return adapted(draw, kind, {names.get(name, name): value for name, value in found.items()}, layers, head, positions)


def adapted(draw: Draw, kind: str, found: dict, layers: int, head: int, positions: int) -> dict:
    """With what only one type has, and without what its class refuses."""
    if kind in ("gemma3_text", "olmo3") and "rope_parameters" in found:
        sliding = {"rope_theta": draw.choice([100.0, 10000.0]), "rope_type": "default"}
        found["rope_parameters"] = {"full_attention": rotary(draw, kind, head, positions), "sliding_attention": sliding}
    if kind == "gemma3_text" and "layer_types" not in found and draw.coin():
        found["sliding_window_pattern"] = draw.randint(1, 4)
    if kind == "cohere2" and "layer_types" not in found and draw.coin():
        found["sliding_window_pattern"] = draw.randint(1, 4)
    if kind == "falcon":
        found |= {"parallel_attn": True} if found.get("new_decoder_architecture") else {"num_ln_in_parallel_attn": draw.choice([None, 1])}
        if not found.get("new_decoder_architecture") and not found.get("multi_query", True):
            found["num_kv_heads"] = None
    if kind in ("cohere2", "gemma2", "gemma3_text", "ministral", "olmo3") and found.get("sliding_window", 0) is None:
        found["sliding_window"] = 3
    if kind == "gpt_neo":
        kinds = draw.choice([["global", "local"], ["local"], ["global"], ["local", "local", "global"]])
        found["num_layers"] = len(kinds) * draw.randint(1, 2)
        found["attention_types"] = [[kinds, found["num_layers"] // len(kinds)]]
    if kind == "mpt":
        found["attn_config"] = {"clip_qkv": draw.choice([None, 0.05, 0.4]), "softmax_scale": draw.choice([None, 0.1, 1.0])}
    if kind == "smollm3" and draw.coin():
        found["no_rope_layers"] = [draw.randint(0, 1) for _ in range(layers)]
    elif kind == "smollm3":
        found["no_rope_layer_interval"] = draw.randint(1, 4)
    if kind == "exaone4":
        found["layer_types"] = kinds_of_layers(draw, layers)
    if "layer_types" in found and found.get("sliding_window", 4096) is None:
        found["layer_types"] = ["full_attention"] * layers
    if kind == "smollm3" and found.get("sliding_window") is None:  # whose class makes layers with a window all the same
        found.pop("use_sliding_window", None)
    if kind in ("qwen2", "qwen3", "smollm3") and not found.get("use_sliding_window", False):
        found.pop("layer_types", None)
    return found


def drawn_config(draw: Draw, kind: str) -> tuple[dict, transformers.PreTrainedConfig]:
    """Settings that the class takes, as a file states them, and what transformers reads in them."""
    settings = {"model_type": kind} | settings_of(draw, kind)
    return settings, read(config_class(kind), settings)

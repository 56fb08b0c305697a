#!/usr/bin/env python3
"""src/models/config/config_classes.inc, src/models/types/{model_classes,decoder_types}.inc from the classes of the installed transformers.

tools/hf_config_classes.py --write    rewrite the files
tools/hf_config_classes.py --check    exit 1 if one differs

model_classes.inc has the class of each model type without a head, decoder_types.inc those that are decoders alone. config_classes.inc has a row for each model type of
use, with what posenc reads of its class:
- aliases: a class's attribute_map and OLD_NAMES name the settings that its files may give by another name. Of two names,
  one is a field of the class and the other is set after all fields; `alias=own` has the own name as a field,
  `alias:own` the alias.
- optional settings: those that may be null although they have another default. Null then means none.
- defaults: those of the fields. Where one is null, there is none or the class derives it from other settings, as posenc
  then does; but rope_parameters are those of the class instantiated without arguments. A composite model has the model
  types of its parts, and what it gives them in place of their own defaults.
- kUnreadSettings: of encoder-decoders and decoders that posenc loads, the other settings that may not be null, since transformers refuses such a file.
- `generation_config` is no model type, but the class of generation_config.json.
"""

import argparse
import copy
import importlib
import inspect
import json
import re
import sys
import typing
from dataclasses import MISSING, fields
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "src/models"
READ = set("""
    vocab_size type_vocab_size task_type_vocab_size pad_token_id eos_token_id
    hidden_size num_attention_heads num_hidden_layers intermediate_size mlp_ratio encoder_ffn_dim hidden_dim dim n_heads
    n_layers d_model hidden_act activation_function activation embedding_size input_embedding_size word_embed_proj_dim
    max_position_embeddings max_encoder_position_embeddings use_task_id sinusoidal_pos_embds layernorm_embedding
    use_learned_position_embeddings scale_embedding rescale_embeddings
    layer_norm_eps norm_eps norm_bias hidden_dropout_prob attention_probs_dropout_prob attention_dropout activation_dropout mlp_dropout
    encoder_layerdrop drop_path_rate dropout embd_pdrop embed_dropout embedding_dropout hidden_dropout
    layerscale_value num_hidden_groups inner_group_num projection_size pooler_output_size relative_attention_num_buckets
    qkv_bias image_size patch_size num_channels initializer_range use_mask_token use_absolute_position_embeddings
    num_register_tokens n_cls_tokens is_hybrid mask_ratio
    encoder_layers encoder_attention_heads decoder_layers decoder_attention_heads decoder_ffn_dim decoder_vocab_size
    src_vocab_size share_encoder_decoder_embeddings tie_word_embeddings is_encoder_decoder
    rope_theta rope_parameters partial_rotary_factor original_max_position_embeddings head_dim global_head_dim
    qk_rope_head_dim qk_nope_head_dim rotary_dim rotary_pct rotary_emb_base rotary_embedding_base rotary_value
    rope_interleave local_rope_theta global_rope_theta rope_local_base_freq compress_rope_theta swa_rope_theta
    classifier_activation classifier_bias classifier_pooling decoder_bias mlp_bias output_embedding_size
    embed_dim projection_dim descriptor_dim spatial_merge_size window_size speech_encoder_attention_heads
    memory_attention_hidden_size memory_attention_num_attention_heads memory_attention_downsample_rate layer_types
    num_key_value_heads rms_norm_eps attention_bias mlp_bias hidden_activation local_attention sliding_window
    use_sliding_window max_window_layers query_pre_attn_scalar use_bidirectional_attention
    gelu_activation use_lang_emb n_langs sinusoidal_embeddings pre_norm max_2d_position_embeddings
    q_groups k_groups v_groups post_attention_groups intermediate_groups output_groups
    token_dropout emb_layer_norm_before mask_token_id position_embedding_type layerdrop
    summary_type summary_use_proj summary_activation summary_proj_to_labels
    use_tpu_fourier_optimizations query_bias key_bias value_bias proj_bias use_gated_mlp pos_embed_shift pos_embed_jitter pos_embed_rescale
    pretraining_tp slow_but_exact
    trigram_input use_bottleneck intra_bottleneck_size use_bottleneck_attention
    num_layers num_heads d_kv d_ff feed_forward_proj dropout_rate layer_norm_epsilon relative_attention_max_distance
    key_query_shared_bottleneck num_feedforward_networks normalization_type head_ratio conv_kernel_size num_groups
    d_inner n_head n_layer d_head ff_activation attn_type bi_data clamp_len same_length
    position_embeddings_type conv_depthwise_kernel_size conformer_conv_dropout
    depths pretrained_window_sizes use_absolute_embeddings global_attn_indexes mlp_dim output_channels use_abs_pos use_rel_pos
    layer_scale_init_value use_relative_position_bias use_shared_relative_position_bias use_mean_pooling
    apply_residual_connection_post_layernorm attn_config
    rel_pos_bins max_rel_pos rel_2d_pos_bins max_rel_2d_pos has_relative_attention_bias has_spatial_attention_bias
    coordinate_size shape_size
    relative_attention max_relative_positions position_biased_input pos_att_type legacy pooler_hidden_act
    position_buckets share_att_key num_buckets max_bucket_distance relative_max_distance ngram alibi attention_type
    position_bias_num_buckets position_bias_max_distance segment_types
    adapter_reduction_factor adapter_layer_norm adapter_reuse_layer_norm ln_before_adapter languages default_language
    prediction_head_size channel_shrink_ratio hidden_size_per_layer_input embedding_dim
    attn_logit_softcapping final_logit_softcapping attention_multiplier residual_multiplier embedding_multiplier logits_scaling
    no_rope_layers no_rope_layer_interval sliding_window_pattern use_bias attention_out_bias resid_pdrop residual_dropout
    n_inner ffn_dim ffn_hidden_size resid_pdrop resid_dropout residual_dropout attn_pdrop norm_epsilon
    scale_attn_weights scale_attn_by_inverse_layer_idx add_cross_attention multi_query attention_types do_layer_norm_before _remove_final_layer_norm
    enable_bias layer_norm_elementwise_affine qk_layernorm new_decoder_architecture num_kv_heads parallel_attn bias num_ln_in_parallel_attn
    use_parallel_residual use_qkv_bias use_bias use_qk_norm clip_qkv logit_scale max_seq_len expansion_ratio
    left_max_position_embeddings right_max_position_embeddings encoder_max_relative_position
    num_mel_bins max_source_positions max_target_positions
    """.split())  # fmt: skip
PARTS = {"encoder", "text_config", "vision_config", "thinker_config", "llm_config", "language_config"}
DERIVED = {"layer_types"}  # from the number of layers
OLD_NAMES = {"bloom": {"n_embed": "hidden_size"}, "falcon": {"n_embed": "hidden_size"}}  # which a class takes without a row of its attribute_map


def types_with(expression: str) -> list[str]:
    """The model types of the families whose rows have it."""
    tables = [table for file in (FOLDER / "families").glob("*.cpp") for table in re.findall(r"ModelType \w+\[\] = \{(.*?)\n\};", file.read_text(), re.S)]
    rows = [row for table in tables for row in re.split(r"\n    (?=\{\.type)", table)[1:]]
    return sorted(re.match(r'\{\.type = "([^"]+)"', row).group(1) for row in rows if re.search(expression, row))


def config_classes() -> dict[str, type]:
    """The class of each model type; where two have the same, the one that transformers' AutoConfig takes."""
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    transformers.logging.set_verbosity_error()
    found: dict[str, type] = {}
    for file in sorted(Path(transformers.__file__).parent.glob("models/*/configuration_*.py")):
        module = importlib.import_module(f"transformers.models.{file.parent.name}.{file.stem}")
        for kind in vars(module).values():
            if not (isinstance(kind, type) and issubclass(kind, transformers.PreTrainedConfig) and kind.model_type):
                continue
            if kind.__module__ != module.__name__:
                continue
            mapped = kind.model_type in CONFIG_MAPPING and CONFIG_MAPPING[kind.model_type] is kind
            if mapped or kind.model_type not in found:
                found[kind.model_type] = kind
    return found


def aliases_of(kind: type) -> list[str]:
    """The pairs of a class. Of two fields the own one is set later, to its default if need be: such an alias is none."""
    fields, pairs = set(kind.__dataclass_fields__), []
    for alias, own in sorted((kind.attribute_map | OLD_NAMES.get(kind.model_type, {})).items()):
        if alias == own or (alias in fields and own in fields) or not {alias, own} & READ:
            continue
        pairs.append(alias + (":" if alias in fields else "=") + own)
    return pairs


def names_of(kind: type) -> list[str]:
    """The fields that posenc reads, by the class's own names."""
    own = READ | {kind.attribute_map.get(name, name) for name in READ}
    return [name for name in kind.__dataclass_fields__ if name in own and name not in DERIVED]


def default_of(kind: type, name: str):
    field = kind.__dataclass_fields__[name]
    if field.default is not MISSING:
        return field.default
    return None if field.default_factory is MISSING else field.default_factory()


def may_be_null(kind: type, name: str) -> bool:
    annotation = kind.__dataclass_fields__[name].type
    return type(None) in typing.get_args(annotation) or bool(re.search(r"\bNone\b|Optional", str(annotation)))


def instance_of(kind: type, **settings):
    """The configuration; None if the class refuses these settings."""
    try:
        config = kind(**settings)
    except Exception:  # of many kinds
        return None
    object.__setattr__(config, "allow_global_per_layer_attribute_access", True)
    return config


def sizes_of(kind: type) -> dict[str, int]:
    """Settings from which a class may derive rotary parameters."""
    names = [name for name in kind.__dataclass_fields__ if name.endswith("head_dim") or name in ("hidden_size", "max_position_embeddings")]
    return {name: default_of(kind, name) for name in names if default_of(kind, name)}


def rotary_parameters(kind: type, **settings) -> dict:
    return getattr(instance_of(kind, **settings), "rope_parameters", None) or {}


def equal_entries(one: dict, other: dict) -> dict:
    """The entries of `one` that `other` has too, also inside its objects."""
    both = {key: value for key, value in one.items() if key in other}
    return {key: equal_entries(value, other[key]) if isinstance(value, dict) and isinstance(other[key], dict) else value
            for key, value in both.items() if isinstance(value, dict) or value == other[key]}  # fmt: skip


def without_derived(kind: type, parameters: dict) -> dict:
    """The rotary parameters that do not depend on other settings of the class."""
    others = {name: 2 * size for name, size in sizes_of(kind).items()}
    if not any(isinstance(value, dict) for value in parameters.values()):
        others |= {"rope_theta": 7.0, "partial_rotary_factor": 0.75}
    for name, value in others.items():
        changed = rotary_parameters(kind, **{name: value})
        parameters = equal_entries(parameters, changed) if changed else parameters
    return parameters


def rotary_defaults(kind: type) -> dict:
    """What a class fills in: the base and the share of given parameters, and all parameters if none are given."""
    if "rope_parameters" not in kind.__dataclass_fields__:
        return {}
    defaults = {}
    theta = getattr(kind, "rope_theta", kind.default_theta)
    if isinstance(theta, (int, float)):
        defaults["rope_theta"] = float(theta)
    given = {"rope_parameters": {"rope_type": "default"}}
    share = rotary_parameters(kind, **copy.deepcopy(given)).get("partial_rotary_factor")
    for name, size in sizes_of(kind).items():
        changed = rotary_parameters(kind, **copy.deepcopy(given), **{name: 2 * size})
        share = share if changed.get("partial_rotary_factor", share) == share else None
    if share is not None:
        defaults["partial_rotary_factor"] = share
    alone = without_derived(kind, rotary_parameters(kind))
    filled = defaults | {"rope_type": kind.default_rope_type}
    if any(filled.get(key) != value for key, value in alone.items()):
        defaults["rope_parameters"] = alone
    return defaults


def part_defaults(config, name: str) -> dict:
    part = getattr(config, name)
    own = type(part)
    object.__setattr__(part, "allow_global_per_layer_attribute_access", True)
    changed = {field: getattr(part, field) for field in names_of(own) if field != "rope_parameters"
               and default_of(own, field) not in (None, getattr(part, field)) and not derives(own, field)}  # fmt: skip
    return {"model_type": part.model_type} | changed


def derives(kind: type, name: str) -> bool:
    """Whether the class without arguments has another value than the field's default."""
    return getattr(instance_of(kind), name, None) != default_of(kind, name)


def defaults_of(kind: type) -> dict:
    import transformers

    defaults = {name: default_of(kind, name) for name in names_of(kind)} | rotary_defaults(kind)
    if defaults.get("is_encoder_decoder") is False:  # as in most
        del defaults["is_encoder_decoder"]
    config = instance_of(kind)
    for name in sorted(PARTS):
        if isinstance(getattr(config, name, None), transformers.PreTrainedConfig):
            defaults[name] = part_defaults(config, name)
    return defaults


def has_config_dicts(kind: type) -> bool:
    """Whether `text_config_dict` replaces `text_config`."""
    own = vars(kind).get("__post_init__")
    return own is not None and bool(re.search(r'text_config_dict := kwargs\.pop\("text_config_dict"', inspect.getsource(own)))


def row_of(model_type: str, kind: type) -> str:
    aliases, defaults = aliases_of(kind), defaults_of(kind)
    optional = [name for name in names_of(kind) if defaults.get(name) is not None and may_be_null(kind, name)]
    own = dict(pair.split(":") for pair in aliases if ":" in pair)  # the names in the row
    text = json.dumps({own.get(name, name): value for name, value in defaults.items()}, separators=(",", ":"), sort_keys=True)
    words = " ".join(own.get(name, name) for name in optional)
    return f'    {{"{model_type}", "{" ".join(aliases)}", "{words}", R"({text})"}},'


def unread_row(model_type: str, kind: type) -> str:
    """The settings of a model that generates text that posenc does not read and whose type has no null."""
    read = set(names_of(kind))
    names = [field.name for field in fields(kind) if field.name not in read and not may_be_null(kind, field.name)]
    return f'    {{"{model_type}", "{" ".join(names)}"}},'


def is_of_use(defaults: dict, aliases: list[str]) -> bool:
    """Whether the class has tokens, patches, stages of them, a rotary embedding or parts that may have them."""
    names = set(defaults) | {re.split("[=:]", pair)[0] for pair in aliases}
    return bool(names & ({"rope_theta", "rope_parameters", "descriptor_dim"} | PARTS)) or \
        ("hidden_size" in names and bool(names & {"vocab_size", "patch_size"})) or {"embed_dim", "depths", "window_size"} <= names  # fmt: skip


def generation_row() -> str:
    """The settings of generate(), with its defaults; null where there is none."""
    from transformers import GenerationConfig

    config = GenerationConfig()
    defaults = {name: None for name in config.to_dict() if name[0] != "_" and name != "transformers_version"}
    defaults |= config._get_default_generation_params()
    return f'    {{"generation_config", "", "", R"({json.dumps(defaults, separators=(",", ":"), sort_keys=True)})"}},'


def table() -> str:
    import transformers

    classes = sorted((name, kind) for name, kind in config_classes().items() if is_of_use(defaults_of(kind), aliases_of(kind)))
    release = ".".join(transformers.__version__.split(".")[:2])
    lines = [f"// Written by tools/hf_config_classes.py from transformers {release}.", "constexpr ClassRow kConfigClasses[] = {"]
    lines += sorted([*(row_of(model_type, kind) for model_type, kind in classes), generation_row()])
    lines += ["};", "constexpr UnreadRow kUnreadSettings[] = {"]
    generates = types_with(r"\.(decoder|seq2seq) = &")
    lines += [unread_row(model_type, kind) for model_type, kind in classes if model_type in generates]
    lines += ["};", "constexpr std::string_view kWithConfigDicts[] = {"]
    lines += [f'    "{model_type}",' for model_type, kind in classes if has_config_dicts(kind)]
    return "\n".join([*lines, "};"]) + "\n"


def model_class_of(model_type: str, kind: type) -> str:
    """That of AutoModel; for the text model of a pair, which it does not know, the one of the configuration's name."""
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    named = MODEL_MAPPING_NAMES.get(model_type)
    if isinstance(named, str):
        return named
    own = kind.__name__.removesuffix("Config") + "Model"
    return own if hasattr(transformers, own) else ""


def model_classes() -> str:
    rows = [(model_type, model_class_of(model_type, kind)) for model_type, kind in sorted(config_classes().items())
            if is_of_use(defaults_of(kind), aliases_of(kind))]  # fmt: skip
    lines = ["// Written by tools/hf_config_classes.py.", "constexpr ModelClass kModelClasses[] = {"]
    lines += [f'    {{"{model_type}", "{name}"}},' for model_type, name in rows if name]
    return "\n".join([*lines, "};"]) + "\n"


def decoder_types() -> str:
    """The model types that transformers has as decoders of text and as nothing else. Those of a class that may be an encoder as well,
    or that attends to both sides (XLNet), and those with an encoder of their own are none."""
    from transformers.models.auto import modeling_auto as auto

    both = {"bert-generation", "xlnet"} | set(auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES) | set(auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES)
    classes = config_classes()
    names = []
    for name in sorted(set(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - both):
        kind = classes.get(name)
        settings = kind.__dataclass_fields__ if kind else {}
        has_encoder = "encoder_layers" in settings or bool(kind and kind.sub_configs)
        if kind and not has_encoder and not ("is_encoder_decoder" in settings and default_of(kind, "is_encoder_decoder")):
            names.append(name)
    lines = ["// Written by tools/hf_config_classes.py.", "constexpr std::string_view kDecoderTypes[] = {"]
    lines += [f'    "{name}",' for name in names]
    return "\n".join([*lines, "};"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: transformers is not installed")
        return 0
    status = 0
    written = {"config/config_classes.inc": table(), "types/model_classes.inc": model_classes(), "types/decoder_types.inc": decoder_types()}
    for name, text in written.items():
        file = FOLDER / name
        if options.write:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            print(f"{name} is not what the installed transformers has; tools/hf_config_classes.py --write")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

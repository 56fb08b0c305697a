"""Encoders with random settings, as transformers saves them: the library, plain and frozen, and `posenc encode`.

The input of the first layer has to be bit-identical. The last hidden state and the pooled output may differ by 1e-5,
relative to their largest number where that is more than 1, on tokens that are not padding.
"""

import copy
import json
import logging
import os
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file

import decoder_configs as decoders
import encoder_windows as windows
import seq2seq_t5 as t5
from encoder_switches import with_unused
from harness import Case, Draw, Failure, Programs, differ
from written import written

MODELS, TOLERANCE = 6, 1e-5
ACTIVATIONS = ["gelu", "relu", "gelu_new", "silu", "gelu_pytorch_tanh", "quick_gelu"]

ROTATING = ("gemma3", "llama", "modernbert", "rotary")
# Of the weights of ill-conditioned models: sums over all tokens of nearly equal ones, and layers without norms.
SPREADS = {"fnet": [0.3], "mobilebert": [0.05, 0.1]}
WINDOW_SETTINGS = ("use_mask_token", "use_absolute_position_embeddings", "use_relative_position_bias", "use_shared_relative_position_bias",
                   "use_mean_pooling")  # fmt: skip
DICTS = ("chinese_clip", "clip", "clipseg")  # whose files may have text_config_dict


class Kind(NamedTuple):
    """A model type, and the names of its classes in transformers."""

    config: str
    model: str
    heads: tuple[str, ...] = ()
    dialect: str = "bert"  # how the config names its sizes


KINDS = {
    "albert": Kind("AlbertConfig", "AlbertModel", ("AlbertForMaskedLM", "AlbertForSequenceClassification"), "albert"),
    "bart": Kind("BartConfig", "BartModel", ("BartForConditionalGeneration",), "bart"),
    "beit": Kind("BeitConfig", "BeitModel", ("BeitForImageClassification",), "vision"),
    "bert": Kind("BertConfig", "BertModel", ("BertForMaskedLM", "BertForSequenceClassification", "BertForPreTraining")),
    "bert-generation": Kind("BertGenerationConfig", "BertGenerationEncoder"),
    "bloom": Kind("BloomConfig", "BloomModel", ("BloomForCausalLM", "BloomForSequenceClassification"), "alibi"),
    "camembert": Kind("CamembertConfig", "CamembertModel", ("CamembertForMaskedLM",)),
    "chinese_clip_text_model": Kind("ChineseCLIPTextConfig", "ChineseCLIPTextModel"),
    "clip": Kind("CLIPConfig", "CLIPModel", (), "pair"),
    "chinese_clip_vision_model": Kind("ChineseCLIPVisionConfig", "ChineseCLIPVisionModel", (), "vision"),
    "clip_vision_model": Kind("CLIPVisionConfig", "CLIPVisionModel", ("CLIPVisionModelWithProjection",), "vision"),
    "clipseg_vision_model": Kind("CLIPSegVisionConfig", "CLIPSegVisionModel", (), "vision"),
    "chinese_clip": Kind("ChineseCLIPConfig", "ChineseCLIPModel", (), "pair"),
    "clipseg": Kind("CLIPSegConfig", "CLIPSegModel", (), "pair"),
    "clip_text_model": Kind("CLIPTextConfig", "CLIPTextModel", ("CLIPTextModelWithProjection",), "clip"),
    "clipseg_text_model": Kind("CLIPSegTextConfig", "CLIPSegTextModel", (), "clip"),
    "convbert": Kind("ConvBertConfig", "ConvBertModel", ("ConvBertForMaskedLM", "ConvBertForSequenceClassification")),
    "data2vec-text": Kind("Data2VecTextConfig", "Data2VecTextModel", ("Data2VecTextForMaskedLM",)),
    "data2vec-vision": Kind("Data2VecVisionConfig", "Data2VecVisionModel", ("Data2VecVisionForImageClassification",), "vision"),
    "deberta": Kind("DebertaConfig", "DebertaModel", ("DebertaForMaskedLM", "DebertaForSequenceClassification")),
    "deberta-v2": Kind("DebertaV2Config", "DebertaV2Model", ("DebertaV2ForMaskedLM", "DebertaV2ForSequenceClassification")),
    "deit": Kind("DeiTConfig", "DeiTModel", ("DeiTForImageClassification",), "vision"),
    "dinov2": Kind("Dinov2Config", "Dinov2Model", ("Dinov2ForImageClassification",), "dino"),
    "dinov2_with_registers": Kind("Dinov2WithRegistersConfig", "Dinov2WithRegistersModel", (), "dino"),
    "dinov3_vit": Kind("DINOv3ViTConfig", "DINOv3ViTModel", (), "dino"),
    "donut-swin": Kind("DonutSwinConfig", "DonutSwinModel", ("DonutSwinForImageClassification",), "swin"),
    "distilbert": Kind("DistilBertConfig", "DistilBertModel", ("DistilBertForSequenceClassification",), "distilbert"),
    "dpr": Kind("DPRConfig", "DPRQuestionEncoder", ("DPRContextEncoder", "DPRReader"), "dpr"),
    "electra": Kind("ElectraConfig", "ElectraModel", ("ElectraForPreTraining", "ElectraForMaskedLM"), "electra"),
    "embedding_gemma2_text": Kind("EmbeddingGemma2TextConfig", "EmbeddingGemma2TextModel", (), "gemma3"),
    "ernie": Kind("ErnieConfig", "ErnieModel", ("ErnieForMaskedLM",)),
    "esm": Kind("EsmConfig", "EsmModel", ("EsmForMaskedLM",)),
    "esmc": Kind("EsmcConfig", "EsmcModel", ("EsmcForMaskedLM", "EsmcForTokenClassification"), "llama"),
    "eurobert": Kind("EuroBertConfig", "EuroBertModel", ("EuroBertForMaskedLM",), "llama"),
    "flaubert": Kind("FlaubertConfig", "FlaubertModel", ("FlaubertWithLMHeadModel",), "xlm"),
    "fnet": Kind("FNetConfig", "FNetModel", ("FNetForMaskedLM", "FNetForPreTraining", "FNetForSequenceClassification")),
    "gemma3_text": Kind("Gemma3TextConfig", "Gemma3TextModel", (), "gemma3"),
    "gte": Kind("GteConfig", "GteModel", ("GteForMaskedLM",), "rotary"),
    "ijepa": Kind("IJepaConfig", "IJepaModel", (), "vision"),
    "jina_embeddings_v3": Kind("JinaEmbeddingsV3Config", "JinaEmbeddingsV3Model", ("JinaEmbeddingsV3ForMaskedLM",), "rotary"),
    "layoutlm": Kind("LayoutLMConfig", "LayoutLMModel", ("LayoutLMForMaskedLM", "LayoutLMForSequenceClassification")),
    "layoutlmv3": Kind("LayoutLMv3Config", "LayoutLMv3Model", ("LayoutLMv3ForTokenClassification", "LayoutLMv3ForQuestionAnswering")),
    "llama": Kind("LlamaConfig", "LlamaModel", ("LlamaForCausalLM", "LlamaForSequenceClassification"), "llama"),
    "luke": Kind("LukeConfig", "LukeModel", ("LukeForMaskedLM",)),
    "mbart": Kind("MBartConfig", "MBartModel", ("MBartForConditionalGeneration",), "bart"),
    "megatron-bert": Kind("MegatronBertConfig", "MegatronBertModel", ("MegatronBertForMaskedLM",)),
    "mistral": Kind("MistralConfig", "MistralModel", ("MistralForCausalLM",), "llama"),
    "mobilebert": Kind("MobileBertConfig", "MobileBertModel", ("MobileBertForMaskedLM", "MobileBertForPreTraining", "MobileBertForSequenceClassification")),
    "modernbert": Kind("ModernBertConfig", "ModernBertModel", ("ModernBertForMaskedLM",), "modernbert"),
    "mt5": Kind("MT5Config", "MT5EncoderModel", ("MT5Model", "MT5ForConditionalGeneration"), "t5"),
    "mpnet": Kind("MPNetConfig", "MPNetModel", ("MPNetForMaskedLM",)),
    "mpt": Kind("MptConfig", "MptModel", ("MptForCausalLM", "MptForSequenceClassification"), "alibi"),
    "nomic_bert": Kind("NomicBertConfig", "NomicBertModel", ("NomicBertForMaskedLM",), "rotary"),
    "plbart": Kind("PLBartConfig", "PLBartModel", (), "bart"),
    "qwen2": Kind("Qwen2Config", "Qwen2Model", ("Qwen2ForCausalLM",), "llama"),
    "qwen3": Kind("Qwen3Config", "Qwen3Model", ("Qwen3ForCausalLM", "Qwen3ForSequenceClassification"), "llama"),
    "rembert": Kind("RemBertConfig", "RemBertModel", ("RemBertForMaskedLM",), "rembert"),
    "roberta": Kind("RobertaConfig", "RobertaModel", ("RobertaForMaskedLM", "RobertaForSequenceClassification")),
    "roberta-prelayernorm": Kind("RobertaPreLayerNormConfig", "RobertaPreLayerNormModel"),
    "roformer": Kind("RoFormerConfig", "RoFormerModel", ("RoFormerForMaskedLM",)),
    "sam": Kind("SamConfig", "SamModel", (), "sam"),
    "sam_vision_model": Kind("SamVisionConfig", "SamVisionModel", (), "sam"),
    "siglip": Kind("SiglipConfig", "SiglipModel", (), "pair"),
    "siglip2_text_model": Kind("Siglip2TextConfig", "Siglip2TextModel", (), "clip"),
    "siglip_vision_model": Kind("SiglipVisionConfig", "SiglipVisionModel", (), "vision"),
    "siglip_text_model": Kind("SiglipTextConfig", "SiglipTextModel", (), "clip"),
    "splinter": Kind("SplinterConfig", "SplinterModel", ("SplinterForQuestionAnswering",)),
    "squeezebert": Kind("SqueezeBertConfig", "SqueezeBertModel", ("SqueezeBertForMaskedLM",)),
    "swin": Kind("SwinConfig", "SwinModel", ("SwinForImageClassification", "SwinForMaskedImageModeling"), "swin"),
    "swinv2": Kind("Swinv2Config", "Swinv2Model", ("Swinv2ForImageClassification", "Swinv2ForMaskedImageModeling"), "swin"),
    "t5gemma": Kind("T5GemmaConfig", "T5GemmaEncoderModel", ("T5GemmaModel", "T5GemmaForConditionalGeneration"), "t5gemma"),
    "t5": Kind("T5Config", "T5EncoderModel", ("T5Model", "T5ForConditionalGeneration"), "t5"),
    "umt5": Kind("UMT5Config", "UMT5EncoderModel", ("UMT5Model", "UMT5ForConditionalGeneration"), "t5"),
    "ultrabert": Kind("UltrabertConfig", "UltrabertModel", ("UltrabertForMaskedLM", "UltrabertForSequenceClassification"), "llama"),
    "vit": Kind("ViTConfig", "ViTModel", ("ViTForImageClassification",), "vision"),
    "xlm": Kind("XLMConfig", "XLMModel", ("XLMWithLMHeadModel",), "xlm"),
    "wav2vec2-conformer": Kind("Wav2Vec2ConformerConfig", "Wav2Vec2ConformerModel", ("Wav2Vec2ConformerForCTC",), "features"),
    "xlnet": Kind("XLNetConfig", "XLNetModel", ("XLNetForSequenceClassification", "XLNetLMHeadModel"), "xlnet"),
    "xlm-roberta": Kind("XLMRobertaConfig", "XLMRobertaModel", ("XLMRobertaForMaskedLM",)),
    "xlm-roberta-xl": Kind("XLMRobertaXLConfig", "XLMRobertaXLModel", ("XLMRobertaXLForMaskedLM",)),
    "xmod": Kind("XmodConfig", "XmodModel", ("XmodForMaskedLM", "XmodForSequenceClassification")),
}
for kind in sorted(set(decoders.KINDS) - set(KINDS)):
    head = decoders.model_class(kind).__name__
    KINDS[kind] = Kind(decoders.config_class(kind).__name__, head.replace("ForCausalLM", "Model"), (head,), "decoder")


def rope_parameters(draw: Draw) -> dict:
    rope = {"rope_theta": draw.choice([100.0, 1000.0, 10000.0, 160000.0])}
    return rope | draw.choice([{"rope_type": "default"}, {"rope_type": "default"}, {"rope_type": "linear", "factor": 2.5},
                               {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}])  # fmt: skip


def layer_types(draw: Draw, layers: int) -> dict:
    """Nothing where the class has a rule of its own."""
    return {} if draw.coin() else {"layer_types": [draw.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]}


def rotating(draw: Draw, kind_name: str, dialect: str, text: dict) -> dict:
    """What encoders with a rotary embedding have besides."""
    heads, layers = text["num_attention_heads"], text["num_hidden_layers"]
    if kind_name == "gte":
        text["type_vocab_size"] = draw.choice([0, 1, 2])
    if kind_name == "nomic_bert" and draw.coin():
        text["head_dim"] = draw.choice([2, 6, 16])
    if dialect == "rotary":
        return {**text, "rope_parameters": rope_parameters(draw)}
    del text["type_vocab_size"], text["layer_norm_eps"]
    if dialect == "modernbert":
        del text["hidden_act"]
        rule = layer_types(draw, layers) or draw.choice([{}, {"global_attn_every_n_layers": draw.randint(1, 4)}])
        return {**text, "hidden_activation": draw.choice(ACTIVATIONS), "norm_eps": draw.choice([1e-12, 1e-5, 1e-3]),
                "norm_bias": draw.coin(), "attention_bias": draw.coin(), "mlp_bias": draw.coin(), **rule,
                "local_attention": draw.choice([0, 1, 2, 5, 8, 64]),
                "rope_parameters": {name: rope_parameters(draw) for name in ("full_attention", "sliding_attention")}}  # fmt: skip
    if kind_name == "esmc":
        return {**text, "attention_bias": draw.coin(), "mlp_bias": draw.coin(), "rope_parameters": rope_parameters(draw)}
    text |= {"num_key_value_heads": draw.choice([count for count in range(1, heads + 1) if heads % count == 0]),
             "rms_norm_eps": draw.choice([1e-6, 1e-5, 1e-3]), "pad_token_id": draw.choice([None, 0, 3])}  # fmt: skip
    if kind_name != "qwen2" and (kind_name in ("qwen3", "gemma3_text", "embedding_gemma2_text") or draw.coin()):
        text["head_dim"] = draw.choice([2, 6, 16])
    if kind_name not in ("mistral", "qwen2"):
        text["attention_bias"] = draw.coin()
    if kind_name in ("eurobert", "llama", "ultrabert"):
        text["mlp_bias"] = draw.coin()
    if kind_name == "ultrabert":
        return {**text, "sliding_window": draw.choice([0, 1, 2, 5, 64]), **layer_types(draw, layers), "prediction_head_size": draw.choice([6, 20]),
                "rope_parameters": {name: rope_parameters(draw) for name in ("full_attention", "sliding_attention")}}  # fmt: skip
    if kind_name == "embedding_gemma2_text":  # whose layers of full attention have sizes of their own
        del text["hidden_act"]
        rule = layer_types(draw, layers) or draw.choice([{}, {"sliding_window_pattern": draw.randint(1, 4)}])
        return {**text, "hidden_activation": draw.choice(ACTIVATIONS), "sliding_window": draw.choice([0, 1, 2, 8, 64]), **rule,
                "head_dim": draw.choice([8, 16]), "global_head_dim": draw.choice([8, 16, 20]), "num_global_key_value_heads": draw.choice([count for count in range(1, heads + 1) if heads % count == 0]),
                "hidden_size_per_layer_input": draw.choice([8, 12, 16]), "embedding_dim": draw.choice([3, 12]),
                "rope_parameters": {name: rope_parameters(draw) for name in ("full_attention", "sliding_attention")}}  # fmt: skip
    if kind_name != "eurobert" and draw.coin():
        text["is_causal"] = False
    if dialect == "gemma3":
        del text["hidden_act"]
        rule = layer_types(draw, layers) or draw.choice([{}, {"sliding_window_pattern": draw.randint(1, 4)}])
        return {**text, "hidden_activation": draw.choice(ACTIVATIONS), "query_pre_attn_scalar": draw.choice([1, 24, 256]),
                "sliding_window": draw.choice([1, 2, 3, 8, 64]), "use_bidirectional_attention": draw.coin(), **rule,
                "rope_parameters": {name: rope_parameters(draw) for name in ("full_attention", "sliding_attention")}}  # fmt: skip
    text["rope_parameters"] = rope_parameters(draw)
    if kind_name == "mistral":
        return {**text, "sliding_window": draw.choice([None, 1, 2, 5, 64])}
    if kind_name in ("qwen2", "qwen3") and draw.coin(0.7):
        return {**text, "use_sliding_window": True, "sliding_window": draw.choice([1, 2, 5, 64]),
                "max_window_layers": draw.randint(0, layers), **layer_types(draw, layers)}  # fmt: skip
    return text


def bottlenecks(draw: Draw, heads: int, hidden: int) -> dict:
    """What MobileBERT has besides. Widths without a projection have to be the same."""
    inner = heads * draw.choice([4, 8, 11])
    chosen = {name: draw.coin() for name in ("use_bottleneck", "use_bottleneck_attention", "key_query_shared_bottleneck", "trigram_input")}
    if not (chosen["use_bottleneck_attention"] or chosen["key_query_shared_bottleneck"]):
        inner = hidden
    return {**chosen, "intra_bottleneck_size": inner, "num_feedforward_networks": draw.choice([1, 2, 4]), "classifier_activation": draw.coin(0.7),
            "normalization_type": draw.choice(["no_norm", "layer_norm"]), "embedding_size": draw.choice([hidden if chosen["trigram_input"] else 7, 5, 7])}  # fmt: skip


def disentangled(draw: Draw, kind_name: str, hidden: int, text: dict) -> dict:
    """What DeBERTa has besides. Its original head for masks takes tables as wide as its layers."""
    most, legacy = draw.choice([-1, 4, 9, 40]), draw.coin()
    chosen = {"relative_attention": draw.coin(0.85), "max_relative_positions": most, "position_biased_input": draw.coin(), "legacy": legacy,
              "pos_att_type": draw.choice([["c2p", "p2c"], ["p2c", "c2p"], ["p2c"], ["c2p"], "p2c|c2p", "C2P | p2c", "c2p", "p2c|c2p|", "", None, []]),
              "type_vocab_size": draw.choice([0, 1, 2]), "embedding_size": draw.choice([hidden, 6, 16]) if legacy else hidden,
              "pooler_hidden_act": draw.choice([*ACTIVATIONS, "tanh"])}  # fmt: skip
    if kind_name == "deberta":
        return {**text, **chosen}
    reach = most if most > 0 else text["max_position_embeddings"]
    chosen |= {"position_buckets": draw.choice([-1, *(count for count in (2, 3, 4, 6, 8, 16) if count // 2 + 1 < reach)]), "share_att_key": draw.coin(),
               "norm_rel_ebd": draw.choice(["none", "layer_norm", "None | Layer_Norm"])}  # fmt: skip
    if draw.coin():
        chosen |= {"conv_kernel_size": draw.choice([0, 1, 3, 5]), "conv_act": draw.choice([*ACTIVATIONS, "tanh"]),
                   "conv_groups": draw.choice([count for count in range(1, hidden + 1) if hidden % count == 0])}  # fmt: skip
    return {**text, **chosen}


def alibi(draw: Draw, kind_name: str, heads: int, text: dict) -> dict:
    """Sizes of BLOOM and MPT, of which some heads are beyond a power of two."""
    heads = draw.choice([heads, 5, 6])
    hidden, layers, pad = heads * draw.choice([2, 4, 8, 16]), text["num_hidden_layers"], text["pad_token_id"]
    common = {"vocab_size": text["vocab_size"], "layer_norm_epsilon": text["layer_norm_eps"], "pad_token_id": pad}
    if kind_name == "bloom":
        return {**common, "hidden_size": max(8, hidden), "n_head": heads if max(8, hidden) % heads == 0 else 1, "n_layer": layers}
    attention = {"softmax_scale": draw.choice([None, 0.3]), "alibi_bias_max": draw.choice([8, 5])}
    return {**common, "d_model": hidden, "n_heads": heads, "n_layers": layers, "max_seq_len": draw.choice([16, 40]), "attn_config": attention}


def document(draw: Draw, heads: int) -> dict:
    """What LayoutLMv3 has besides: rows of boxes side by side, and buckets of places and boxes."""
    hidden, bins, bins_2d = heads * draw.choice([8, 16]), draw.choice([4, 8, 32]), draw.choice([4, 16, 64])
    edges = draw.randint(1, (hidden - 2) // 4)
    return {"hidden_size": hidden, "coordinate_size": edges, "shape_size": (hidden - 4 * edges) // 2, "max_2d_position_embeddings": draw.choice([20, 1024]),
            "rel_pos_bins": bins, "max_rel_pos": bins // 4 + draw.choice([1, 3, 100]), "rel_2d_pos_bins": bins_2d,
            "max_rel_2d_pos": bins_2d // 4 + draw.choice([1, 3, 200]), "has_relative_attention_bias": draw.coin(0.8),
            "has_spatial_attention_bias": draw.coin(0.8), "visual_embed": draw.coin(), "input_size": 8, "patch_size": 4}  # fmt: skip


def settings(draw: Draw, kind_name: str, dialect: str) -> dict:
    """Random sizes, by the names that this dialect has for them."""
    heads = draw.choice([1, 2, 3, 4])
    # At least 8 channels: the norm of fewer is nearly a step, which no two libraries round alike.
    widths = [2, 4, 8, 16] if dialect in ROTATING or kind_name in ("esm", "roformer", "xlnet") or dialect == "features" else [4, 8, 16] if kind_name == "dinov3_vit" else [1, 2, 4, 5, 8, 16]
    hidden = heads * draw.choice([width for width in widths if heads * width >= 8])
    wide, layers = draw.randint(1, 70), draw.randint(1, 3)
    vocab, activation = draw.randint(8, 80), draw.choice(ACTIVATIONS)
    eps = draw.choice([1e-12, 1e-6, 1e-5, 1e-3])
    common = {"hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": layers,
              "intermediate_size": wide, "hidden_act": activation, "layer_norm_eps": eps}  # fmt: skip
    text = {**common, "vocab_size": vocab, "max_position_embeddings": draw.randint(20, 40),
            "type_vocab_size": draw.choice([1, 2, 3]), "pad_token_id": draw.choice([0, 1, 3])}  # fmt: skip
    vision = {**common, "image_size": 12, "patch_size": draw.choice([2, 3, 4]), "num_channels": draw.choice([1, 3]),
              "qkv_bias": draw.coin(0.8)}  # fmt: skip
    if dialect in windows.DIALECTS:
        return windows.settings(draw, kind_name, common)
    if dialect == "decoder":
        chosen = decoders.settings_of(draw, kind_name)  # of which those with ALiBi have to be causal
        return chosen if chosen.get("alibi") else chosen | draw.choice([{}, {}, {"is_causal": False}])
    if dialect == "alibi":
        return alibi(draw, kind_name, heads, text)
    if kind_name in ("beit", "data2vec-vision"):
        del vision["qkv_bias"]
        return {**vision, **{name: draw.coin() for name in WINDOW_SETTINGS}, "layer_scale_init_value": draw.choice([0.0, 0.1, 1.0]),
                "drop_path_rate": draw.choice([0.0, 0.2])}  # fmt: skip
    if kind_name == "layoutlmv3":
        return {**text, **document(draw, heads)}
    if dialect == "albert":
        groups = draw.randint(1, layers)
        return {**text, "embedding_size": draw.choice([hidden, 6, 16]), "num_hidden_groups": groups,
                "inner_group_num": draw.choice([1, 1, 2])}  # fmt: skip
    if dialect in ROTATING:
        return rotating(draw, kind_name, dialect, text)
    if kind_name == "roformer":
        return {**text, "embedding_size": draw.choice([None, hidden, 6, 16]), "rotary_value": draw.coin()}
    if kind_name == "fnet":  # the norm of a sum over all tokens and few channels is worse conditioned than others
        del text["num_attention_heads"]
        text |= {"hidden_size": draw.choice([16, 17, 32, 48]), "num_hidden_layers": min(layers, 2)}
        return {**text, **draw.choice([{}, {"use_tpu_fourier_optimizations": True, "max_position_embeddings": 4097}])}
    if kind_name == "convbert":
        ratio = draw.choice([1, 2, 3, 8])
        inner = 2 * max(1, heads // ratio)  # half of the channels of a head are the attention's
        hidden = inner * draw.choice([4, 5, 8, 11])
        groups = draw.choice([1, 1, *(count for count in (2, 4, 5) if hidden % count == 0)])
        return {**text, "hidden_size": hidden, "head_ratio": ratio, "conv_kernel_size": draw.choice([1, 3, 5, 9]), "num_groups": groups,
                "intermediate_size": groups * draw.randint(1, 20), "embedding_size": draw.choice([hidden, 6, 16])}  # fmt: skip
    if kind_name == "mobilebert":
        return {**text, "num_hidden_layers": min(layers, 2), **bottlenecks(draw, heads, hidden)}  # its layers may be without norms
    if kind_name.startswith("deberta"):
        return disentangled(draw, kind_name, hidden, text)
    if kind_name == "esm":
        del text["type_vocab_size"], text["hidden_act"]
        rotary = draw.coin(0.8)
        norm = draw.coin()
        return {**text, "position_embedding_type": "rotary" if rotary else "absolute", "emb_layer_norm_before": norm,
                "token_dropout": draw.coin(0.7), "mask_token_id": draw.choice([4, 5, 7]),
                "rope_theta": draw.choice([100.0, 10000.0])}  # fmt: skip
    if kind_name == "xmod":
        languages = draw.sample(["en_XX", "de_DE", "sw", "x1"], draw.randint(1, 3))
        return {**text, "pre_norm": draw.coin(), "adapter_reduction_factor": draw.choice([1, 2, 3]), "languages": languages,
                "default_language": draw.choice(languages),
                **{name: draw.coin() for name in ("adapter_layer_norm", "adapter_reuse_layer_norm", "ln_before_adapter")}}  # fmt: skip
    if dialect == "dpr":
        return {**text, "projection_dim": draw.choice([0, 0, 6, hidden])}
    if kind_name == "squeezebert":
        # Groups divide the channels on both sides.
        groups = {name: draw.choice([count for count in range(1, hidden + 1) if hidden % count == 0])
                  for name in ("q_groups", "k_groups", "v_groups", "post_attention_groups")}  # fmt: skip
        both = {name: draw.choice([count for count in range(1, wide + 1) if hidden % count == 0 and wide % count == 0])
                for name in ("intermediate_groups", "output_groups")}  # fmt: skip
        return {**text, "embedding_size": hidden, **groups, **both}
    if kind_name == "layoutlm":
        return {**text, "max_2d_position_embeddings": draw.randint(4, 20)}
    if dialect == "xlm":
        return {"emb_dim": hidden, "n_heads": heads, "n_layers": layers, "vocab_size": vocab, "layer_norm_eps": eps,
                "gelu_activation": draw.coin(), "max_position_embeddings": text["max_position_embeddings"],
                "sinusoidal_embeddings": draw.coin(), "pad_token_id": draw.choice([0, 2, 3]),
                **({"pad_index": draw.choice([0, 2, 3])} if kind_name == "flaubert" else {}), "n_langs": draw.choice([1, 2]), "use_lang_emb": draw.coin()}  # fmt: skip
    if dialect == "features":  # the convolutions of the front are not the encoder's
        return {**common, "conv_depthwise_kernel_size": draw.choice([1, 3, 5, 31]), "position_embeddings_type": draw.choice(["relative", "rotary", None]),
                "rotary_embedding_base": draw.choice([100, 10000]), "conv_dim": [8, 8], "conv_kernel": [3, 2], "conv_stride": [2, 2],
                "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "vocab_size": vocab,
                "num_codevectors_per_group": 4, "codevector_dim": 8, "proj_codevector_dim": 8}  # fmt: skip
    if dialect == "xlnet":
        return {"d_model": hidden, "n_head": heads, "n_layer": layers, "d_inner": wide, "vocab_size": vocab, "ff_activation": activation,
                "layer_norm_eps": eps, "attn_type": draw.choice(["bi", "bi", "uni"]), "bi_data": draw.coin(0.3), "same_length": draw.coin(),
                "clamp_len": draw.choice([-7, -1, 0, 1, 3, 100]), "pad_token_id": text["pad_token_id"]}  # fmt: skip
    if dialect == "electra":
        return {**text, "embedding_size": draw.choice([hidden, 6, 16])}
    if dialect == "rembert":
        return {**text, "input_embedding_size": draw.choice([hidden, 6, 16])}
    if dialect == "distilbert":
        return {"dim": hidden, "n_heads": heads, "n_layers": layers, "hidden_dim": wide, "vocab_size": vocab,
                "activation": draw.choice(["gelu", "relu"]), "max_position_embeddings": 32,
                "pad_token_id": text["pad_token_id"]}  # fmt: skip
    if dialect == "bart":
        return {"d_model": hidden, "encoder_attention_heads": heads, "decoder_attention_heads": heads,
                "encoder_layers": layers, "decoder_layers": 1, "encoder_ffn_dim": wide, "decoder_ffn_dim": 4,
                "vocab_size": vocab, "activation_function": activation, "max_position_embeddings": 30,
                "scale_embedding": draw.coin(), "pad_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": draw.coin(0.8)}  # fmt: skip
    if dialect == "t5":  # the width of a head has nothing to do with the others
        buckets = draw.choice([4, 6, 8, 32, 64])
        return {"d_model": hidden + draw.randint(0, 3), "num_heads": heads, "d_kv": draw.choice([1, 3, 8, 16]), "d_ff": wide,
                "num_layers": layers, "num_decoder_layers": draw.randint(1, 3), "vocab_size": vocab, "layer_norm_epsilon": eps,
                "relative_attention_num_buckets": buckets, "pad_token_id": text["pad_token_id"], "tie_word_embeddings": draw.coin(0.8),
                "relative_attention_max_distance": buckets // 2 + draw.choice([1, 2, 10, 96]), **t5.network(draw)}  # fmt: skip
    if dialect == "t5gemma":  # the decoder is not loaded
        encoder = decoders.settings_of(draw, "gemma2")
        return {"encoder": encoder, "decoder": encoder | {"num_hidden_layers": 1, "layer_types": ["full_attention"]}}
    if dialect in ("clip", "pair"):
        del text["type_vocab_size"]
        text = {**text, "eos_token_id": draw.choice([2, 5]), "pad_token_id": 1, "bos_token_id": 0}
        return text if dialect == "clip" else {"text_config": text, "vision_config": {**vision, "num_channels": 3}}
    if kind_name == "dinov3_vit":
        del vision["qkv_bias"]
        return {**vision, **{name: draw.coin() for name in ("query_bias", "key_bias", "value_bias", "proj_bias", "mlp_bias", "use_gated_mlp")},
                "num_register_tokens": draw.choice([0, 1, 4]), "rope_theta": draw.choice([10.0, 100.0]), "layerscale_value": 0.5,
                "pos_embed_shift": draw.choice([None, 0.3]), "pos_embed_jitter": draw.choice([None, 1.5]),
                "pos_embed_rescale": draw.choice([None, 2.0])}  # fmt: skip
    if dialect == "dino":
        del vision["intermediate_size"]
        return {**vision, "mlp_ratio": draw.choice([1, 2, 4])}
    return vision if dialect == "vision" else text


def first_layer(model: torch.nn.Module) -> torch.nn.Module:
    lists = [module for name, module in model.named_modules()
             if isinstance(module, torch.nn.ModuleList) and name.rsplit(".", 1)[-1] in
             ("layer", "layers", "albert_layer_groups", "attentions", "block", "blocks", "h")]  # fmt: skip
    return lists[0][0]


def encoder_of(model: torch.nn.Module, dialect: str) -> torch.nn.Module:
    """The part of a model that posenc loads."""
    if dialect == "pair":
        return model.text_model
    if dialect == "features":
        return getattr(model, model.base_model_prefix, model).encoder
    if dialect == "sam":
        return model.vision_encoder
    if dialect == "t5gemma":
        return getattr(model, "model", model).encoder
    if type(model).__name__ == "DINOv3ViTModel" or dialect == "dpr":  # whose part `model` is its layers
        return model
    base = getattr(model, model.base_model_prefix, model)
    return base.get_encoder() if dialect in ("bart", "t5") else base


def take_length(config, length: int) -> None:
    """With the TPU's optimisations FNet takes only one."""
    if getattr(config, "use_tpu_fourier_optimizations", False):
        config.tpu_short_seq_length = length


# The classes number the padding before a row too, and `posenc encode` does not: the area `decoders` compares it with the row alone.
COUNTS_COLUMNS = ("gpt2", "gpt_bigcode", "gpt_neo", "hunyuan_v1_dense", "ministral3")


def inputs_of(draw: Draw, dialect: str, config, has_types: bool) -> dict[str, torch.Tensor]:
    batch = draw.randint(1, 4)
    if dialect == "features":
        length = draw.randint(1, 24)
        given = {"inputs_embeds": draw.normal(batch, length, config.hidden_size)}
        if draw.coin(0.7):
            given["attention_mask"] = torch.stack([torch.arange(length) < draw.randint(0, length) for _ in range(batch)]).long()
        return given
    if dialect in windows.DIALECTS:
        return {"pixel_values": windows.images(draw, batch, config)}
    if dialect in ("vision", "dino"):
        size = [config.image_size] * 2 if draw.coin(0.6) else [draw.randint(4, 24), draw.randint(4, 24)]
        return {"pixel_values": draw.normal(batch, config.num_channels, *size)}
    config = config.text_config if dialect == "pair" else config.encoder if dialect == "t5gemma" else config
    length = draw.randint(1, 16)
    take_length(config, length)
    if getattr(config, "bi_data", False):  # one half of the sequences is read backwards
        batch += batch % 2
    ids = draw.integers(config.vocab_size, batch, length)
    given = {"input_ids": ids}
    if draw.coin(0.8):
        mask = torch.zeros(batch, length, dtype=torch.long)
        for row in range(batch):
            real = draw.randint(1, length)
            begin = 0 if config.model_type in COUNTS_COLUMNS else draw.choice([0, 0, length - real])  # padding on the right, or on the left
            mask[row, begin : begin + real] = 1
        # XLNet's class cannot add the masks of several sequences to that of a causal attention.
        if dialect != "xlnet" or config.attn_type == "bi" or batch == 1:
            given["attention_mask"] = mask
        if draw.coin(0.7) and config.pad_token_id is not None:
            ids[mask == 0] = config.pad_token_id
    is_reader = "DPRReader" in (config.architectures or [])  # which ignores types
    if dialect == "dpr":  # its first row is pooled, padding or not
        ids[:, 0] = torch.where(ids[:, 0] == config.pad_token_id, config.pad_token_id + 1, ids[:, 0])
    if (draw.coin() or config.model_type == "luke") and (has_types or dialect == "xlm") and not is_reader:
        types = config.vocab_size if dialect == "xlm" else config.type_vocab_size
        given["token_type_ids"] = draw.integers(types, batch, length)
    if dialect == "xlnet" and draw.coin(0.7):
        given["token_type_ids"] = draw.integers(draw.choice([2, 3, 5]), batch, length)
    if config.model_type in ("layoutlm", "layoutlmv3") and draw.coin(0.8):
        corners = draw.integers(config.max_2d_position_embeddings, batch, length, 2, 2).sort(2).values
        given["bbox"] = corners.flatten(2)  # x0, y0, x1, y1
    # Without a mask, decoders of transformers read several sequences from position ids that begin again.
    packs = dialect in ("decoder", "gemma3", "llama") and "attention_mask" not in given or config.model_type == "opt"
    packs = packs or config.model_type in ("cohere2", "exaone4", "falcon", "roformer", "smollm3")  # which may take none
    packs = packs or dialect in ("dpr", "t5gemma") or not getattr(config, "position_biased_input", True)  # which ignores them
    if draw.coin(0.3) and dialect not in ("alibi", "bart", "t5", "xlnet") and not packs:
        rows = config.max_position_embeddings
        given["position_ids"] = draw.integers(rows, batch if dialect == "xlm" else draw.choice([1, batch]), length)
    return given


def computed_rows(draw: Draw, dialect: str, config, given: dict) -> torch.Tensor | None:
    """Rows of padding whose values are compared too, where each sees a token."""
    mask = given.get("attention_mask")
    may_see_none = dialect in ("alibi", "clip", "decoder", "gemma3", "modernbert", "pair", "t5gemma") or (dialect == "llama" and config.model_type != "eurobert")
    if mask is None or "input_ids" not in given or may_see_none or getattr(config, "causal", False) or draw.coin(0.4):
        return None
    if "deberta" in config.model_type:  # padding sees the mean of all rows
        return torch.ones_like(mask)
    return (draw.integers(2, *mask.shape) | mask).long()


def saved(draw: Draw, folder: Path, model, base) -> str:
    """Saves the model in one of the ways that are found in the wild."""
    how = draw.choice(["safetensors", "safetensors", "shards", "bin", "memory"])
    model.save_pretrained(folder, max_shard_size="8KB" if how == "shards" else "1GB")
    files = sorted(folder.glob("*.safetensors"))
    if how == "bin":  # as old versions wrote it
        tensors = load_file(files[0])
        old = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
               for key, value in tensors.items()}  # fmt: skip
        files[0].unlink()
        torch.save(old, folder / "pytorch_model.bin")
    elif how == "memory":  # the names that transformers 5 has in memory
        save_file({key: value.clone().contiguous() for key, value in model.state_dict().items()}, files[0])
    return how


def ultrabert_of_old(config: dict) -> dict:
    """The names of the first files: a window and a base of each layer."""
    types, rope = config["layer_types"], config["rope_parameters"]
    if config["sliding_window"] == 0 or any(one["rope_type"] != "default" for one in rope.values()):
        return config
    old = {key: value for key, value in config.items() if key not in ("layer_types", "rope_parameters", "sliding_window")}
    return old | {"attention_windows": [config["sliding_window"] if kind == "sliding_attention" else 0 for kind in types],
                  "rope_theta": [rope[kind]["rope_theta"] for kind in types]}  # fmt: skip


def rewritten(draw: Draw, folder: Path, kind: type, dialect: str) -> None:
    """Writes config.json as other tools and older releases do, at times with fewer layers than the weights have."""
    file = folder / "config.json"
    whole = json.loads(file.read_text())
    if dialect == "t5gemma":
        return
    if dialect in windows.DIALECTS:
        if "vision_config" not in whole:
            file.write_text(json.dumps(written(draw, kind, whole)))
        return
    own = whole["text_config"] if dialect == "pair" else whole
    inner = kind.sub_configs["text_config"] if dialect == "pair" else kind
    name = inner.attribute_map.get("num_hidden_layers", "num_hidden_layers")
    # ESM's head of contacts is as wide as there are layers, and the last layer of EmbeddingGemma 2 is wider than others.
    if draw.coin(0.2) and own.get(name, 0) > 1 and whole["model_type"] not in ("embedding_gemma2_text", "esm", "gpt_neo"):
        own[name] -= 1
        if own.get("layer_types"):
            own["layer_types"] = own["layer_types"][: own[name]]
        for stages in ("out_features", "out_indices", "_out_features", "_out_indices", "stage_names"):
            own.pop(stages, None)
    if dialect == "xlnet" and draw.coin(0.3):  # the width of a head is then that of the others' quotient
        whole["d_head"] = 0
    if whole["model_type"] == "ultrabert" and draw.coin(0.3):
        whole = ultrabert_of_old(whole)
    if dialect != "pair":
        text = written(draw, kind, whole)
        file.write_text(json.dumps(t5.kept(whole, text) if dialect == "t5" else text))
        return
    whole["text_config"] = written(draw, inner, own)
    if whole["model_type"] in DICTS and draw.coin():
        whole["text_config_dict"] = whole.pop("text_config")
        whole |= draw.choice([{}, {"text_config": None}, {"text_config": {"num_attention_heads": 1, "hidden_size": 7, "eos_token_id": 1}}])
    file.write_text(json.dumps(whole))


def read_again(model, folder: Path, implementation: str):
    """The model that transformers makes of the folder's configuration, with the same weights."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    config._attn_implementation = implementation
    other = type(model)(config).eval()
    lacking = other.load_state_dict(model.state_dict(), strict=False).missing_keys
    if lacking:
        raise LookupError(f"{lacking}")
    return as_loaded(other)


def as_loaded(model):
    """Zeroes what from_pretrained zeroes whatever a file has: the row of padding of Chinese CLIP's texts."""
    for module in model.modules():
        if type(module).__name__ == "ChineseCLIPTextEmbeddings" and module.word_embeddings.padding_idx is not None:
            module.word_embeddings.weight.data[module.word_embeddings.padding_idx] = 0
    return model


def call(base, dialect: str, given: dict):
    """What the part that posenc loads returns."""
    if dialect == "features":  # whose padding it zeroes in place
        mask = given.get("attention_mask")
        return base(given["inputs_embeds"].clone(), None if mask is None else mask.bool())
    if dialect == "dpr":  # whose classes return no states, but mask what is padding by its id
        seen = []
        inner = next(module for module in base.modules() if type(module).__name__ == "DPREncoder")
        hook = inner.register_forward_hook(lambda module, args, result: seen.append(result))
        base(**given)
        hook.remove()
        return seen[0]
    return base(**given, **more_for(dialect, base.config, given))


def more_for(dialect: str, config, given: dict) -> dict:
    """What transformers needs for images of another size than the model's own."""
    interpolates = dialect == "vision" or (dialect == "swin" and windows.interpolates(config, given["pixel_values"]))
    return {"interpolate_pos_encoding": True} if interpolates else {}


def expected_of(model, base, dialect: str, given: dict) -> dict[str, torch.Tensor]:
    seen = []
    if type(base).__name__ == "SqueezeBertModel":  # whose layers are not called as modules
        hook = base.embeddings.register_forward_hook(lambda module, args, result: seen.append(result))
    else:
        hook = first_layer(base).register_forward_pre_hook(
            lambda module, args, kwargs: seen.append(args[0] if args else kwargs["hidden_states"]), with_kwargs=True)  # fmt: skip
    out = call(base, dialect, given)
    hook.remove()
    pooled = getattr(out, "pooler_output", None)
    if dialect == "xlnet":  # sequences come second
        seen[0] = seen[0].transpose(0, 1)
    result = {"embeddings": seen[0].flatten(1, -2), "last_hidden_state": out.last_hidden_state}
    return result if pooled is None else {**result, "pooled": pooled}


def off_by(got: torch.Tensor, expected: torch.Tensor, truth: torch.Tensor | None = None) -> str:
    """"" within the tolerance, and eight times by what transformers is off from float64, where that is given. NaNs must be at the
    same places: ESM drops all tokens of a text of masks."""
    if not torch.equal(got.isnan(), expected.isnan()):
        return "other elements are NaN"
    worst, largest = (x.nan_to_num().abs().max().item() for x in (got - expected, expected))
    rounding = 0.0 if truth is None else (truth - expected).abs().max().item()
    return "" if worst <= TOLERANCE * max(1.0, largest) + 8 * rounding else f"off by {worst:.3g} of {largest:.3g}"


def truth_of(base, given: dict) -> torch.Tensor:
    """The last hidden state of a decoder in float64, of each row alone: in a batch, padding before a row makes NaN of it."""
    wide, ids = copy.deepcopy(base).double(), given["input_ids"]
    masks = given.get("attention_mask", torch.ones_like(ids)).bool()
    truth = torch.zeros(*ids.shape, base.config.hidden_size, dtype=torch.float64)
    for row, mask in enumerate(masks):
        own = {name: value.expand_as(ids)[row][mask][None] for name, value in given.items() if name in ("input_ids", "position_ids")}
        truth[row][mask] = wide(**own, attention_mask=torch.ones_like(own["input_ids"])).last_hidden_state[0]
    return truth


def compare(got: dict, expected: dict, mask: torch.Tensor | None, with_pooled: bool, truths: dict[str, torch.Tensor] = {}) -> str:
    if set(got) != set(expected):
        return f"{sorted(got)} for {sorted(expected)}"
    why = differ(got["embeddings"], expected["embeddings"], "bits")
    if why:
        return f"embeddings: {why}"
    for name in set(expected) - {"embeddings"} - (set() if with_pooled else {"pooled"}):
        a, b, truth = got[name], expected[name], truths.get(name)
        if a.shape != b.shape:
            return f"{name}: {tuple(a.shape)} for {tuple(b.shape)}"
        if name == "last_hidden_state" and mask is not None:
            a, b, truth = a[mask != 0], b[mask != 0], None if truth is None else truth[mask != 0]
        if why := off_by(a, b, truth):
            return f"{name}: {why}"
    return ""


def mask_of(given: dict, folder: str) -> torch.Tensor | None:
    """Which tokens are compared. DPR's encoders and T5Gemma find padding by its id where there is no mask."""
    config = json.loads((Path(folder) / "config.json").read_text())
    if "attention_mask" not in given and config.get("model_type") == "t5gemma":
        return given["input_ids"] != config["encoder"].get("pad_token_id", 0)
    if "attention_mask" not in given and config.get("model_type") == "dpr" and config["architectures"] != ["DPRReader"]:
        return given["input_ids"] != config.get("pad_token_id", 0)
    return given.get("attention_mask")


def defines_pooled(given: dict, kind_name: str) -> bool:
    """Whether every pooled row sees a token. In a causal model those of padding on the left see none."""
    mask = given.get("attention_mask")
    return mask is None or kind_name not in ("clip", "clip_text_model", "clipseg", "clipseg_text_model") or bool(mask[:, 0].all())


# Falcon's eager attention adds ALiBi twice; the other of these two is causal without padding, whatever is_causal is.
ATTENTIONS = {"falcon": "sdpa", "nemotron": "eager", "stablelm": "eager"}


def has_rows_of_padding(base, dialect: str) -> bool:
    """Whether the rows of padding are those of the library too, by its default attention."""
    return dialect == "features" and base.config._attn_implementation == "sdpa"


def one(draw: Draw, programs: Programs, kind_name: str, number: int) -> tuple[list[Case], str, bool, bool]:
    import transformers

    kind = KINDS[kind_name]
    head = draw.choice(kind.heads) if kind.heads and draw.coin() else kind.model
    chosen = settings(draw, kind_name, kind.dialect)
    if kind_name == "ernie":
        chosen["use_task_id"] = draw.coin()
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = draw.choice([32, 40])
    if head == "DPRReader":  # which runs with no other width
        chosen["projection_dim"] = draw.choice([0, chosen["hidden_size"]])
    if kind_name == "t5gemma":
        chosen["is_encoder_decoder"] = head != kind.model
    config = getattr(transformers, kind.config)(**chosen)
    cls = getattr(transformers, head)
    config._attn_implementation = ATTENTIONS.get(kind_name) or (draw.choice(["eager", "sdpa"]) if cls._supports_sdpa else "eager")
    model = cls(config).eval()
    spread = draw.choice(SPREADS.get(kind_name, [0.05, 0.3]))
    for parameter in (own for name, own in model.named_parameters() if "embed_positions" not in name or kind_name != "roformer"):
        parameter.copy_(draw.normal(*parameter.shape) * spread + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    for name, buffer in model.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(draw.normal(*buffer.shape).abs() * spread + (0.5 if name.endswith("var") else 0.0))
        if name.endswith("layer_scalar"):
            buffer.copy_(draw.normal(*buffer.shape) * spread + 1.0)
    base = encoder_of(model, kind.dialect)
    folder = programs.folder / f"{kind_name}-{number}"
    how = saved(draw, folder, model, base)
    if how == "safetensors":  # the names that transformers writes
        how += with_unused(draw, folder, kind_name, cls, getattr(transformers, kind.config), chosen)
    rewritten(draw, folder, getattr(transformers, kind.config), kind.dialect)
    if kind.dialect == "swin":
        windows.with_fewer_layers(draw, folder)
    model = read_again(model, folder, config._attn_implementation)
    base, config = encoder_of(model, kind.dialect), model.config
    has_types = any("token_type_embeddings" in name for name in base.state_dict())
    given = inputs_of(draw, kind.dialect, config, has_types)
    expected = expected_of(model, base, kind.dialect, given)
    if kind_name == "mobilebert" and not config.classifier_activation:  # a pooler without weights, also below heads that have none
        expected["pooled"] = expected["last_hidden_state"][:, 0]
    if kind.dialect == "swin":  # the class for masked images does not pool, which needs no weights
        expected.setdefault("pooled", expected["last_hidden_state"].mean(1))
    if kind_name == "data2vec-vision" and not config.use_mean_pooling:  # a pooler without weights, which its class has with a head only
        expected["pooled"] = expected["last_hidden_state"][:, 0]
    computed = computed_rows(draw, kind.dialect, config, given)
    more = given if computed is None else given | {"computed_mask": computed}
    truth = {"last_hidden_state": truth_of(base, given)} if kind_name in ILL_CONDITIONED else {}
    cases = [Case({"op": "encode", "folder": str(folder), "frozen": frozen}, more, expected, truth=truth) for frozen in (False, True)]
    what = f"{head} ({how}) {(folder / 'config.json').read_text()}"
    return cases, what, defines_pooled(given, kind_name), has_rows_of_padding(base, kind.dialect)


def by_command_line(programs: Programs, folder: str, given: dict) -> dict | str:
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    save_file({key: value.contiguous() for key, value in given.items()}, file)
    done = programs.posenc("encode", folder, "--in", file, "--out", out)
    return done.stderr.strip() if done.returncode else load_file(out)


@contextmanager
def one_thread(level: int):
    """Sets what transformers logs, and one thread for the programs, as Python has here: the bits of a projection in the
    embeddings, a matrix product, depend on their number."""
    import transformers

    transformers.utils.logging.set_verbosity(level)
    transformers.utils.logging.disable_progress_bar()
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        del os.environ["OMP_NUM_THREADS"]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.ERROR), torch.no_grad():
        return compared(draw, programs)


# Types whose random models are so ill-conditioned that transformers is up to 1e-4 from its own float64, which then counts too.
ILL_CONDITIONED = {"gemma", "gemma2", "helium"}


def type_in(folder: str) -> str:
    return json.loads((Path(folder) / "config.json").read_text()).get("model_type", "")


def compared(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    failures, count = [], 0
    made = [one(draw, programs, kind, number) for number, kind in enumerate(draw.sample(sorted(KINDS), MODELS))]
    results = iter(programs.compute([case for cases, *_ in made for case in cases]))
    for number, (cases, what, with_pooled, with_padding) in enumerate(made):
        given, expected = cases[0].tensors, cases[0].expected
        got = [next(results) for _ in cases]
        names = ["plain", "frozen"]
        if number == 0:  # loading LibTorch takes seconds
            got.append(by_command_line(programs, cases[0].options["folder"], {key: x for key, x in given.items() if key != "computed_mask"}))
            names.append("posenc encode")
        for name, one_result in zip(names, got):
            count += 1
            why = one_result
            if not isinstance(one_result, str):
                mask = None if with_padding and name == "plain" else mask_of(given, cases[0].options["folder"])
                if "frozen" == name and "computed_mask" in given:
                    mask = given["computed_mask"]
                if name == "posenc encode" and mask is not None and type_in(cases[0].options["folder"]) in decoders.KINDS:  # whose rows of padding may be any
                    tokens = mask.flatten() != 0
                    one_result, wanted = ({**one, "embeddings": one["embeddings"].flatten(0, -2)[tokens]} for one in (one_result, expected))
                    why = compare(one_result, wanted, mask, with_pooled, cases[0].truth)
                else:
                    why = compare(one_result, expected, mask, with_pooled, cases[0].truth)
            if why:
                failures.append(Failure(f"{what}, {name}", why))
    return count, failures

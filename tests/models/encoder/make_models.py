#!/usr/bin/env python3
"""Small encoders, as transformers saves them, for the tests and for the examples in the documents.

    make_models.py --out FOLDER

`bert`, `emotions`, a classifier, `reranker`, one with a single label, `entities`, which labels tokens, `answers`, which answers questions, `choices`, a DeBERTa that chooses
what follows, `lengths`, a Llama that classifies, and `masked`, which fills masks, have as many ids as BERT's own vocabulary, so that those of real texts fit, and a tokenizer of a few words; `entailment` is a BART with a head, `t5` the encoder of a T5, `clip` a pair of encoders, `dinov2` and `vit` are of images. The tensors in NAME.safetensors are inputs, and the outputs of transformers: `in.*` and `out.*`. `bert_types.safetensors`
holds those of `bert` with token types and positions.

In `gradients/`, NAME is a model, and NAME.safetensors has its input, its outputs (`value.last_hidden_state`, and
`value.pooled` if it has one) and their gradients (`last_hidden_state` and `pooled`), and in `grad/NAME` is a folder whose weights are the gradients of those of NAME.

Every parameter is drawn, since initial values hide what is not read: biases are zeros, norms and layer scales ones.
"""

import argparse
import copy
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
TEXT = {**SIZES, "vocab_size": 40, "max_position_embeddings": 12}
IMAGE = {**SIZES, "image_size": 12, "patch_size": 4}
SPREAD = 0.2
ROOT = Path(__file__).resolve().parents[3]


def drawn(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=SPREAD)
    return model.eval()


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**SIZES, max_position_embeddings=64))


def emotions():
    from transformers import BertConfig, BertForSequenceClassification

    labels = {0: "sadness", 1: "joy", 2: "surprise"}
    return BertForSequenceClassification(BertConfig(**SIZES, max_position_embeddings=64, id2label=labels))


def reranker():
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(BertConfig(**SIZES, max_position_embeddings=64, num_labels=1))


def entities():
    from transformers import BertConfig, BertForTokenClassification

    labels = {0: "O", 1: "B-THING", 2: "I-THING", 3: "B-PLACE", 4: "I-PLACE"}
    return BertForTokenClassification(BertConfig(**SIZES, max_position_embeddings=64, id2label=labels))


def answers():
    from transformers import BertConfig, BertForQuestionAnswering

    return BertForQuestionAnswering(BertConfig(**SIZES, max_position_embeddings=64))


def choices():
    from transformers import DebertaV2Config, DebertaV2ForMultipleChoice

    return DebertaV2ForMultipleChoice(DebertaV2Config(**SIZES, max_position_embeddings=64, type_vocab_size=2))


def masked():
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(BertConfig(**SIZES, max_position_embeddings=64))


def lengths():
    """Texts of more than five tokens have other frequencies."""
    from transformers import LlamaConfig, LlamaForSequenceClassification

    scaling = {"rope_type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [3.0, 9.0], "factor": 4.0, "rope_theta": 100.0, "original_max_position_embeddings": 5}
    return LlamaForSequenceClassification(LlamaConfig(**SIZES, vocab_size=1000, max_position_embeddings=64, num_labels=3, pad_token_id=0, rope_parameters=scaling))


BART = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4, "encoder_ffn_dim": 24,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 8, "vocab_size": 40, "max_position_embeddings": 12}  # fmt: skip


def entailment():
    from transformers import BartConfig, BartForSequenceClassification

    return BartForSequenceClassification(BartConfig(**BART))


def t5_encoder():
    from transformers import T5Config, T5EncoderModel

    return T5EncoderModel(T5Config(d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, vocab_size=40))


def save_tokenizer(folder: Path) -> None:
    """A tokenizer of BERT's kind, of the letters and of words that occur in a document."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    text = (ROOT / "README.md").read_text().splitlines()
    tokenizer.train_from_iterator(text, trainers.WordPieceTrainer(vocab_size=1000, special_tokens=special, show_progress=False))
    BertTokenizer(vocab=tokenizer.get_vocab()).save_pretrained(folder)


def clip():
    from transformers import CLIPConfig, CLIPModel

    text = {**SIZES, "vocab_size": 60, "max_position_embeddings": 20, "eos_token_id": 7, "pad_token_id": 1}
    return CLIPModel(CLIPConfig(text_config=text, vision_config={**SIZES, "image_size": 8, "patch_size": 4}))


def vit():
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(**IMAGE))


def dinov2():
    from transformers import Dinov2Config, Dinov2Model

    sizes = {key: value for key, value in IMAGE.items() if key != "intermediate_size"}
    return Dinov2Model(Dinov2Config(**sizes, mlp_ratio=2, layerscale_value=0.01))


def conformer(positions: str):
    """Its convolutions in front of the encoder are small."""
    from transformers import Wav2Vec2ConformerConfig, Wav2Vec2ConformerModel

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    return Wav2Vec2ConformerModel(Wav2Vec2ConformerConfig(
        **sizes, position_embeddings_type=positions, conv_depthwise_kernel_size=3, conv_dim=[4], conv_kernel=[2], conv_stride=[2],
        num_feat_extract_layers=1, num_conv_pos_embeddings=2, num_conv_pos_embedding_groups=1))  # fmt: skip


def trained():
    """The models whose gradients are compared."""
    import transformers as t

    causal = {**TEXT, "vocab_size": 40, "pad_token_id": 1, "num_key_value_heads": 2, "sliding_window": 2}
    modern = {**TEXT, "num_hidden_layers": 3, "pad_token_id": 1, "global_attn_every_n_layers": 2, "local_attention": 2}
    distilbert = {"dim": 16, "n_heads": 4, "n_layers": 2, "hidden_dim": 24, "vocab_size": 40, "max_position_embeddings": 12}
    return {
        "albert": lambda: t.AlbertModel(t.AlbertConfig(**TEXT, embedding_size=6)),
        "bart": lambda: t.BartModel(t.BartConfig(**BART)),
        "bert": lambda: t.BertModel(t.BertConfig(**TEXT)),
        "clip": clip,
        "convbert": lambda: t.ConvBertModel(t.ConvBertConfig(**TEXT, conv_kernel_size=3)),
        "deberta": lambda: t.DebertaModel(t.DebertaConfig(
            **TEXT, relative_attention=True, max_relative_positions=5, pos_att_type=["c2p", "p2c"])),
        "deberta_v2": lambda: t.DebertaV2Model(t.DebertaV2Config(
            **TEXT, relative_attention=True, position_buckets=4, max_relative_positions=6, pos_att_type=["c2p", "p2c"], norm_rel_ebd="layer_norm",
            position_biased_input=False, embedding_size=6, conv_kernel_size=3)),
        "deberta_v3": lambda: t.DebertaV2Model(t.DebertaV2Config(
            **TEXT, relative_attention=True, position_buckets=4, max_relative_positions=6, pos_att_type=["p2c", "c2p"], share_att_key=True)),
        "dinov2": dinov2,
        "dinov3": lambda: t.DINOv3ViTModel(t.DINOv3ViTConfig(**IMAGE, num_register_tokens=2, layerscale_value=0.5)),
        "distilbert": lambda: t.DistilBertModel(t.DistilBertConfig(**distilbert)),
        "embedding_gemma2": lambda: t.EmbeddingGemma2TextModel(t.EmbeddingGemma2TextConfig(
            **causal, head_dim=6, global_head_dim=8, num_global_key_value_heads=1, hidden_size_per_layer_input=5, embedding_dim=7,
            layer_types=["sliding_attention", "full_attention"])),
        "esm": lambda: t.EsmModel(t.EsmConfig(
            **TEXT, pad_token_id=1, position_embedding_type="rotary", token_dropout=True, mask_token_id=11)),
        "esm1b": lambda: t.EsmModel(t.EsmConfig(
            **TEXT, pad_token_id=1, position_embedding_type="absolute", emb_layer_norm_before=True, token_dropout=True, mask_token_id=11)),
        "esmc": lambda: t.EsmcModel(t.EsmcConfig(**TEXT, pad_token_id=1)),
        "eurobert": lambda: t.EuroBertModel(t.EuroBertConfig(**TEXT, pad_token_id=1, num_key_value_heads=2)),
        "fnet": lambda: t.FNetModel(t.FNetConfig(**TEXT)),
        "gemma3": lambda: t.Gemma3TextModel(t.Gemma3TextConfig(
            **causal, head_dim=6, sliding_window_pattern=2, use_bidirectional_attention=True)),
        "gte": lambda: t.GteModel(t.GteConfig(**TEXT)),
        "jina": lambda: t.JinaEmbeddingsV3Model(t.JinaEmbeddingsV3Config(**TEXT)),
        "layoutlm": lambda: t.LayoutLMModel(t.LayoutLMConfig(**TEXT, max_2d_position_embeddings=10)),
        "mobilebert": lambda: t.MobileBertModel(t.MobileBertConfig(
            **TEXT, embedding_size=6, intra_bottleneck_size=12, num_feedforward_networks=2)),
        "modernbert": lambda: t.ModernBertModel(t.ModernBertConfig(**modern)),
        "mpnet": lambda: t.MPNetModel(t.MPNetConfig(**TEXT)),
        "luke": lambda: t.LukeModel(t.LukeConfig(**TEXT)),
        "nomic": lambda: t.NomicBertModel(t.NomicBertConfig(**TEXT, head_dim=6)),
        "qwen3": lambda: t.Qwen3Model(t.Qwen3Config(
            **causal, head_dim=6, use_sliding_window=True, max_window_layers=1, attention_bias=True)),
        "ultrabert": lambda: t.UltrabertModel(t.UltrabertConfig(**causal, layer_types=["sliding_attention", "full_attention"])),
        "vit": vit,
        "wav2vec2_conformer": lambda: conformer("relative"),
        "wav2vec2_conformer_rotary": lambda: conformer("rotary"),
        "xlnet": lambda: t.XLNetModel(t.XLNetConfig(
            d_model=16, n_layer=2, n_head=4, d_inner=24, vocab_size=40, clamp_len=3, bi_data=True)),
        "xmod": lambda: t.XmodModel(t.XmodConfig(**TEXT, languages=["en_XX"], default_language="en_XX", adapter_reduction_factor=3)),
        "xlm": lambda: t.XLMModel(t.XLMConfig(emb_dim=16, n_layers=2, n_heads=4, vocab_size=40, pad_token_id=1)),
    }


def inputs_of(name: str) -> dict[str, torch.Tensor]:
    if name in ("dinov2", "dinov3", "vit"):
        return {"pixel_values": torch.randn(2, 3, 12, 12)}
    ids = torch.tensor([[2, 9, 30, 11, 7], [2, 8, 7, 1, 1]])
    if name.startswith("wav2vec2_conformer"):
        return {"inputs_embeds": torch.randn(2, 5, 16), "attention_mask": (ids != 1).long()}
    given = {"input_ids": ids, "attention_mask": (ids != 1).long()}
    if name == "layoutlm":
        given["bbox"] = torch.stack([ids % 3, ids % 4, ids % 3 + ids % 5, ids % 4 + ids % 6], -1)
    if name == "xlnet":
        return {**given, "token_type_ids": ids % 2}
    return {**given, "token_type_ids": 0 * ids} if name == "luke" else given  # which needs them


def types_and_positions() -> dict[str, torch.Tensor]:
    types = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    positions = torch.tensor([[3, 1, 4, 15, 9], [0, 1, 2, 63, 5]])
    return {**inputs_of("bert"), "token_type_ids": types, "position_ids": positions}


def save(tensors: dict[str, torch.Tensor], path: Path) -> None:
    save_file({key: value.detach().contiguous() for key, value in tensors.items()}, path)


def write(model, given: dict[str, torch.Tensor], path: Path) -> None:
    with torch.no_grad():
        result = model(**given, output_hidden_states=True)
    tensors = {f"in.{key}": value for key, value in given.items()}
    tensors["out.embeddings"] = result.hidden_states[0]
    tensors["out.last_hidden_state"] = result.last_hidden_state
    tensors["out.pooled"] = result.pooler_output
    save(tensors, path)


def write_gradients(name: str, model, out: Path) -> None:
    given = inputs_of(name)
    part = {"bart": lambda: model.get_encoder(), "clip": lambda: model.text_model}.get(name, lambda: model)()
    if "inputs_embeds" in given:  # of the part after the convolutions, which zeroes padding in place
        result = model.encoder(given["inputs_embeds"].clone(), given["attention_mask"].bool())
    else:
        result = part(**given)
    outputs = {"last_hidden_state": result.last_hidden_state}
    if (pooled := getattr(result, "pooler_output", None)) is not None:
        outputs["pooled"] = pooled
    cotangents = {key: torch.randn_like(value) for key, value in outputs.items()}
    values = {f"value.{key}": value for key, value in outputs.items()}
    if name in ("gemma3", "modernbert", "qwen3", "xlm"):  # whose padding sees no token, or is zeroed
        cotangents["last_hidden_state"] *= given["attention_mask"].unsqueeze(-1)
    torch.autograd.backward(list(outputs.values()), list(cotangents.values()))
    gradients = copy.deepcopy(model)
    with torch.no_grad():
        for to, source in zip(gradients.parameters(), model.parameters()):
            to.zero_() if source.grad is None else to.copy_(source.grad)
    model.save_pretrained(out / name)
    gradients.save_pretrained(out / "grad" / name)
    save({**given, **cotangents, **values}, out / f"{name}.safetensors")


def write_colbert(out: Path) -> None:
    """A folder of Stanford's ColBERT: a BERT under `bert.`, a projection, and no modules.json."""
    model = drawn(bert())
    model.config.architectures = ["HF_ColBERT"]
    model.config.save_pretrained(out)
    save({**{f"bert.{key}": value for key, value in model.state_dict().items()}, "linear.weight": torch.randn(8, model.config.hidden_size)}, out / "model.safetensors")
    save_tokenizer(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(out, ignore_errors=True)
    torch.set_num_threads(1)  # the models are small, and other tests run in parallel
    for name, make in {"bert": bert, "clip": clip, "dinov2": dinov2, "vit": vit}.items():
        torch.manual_seed(5)
        model = drawn(make())
        model.save_pretrained(out / name)
        write(model.text_model if name == "clip" else model, inputs_of(name), out / f"{name}.safetensors")
        if name == "bert":
            write(model, types_and_positions(), out / "bert_types.safetensors")
    torch.manual_seed(6)
    drawn(emotions()).save_pretrained(out / "emotions")
    drawn(masked()).save_pretrained(out / "masked")
    drawn(entities()).save_pretrained(out / "entities")
    drawn(answers()).save_pretrained(out / "answers")
    drawn(choices()).save_pretrained(out / "choices")
    drawn(reranker()).save_pretrained(out / "reranker")
    drawn(lengths()).save_pretrained(out / "lengths")
    drawn(entailment()).save_pretrained(out / "entailment")
    drawn(t5_encoder()).save_pretrained(out / "t5")
    for name in ("bert", "emotions", "masked", "entities", "answers", "choices", "reranker", "lengths"):
        save_tokenizer(out / name)
    write_colbert(out / "colbert")
    for name, make in trained().items():
        torch.manual_seed(7)
        write_gradients(name, drawn(make()), out / "gradients")
    (out / "made").touch()  # for `make check`


if __name__ == "__main__":
    sys.exit(main())

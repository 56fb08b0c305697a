"""Folders of small Whisper models with byte-level tokenizers, as transformers saves them."""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from harness import Draw

LANGUAGES = ["en", "de", "zh", "ja", "fr", "ru", "es", "ko"]
TEXT = ["the cat sat on the mat, and the dog did not", "Where is it? (There.) \"Here\" they say", "größe über straße", "猫は座った。犬は走る", "кошка сидела",
        "it's a cat; don't - you - see [this] {that}", "¿dónde está? ¡aquí!", "“quoted” words… and 12.5 % of 300"]  # fmt: skip


def tokenizer(draw: Draw, folder: Path, languages: "list[str]", timestamps: int) -> "dict[str, int]":
    """Trains a byte-level BPE with Whisper's special tokens and timestamps; returns the ids of the added tokens."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + draw.randint(0, 60), initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator(draw.sample(TEXT, len(TEXT)), trainer)
    names = ["<|endoftext|>", "<|startoftranscript|>"] + [f"<|{code}|>" for code in languages]
    names += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {piece: number for number, piece in enumerate(sorted(made.get_vocab(), key=made.get_vocab().get))}
    own = transformers.WhisperTokenizer(vocab=vocab, merges=json.loads(made.to_str())["model"]["merges"] and
                                        [tuple(pair) for pair in json.loads(made.to_str())["model"]["merges"]])  # fmt: skip
    own.add_special_tokens({"additional_special_tokens": [AddedToken(name, special=True, normalized=False) for name in names[1:]]})
    own.add_tokens([AddedToken(f"<|{step * 0.02:.2f}|>", special=False, normalized=False) for step in range(timestamps)])
    own.save_pretrained(folder)
    return {name: own.convert_tokens_to_ids(name) for name in names} | {"size": len(own)}


def folder(draw: Draw, path: Path, languages: "list[str] | None" = None, positions: "int | None" = None):
    """Writes a folder; returns its model, tokenizer and feature extractor as transformers loads them."""
    multilingual = draw.coin(0.8) if languages is None else bool(languages)
    seconds = draw.choice([1, 1, 2])
    if languages is None:
        languages = draw.sample(LANGUAGES, draw.randint(1, 5)) if multilingual else []
    ids = tokenizer(draw, path, languages, 50 * seconds + 1)
    end, bins = ids["<|endoftext|>"], draw.choice([80, 80, 5, 16])
    config = transformers.WhisperConfig(
        vocab_size=ids["size"], num_mel_bins=bins, d_model=8 * draw.randint(1, 4), encoder_layers=draw.randint(1, 2), decoder_layers=draw.randint(1, 3),
        encoder_attention_heads=2, decoder_attention_heads=draw.choice([1, 2, 4]), encoder_ffn_dim=draw.randint(4, 40), decoder_ffn_dim=draw.randint(4, 40),
        max_source_positions=50 * seconds, max_target_positions=positions or draw.randint(16, 48), pad_token_id=end, bos_token_id=end, eos_token_id=end,
        decoder_start_token_id=ids["<|startoftranscript|>"], begin_suppress_tokens=None, suppress_tokens=None, median_filter_width=draw.choice([3, 7]),
        init_std=0.02)  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config).eval()
    scale = draw.choice([0.5, 1.0, 1.5])
    with torch.no_grad():
        for name, value in model.named_parameters():
            if value.dim() > 1 and "encoder.embed_positions" not in name:
                value.copy_(draw.normal(*value.shape) * scale / value.shape[-1] ** 0.5)
        # So that sounds differ, and timestamps and ends are found.
        model.model.encoder.layer_norm.weight.mul_(3.0)
        model.model.decoder.embed_tokens.weight[ids["<|notimestamps|>"] + 1:].mul_(draw.choice([1.0, 1.5, 2.0]))
        model.model.decoder.embed_tokens.weight[end].mul_(draw.choice([1.0, 2.0]))
    model.generation_config = generation(draw, config, ids, languages, multilingual)
    model.save_pretrained(path)
    transformers.WhisperFeatureExtractor(feature_size=bins, chunk_length=seconds).save_pretrained(path)
    return loaded(path)


def generation(draw: Draw, config, ids: "dict[str, int]", languages: "list[str]", multilingual: bool):
    settings = {
        "decoder_start_token_id": config.decoder_start_token_id, "eos_token_id": config.eos_token_id, "pad_token_id": config.pad_token_id,
        "bos_token_id": config.bos_token_id, "no_timestamps_token_id": ids["<|notimestamps|>"], "return_timestamps": draw.choice([False, False, True]),
        "max_length": draw.choice([20, config.max_target_positions, 448]), "is_multilingual": multilingual,
        "alignment_heads": [[draw.randrange(config.decoder_layers), draw.randrange(config.decoder_attention_heads)] for _ in range(draw.randint(1, 3))],
    }  # fmt: skip
    if multilingual:
        settings |= {"lang_to_id": {f"<|{code}|>": ids[f"<|{code}|>"] for code in languages},
                     "task_to_id": {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]}}  # fmt: skip
        if draw.coin(0.4):
            settings["forced_decoder_ids"] = [[1, draw.choice([None, ids[f"<|{languages[0]}|>"]])], [2, ids["<|transcribe|>"]]]
    elif draw.coin():
        settings["forced_decoder_ids"] = [[1, ids["<|notimestamps|>"]]]
    if draw.coin(0.8):
        settings["prev_sot_token_id"] = ids["<|startofprev|>"]
    if draw.coin():
        settings["max_initial_timestamp_index"] = draw.choice([0, 5, 50])
    if draw.coin(0.7):
        settings["suppress_tokens"] = sorted({draw.randrange(256) for _ in range(5)}) + [ids["<|startofprev|>"], ids["<|nospeech|>"]]
    if draw.coin(0.7):
        settings["begin_suppress_tokens"] = [draw.randrange(256), config.eos_token_id]
    return transformers.GenerationConfig(**settings)


def loaded(path: Path):
    model = transformers.WhisperForConditionalGeneration.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
    return model, transformers.WhisperTokenizer.from_pretrained(path), transformers.WhisperFeatureExtractor.from_pretrained(path)

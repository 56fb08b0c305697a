"""Marian models of several shapes, created and briefly trained with transformers, and their results.

`make_models.py --out FOLDER` writes for each model NAME:
  NAME/               a folder as written by save_pretrained: configuration, weights, tokenizer
  NAME.safetensors    `src`, `mask`, `tgt`: a padded batch; `logits`: those of MarianMTModel, in float32
  NAME.json           `searches`: settings of generate(), with its `tokens` and `scores` for the batch;
                      `lines` and their `translations`: MarianTokenizer, then generate() with the folder's settings;
                      `sources` and `targets`: the ids of both
The task is numbers: "two hundred and five" to "zweihundertfünf". SentencePiece learns both sides from the same text.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

ENGLISH = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
ENGLISH = (ENGLISH + "seventeen eighteen nineteen").split()
ENGLISH_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
GERMAN = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
GERMAN = (GERMAN + "siebzehn achtzehn neunzehn").split()
GERMAN_TENS = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()

STEPS, BATCH, PIECES, POSITIONS = 200, 16, 60, 48

# Settings of MarianConfig, and how the folder is written.
MODELS = {
    "shared": {
        "config": {"activation_function": "swish", "scale_embedding": True},
        "generation": {"num_beams": 3, "max_length": 30, "renormalize_logits": True},
    },
    "separate": {
        "config": {
            "activation_function": "relu", "share_encoder_decoder_embeddings": False,
            "encoder_attention_heads": 2, "decoder_attention_heads": 6, "encoder_layers": 1, "decoder_layers": 3,
            "encoder_ffn_dim": 64, "decoder_ffn_dim": 40,
        },
        "generation": {"num_beams": 4, "max_length": 36, "early_stopping": True, "length_penalty": 0.6},
        "weights": "shards",
    },
    "untied": {
        "config": {
            "activation_function": "gelu_new", "tie_word_embeddings": False, "scale_embedding": True, "d_model": 40,
            "encoder_layers": 3, "decoder_layers": 1,
        },
        "generation": {"max_new_tokens": 25, "forced_eos_token_id": None},
        "weights": "half",
    },
    "archive": {
        "config": {
            "activation_function": "silu", "tie_word_embeddings": True, "share_encoder_decoder_embeddings": False,
            "encoder_attention_heads": 3, "decoder_attention_heads": 1,
        },
        "generation": {"num_beams": 2, "early_stopping": "never", "length_penalty": 1.4},
        "weights": "bin",
    },
}  # fmt: skip

# Settings of the tests' searches, each combined with every number of beams.
SEARCHES = [
    {},
    {"early_stopping": True},
    {"early_stopping": "never", "length_penalty": 2.0},
    {"early_stopping": "never", "length_penalty": 0.0},
    {"early_stopping": "never", "length_penalty": -1.0},
    {"early_stopping": False, "length_penalty": 0.0},
    {"early_stopping": False, "length_penalty": -1.0},
    {"max_length": 6},
    {"max_length": 6, "forced_eos_token_id": None, "length_penalty": 2.0},
    {"max_length": 9, "forced_eos_token_id": None, "early_stopping": True},
    {"max_length": 12, "forced_eos_token_id": None, "early_stopping": True, "length_penalty": 0.0},
    {"max_length": 12, "ban": 3, "renormalize_logits": True},
    {"max_length": 12, "ban": 3, "renormalize_logits": False},
]
BEAMS = (1, 2, 5)


def english(n: int) -> str:
    if n < 20:
        return ENGLISH[n]
    if n < 100:
        return ENGLISH_TENS[n // 10] + ("-" + ENGLISH[n % 10] if n % 10 else "")
    return ENGLISH[n // 100] + " hundred" + (" and " + english(n % 100) if n % 100 else "")


def german(n: int) -> str:
    if n < 20:
        return GERMAN[n]
    if n < 100:
        unit = {1: "ein"}.get(n % 10, GERMAN[n % 10])
        return (unit + "und" if n % 10 else "") + GERMAN_TENS[n // 10]
    return ("ein" if n < 200 else GERMAN[n // 100]) + "hundert" + (german(n % 100) if n % 100 else "")


def sentence(draw: random.Random) -> tuple[str, str]:
    numbers = [draw.randrange(1000) for _ in range(draw.choice([1, 1, 2]))]
    return ", ".join(map(english, numbers)), ", ".join(map(german, numbers))


def train_pieces(folder: Path, separate: bool) -> None:
    """Writes source.spm, target.spm, and the vocabularies that Marian makes of their pieces."""
    import sentencepiece

    draw = random.Random(1)
    pairs = [sentence(draw) for _ in range(2000)]
    pieces = []
    for side, name in enumerate(("source", "target")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[side] for pair in pairs]), model_prefix=str(folder / name),
            vocab_size=PIECES - 2 * side, character_coverage=1.0, minloglevel=2, num_threads=1,
        )  # fmt: skip
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        listed = (folder / f"{name}.vocab").read_text().splitlines()
        pieces.append([line.split("\t")[0] for line in listed][3:])  # after <unk>, <s>, </s>
        (folder / f"{name}.vocab").unlink()
    sides = pieces if separate else [pieces[0] + [one for one in pieces[1] if one not in pieces[0]] + [">>de<<"]]
    for side, name in zip(sides, ("vocab", "target_vocab")):
        # With two vocabularies, both need the same padding id, which MarianTokenizer looks up in the source's.
        tokens = ["</s>", "<unk>", "<pad>", *side] if separate else ["</s>", "<unk>", *side, "<pad>"]
        (folder / f"{name}.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))


def make_tokenizer(folder: Path, separate: bool):
    from transformers import MarianTokenizer

    folder.mkdir(parents=True)
    train_pieces(folder, separate)
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    if separate:
        files["target_vocab_file"] = "target_vocab.json"
    tokenizer = MarianTokenizer(
        **{key: str(folder / name) for key, name in files.items()}, separate_vocabs=separate,
        model_max_length=POSITIONS,
    )  # fmt: skip
    tokenizer.save_pretrained(folder)
    return tokenizer


def train(model, tokenizer, pad: int) -> None:
    draw = random.Random(2)
    torch.manual_seed(3)
    rate = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for _ in range(STEPS):
        pairs = [sentence(draw) for _ in range(BATCH)]
        batch = tokenizer([pair[0] for pair in pairs], padding=True, return_tensors="pt")
        targets = tokenizer(text_target=[pair[1] for pair in pairs], padding=True, return_tensors="pt")
        labels = targets.input_ids.masked_fill(targets.attention_mask == 0, -100)
        rate.zero_grad()
        logits = model(**batch, decoder_input_ids=shifted(targets.input_ids, pad)).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        loss.backward()
        rate.step()
    with torch.no_grad():  # training leaves it nearly as small as it was
        model.final_logits_bias.copy_(0.3 * torch.randn(model.final_logits_bias.shape))
    model.eval()
    print(f"{model.config._name_or_path} loss {loss.item():.2f}")


def shifted(ids: torch.Tensor, begin: int) -> torch.Tensor:
    return torch.cat([torch.full((len(ids), 1), begin), ids[:, :-1]], 1)


def make_model(folder: Path, case: dict):
    """Creates the folder; returns the model that transformers reads from it."""
    from transformers import MarianConfig, MarianMTModel

    settings = case["config"]
    separate = not settings.get("share_encoder_decoder_embeddings", True)
    tokenizer = make_tokenizer(folder, separate)
    source = len(json.loads((folder / "vocab.json").read_text()))
    target = len(json.loads((folder / "target_vocab.json").read_text())) if separate else source
    pad = tokenizer.pad_token_id
    sizes = {
        "d_model": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    }  # fmt: skip
    torch.manual_seed(4)
    model = MarianMTModel(
        MarianConfig(
            **{**sizes, **settings}, vocab_size=source, decoder_vocab_size=target, dropout=0.0,
            max_position_embeddings=POSITIONS, pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0,
            forced_eos_token_id=0, init_std=0.1,
        )
    )  # fmt: skip
    model.config._name_or_path = folder.name
    train(model, tokenizer, pad)
    model.generation_config.update(**{"bad_words_ids": [[pad]], **case["generation"]})
    weights = case.get("weights")
    if weights == "half":
        model.half()
    model.save_pretrained(folder, max_shard_size="40KB" if weights == "shards" else "1GB")
    if weights == "bin":  # as in state_dict(): ties twice, positions
        (folder / "model.safetensors").unlink()
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        # And as in folders from before generation_config.json.
        config = json.loads((folder / "config.json").read_text())
        generation = json.loads((folder / "generation_config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**generation, **config, **case["generation"],
                                                        "bad_words_ids": [[pad]]}))  # fmt: skip
        (folder / "generation_config.json").unlink()
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer


def found(model, batch, settings: dict, stop: int) -> dict:
    """Tokens, without begin and padding, and scores of generate(), one list per source."""
    best = settings["num_beams"]
    most = settings["max_length"] - 1
    given = {key: value for key, value in settings.items() if key != "max_length"}
    out = model.generate(  # max_new_tokens, because the folder's would take precedence over max_length
        **batch, **given, max_new_tokens=most, num_return_sequences=best, return_dict_in_generate=True,
        output_scores=True,
    )  # fmt: skip
    rows = []
    for row in out.sequences[:, 1:].tolist():
        rows.append(row[: row.index(stop) + 1] if stop in row else row)
    rows = [row[:most] for row in rows]
    tokens = [rows[i : i + best] for i in range(0, len(rows), best)]
    if best == 1:
        return {"tokens": tokens}
    scores = out.sequences_scores.tolist()
    return {"tokens": tokens, "scores": [scores[i : i + best] for i in range(0, len(scores), best)]}


def searches(model, batch, pad: int) -> list[dict]:
    results = []
    for settings in SEARCHES:
        for beams in BEAMS:
            full = {
                "max_length": 24, "num_beams": beams, "early_stopping": False, "length_penalty": 1.0,
                "forced_eos_token_id": 0, "renormalize_logits": False, **settings,
            }  # fmt: skip
            banned = [[pad], *([i] for i in range(2, 2 + full.pop("ban", 0)))]
            given = found(model, batch, {**full, "bad_words_ids": banned}, stop=0)
            results.append({**full, "banned": [one[0] for one in banned], **given})
    return results


LINES = ["seven", "two hundred and five, ninety-nine", "five hundred", "twelve, six, nine hundred and eleven", "",
         "forty-two", "an Ünknown word § 漢字", "  spaces   between  ", "one </s> two <unk> three",
         "thirty thirty thirty", "nineteen"]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(out, ignore_errors=True)
    torch.set_num_threads(1)  # the models are small, and other tests run in parallel
    for name, case in MODELS.items():
        model, tokenizer = make_model(out / name, case)
        draw = random.Random(5)
        pairs = [sentence(draw) for _ in range(6)]
        batch = tokenizer([pair[0] for pair in pairs], padding=True, return_tensors="pt")
        target = tokenizer(text_target=[pair[1] for pair in pairs], padding=True, return_tensors="pt").input_ids
        pad = model.config.pad_token_id
        with torch.no_grad():
            tgt = shifted(target, pad)
            logits = model(**batch, decoder_input_ids=tgt).logits
            tensors = {"src": batch.input_ids, "mask": batch.attention_mask.bool(), "tgt": tgt, "logits": logits}
            save_file({key: value.contiguous() for key, value in tensors.items()}, out / f"{name}.safetensors")
            lines = LINES + [(">>de<< " if name == "shared" else "") + sentence(draw)[0] for _ in range(10)]
            translations, sources, targets = [], [], []
            for line in lines:
                inputs = tokenizer(line, return_tensors="pt")
                ids = model.generate(**inputs)
                sources.append(inputs.input_ids[0].tolist())
                targets.append(ids[0, 1:].tolist())
                translations.append(tokenizer.decode(ids[0], skip_special_tokens=True) if line else "")
            record = {"searches": searches(model, batch, pad), "lines": lines, "translations": translations,
                      "sources": sources, "targets": targets}  # fmt: skip
        (out / f"{name}.json").write_text(json.dumps(record))
    (out / "made").touch()  # for `make check`


if __name__ == "__main__":
    sys.exit(main())

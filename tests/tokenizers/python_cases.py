"""Random folders of those classes of transformers that are written in Python, for python_test.py."""

import json
import random
import shutil
from pathlib import Path

import cases
from folder_cases import flags, write

LETTERS = ["a", "b", "c", "d", "e", "x", "y", "é", "中", "▁", "▁a", "ab", "abc", "▁ab", "▁the", "the", "of", "hello", "▁hello"]
SPECIALS = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP]", "<cls>", "<eos>", "▁"]
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "own_token"]
FIXED = [*SPECIALS, "<a>", "[X]", ">>fr<<", "__en__", "__de__", "sev", "hello", "ello", "and of", " sp ", "日", "😀", "é", "▁one", "twenty-", "a", "ab", "<0x0A>", "<extra_id_0>"]


def token(rng: random.Random) -> str:
    return rng.choice(FIXED) if rng.random() < 0.6 else "".join(rng.choice("abx<> 漢é") for _ in range(rng.randint(1, 5)))


def described(rng: random.Random, text: str) -> dict:
    return {"content": text, **flags(rng), "special": rng.random() < 0.5}


def vocabulary(rng: random.Random, needed: "list[str]") -> "dict[str, int]":
    tokens = {*needed, *rng.sample(LETTERS, rng.randint(3, len(LETTERS))), *rng.sample(SPECIALS, rng.randint(0, 5))}
    tokens |= {token(rng) for _ in range(rng.randint(0, 10))} | {chr(rng.randint(33, 126)) for _ in range(rng.randint(0, 60))}
    tokens = sorted(tokens)
    rng.shuffle(tokens)
    return {text: i for i, text in enumerate(tokens)}


def pieces_of(model: Path) -> "list[str]":
    import sentencepiece

    package = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return [package.IdToPiece(i) for i in range(package.GetPieceSize())]


def sentencepiece_file(rng: random.Random, folder: Path, name: str, models: "dict[str, list[Path]]") -> "list[str]":
    model = rng.choice(models[rng.choice(list(models))])
    shutil.copy(model, folder / name)
    return pieces_of(model)


def vocabulary_of_pieces(rng: random.Random, pieces: "list[str]", needed: "list[str]") -> "dict[str, int]":
    tokens = {*needed, *rng.sample(pieces, rng.randint(10, len(pieces)))}
    tokens |= {token(rng) for _ in range(rng.randint(0, 4))} | {">>de<<"}
    tokens = sorted(tokens)
    rng.shuffle(tokens)
    return {text: i for i, text in enumerate(tokens)}


def marian(rng, folder, models):
    pieces = sentencepiece_file(rng, folder, "source.spm", models)
    write(folder, "vocab.json", vocabulary_of_pieces(rng, pieces, ["<unk>", "</s>"]), ensure_ascii=rng.random() < 0.5)
    pieces = sentencepiece_file(rng, folder, "target.spm", models)
    config = {}
    if rng.random() < 0.5:
        config["separate_vocabs"] = True
        write(folder, "target_vocab.json", vocabulary_of_pieces(rng, pieces, ["<unk>", "</s>"]))
    return config


def m2m100(rng, folder, models):
    pieces = sentencepiece_file(rng, folder, "sentencepiece.bpe.model", models)
    write(folder, "vocab.json", vocabulary_of_pieces(rng, pieces, ["<unk>", "</s>"]))
    config = {name: rng.choice(["en", "de", "fr", "cs"]) for name in ("src_lang", "tgt_lang") if rng.random() < 0.5}
    if rng.random() < 0.2:
        config = {**config, "language_codes": "wmt21"}
        config = {name: value for name, value in config.items() if value != "fr"}
    return config


def siglip(rng, folder, models):
    sentencepiece_file(rng, folder, "spiece.model", models)
    return {"do_lower_case": rng.random() < 0.5} if rng.random() < 0.5 else {}


def byt5(rng, folder, models):
    return {"extra_ids": rng.choice([0, 3, 125])} if rng.random() < 0.5 else {}


def esm(rng, folder, models):
    lines = [token + rng.choice(["\n", "\n", "\r\n", " \n"]) for token in vocabulary(rng, [])]
    (folder / "vocab.txt").write_text("".join(lines) + rng.choice(["", "<unk>\n", "last"]), encoding="utf-8", newline="")
    return {}


def bert_generation(rng, folder, models):
    sentencepiece_file(rng, folder, "spiece.model", models)
    return {}


def speecht5(rng, folder, models):
    sentencepiece_file(rng, folder, "spm_char.model", models)
    return {}


def speech2text(rng, folder, models):
    pieces = sentencepiece_file(rng, folder, "sentencepiece.bpe.model", models)
    write(folder, "vocab.json", vocabulary_of_pieces(rng, pieces, ["<unk>", "</s>"]))
    config = {"lang_codes": "mustc"} if rng.random() < 0.4 else {}
    return {**config, "tgt_lang": rng.choice(["de", "fr"])} if config and rng.random() < 0.5 else config


def wav2vec2(rng, folder, models):
    write(folder, "vocab.json", vocabulary(rng, ["<unk>", "<pad>", "|"]))
    config = {"replace_word_delimiter_char": rng.choice([" ", "_"])} if rng.random() < 0.3 else {}
    return {**config, "word_delimiter_token": rng.choice(["|", "a", "x"])} if rng.random() < 0.2 else config


def pairs_of(rng, tokens, after):
    """The lines of merges: pairs that make up tokens, some of which are none."""
    words = [token + "</w>" if rng.random() < 0.5 else token for token in tokens if len(token) > 1]
    pairs = [(word[:at], word[at:]) for word in words for at in range(1, len(word)) if "<" not in word[at + 1 :] or word[at:] == word[-5:]]
    pairs += [(rng.choice("abcde"), rng.choice("abcde") + rng.choice(["", "</w>"])) for _ in range(20)]
    rng.shuffle(pairs)
    return [f"{left} {right}{after}\n" for left, right in pairs if left.split() == [left] and right.split() == [right]]


def ctrl(rng, folder, models):
    tokens = vocabulary(rng, ["<unk>", "a@@", "b@@", "ab@@", "x@@"])
    write(folder, "vocab.json", tokens)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(pairs_of(rng, tokens, "")), encoding="utf-8")
    return {}


def phobert(rng, folder, models):
    tokens = [token for token in vocabulary(rng, ["a@@", "b@@", "ab@@", "x@@"]) if token.strip() == token and token not in SPECIALS]
    (folder / "vocab.txt").write_text("".join(f"{token} {rng.randint(1, 99)}\n" for token in tokens), encoding="utf-8")
    (folder / "bpe.codes").write_text("".join(pairs_of(rng, tokens, " 7")), encoding="utf-8")
    return {}


def no_files(rng, folder, models):
    return {}


CLASSES = {"Marian": marian, "M2M100": m2m100, "Siglip": siglip, "ByT5": byt5, "Esm": esm, "Canine": no_files, "Perceiver": no_files,
           "BertGeneration": bert_generation, "SpeechT5": speecht5, "Speech2Text": speech2text, "Wav2Vec2CTC": wav2vec2, "CTRL": ctrl, "Phobert": phobert}  # fmt: skip


def common_config(rng: random.Random) -> dict:
    config = {}
    for name in NAMES:
        if rng.random() < 0.12:
            text = token(rng)
            config[name] = {"__type": "AddedToken", **described(rng, text)} if rng.random() < 0.3 else text
    for option in ("clean_up_tokenization_spaces", "split_special_tokens", "legacy"):
        if rng.random() < 0.15:
            config[option] = rng.random() < 0.6
    choices = {"model_max_length": [512, 10**30, 7, float("inf")], "padding_side": ["left", "right"], "truncation_side": ["left", "right"]}
    for option, values in choices.items():
        if rng.random() < 0.25:
            config[option] = rng.choice(values)
    return config


def add_tokens(rng: random.Random, folder: Path, config: dict, size: int) -> "list[str]":
    """Adds tokens in one of the ways that transformers has used; returns them."""
    tokens = list(dict.fromkeys(token(rng) for _ in range(rng.randint(1, 7))))
    ids = [rng.randrange(size) if rng.random() < 0.3 else size + i for i in range(len(tokens))]
    ids = [i if ids.count(i) == 1 else size + 20 + place for place, i in enumerate(ids)]
    extra = rng.sample(tokens, rng.randint(0, len(tokens)))
    if rng.random() < 0.3:
        extra.append("<new>")
    name = rng.choice(["extra_special_tokens", "additional_special_tokens"])
    way = rng.randrange(7)
    if way == 0:  # as written by save_pretrained
        config["added_tokens_decoder"] = {str(i): described(rng, text) for i, text in zip(ids, tokens)}
        config[name] = extra
    elif way == 1:  # before transformers 4.34
        write(folder, "added_tokens.json", dict(zip(tokens, ids)))
        write(folder, "special_tokens_map.json", {name: extra, "eos_token": "</s>", "pad_token": {"content": "<pad>", "lstrip": True}})
    elif way == 2:  # a fast tokenizer
        write(folder, "tokenizer.json", {"added_tokens": [{"id": i, **described(rng, text)} for i, text in zip(ids, tokens)]})
        config[name] = extra
    elif way == 3:  # special tokens without ids
        config[name] = extra
    elif way == 4:
        config[name] = [{"__type": "AddedToken", **described(rng, text)} for text in extra]
        write(folder, "added_tokens.json", dict(zip(tokens, ids)))
    elif way == 5:
        config["extra_special_tokens"] = {"boi_token": "<boi>", "eoi_token": rng.choice(tokens)}
    else:
        return []
    return tokens


def random_folder(rng: random.Random, folder: Path, models: "dict[str, list[Path]]", only: "str | None" = None):
    name = only or rng.choice(list(CLASSES))
    config = {**common_config(rng), **CLASSES[name](rng, folder, models)}
    size = {"ByT5": 259, "Perceiver": 262, "Canine": 0x110000}.get(name, 60)
    if (folder / "vocab.json").exists():
        size = len(json.loads((folder / "vocab.json").read_text("utf-8")))
    add_tokens(rng, folder, config, size)
    config["tokenizer_class"] = name + "Tokenizer"
    items = list(config.items())
    rng.shuffle(items)
    write(folder, "tokenizer_config.json", dict(items))


def text(rng: random.Random, tokens: "list[str]") -> str:
    words = [*tokens, *FIXED, "seven hello of", "the ab abc", ">>de<<", "  ", ", ", "\u2028", "\u00a0", "ΑΣ ΟΔΟΣ.", "⁇"]
    return cases.text(rng, words, rng.choice([4, 12]))

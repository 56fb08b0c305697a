"""Tokenizers of Marian models with tokens added after training, and the results of transformers for texts with them.

`added_tokens.py --models FOLDER --out FOLDER --seed N` writes folders of tokenizers and cases.json: for each folder,
`texts` with their `ids`, and `outputs`, ids from a model, with their `translations`.
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

WORDS = ["seven", "two hundred", "twenty-one", "and", " ", "  ", ", ", "Ünknown", "漢字", "日本", "😀", "\u2028", "\u00a0", "\t", "\r",
         "\x00", "\x01", "</s>", "<unk>", "<pad>", ">>de<<", ">>fr<<", "▁", "⁇", "a", "b", "ab"]  # fmt: skip
FIXED = ["<a>", "[X]", ">>fr<<", "sev", "seven", "even", "hundred and", " sp ", "日", "😀", "é", "▁one", "twenty-", "<0x0A>", "<s>"]
LETTERS = "abx<> 漢é"
FOLDERS, TEXTS = 30, 30


def token(draw: random.Random) -> str:
    if draw.random() < 0.5:
        return draw.choice(FIXED)
    return "".join(draw.choice(LETTERS) for _ in range(draw.randint(1, 5)))


def described(text: str, draw: random.Random) -> dict:
    flags = {name: draw.random() < 0.25 for name in ("lstrip", "rstrip", "single_word")}
    return {"content": text, **flags, "normalized": draw.random() < 0.5, "special": draw.random() < 0.5}


def write(path: Path, value) -> None:
    path.write_text(json.dumps(value, ensure_ascii=len(path.name) % 2 == 0))  # covers both notations


def add(folder: Path, draw: random.Random) -> list[str]:
    """Adds tokens in one of the ways that transformers has used; returns them."""
    tokens = list(dict.fromkeys(token(draw) for _ in range(draw.randint(1, 7))))
    size = len(json.loads((folder / "vocab.json").read_text()))
    ids = [draw.randrange(size) if draw.random() < 0.3 else size + i for i in range(len(tokens))]
    ids = [i if ids.count(i) == 1 else size + 20 + place for place, i in enumerate(ids)]
    config = json.loads((folder / "tokenizer_config.json").read_text())
    for key in ("added_tokens_decoder", "extra_special_tokens", "additional_special_tokens"):
        config.pop(key, None)
    extra = draw.sample(tokens, draw.randint(0, len(tokens)))
    if draw.random() < 0.3:
        extra.append("<new>")
    if draw.random() < 0.2:
        config["mask_token"] = "<mask>"
    if draw.random() < 0.2:
        config["own_token"] = draw.choice(tokens)
    if draw.random() < 0.1:
        config["split_special_tokens"] = True
    name = draw.choice(["extra_special_tokens", "additional_special_tokens"])
    way = draw.randrange(5)
    if way == 0:  # as written by save_pretrained
        config["added_tokens_decoder"] = {str(i): described(text, draw) for i, text in zip(ids, tokens)}
        config[name] = extra
    elif way == 1:  # before transformers 4.34
        write(folder / "added_tokens.json", dict(zip(tokens, ids)))
        named = {"eos_token": "</s>", "pad_token": {"content": "<pad>", "lstrip": True}}
        write(folder / "special_tokens_map.json", {name: extra, **named})
    elif way == 2:  # a fast tokenizer
        write(folder / "tokenizer.json", {"added_tokens": [{"id": i, **described(text, draw)} for i, text in zip(ids, tokens)]})
        config[name] = extra
    elif way == 3:  # special tokens without ids
        config[name] = extra
    else:
        config[name] = [{"__type": "AddedToken", **described(text, draw)} for text in extra]
        write(folder / "added_tokens.json", dict(zip(tokens, ids)))
    write(folder / "tokenizer_config.json", config)
    return tokens


def text(tokens: list[str], draw: random.Random) -> str:
    return "".join(draw.choice(tokens if draw.random() < 0.4 else WORDS) for _ in range(draw.randint(0, 12)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    import transformers
    from transformers import MarianTokenizer

    transformers.utils.logging.set_verbosity_error()
    draw = random.Random(options.seed)
    cases = []
    for number in range(FOLDERS):
        folder = options.out / str(number)
        folder.mkdir(parents=True)
        model = options.models / draw.choice(["shared", "separate"])
        for name in ("vocab.json", "target_vocab.json", "source.spm", "target.spm", "tokenizer_config.json"):
            if (model / name).exists():
                shutil.copy(model / name, folder / name)
        tokens = add(folder, draw)
        tokenizer = MarianTokenizer.from_pretrained(folder)
        texts = [text(tokens, draw) for _ in range(TEXTS)]
        outputs = []
        for _ in range(TEXTS):
            known = [*tokenizer.decoder, *tokenizer.added_tokens_decoder]
            outputs.append([draw.choice(known) for _ in range(draw.randint(0, 8))])
        cases.append({
            "folder": str(folder), "texts": texts, "ids": [tokenizer(one).input_ids for one in texts], "outputs": outputs,
            "translations": [tokenizer.decode(one, skip_special_tokens=True) for one in outputs],
        })  # fmt: skip
    (options.out / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    sys.exit(main())

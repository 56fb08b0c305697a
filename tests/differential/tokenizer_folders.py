"""Small tokenizers of the classes that encoders have, as transformers saves them."""

from functools import cache

from harness import Draw

WORDS = "the a cat dog Sat on Mat river BANK über Naïve hello world , . ! 12 日本 query: passage: represent this sentence".split()
PIECES = [*dict.fromkeys(word.lower() for word in WORDS), "Sat", "BANK", "##s", "naive", "u", "##ber"]


@cache
def byte_pairs() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """A vocabulary of bytes and some words, and its merges."""
    import json

    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([" ".join(WORDS)] * 3, vocab_size=330, min_frequency=1, show_progress=False)
    model = json.loads(trained._tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def word_pieces(specials: list[str]) -> dict:
    return {"vocab": {token: number for number, token in enumerate(specials + PIECES)}}


def byte_level(*specials: str) -> dict:
    vocab, merges = byte_pairs()
    return {"vocab": {token: number for number, token in enumerate([*specials, *vocab])}, "merges": list(merges)}


def unigrams() -> dict:
    pieces = [("▁" + word, -3.0 - number / 10) for number, word in enumerate(WORDS)]
    letters = [(letter, -8.0) for letter in sorted(set("".join(WORDS)))]
    return {"vocab": [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces, *letters, ("▁", -4.0)]}


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLASSES = {
    "BertTokenizer": lambda: word_pieces(BERT),
    "DistilBertTokenizer": lambda: word_pieces(BERT),
    "MPNetTokenizer": lambda: word_pieces(["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]),
    "RobertaTokenizer": lambda: byte_level("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    "Qwen2Tokenizer": byte_level,
    "XLMRobertaTokenizer": unigrams,
}


def tokenizer(draw: Draw, name: str, **settings):
    """A tokenizer of this class; Qwen's pads on the left, as its embedding models do."""
    import transformers

    if name == "Qwen2Tokenizer":
        settings["padding_side"] = draw.choice(["left", "right"])
    if draw.coin(0.3):
        settings["truncation_side"] = "left"
    if name == "BertTokenizer":
        settings["do_lower_case"] = draw.coin()
    return getattr(transformers, name)(**CLASSES[name](), **settings)


def texts(draw: Draw, count: int, least: int = 1) -> list[str]:
    return [" ".join(draw.choice(WORDS) for _ in range(max(least, draw.choice([1, 3, 7, 25])))) for _ in range(count)]

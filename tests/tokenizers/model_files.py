"""Random models of tokenizer.json, whose vocabularies and words are of few letters, so that most places have several ways to go on."""

import random

LETTERS = ["a", "b", "c", "#", "é", "中", "\U0001f600", " ", "e", "\u0301", "▁", "<", "\0", "ß", '"', "\\"]


def word(rng: random.Random, letters: "list[str]", least: int, most: int) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randint(least, most)))


def ids(rng: random.Random, count: int) -> "list[int]":
    """From 0 on, in any order, with holes, or anywhere below 2**32."""
    kind = rng.random()
    if kind < 0.5:
        return list(range(count))
    return rng.sample(range(count if kind < 0.7 else 3 * count + 1 if kind < 0.9 else 1 << 32), count)


def tokens(rng: random.Random, letters: "list[str]", count: int) -> "list[str]":
    return [word(rng, letters, 0 if rng.random() < 0.05 else 1, rng.choice([1, 2, 3, 6])) for _ in range(rng.randint(1, count))]


def word_piece(rng, letters):
    prefix = rng.choice(["##", "##", "", "@@", "é", "a", "▁"])
    unk = rng.choice(["[UNK]", "u", "a"])
    vocab = {(prefix if rng.random() < 0.6 else "") + token for token in tokens(rng, letters, 60)} | ({unk} if rng.random() < 0.9 else set())
    vocab = rng.sample(sorted(vocab), len(vocab))
    return {"type": "WordPiece", "unk_token": unk, "continuing_subword_prefix": prefix, "max_input_chars_per_word": rng.choice([100, 100, 0, 1, 5, 12]),
            "vocab": dict(zip(vocab, ids(rng, len(vocab))))}  # fmt: skip


def word_level(rng, letters):
    vocab = sorted({*tokens(rng, letters, 30), *(["u"] if rng.random() < 0.8 else [])})
    return {"type": "WordLevel", "unk_token": "u", "vocab": dict(zip(vocab, ids(rng, len(vocab))))}


def bpe(rng, letters):
    if rng.random() < 0.5 and "▁" not in letters:  # words are cut before it where no merge goes across
        letters.append("▁")
    prefix = rng.choice([None, None, None, "", "##", "é", "a"])
    suffix = rng.choice([None, None, "", "</w>", "é"])
    unk = rng.choice([None, "<unk>", "<unk>", "a"])
    fallback = rng.random() < 0.4
    vocab = {before + letter + after: None for letter in letters for before in ("", prefix or "") for after in ("", suffix or "") if rng.random() < 0.8}
    if fallback:
        all_but = rng.choice([1, 0.9])
        vocab |= {f"<0x{byte:02X}>": None for byte in range(256) if rng.random() < all_but}
    if unk and rng.random() < 0.9:
        vocab[unk] = None
    merges = []
    for _ in range(rng.randint(0, 60)):
        left, right = rng.choice([*vocab, "a"]), rng.choice([*vocab, "a"])
        if left not in vocab or right not in vocab or not right.startswith(prefix or "") or len(left + right) > 40:
            continue
        vocab[left + right[len(prefix or "") :]] = None
        merges.insert(rng.randint(0, len(merges)), [left, right])
    if merges and rng.random() < 0.3:
        merges.append(rng.choice(merges))
    if rng.random() < 0.5 and not any(" " in left + right for left, right in merges):
        merges = [f"{left} {right}" for left, right in merges]
        if rng.random() < 0.3:
            merges.insert(rng.randint(0, len(merges)), "#version: 0.2")
    made = {"type": "BPE", "vocab": dict(zip(vocab, ids(rng, len(vocab)))), "merges": merges}
    made |= {name: value for name, value in (("unk_token", unk), ("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix))
             if value is not None or rng.random() < 0.5}  # fmt: skip
    made |= {name: rng.choice([None, False]) if rng.random() < 0.6 else True for name in ("fuse_unk", "ignore_merges") if rng.random() < 0.8}
    return made | {"byte_fallback": fallback} | ({"dropout": rng.choice([None, 0.0])} if rng.random() < 0.3 else {})


def unigram(rng, letters):
    has_ties = rng.random() < 0.6

    def score():
        if has_ties:
            return -rng.randint(0, 6) / 2
        return rng.choice([rng.randint(-30, 3), rng.uniform(-1, 30), -rng.random(), -20 * rng.random(), -1e-9 * rng.random()])

    pieces = [[token, score()] for token in [*tokens(rng, letters, 60), *rng.sample(letters, len(letters) // 2)]]
    fallback = rng.random() < 0.5
    if fallback:
        all_but = rng.choice([1, 0.97])
        pieces += [[f"<0x{byte:02X}>", score()] for byte in range(256) if rng.random() < all_but]
    if rng.random() < 0.8:
        pieces = [[piece, score()] for piece in dict(pieces)]
    rng.shuffle(pieces)
    if rng.random() < 0.5:
        pieces.insert(0, ["<unk>", 0.0])
    made = {"type": "Unigram", "vocab": pieces}
    if rng.random() < 0.95:
        made["unk_id"] = rng.randrange(len(pieces)) if rng.random() < 0.9 else None
    return made | ({"byte_fallback": fallback} if fallback or rng.random() < 0.2 else {})


def model(rng: random.Random):
    """A model, and words for it."""
    letters = rng.sample(LETTERS, rng.randint(1, 8))
    made = rng.choice([word_piece, word_level, bpe, bpe, unigram, unigram])(rng, letters)
    vocab = [entry[0] if isinstance(entry, list) else entry for entry in made["vocab"]] or ["a"]
    shuffled = dict(rng.sample(sorted(made.items()), len(made)))
    if rng.random() < 0.2:
        del shuffled["type"]
    foreign = [*letters, "z"] if rng.random() < 0.4 else letters
    words = [word(rng, foreign, 1, rng.choice([2, 5, 12, 40])) for _ in range(12)]
    words += ["".join(rng.choice(vocab) for _ in range(rng.randint(1, 5))) for _ in range(8)]
    return shuffled, words + ([word(rng, foreign, 300, 600)] if rng.random() < 0.1 else [])


PARTS = """▁ a b ␣ . ␣. ␣n't n't ␣do␣not do 's ␣' '␣ ## é Ġ Ċ 中 ł Ń <0xE4> <0xb8> <0xAD> <0x+F> <0x+> <0x41> </w> <pad> | \U0001f600 ð Ł ĺ Ģ ã
ģ""".replace("␣", "\xa0").split()  # fmt: skip


def decoded_token(rng: random.Random) -> str:
    if rng.random() < 0.05:
        return ""
    return "".join(rng.choice(PARTS) for _ in range(rng.choice([1, 1, 2, 3]))).replace("\xa0", " ")


def decoder(rng: random.Random, depth=0):
    kind = rng.choice(["BPEDecoder", "ByteFallback", "ByteLevel", "CTC", "Fuse", "Metaspace", "Replace", "Strip", "WordPiece",
                       *(["Sequence"] * 3 if depth < 2 else [])])  # fmt: skip
    made = {"type": kind}

    def string():
        return rng.choice(["", "▁", "a", "##", "</w>", " ", "aa", "é", "<pad>", "|", "'"])

    if kind == "BPEDecoder":
        made["suffix"] = string()
    elif kind == "ByteLevel":
        made |= {"add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.5}
    elif kind == "CTC":
        made |= {"pad_token": string(), "word_delimiter_token": string(), "cleanup": rng.random() < 0.5}
    elif kind == "Metaspace":
        made |= {"replacement": rng.choice("▁a_é"), "prepend_scheme": rng.choice(["always", "never", "first"])}
    elif kind == "Replace":
        pattern = {"String": string()} if rng.random() < 0.5 else {"Regex": rng.choice(["a*", "[▁a]+", "^a", "", r"\s", "a$"])}
        made |= {"pattern": pattern, "content": string()}
    elif kind == "Strip":
        made |= {"content": rng.choice(["▁", "a", " ", "é"]), "start": rng.randint(0, 2), "stop": rng.choice([0, 0, 1, 2])}
    elif kind == "WordPiece":
        made |= {"prefix": string(), "cleanup": rng.random() < 0.5}
    elif kind == "Sequence":
        made["decoders"] = [decoder(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if kind in ("BPEDecoder", "CTC", "Strip", "WordPiece") and rng.random() < 0.1:
        del made["type"]
    return made

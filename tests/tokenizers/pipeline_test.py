#!/usr/bin/env python3
"""Random tokenizers beside the package: normalizers, pre-tokenizers, added tokens, post-processors, truncation.

    tests/tokenizers/pipeline_test.py --cases build/release/tests/posenc-tokenize-cases [--tokenizers N] [--seed N]
"""

import argparse
import base64
import json
import os
import random
import struct
import sys
import unittest

import cases

options: argparse.Namespace
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
STRINGS = ["a", "ab", " ", "  ", "é", "", "l", "中", "-", "\u0301", "'", "▁"]
REGEXES = [r"\s+", r"\d", r"[a-z]+", r" {2,}", r"^", r"$", r"\b", r"x*", r"\p{L}+|\s", r"\w+|[^\w\s]+", r"(?i:'s|'t)", r".",
           r"(?=b)", r"[\n\r\t]", r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"]  # fmt: skip


def double_array(keys: "dict[bytes, int]") -> bytes:
    """A trie as darts-clone lays it out, placed by first fit."""
    units, used = {}, {0}

    def place(base_of, prefix):
        labels = sorted({key[len(prefix)] for key in keys if len(key) > len(prefix) and key.startswith(prefix)})
        has_value = prefix in keys
        base = 0x100
        while any(base ^ label in used for label in [*([0] if has_value else []), *labels]) or base >> 21:
            base += 1
        used.update(base ^ label for label in labels)
        if has_value:
            used.add(base)
            units[base] = 0x80000000 | keys[prefix]
        parent = units.get(base_of, 0)
        units[base_of] = (parent & 0xFF) | (base_of ^ base) << 10 | (0x100 if has_value else 0)
        for label in labels:
            units[base ^ label] = label
            place(base ^ label, prefix + bytes([label]))

    place(0, b"")
    size = (max(used) | 0xFF) + 1
    return b"".join(struct.pack("<I", units.get(i, 0)) for i in range(size))


def charsmap(rng: random.Random) -> str:
    """Random rules, some of which delete, lengthen, or replace marks and clusters."""
    texts, keys = b"", {}
    for _ in range(rng.randint(1, 12)):
        key = rng.choice(["a", "b", "ab", "é", "e\u0301", "ﬁ", "½", "\u0301", "\x07", "中", "カ", "\u3099", "A\u030a", "İ", " ", "\t", "x",
                          "👍", cases.character(rng)]).encode()  # fmt: skip
        if b"\0" in key:
            continue
        keys[key] = len(texts)
        texts += rng.choice(["", "a", "fi", " ", "1⁄2", "Å", "xyz", "é", "中"]).encode() + b"\0"
    if not keys:
        return charsmap(rng)
    trie = double_array(keys)
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + texts).decode()


def pattern(rng):
    return {"String": rng.choice(STRINGS)} if rng.random() < 0.5 else {"Regex": rng.choice(REGEXES)}


def normalizer(rng, depth=0):
    kind = rng.choice(["BertNormalizer", "Strip", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "Precompiled", "Replace",
                       "Prepend", "ByteLevel", *(["Sequence"] * 4 if depth < 2 else [])])  # fmt: skip
    made = {"type": kind}
    if kind == "BertNormalizer":
        made |= {name: rng.random() < 0.6 for name in ("clean_text", "handle_chinese_chars", "lowercase")}
        made["strip_accents"] = rng.choice([None, True, False])
    elif kind == "Strip":
        made |= {"strip_left": rng.random() < 0.6, "strip_right": rng.random() < 0.6}
    elif kind == "Precompiled":
        made["precompiled_charsmap"] = charsmap(rng)
    elif kind == "Replace":
        made |= {"pattern": pattern(rng), "content": rng.choice(["", "-", "xyz", " ", "▁", "é"])}
    elif kind == "Prepend":
        made["prepend"] = rng.choice(["▁", "x", "ab", ""])
    elif kind == "Sequence":
        made["normalizers"] = [normalizer(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return made


def pre_tokenizer(rng, depth=0):
    kind = rng.choice(["BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Whitespace", "Split", "Split", "Punctuation",
                       "WhitespaceSplit", "Digits", "UnicodeScripts", "FixedLength", *(["Sequence"] * 3 if depth < 2 else [])])  # fmt: skip
    made = {"type": kind}
    if kind == "ByteLevel":
        made |= {"add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.5}
        if rng.random() < 0.7:
            made["use_regex"] = rng.random() < 0.7
    elif kind == "CharDelimiterSplit":
        made["delimiter"] = rng.choice(["-", " ", "a", "中"])
    elif kind == "Metaspace":
        made["replacement"] = rng.choice(["▁", "▁", "_", "a"])
        if rng.random() < 0.8:
            made["prepend_scheme"] = rng.choice(["always", "first", "never"])
        if rng.random() < 0.5:
            made["split"] = rng.random() < 0.5
        if rng.random() < 0.2:
            made["add_prefix_space"] = rng.random() < 0.7
    elif kind == "Split":
        made |= {"pattern": pattern(rng), "behavior": rng.choice(BEHAVIORS), "invert": rng.random() < 0.4}
    elif kind == "Punctuation":
        if rng.random() < 0.7:
            made["behavior"] = rng.choice(BEHAVIORS)
    elif kind == "Digits":
        made["individual_digits"] = rng.random() < 0.5
    elif kind == "FixedLength":
        if rng.random() < 0.8:
            made["length"] = rng.randint(1, 4)
    elif kind == "Sequence":
        made["pretokenizers"] = [pre_tokenizer(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return made


def post_processor(rng, depth=0):
    kind = rng.choice(["BertProcessing", "RobertaProcessing", "ByteLevel", "TemplateProcessing", *(["Sequence"] * 2 if depth < 2 else [])])
    made = {"type": kind}
    if kind in ("BertProcessing", "RobertaProcessing"):
        made |= {"sep": ["[SEP]", 1001], "cls": ["[CLS]", 1002]}
        if kind == "RobertaProcessing":
            made |= {"trim_offsets": rng.random() < 0.7, "add_prefix_space": rng.random() < 0.5}
        if rng.random() < 0.2:
            made["type"] = rng.choice(["Bert", "RobertaProcessing", "BertProcessing"])  # the fields decide
    elif kind == "ByteLevel":
        made |= {"add_prefix_space": rng.random() < 0.5, "trim_offsets": rng.random() < 0.7, "use_regex": True}
    elif kind == "TemplateProcessing":
        names = {"[CLS]": [1002], "[SEP]": [1001], "two": [7, 8], "none": []}
        made["special_tokens"] = {name: {"id": name, "ids": ids, "tokens": [f"{name}{i}" for i in range(len(ids))]} for name, ids in names.items()}

        def pieces(texts):
            out = [{"Sequence": {"id": one, "type_id": rng.randint(0, 2)}} for one in texts]
            for _ in range(rng.randint(0, 3)):
                name = rng.choice(list(names))
                out.insert(rng.randint(0, len(out)), {"SpecialToken": {"id": name, "type_id": rng.randint(0, 3)}})
            return out

        made |= {"single": pieces(rng.choice([["A"], ["A"], ["A", "A"], []])), "pair": pieces(rng.choice([["A", "B"], ["A", "B"], ["B", "A"], ["A", "B", "A"]]))}
    else:
        made["processors"] = [post_processor(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    return made


def added_tokens(rng):
    contents = rng.sample(["[CLS]", "[SEP]", "<mask>", "ab", "abc", "Foo", "x", "  y", " ", "é", "中", "lo", "Hello", "'s", "e\u0301", "<s>",
                           "xx", "[UNK]", "ĠHello", "aaa", ""], rng.randint(0, 6))  # fmt: skip
    if contents and rng.random() < 0.2:
        contents.append(rng.choice(contents))
    return [{"id": rng.randint(0, 50), "content": content, **{flag: rng.random() < 0.4 for flag in
             ("single_word", "lstrip", "rstrip", "normalized", "special")}} for content in contents]  # fmt: skip


def model(rng):
    """One that shows the pre-tokens themselves, and two that show each character and its place."""
    kind = rng.random()
    if kind < 0.4:
        return {"type": "Unigram", "vocab": [["<unk>", 0.0]], "unk_id": 0}
    letters = sorted({*"".join(cases.WORDS), *cases.MARKS, *"ĠĊÃ©Ć▁_ "} - set("xé"))
    if kind < 0.7:
        return {"type": "BPE", "vocab": {c: i + 1 for i, c in enumerate(letters)} | {"<unk>": 0}, "merges": [], "unk_token": "<unk>",
                "fuse_unk": rng.random() < 0.5}  # fmt: skip
    vocab = {"[UNK]": 0, "Hello": 1, "##lo": 2}
    for c in letters:
        vocab |= {c: len(vocab), "##" + c: len(vocab) + 1} if c not in vocab else {}
    return {"type": "WordPiece", "vocab": vocab, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": rng.choice([3, 10, 100])}


def some(rng, chance, make):
    return make(rng) if rng.random() < chance else None


def tokenizer(rng):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens(rng), "normalizer": some(rng, 0.7, normalizer),
            "pre_tokenizer": some(rng, 0.7, pre_tokenizer), "post_processor": some(rng, 0.7, post_processor), "decoder": None,
            "model": model(rng)}  # fmt: skip


def truncation(rng):
    return {"max_length": rng.randint(0, 20), "stride": rng.choice([0, 0, 1, 2, 5]),
            "strategy": rng.choice(["longest_first", "only_first", "only_second"]), "direction": rng.choice(["left", "right"])}  # fmt: skip


class Pipeline(unittest.TestCase):
    def setUp(self):
        self.posenc, self.package = cases.Posenc(options.cases), cases.Package()
        self.addCleanup(self.posenc.close)

    def test_random_tokenizers(self):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        loaded = errors = 0
        for number in range(options.tokenizers):
            rng = random.Random(f"{seed} {number}")
            file = json.dumps(tokenizer(rng), ensure_ascii=False)
            ours, theirs = self.posenc.ask(load=file), self.package.load(file)
            where = f"--seed {seed}, tokenizer {number}: {file}"
            if self.refused(ours, theirs, file, where):
                continue
            loaded += 1
            extra = [token["content"] for token in json.loads(file)["added_tokens"]]
            for _ in range(8):
                asked = {"text": cases.text(rng, extra), "pair": some(rng, 0.3, lambda rng: cases.text(rng, extra)), "special": rng.random() < 0.7,
                         "truncation": some(rng, 0.3, truncation)}  # fmt: skip
                errors += self.encode(asked, where)
        self.assertGreater(loaded, options.tokenizers // 2)
        self.assertLess(errors, loaded)

    def refused(self, ours, theirs, file, where):
        """Whether the tokenizer was refused, which both have to agree on but for what the package does at random or panics at later."""
        if "error" in ours and "error" not in theirs:
            self.assertRegex(ours["error"], "each. Got|to nothing", where)
            return True
        self.assertEqual("error" in ours, "error" in theirs, f"{where}\n{ours}\n{theirs}")
        return "error" in ours

    def encode(self, asked, where):
        """Returns whether it was an error."""
        theirs = self.package.encode(**asked)
        question = {**asked, "encode": asked["text"]}
        del question["text"]
        ours = self.posenc.ask(**question)
        message = f"{where}\n{asked}\nposenc:  {ours}\npackage: {theirs}"
        # The package does not truncate then, and does not always panic, but may write a character twice.
        if "error" in ours and ("room for the" in ours["error"] or "stands for nothing" in ours["error"]):
            return True
        self.assertTrue(cases.same(ours, theirs), message)
        if "error" in ours:
            return True
        plain = self.posenc.ask(**question, ids_only=True)
        self.assertEqual([row["ids"] for row in plain["rows"]], [row["ids"] for row in ours["rows"]], f"{message}\nids only: {plain}")
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tokenizers", type=int, default=200)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    os.environ["RUST_BACKTRACE"] = "0"
    unittest.main(argv=[sys.argv[0], *rest])

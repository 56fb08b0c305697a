#!/usr/bin/env python3
"""Texts and files on which tokenizers differ easily, beside the package.

    tests/tokenizers/traps_test.py --cases build/release/tests/posenc-tokenize-cases
"""

import argparse
import copy
import itertools
import json
import os
import sys
import unittest

import cases

options: argparse.Namespace
WHOLE = {"type": "Unigram", "vocab": [["<unk>", 0.0]], "unk_id": 0}  # shows each pre-token and its place
LETTERS = {"type": "BPE", "vocab": {"<unk>": 0}, "merges": [], "unk_token": "<unk>"}  # shows the place of each character


def file(normalizer=None, pre_tokenizer=None, post_processor=None, model=WHOLE, added=()):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added), "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": None, "model": model}  # fmt: skip


def added(content, **flags):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def bert(**flags):
    return {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True, **flags}


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(behavior, invert=False, **pattern):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def byte_level(add_prefix_space=True, **flags):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, **flags}


def roberta(add_prefix_space):
    return {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": add_prefix_space}


NORMALIZERS = [
    (bert(), ["a\x0bb\x0cc\x85\xad\u200b d\u0378e", "a中b", "\U0002b820\U0002b91f\U0002ceb0 カ한", "한글", "İIΑΣ ÅÀ", "a\0b\ufffd", "e\u0301\u0323\U0001d165\U0001d16e"]),
    (bert(lowercase=False), ["ÀÉ a\u0301"]), (bert(strip_accents=False), ["ÀÉ İ ΑΣ"]), (bert(strip_accents=True, lowercase=False), ["ÀÉ क्षि"]),
    ({"type": "Lowercase"}, ["İ ΑΣ ǅ ẞ Ა"]), ({"type": "StripAccents"}, ["é e\u0301x हिन्दी", "\u0301ex"]),
    ({"type": "Strip", "strip_left": True, "strip_right": True}, ["\x1c a \x85\xa0", "\u3000日本 \u3000", "   "]),
    ({"type": "Nmt"}, ["\x01\x08a\x0b\x7f\x8f\x9f\tb\u200b\u2581\ufeff\ufffd\x85"]),
    (replace("-", String=""), ["ab", ""]), (replace("-", Regex="x*"), ["axxb"]), (replace(" ", Regex=" {2,}"), ["a   b"]), (replace("xyz", String="ab"), ["cabd"]),
    (replace("X", Regex="^"), ["a\nb"]), ({"type": "Sequence", "normalizers": [replace("X", Regex="^"), {"type": "NFC"}]}, ["ab"]),
    ({"type": "Prepend", "prepend": "▁"}, ["ab", "", "<s>a<s>"]), ({"type": "ByteLevel"}, ["é a"]),
    *[({"type": form}, ["e\u0301x", "e\u0301\u0323x", "½x ﬁ", "한 각", "\u0344 \u1cf2\u111c9", "Å\u0301"]) for form in ("NFC", "NFD", "NFKC", "NFKD")],
]  # fmt: skip
PRE_TOKENIZERS = [
    *[(split(behavior, invert, String="-"), ["-the-final--countdown-", "--", "", "a"]) for behavior in
      ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous") for invert in (False, True)],
    (split("Isolated", Regex=r"\b"), ["ab cd"]), (byte_level(), ["\tb", " b", "a b", "中"]), (byte_level(False, use_regex=False), ["a  b"]),
    ({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, byte_level()]}, ["a b"]),
    ({"type": "Metaspace", "replacement": "▁"}, ["a  b ", "▁a▁b", " a", "\ta"]),
    ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}, ["a b", "<s>a b", "  a"]),
    ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never", "add_prefix_space": False}, ["a b"]),
    ({"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "prepend_scheme": "never"}, ["a b"]),
    ({"type": "Metaspace", "replacement": "▁", "split": False}, ["a b"]),
    ({"type": "Whitespace"}, ["a\u0301b\u200dc_d٣,.! x\u203f"]), ({"type": "BertPreTokenizer"}, ["a\x1cb\xa0c $+<=>^`|~x,"]),
    ({"type": "WhitespaceSplit"}, ["a\x1cb\x85c\u3000d"]), ({"type": "Punctuation"}, ["a,b$\u166d«»"]), ({"type": "Punctuation", "behavior": "Removed"}, ["a,b"]),
    ({"type": "Digits", "individual_digits": False}, ["a12½Ⅷ三b"]), ({"type": "Digits", "individual_digits": True}, ["a12½Ⅷ"]),
    ({"type": "UnicodeScripts"}, [" abc", "   ", "カタひら漢ー a\u0301я\u0378x"]), ({"type": "FixedLength"}, ["abcdefgh"]), ({"type": "FixedLength", "length": 2}, ["aé中👍x"]),
    ({"type": "CharDelimiterSplit", "delimiter": "-"}, ["a--b-"]),
]  # fmt: skip
TOKENS = [
    ([added("abc", single_word=True), added("ab")], ["abcd", "abc", "ab"]), ([added("<m>", lstrip=True, rstrip=True)], ["a  <m>\t b", "<m>"]),
    ([added("x", rstrip=True), added("  y")], ["x  ya"]), ([added("<m>", single_word=True)], ["a<m>", "中<m>", "\u0301<m>", "\u200d<m>", ",<m>.", "<m>"]),
    ([added("a"), added("a", special=True, lstrip=True)], [" a a"]), ([added(""), added("b")], ["ab"]),
]  # fmt: skip


class Traps(unittest.TestCase):
    def setUp(self):
        self.posenc, self.package = cases.Posenc(options.cases), cases.Package()
        self.addCleanup(self.posenc.close)

    def compare(self, tokenizer, texts, **asked):
        text = json.dumps(tokenizer, ensure_ascii=False)
        ours, theirs = self.posenc.ask(load=text), self.package.load(text)
        self.assertEqual("error" in ours, "error" in theirs, f"{text}\n{ours}\n{theirs}")
        for each in texts if "error" not in ours else []:
            ours, theirs = self.posenc.ask(encode=each, **asked), self.package.encode(each, **asked)
            self.assertTrue(cases.same(ours, theirs), f"{text}\n{each!r}\nposenc:  {ours}\npackage: {theirs}")

    def test_normalizers(self):
        for normalizer, texts in NORMALIZERS:
            for model in (WHOLE, LETTERS):
                self.compare(file(normalizer, model=model, added=[added("<s>")]), texts)

    def test_pre_tokenizers(self):
        for pre_tokenizer, texts in PRE_TOKENIZERS:
            for model in (WHOLE, LETTERS):
                self.compare(file(None, pre_tokenizer, model=model, added=[added("<s>")]), texts)

    def test_added_tokens(self):
        for tokens, texts in TOKENS:
            self.compare(file(added=tokens), texts)
        lower = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "Prepend", "prepend": "▁"}]}
        self.compare(file({"type": "Lowercase"}, added=[added("Foo", normalized=True, special=True)]), ["a FOO foo", "Foo"])
        self.compare(file(lower, added=[added("Foo", normalized=True)]), ["FOO foo", "a foo"])

    def test_ids_of_added_tokens_are_counted(self):
        vocab = {"[UNK]": 0, "b": 3, "c": 8}
        model = {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"}
        self.compare(file(model=model, added=[added("c"), added("x"), added("y")]), ["cxy", "b"])
        normal = [added("Foo", normalized=True, special=True)]
        self.compare(file({"type": "Lowercase"}, model=model, added=normal), ["foo"])
        self.assertEqual(self.posenc.ask(id_to_token=3), {"token": "foo"})
        self.assertEqual((self.posenc.ask(token_to_id="Foo"), self.posenc.ask(token_to_id="foo")), ({"id": 3}, {"id": None}))
        for skip in (False, True):
            self.assertEqual(self.posenc.ask(decode=[3, 8], skip=skip), self.package.decode([3, 8], skip))

    def test_a_repeated_token_keeps_its_normal_form(self):
        model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
        for flags in itertools.product((False, True), repeat=4):
            tokens = [added("Foo", normalized=flags[0], special=flags[1]), added("Foo", normalized=flags[2], special=flags[3])]
            self.compare(file({"type": "Lowercase"}, model=model, added=tokens), ["Foo", "foo"])
            for skip in (False, True):
                self.assertEqual(self.posenc.ask(decode=[1], skip=skip), self.package.decode([1], skip), flags)

    def test_what_the_package_decides_at_random_is_an_error(self):
        model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "b": 1}, "unk_token": "[UNK]"}
        one_form = file({"type": "Lowercase"}, model=model, added=[added("Foo", normalized=True), added("FOO", normalized=True)])
        self.assertIn("one normal form each", self.posenc.ask(load=json.dumps(one_form))["error"])
        model["vocab"] = {"[UNK]": 0, "b": 2}
        one_id = file(model=model, added=[added("x"), added("b")])
        self.assertIn("one id each", self.posenc.ask(load=json.dumps(one_id))["error"])

    def test_offsets_are_trimmed(self):
        for prefix in (False, True):
            for processor in (byte_level(prefix), roberta(prefix)):
                self.compare(file(None, byte_level(prefix), processor), ["a", " a", "  a", "a  b ", "\u3000a", " "])

    def test_truncation(self):
        words = {"type": "WordLevel", "vocab": {"[UNK]": 0, **{c: i + 1 for i, c in enumerate("abcdefghi")}}, "unk_token": "[UNK]"}
        tokenizer = file(None, {"type": "WhitespaceSplit"}, {"type": "BertProcessing", "sep": ["S", 11], "cls": ["C", 10]}, words)
        for length in range(2, 14):
            for stride in (0, 1, 2):
                for side in ("left", "right"):
                    for strategy in ("longest_first", "only_first", "only_second"):
                        rule = {"max_length": length, "stride": stride, "strategy": strategy, "direction": side}
                        self.compare(tokenizer, ["a b c d e f g h i", "a", ""], truncation=rule)
                        self.compare(tokenizer, ["a b c d e f g h i", "a b"], truncation=rule, pair="i h g f e d c b a") if length > 2 else None
        self.assertIn("room for the 2 special tokens", self.posenc.ask(encode="a", truncation={**rule, "max_length": 1})["error"])

    def test_each_field_is_needed_and_checked(self):
        parts = [*({"normalizer": one} for one, _ in NORMALIZERS), *({"pre_tokenizer": one} for one, _ in PRE_TOKENIZERS),
                 {"post_processor": byte_level()}, {"post_processor": roberta(True)},
                 {"post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}},
                 ]  # fmt: skip
        for part in parts:
            (name, component), = part.items()
            for field in component:
                for value in ("missing", None, 5, -1, 1.5, "x", [], {}, True):
                    changed = copy.deepcopy(component)
                    if value == "missing":
                        del changed[field]
                    else:
                        changed[field] = value
                    if field == "type":  # without it the package guesses the class by the fields
                        if component[field] != "RobertaProcessing":
                            self.assertIn("type", self.posenc.ask(load=json.dumps(file() | {name: changed}))["error"])
                    elif component["type"] == "RobertaProcessing" and value != "missing" and field not in ("sep", "cls"):
                        pass  # the package takes it for Bert's then
                    else:
                        self.compare(file() | {name: changed}, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    options, rest = parser.parse_known_args()
    os.environ["RUST_BACKTRACE"] = "0"
    unittest.main(argv=[sys.argv[0], *rest])

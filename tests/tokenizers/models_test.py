#!/usr/bin/env python3
"""Random models and decoders beside the package, files that are wrong, and long words.

    tests/tokenizers/models_test.py --cases build/release/tests/posenc-tokenize-cases [--models N] [--seed N]
"""

import argparse
import json
import os
import random
import sys
import unittest

import cases
import model_files
from tokenizers.decoders import DecodeStream

options: argparse.Namespace
WORD_LEVEL = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
TOKEN = {"id": 0, "content": "x", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}


def bpe(vocab, merges, **more):
    return {"type": "BPE", "vocab": vocab, "merges": merges, **more}


AB = {"a": 0, "b": 1, "ab": 2}
# What each file has to make of both: "ok", "error", or "refused" if only posenc refuses it. Members of "model" are of JSON.
MODELS = [
    ("error", bpe({"a": 0, "b": 1}, ["a b"])), ("error", bpe({"a": 0}, ["a b"])), ("error", bpe(AB, ["a b c"])), ("error", bpe(AB, ["ab"])),
    ("error", bpe(AB, ["a  b"])), ("error", bpe(AB, ["a b", ["a", "b"]])), ("error", bpe(AB, [["a", "b", "c"]])), ("error", bpe(AB, [["a"]])),
    ("error", bpe(AB, None)), ("ok", bpe(AB, ["#version: 1", "a b"])), ("refused", bpe(AB, [], dropout=0.1)), ("error", bpe(AB, [], dropout=2)),
    ("error", bpe(AB, [], unk_token=3)), ("ok", bpe(AB, [], fuse_unk=None)), ("error", bpe(AB, [], fuse_unk="x")), ("error", bpe({"a": -1}, [])),
    ("error", bpe({"a": 1.0}, [])), ("error", bpe({"a": 1 << 32}, [])), ("ok", bpe({"a": (1 << 32) - 1}, [])), ("error", bpe({"a": "1"}, [])),
    ("error", bpe({"a": 1 << 70}, [])), ("refused", bpe({"a": 0, "b": 0}, [])), ("refused", bpe({"a": 1 << 31, "b": 1 << 31}, [])),
    ("error", bpe(AB, ["a b"], continuing_subword_prefix="##")), ("ok", bpe({"a": 0, "##b": 1, "ab": 2}, ["a ##b"], continuing_subword_prefix="##")),
    *((kind, {"type": "Unigram", "vocab": vocab}) for kind, vocab in (
        ("ok", []), ("error", [["a", 1, 2]]), ("error", [["a"]]), ("error", [["a", "b"]]), ("error", {"a": 1}), ("error", [["a", None]]), ("error", 3))),
    *((kind, {"type": "Unigram", "vocab": [["a", 1]], "unk_id": unk}) for kind, unk in (
        ("ok", 0), ("ok", None), ("error", 1), ("error", -1), ("error", 1.0), ("error", "0"))),
    ("error", {"type": "Unigram", "vocab": [["a", 1]], "byte_fallback": None}), ("error", {"type": "Unigram", "vocab": [], "unk_id": 0}),
    *((kind, {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "a", "continuing_subword_prefix": "#", "max_input_chars_per_word": most})
      for kind, most in (("ok", 0), ("ok", (1 << 64) - 1), ("error", -1), ("error", None), ("error", 1.5))),
    ("error", {"type": "WordPiece", "vocab": {}, "unk_token": "a", "continuing_subword_prefix": "#"}),
    ("error", {"type": "WordPiece", "vocab": {}, "unk_token": "a", "max_input_chars_per_word": 9}),
    ("error", {"type": "WordLevel", "vocab": {"a": 0}}), ("error", {"type": "Foo", "vocab": {"a": 0}, "unk_token": "a"}),
    ("error", {"type": None, "vocab": {"a": 0}, "unk_token": "a"}), ("ok", {"vocab": {"a": 0}, "unk_token": "a"}), ("error", {}), ("error", None),
    ("error", []), ("ok", {"vocab": {"a": 1}, "unk_token": "a", "merges": []}), ("ok", {"vocab": {"a": 1}, "unk_token": "a", "max_input_chars_per_word": 3}),
]  # fmt: skip
FILES = [
    *((kind, {"version": "1.0", "model": WORD_LEVEL, **more}) for kind, more in (
        ("error", {"foo": 1}), ("error", {"added_tokens": None}), ("ok", {"added_tokens": []}), ("error", {"added_tokens": {}}), ("ok", {"added_tokens": [TOKEN]}),
        ("ok", {"added_tokens": [{**TOKEN, "foo": 1}]}), *(("error", {"added_tokens": [{**TOKEN, **wrong}]}) for wrong in (
            {"id": -1}, {"id": 1 << 32}, {"special": None}, {"content": 3}, {"lstrip": 0})),
        *(("error", {"added_tokens": [{name: value for name, value in TOKEN.items() if name != missing}]}) for missing in TOKEN))),
    ("ok", {"model": WORD_LEVEL}), ("error", {"version": "2.0", "model": WORD_LEVEL}), ("error", {"version": 1, "model": WORD_LEVEL}), ("error", {"version": "1.0"}),
]  # fmt: skip
VOCAB = '{"model":{"type":"WordLevel","unk_token":"a","vocab":{%s}}}'
TEXTS = [
    ("error", ""), ("error", "[]"), ("error", "{"), ("error", "nul"), ("error", "\ufeff" + json.dumps({"model": WORD_LEVEL})), ("error", json.dumps({"model": WORD_LEVEL}) + " x"),
    ("error", json.dumps({"model": WORD_LEVEL})[:-1] + ",}"), ("refused", '{"version":"1.0","version":"1.0","model":{"type":"WordLevel","unk_token":"a","vocab":{}}}'),
    ("ok", VOCAB % r'"a":0,"\ud83d\ude00":1,"\u00e9\n\"\\\/\b\f\r\t":2'), ("error", VOCAB % r'"\ud83d":1'), ("error", VOCAB % r'"\ude00":1'), ("error", VOCAB % r'"\ud83d\u0041":1'),
    ("error", VOCAB % r'"\x":1'), ("error", VOCAB % '"a\n":1'), ("error", VOCAB % '"a":01'), ("ok", VOCAB % '"a":1,"a":2'), ("error", VOCAB % '"a":1,'), ("error", VOCAB % '"a" 1'),
    ("error", VOCAB % '"a":+1'), ("error", VOCAB % '"a":1}, "x":{"a":tru'), ("ok", VOCAB % '"a":1}, "x":{"a":true'), ("ok", VOCAB % '"a":1},"unk_token":"b","y":{'),
    ("error", '{"model":{"type":"Unigram","vocab":[["a",1e400]]}}'), ("ok", '{"model":{"type":"Unigram","vocab":[["a",-1e-400],["b",1e-5000000000000],["c",0e99999]]}}'),
    ("ok", '{"model":{"unk_token":"a","vocab":{"a":1},"type":"WordLevel","merges":3}}'), ("ok", '{"model":{"merges":[],"vocab":{"a":1},"type":"BPE"}}'),
    ("error", '{"model":{"type":"BPE","merges":[],"merges":[["a","b"]],"vocab":{"a":1}}}'),
    *(("ok" if depth < 126 else "error", VOCAB % ('"a":1},"x":' + "[" * depth + "]" * depth + ',"y":{')) for depth in (120, 125, 126, 100_000)),
]  # fmt: skip


class Models(unittest.TestCase):
    def setUp(self):
        self.posenc, self.package = cases.Posenc(options.cases), cases.Package()
        self.addCleanup(self.posenc.close)
        self.seed = options.seed if options.seed is not None else random.randrange(2**32)

    def each_model(self):
        """Loads random files on both sides; yields their generator of numbers, their words and a text for messages."""
        for number in range(options.models):
            rng = random.Random(f"{self.seed} {number}")
            model, words = model_files.model(rng)
            file = json.dumps({"version": "1.0", "model": model}, ensure_ascii=rng.random() < 0.5)
            where = f"--seed {self.seed}, model {number}: {file}"
            ours, theirs = self.posenc.ask(load=file), self.package.load(file)
            self.assertEqual("error" in ours, "error" in theirs, f"{where}\n{ours}\n{theirs}")
            if "error" not in ours:
                yield rng, model, words, where

    def test_random_models(self):
        texts = errors = 0
        for rng, model, words, where in self.each_model():
            for text in words:
                ours, theirs = self.posenc.ask(encode=text), self.package.encode(text)
                self.assertTrue(cases.same(ours, theirs), f"{where}\n{text!r}\nposenc:  {ours}\npackage: {theirs}")
                texts, errors = texts + 1, errors + ("error" in ours)
            size = self.package.tokenizer.get_vocab_size()
            for one in [*range(min(size, 8)), rng.randrange(2**32)]:
                self.assertEqual(self.posenc.ask(id_to_token=one)["token"], self.package.tokenizer.id_to_token(one), where)
            for token in [*words[:4], *(entry[0] if isinstance(entry, list) else entry for entry in list(model["vocab"])[:8])]:
                self.assertEqual(self.posenc.ask(token_to_id=token)["id"], self.package.tokenizer.token_to_id(token), where)
        self.assertGreater(texts, 15 * options.models)
        self.assertLess(errors, texts // 4)

    def load_decoder(self, rng):
        vocab = sorted({*(model_files.decoded_token(rng) for _ in range(24)), "a"})
        added = [{**TOKEN, "id": vocab.index(token), "content": token, "special": rng.random() < 0.5} for token in rng.sample(vocab, 2) if token]
        file = json.dumps({"model": {**WORD_LEVEL, "vocab": {token: i for i, token in enumerate(vocab)}}, "added_tokens": added,
                           "decoder": rng.choice([model_files.decoder(rng), model_files.decoder(rng), None])})  # fmt: skip
        self.assertEqual(self.package.load(file), {}, file)
        self.assertEqual(self.posenc.ask(load=file), {}, file)
        return len(vocab), file

    def test_random_decoders(self):
        for number in range(2 * options.models):
            rng = random.Random(f"{self.seed} {number}")
            size, file = self.load_decoder(rng)
            for _ in range(4):
                ids = [rng.randrange(size + 1) for _ in range(rng.randint(0, 6))]
                ids = [one for one in ids for _ in range(rng.choice([1, 1, 2]))]
                skip = rng.random() < 0.5
                ours, theirs = self.posenc.ask(decode=ids, skip=skip), self.package.decode(ids, skip)
                self.assertTrue(cases.same(ours, theirs), f"--seed {self.seed}, decoder {number}: {file}\n{ids} {skip}\n{ours}\n{theirs}")

    def test_random_streams(self):
        texts = 0
        for number in range(options.models):
            rng = random.Random(f"{self.seed} {number}")
            size, file = self.load_decoder(rng)
            ids = [rng.randrange(size + 1) for _ in range(20)]
            stream = DecodeStream(skip_special_tokens=True)
            steps = []
            for one in ids:
                step = cases.without_panics(lambda one=one: stream.step(self.package.tokenizer, one))
                if isinstance(step, dict):
                    break
                steps.append(step)
            ours = self.posenc.ask(stream=ids, skip=True)
            self.assertEqual((ours["steps"], "error" in ours), (steps, len(steps) < len(ids)), f"--seed {self.seed}, stream {number}: {file}\n{ids}\n{ours}")
            texts += sum(step is not None for step in steps)
        self.assertGreater(texts, 5 * options.models)

    def test_files(self):
        models = [(kind, json.dumps({"version": "1.0", "model": model})) for kind, model in MODELS]
        for kind, file in [*models, *((kind, json.dumps(file)) for kind, file in FILES), *TEXTS]:
            ours, theirs = self.posenc.ask(load=file), self.package.load(file)
            self.assertEqual("error" in ours, kind != "ok", f"{file[:500]}\n{ours}")
            self.assertEqual("error" in theirs, kind == "error", f"{file[:500]}\n{theirs}")

    def test_serde_json_rounds_scores_in_its_own_way(self):
        """Scores cannot be seen in a result, so each is set beside half of another one: a piece of twice a letter wins from two unless its score is less."""
        rng = random.Random(self.seed)
        for _ in range(20):
            pieces, words = ['["<unk>", 0]'], []
            for i in range(60):
                score = f"-{rng.randrange(10 ** rng.randint(1, 3))}.{rng.randrange(10 ** rng.randint(1, 19))}"
                letter = chr(0x4E00 + i)
                pieces += [f'["{letter}", {score}]', f'["{letter * 2}", {2 * float(score)!r}]']
                words.append(letter * 2)
            file = '{"model":{"type":"Unigram","unk_id":0,"vocab":[%s]}}' % ", ".join(pieces)
            self.assertEqual((self.posenc.ask(load=file), self.package.load(file)), ({}, {}))
            for word in words:
                self.assertTrue(cases.same(self.posenc.ask(encode=word), self.package.encode(word)), f"--seed {self.seed}: {word} in {file}")

    def test_long_words_take_no_longer_than_their_length(self):
        letters = "abcdefgh"
        pairs = [a + b for a in letters for b in letters]
        models = {
            "BPE": ({"type": "BPE", "vocab": {token: i for i, token in enumerate([*letters, *pairs])}, "merges": [[a, b] for a, b in pairs]}, None),
            "a's": (bpe({"a": 0, "aa": 1, "aaaa": 2}, ["a a", "aa aa"]), "a"),
            "Unigram": ({"type": "Unigram", "vocab": [["<unk>", 0], ["a", -1], ["aa", -1.5], ["a" * 50, -9]], "unk_id": 0}, "a"),
            "WordPiece": ({"type": "WordPiece", "vocab": {"u": 0, "a": 1, "##a": 2, "a" * 50_000 + "b": 3}, "unk_token": "u", "continuing_subword_prefix": "##",
                           "max_input_chars_per_word": 10**9}, "a"),
        }  # fmt: skip
        for name, (model, letter) in models.items():
            self.assertEqual(self.posenc.ask(load=json.dumps({"model": model})), {})
            word = letter * 2_000_000 if letter else "".join(letters[i * i // 7 % 8] for i in range(2_000_000))
            self.assertIn("rows", self.posenc.ask(encode=word, ids_only=True), name)  # hangs where each character looks at all others

    def test_many_blanks_take_no_longer_than_their_length(self):
        blank = {**TOKEN, "content": " ", "lstrip": True}
        self.assertEqual(self.posenc.ask(load=json.dumps({"model": WORD_LEVEL, "added_tokens": [blank]})), {})
        # It hangs where each one looks for the beginning of all.
        self.assertEqual(len(self.posenc.ask(encode=" " * 2_000_000, ids_only=True)["rows"][0]["ids"]), 2_000_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    os.environ["RUST_BACKTRACE"] = "0"
    unittest.main(argv=[sys.argv[0], *rest])

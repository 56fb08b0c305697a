#!/usr/bin/env python3
"""Tokenizers and texts that are drawn to take long: time has to be in proportion to the text, and short ones as in the package.

    tests/tokenizers/hostile_test.py --cases build/release/tests/posenc-tokenize-cases [--tokenizers N] [--seed N]
"""

import argparse
import json
import os
import random
import sys
import unittest
from pathlib import Path

import cases
from tokenizers.decoders import DecodeStream

options: argparse.Namespace
BLANKS = [" ", "\t", "\u3000", "\n"]
WORD_LEVEL = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
LENGTH = 100_000  # characters of a long text
SECONDS = 5.0  # most processor time for one, in `make test-all`; where each character takes a look at all others it would be minutes


def seconds(process) -> float:
    """The processor time of another process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def letters(rng):
    return [*rng.sample(BLANKS, rng.randint(1, 3)), *rng.sample(["a", "b", "é", "中"], rng.randint(1, 2))]


def token(rng, alphabet):
    kind = rng.random()
    if kind < 0.6:
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 3)))
    if kind < 0.8:
        return rng.choice(alphabet) * rng.randint(1, 4)
    return rng.choice(alphabet) * rng.choice([70, 1000, 20_000]) + rng.choice(["", rng.choice(alphabet)])


def text(rng, alphabet, length):
    period = "".join(rng.choice(alphabet) for _ in range(rng.choice([1, 1, 2, 3, 5])))
    start = "".join(rng.choice(alphabet) for _ in range(rng.randint(0, 3)))
    return (start + period * (length // len(period) + 1))[:length] + rng.choice(["", "x"])


def component(rng, *kinds):
    return rng.choice([None, *kinds])


def replace(**pattern):
    return {"type": "Replace", "pattern": pattern, "content": "_"}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def tokenizer(rng, alphabet):
    contents = {token(rng, alphabet) for _ in range(rng.randint(1, 5))}
    added = [{"id": 0, "content": content, **{flag: rng.random() < 0.4 for flag in FLAGS}} for content in sorted(contents)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["always", "first"])}
    return {"version": "1.0", "model": WORD_LEVEL, "added_tokens": added, "truncation": None, "padding": None, "decoder": None,
            "normalizer": component(rng, {"type": "NFC"}, {"type": "Lowercase"}, replace(String=" "), replace(Regex=r"\s+b"),
                                    {"type": "Strip", "strip_left": True, "strip_right": False}),
            "pre_tokenizer": component(rng, byte_level, metaspace, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
                                       split(r"\s*[\r\n]+|\s+(?!\S)|\s+"), split("a+b|a")),
            "post_processor": component(rng, byte_level)}  # fmt: skip


class Hostile(unittest.TestCase):
    def setUp(self):
        self.posenc, self.package = cases.Posenc(options.cases), cases.Package()
        self.addCleanup(self.posenc.close)
        self.seed = options.seed if options.seed is not None else random.randrange(2**32)

    def in_time(self, where, **question):
        begin = seconds(self.posenc.process)
        answer = self.posenc.ask(**question)
        if cases.EXHAUSTIVE:
            self.assertLess(seconds(self.posenc.process) - begin, SECONDS, where)
        return answer

    def test_added_tokens(self):
        loaded = 0
        for number in range(options.tokenizers):
            rng = random.Random(f"{self.seed} {number}")
            alphabet = letters(rng)
            file = json.dumps(tokenizer(rng, alphabet), ensure_ascii=False)
            where = f"--seed {self.seed}, tokenizer {number}: {file[:1500]}"
            ours, theirs = self.posenc.ask(load=file), self.package.load(file)
            if "error" in ours:
                self.assertTrue("error" in theirs or any(rule in ours["error"] for rule in ("each. Got", "to nothing", "reasonable time")), f"{where}\n{ours}")
                continue
            loaded += 1
            for _ in range(4):
                short = text(rng, alphabet, rng.randint(1, 300))
                ours, theirs = self.posenc.ask(encode=short), self.package.encode(short)
                if "error" not in ours or "stands for nothing" not in ours["error"]:
                    self.assertTrue(cases.same(ours, theirs), f"{where}\n{short!r}\nposenc:  {ours}\npackage: {theirs}"[:8000])
            long = text(rng, alphabet, LENGTH)
            answer = self.in_time(f"{where}\n{long[:20]!r}", encode=long, tokens=False)
            if "error" in answer:
                self.assertRegex(answer["error"], "reasonable time|tokenizers panics|stands for nothing", where)
        self.assertGreater(loaded, options.tokenizers // 2)

    def test_streams(self):
        """Bytes that never become a character, bytes that do late, and tokens that are skipped."""
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
        fallback = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                     {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}  # fmt: skip
        for decoder, tokens in ((byte_level, ["a", "ä", "¸", "Ń", "<s>"]), (fallback, ["▁a", "<0xE4>", "<0xB8>", "<0xAD>", "<s>"])):
            special = {"id": 4, "content": "<s>", **dict.fromkeys(FLAGS, False), "special": True}
            file = json.dumps({"model": {**WORD_LEVEL, "vocab": {one: i for i, one in enumerate(tokens)}, "unk_token": tokens[0]},
                               "added_tokens": [special], "decoder": decoder})  # fmt: skip
            self.assertEqual((self.posenc.ask(load=file), self.package.load(file)), ({}, {}))
            rng = random.Random(self.seed)
            for _ in range(options.tokenizers):
                ids = [rng.randrange(1, 4) if rng.random() < 0.9 else rng.randrange(5) for _ in range(rng.randint(1, 30))]
                stream, steps = DecodeStream(skip_special_tokens=True), []
                for one in ids:
                    step = cases.without_panics(lambda one=one: stream.step(self.package.tokenizer, one))
                    if isinstance(step, dict):
                        break
                    steps.append(step)
                ours = self.posenc.ask(stream=ids, skip=True)
                self.assertEqual((ours["steps"], "error" in ours), (steps, len(steps) < len(ids)), f"--seed {self.seed}: {file}\n{ids}\n{ours}")
            for period in ([1], [2], [1, 2], [4], [1, 4], [1, 2, 3]):
                ids = [0, *(period * LENGTH)[:LENGTH]]
                self.assertEqual(len(self.in_time(f"{file} {period}", stream=ids, skip=True)["steps"]), LENGTH + 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tokenizers", type=int, default=40)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    os.environ["RUST_BACKTRACE"] = "0"
    unittest.main(argv=[sys.argv[0], *rest])

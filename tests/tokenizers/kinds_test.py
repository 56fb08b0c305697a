#!/usr/bin/env python3
"""Twelve well-known kinds of tokenizer on lines of every script, beside transformers: ids, types, masks, offsets, tokens and decoded text.

    tests/tokenizers/kinds_test.py --cases build/release/tests/posenc-tokenize-cases [--lines N] [--kinds "GPT-2,T5"] [--seed N]
"""

import argparse
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false", RUST_BACKTRACE="0")
import cases
import kinds
from tokenizers.decoders import DecodeStream

options: argparse.Namespace
BATCH, STREAMS = 500, 100


class Kinds(unittest.TestCase):
    def setUp(self):
        self.posenc = cases.Posenc(options.cases)
        self.addCleanup(self.posenc.close)

    def test_kinds(self):
        for kind in options.kinds.split(",") if options.kinds else kinds.KINDS:
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                tokenizer = kinds.make(kind, Path(folder))
                self.assertNotIn("error", self.posenc.ask(folder=folder))
                rng = random.Random(f"{options.seed} {kind}")
                special = [*tokenizer.added_tokens_encoder]
                for _ in range(0, options.lines, BATCH):
                    self.streams(tokenizer, rng, f"--seed {options.seed} --kinds '{kind}'")
                    self.compare(tokenizer, kinds.lines(rng, special, BATCH), f"--seed {options.seed} --kinds '{kind}'")

    def streams(self, tokenizer, rng, where):
        """What a stream gives and its end are together the text of the ids, also where these end inside a character."""
        inside = 0
        for trial in range(STREAMS):
            text = tokenizer(rng.choice(kinds.lines(rng, [], 3)), add_special_tokens=False).input_ids
            ids = text[: rng.randint(0, 12)] + [rng.randrange(len(tokenizer)) for _ in range(rng.randint(1, 4))]
            skip = rng.random() < 0.5
            # A character of four bytes, and two that begin none:
            if trial == 0 and "<0xF1>" in tokenizer.get_vocab():
                skip, ids = False, tokenizer.convert_tokens_to_ids([f"<0x{byte:02X}>" for byte in (0xF1, 0x96, 0xA8, 0x91, 0xE4, 0xBC)])
            whole = tokenizer.backend_tokenizer.decode(ids, skip_special_tokens=skip)
            ours = self.posenc.ask(stream=ids, skip=skip)
            if "error" in ours:  # a token that changes the text before it, as the package refuses it too
                continue
            given, shown = "".join(filter(None, ours["steps"])), f"{ids}, skip {skip}: {ours}, {where}"
            inside += ours["end"] != ""
            if whole.startswith(given):
                self.assertEqual(given + ours["end"], whole, shown)
            else:  # the bytes at the end make a run that is not UTF-8, whose first characters had been given, as the package gives them
                theirs = DecodeStream(skip_special_tokens=skip)
                self.assertEqual(ours["steps"], [theirs.step(tokenizer.backend_tokenizer, id) for id in ids], shown)
                self.assertEqual(set(ours["end"]), {"\ufffd"}, shown)
        if type(tokenizer).__name__ in ("GPT2Tokenizer", "RobertaTokenizer", "Qwen2Tokenizer"):
            self.assertGreater(inside, 0, where)

    def compare(self, tokenizer, lines, where):
        # The second text of each pair is another line.
        for texts, pairs in ((lines, None), (lines[: BATCH // 10], lines[-(BATCH // 10) :])):
            package = tokenizer(texts, pairs, return_token_type_ids=True, return_offsets_mapping=True)
            for i, (text, theirs) in enumerate(zip(texts, package.encodings)):
                pair = pairs and pairs[i]
                (ours,) = self.posenc.ask(encode=text, pair=pair)["rows"]
                ours = {"offsets": [], "tokens": [], **ours}
                shown = f"{text!r}, {pair!r}: {where}"
                self.assertEqual(ours, cases.rows(theirs)[0], shown)
                self.assertEqual(theirs.attention_mask, [1] * len(ours["ids"]), shown)
                for skip in (False, True) if pair is None else ():
                    decoded = tokenizer.decode(ours["ids"], skip_special_tokens=skip)
                    self.assertEqual(self.posenc.ask(decode=ours["ids"], skip=skip)["text"], decoded, f"skip {skip}, {shown}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--lines", type=int, default=10_000 if cases.EXHAUSTIVE else 500)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

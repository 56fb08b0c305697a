"""`posenc tokenize` and `detokenize` with a tokenizer.json that cuts and pads, beside tokenizers; counts, and ids that are none.

    tests/text/commands_test.py --posenc build/release/posenc [--seed N]
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, processors

options: argparse.Namespace
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh", "<p>"]


class Commands(unittest.TestCase):
    def setUp(self):
        self.seed = options.seed if options.seed is not None else random.randrange(2**32)
        self.rng = random.Random(f"{self.seed} {self._testMethodName}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "tokenizer.json"

    def posenc(self, command: str, *arguments, text: str, status: int = 0) -> "list[str]":
        done = subprocess.run([options.posenc, command, self.file, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, status, f"--seed {self.seed}\n{done.stderr}")
        return done.stderr.splitlines() if status else done.stdout.splitlines()

    def tokenizer(self) -> Tokenizer:
        made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
        return made

    def lines(self, count: int) -> "list[str]":
        return [" ".join(self.rng.choice("abcdefghx") for _ in range(self.rng.randint(0, 12))) for _ in range(count)]

    def test_a_file_cuts_and_pads_as_it_says(self):
        for _ in range(12):
            made, draw = self.tokenizer(), self.rng
            if draw.random() < 0.7:
                made.enable_truncation(draw.randint(4, 9), stride=draw.randint(0, 1), strategy="longest_first", direction=draw.choice(["left", "right"]))
            if draw.random() < 0.7:
                length = draw.choice([None, None, 12, 20])
                made.enable_padding(direction=draw.choice(["left", "right"]), pad_id=draw.choice([0, 12]), pad_type_id=draw.choice([0, 1]), length=length,
                                    pad_token="[PAD]", pad_to_multiple_of=draw.choice([None, 4, 8]))  # fmt: skip
                block = json.loads(made.to_str())["padding"]
                block["pad_token"] = WORDS[block["pad_id"]]
                made = Tokenizer.from_str(json.dumps(json.loads(made.to_str()) | {"padding": block}))
            made.save(str(self.file))
            most = (made.truncation or {}).get("max_length", 99)
            lines = [line for line in self.lines(6) if made.padding is None or made.padding["length"] is None or min(most, len(line.split()) + 2) <= made.padding["length"]]
            text = "".join(f"{line}\n" for line in lines)
            found = [json.loads(line) for line in self.posenc("tokenize", "--json", text=text)]
            for line, ours in zip(lines, found, strict=True):
                theirs = made.encode(line)
                expected = {"ids": theirs.ids, "tokens": theirs.tokens, "type_ids": theirs.type_ids, "mask": theirs.attention_mask, "offsets": [list(pair) for pair in theirs.offsets]}
                self.assertEqual(ours, expected, f"--seed {self.seed} {line!r} {made.truncation} {made.padding}")
            self.assertEqual(self.posenc("tokenize", text=text), [" ".join(map(str, made.encode(line).ids)) for line in lines])
            made.no_padding()
            self.assertEqual(self.posenc("tokenize", "--count", text=text), [str(len(made.encode(line).ids)) for line in lines])
            pairs = [f"{a}\t{b}" for a, b in zip(lines, lines[::-1])]
            got = self.posenc("tokenize", "--count", "--pair", "--no-special", "--max-length", 5, text="".join(f"{pair}\n" for pair in pairs))
            made.enable_truncation(5)
            self.assertEqual(got, [str(len(made.encode(*pair.split("\t"), add_special_tokens=False).ids)) for pair in pairs])

    def test_ids_that_are_none(self):
        self.tokenizer().save(str(self.file))
        self.assertEqual(self.posenc("detokenize", text="4 5  6\n"), ["a b c"])
        for ids, rule in [("4 12345678901234567890", "line 2 must have ids from 0 to 4294967295, separated by blanks. Got 12345678901234567890"),
                          ("4294967296", "line 2 must have ids from 0 to 4294967295, separated by blanks. Got 4294967296"),
                          ("-1", "line 2 must have ids from 0 to 4294967295, separated by blanks. Got -1"), ("4 x5", "line 2 must have ids, separated by blanks. Got x5")]:  # fmt: skip
            self.assertIn(rule, self.posenc("detokenize", text=f"4\n{ids}\n", status=1)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

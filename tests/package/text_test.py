#!/usr/bin/env python3
"""A program that links posenc::text alone: it builds, tokenizes, and loads of LibTorch only torch_cpu and c10.

    text_test.py PREFIX    an installed build
"""

import json
import sys
import tempfile
import unittest
from pathlib import Path

from linked_test import needed, run

prefix: Path
TOKENIZER = {"version": "1.0", "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                                         "vocab": {"[PAD]": 0, "[UNK]": 1, "hello": 2, "wor": 3, "##ld": 4}},
             "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
             "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]", "pad_to_multiple_of": None}}  # fmt: skip


class Text(unittest.TestCase):
    def test_a_program_with_nothing_but_posenc_text(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            run("cmake", "-S", Path(__file__).parent / "text_consumer", "-B", root / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
            run("cmake", "--build", root / "build")
            program = root / "build/text_consumer"
            self.assertLessEqual(needed(program), {"torch_cpu", "c10"})
            (root / "good.json").write_text(json.dumps(TOKENIZER))
            (root / "bad.json").write_text(json.dumps(TOKENIZER | {"decoder": {"type": "Nope"}}))
            ids, text, error = run(program, root / "good.json", root / "bad.json").splitlines()
            self.assertEqual((ids.split(), text), ("2 3 4 2 0 0".split(), "hello world"))
            self.assertRegex(error, r"decoder: `type`: must be a decoder of tokenizers 0\.23\. Got .*Nope")


if __name__ == "__main__":
    prefix = Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1])

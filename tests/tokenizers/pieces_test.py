"""SentencePiece models of every kind: how posenc cuts and joins beside the package sentencepiece."""

import argparse
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical")
import cases
import folder_cases
import sentencepiece


class Pieces(unittest.TestCase):
    def setUp(self):
        self.posenc = cases.Posenc(options.cases)
        self.addCleanup(self.posenc.close)

    def test_random_text(self):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        with tempfile.TemporaryDirectory() as folder:
            models = folder_cases.sentencepiece_models(Path(folder), kinds=("unigram", "bpe", "char", "word"))
            for kind, files in models.items():
                for number, file in enumerate(files):
                    rng = random.Random(f"{seed} {kind} {number}")
                    self.model(rng, str(file), f"--seed {seed}, {kind} {number}")

    def model(self, rng, file, where):
        package = sentencepiece.SentencePieceProcessor(model_file=file)
        self.assertEqual(self.posenc.ask(pieces=file), {}, where)
        known = [package.IdToPiece(i) for i in range(package.GetPieceSize())]
        for _ in range(options.texts):
            extra = rng.choice([known, [piece.replace("▁", " ") for piece in known], folder_cases.SENTENCES])
            text = cases.text(rng, extra, rng.choice([3, 12, 12, 60]))
            ours = self.posenc.ask(cut=text)
            self.assertEqual(ours["pieces"], package.encode(text, out_type=str), f"{text!r} {where}")
            ids = package.encode(text, out_type=int)
            # Of a piece that the model does not search, such as <s>, the id is looked up by its text.
            self.assertEqual(ours["ids"], ids, f"{text!r} {where}")
            pieces = rng.choice([ours["pieces"], rng.choices([*known, "zz", "▁zz▁", "<0xE4>", "<0xZZ>"], k=rng.randint(0, 8))])
            self.assertEqual(self.posenc.ask(join=pieces)["text"], package.decode(pieces), f"{pieces!r} {where}")

    def test_long_text(self):
        """Sums of scores beyond 100,000 are moved back; float32 would lose their places otherwise."""
        with tempfile.TemporaryDirectory() as folder:
            for file in folder_cases.sentencepiece_models(Path(folder))["unigram"][:2]:
                package = sentencepiece.SentencePieceProcessor(model_file=str(file))
                self.posenc.ask(pieces=str(file))
                text = " ".join(cases.text(random.Random(i), folder_cases.SENTENCES, 60) for i in range(150))
                self.assertEqual(self.posenc.ask(cut=text)["pieces"], package.encode(text, out_type=str))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--texts", type=int, default=150)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

"""posenc::stop_strings() beside transformers' StopStringCriteria: random ids, and strings cut from their texts."""

import argparse
import json
import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false")
sys.path.append(str(Path(__file__).parents[1] / "tokenizers"))
import cases
import folder_cases
import kinds
import python_cases
import torch
import transformers
from transformers.generation.stopping_criteria import StopStringCriteria

KINDS = ["GPT-2", "T5", "Gemma", "BERT uncased", "NLLB"]
QUESTIONS, ROWS = 12, 4


class StopStrings(unittest.TestCase):
    def setUp(self):
        self.posenc = cases.Posenc(options.cases)
        self.addCleanup(self.posenc.close)

    def test_random_rows(self):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        for kind in KINDS:
            rng = random.Random(f"{seed} {kind}")
            with self.subTest(kind=kind, seed=seed), tempfile.TemporaryDirectory() as folder:
                tokenizer = kinds.make(kind, Path(folder))
                self.assertEqual(self.posenc.ask(folder=folder), {})
                found = [self.question(rng, tokenizer) for _ in range(QUESTIONS)]
                self.assertGreater(sum(found), 0, "some rows must end")

    def test_tokens_that_the_vocabulary_does_not_list(self):
        """Those of M2M-100's languages, and ids beyond them."""
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        rng = random.Random(f"{seed} M2M100")
        with tempfile.TemporaryDirectory() as place:
            models = folder_cases.sentencepiece_models(Path(place))
            compared = sum(self.unlisted(rng, models, f"--seed {seed}") for _ in range(12))
        self.assertGreater(compared, 0)

    def unlisted(self, rng, models, where) -> int:
        with tempfile.TemporaryDirectory() as folder:
            config = python_cases.m2m100(rng, Path(folder), models)
            tokens = list(json.loads((Path(folder) / "vocab.json").read_text()))
            tokens += [token for token in ("<s>", "<pad>", *"end_") if token not in tokens]
            (Path(folder) / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
            (Path(folder) / "tokenizer_config.json").write_text(json.dumps({**config, "tokenizer_class": "M2M100Tokenizer"}))
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            self.assertEqual(self.posenc.ask(folder=folder), {})
            rows = [[rng.randrange(tokenizer.vocab_size + 120) for _ in range(6)] for _ in range(20)] + [[tokenizer.get_lang_id("en"), tokenizer.get_lang_id("ja")]]
            for strings in (["__en__"], ["de"], ["_"], ["e"]):
                try:
                    criterion = StopStringCriteria(tokenizer, strings)
                except ValueError:  # its pieces do not make up "abcdef"
                    return 0
                expected = [[bool(criterion(torch.tensor([row[: end + 1]]), None)[0]) for end in range(len(row))] for row in rows]
                self.assertEqual(self.posenc.ask(strings=strings, rows=rows)["ended"], expected, f"{where} {strings}")
        return 1

    def question(self, rng, tokenizer) -> int:
        most = min(len(tokenizer), 3000)
        rows = [[rng.randrange(most) for _ in range(rng.randint(1, 9))] for _ in range(ROWS)]
        for row in rows[:2]:
            row[:] = tokenizer(rng.choice(["naïve café: 東京 🙂🙂", "It is the end.\n\nOf it", "don't stop"]), add_special_tokens=False)["input_ids"][:12]
        text = rng.choice([tokenizer.decode(row) for row in rows]) or "x"
        strings = []
        for _ in range(rng.randint(1, 3)):
            begin = rng.randrange(len(text))
            strings.append(text[begin : begin + rng.randint(1, 6)])
        try:
            criterion = StopStringCriteria(tokenizer, list(strings))
        except ValueError:  # no token fits
            return 0
        ours = self.posenc.ask(strings=strings, rows=rows)
        expected = [[bool(criterion(torch.tensor([row[: end + 1]]), None)[0]) for end in range(len(row))] for row in rows]
        tokens = [tokenizer.convert_ids_to_tokens(row) for row in rows]
        self.assertEqual(ours.get("ended"), expected, f"{strings} {tokens} {ours}")
        return sum(map(sum, expected))

    def test_errors(self):
        with tempfile.TemporaryDirectory() as folder:
            kinds.make("GPT-2", Path(folder))
            self.posenc.ask(folder=folder)
        for strings in ([], [""], ["a", ""]):
            self.assertIn("must", self.posenc.ask(strings=strings, rows=[[1]])["error"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

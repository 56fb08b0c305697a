"""What the tests of commands on lines of text share: random models in folders, and calls of `posenc`."""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import transformers

options: argparse.Namespace
WORDS = "the a cat dog Sat on Mat river BANK über Naïve hello world , . ! 12 日本".split()
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word.lower() for word in WORDS} | {"Sat", "BANK"}), "##s", "naive", "u", "##ber"]
TOLERANCE = 1e-5
WIDTH, POSITIONS = 16, 20
SEE_PADDING = ["ConvBert", "FNet", "MobileBert"]  # models whose tokens see padding, so that a batch has to be of texts of one length


def write_json(path: Path, value) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


class ModelLines(unittest.TestCase):
    def setUp(self):
        seed = options.seed if options.seed is not None else random.randrange(2**32)
        self.seed = f"--seed {seed}"
        self.rng = random.Random(f"{seed} {self._testMethodName}")
        torch.manual_seed(seed)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def lines(self, count: int) -> list[str]:
        return [" ".join(self.rng.choice(WORDS) for _ in range(self.rng.choice([1, 3, 7, 25]))) for _ in range(count)]

    def file(self, lines: list[str]) -> Path:
        path = self.folder / "lines.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def model(self, name: str, do_lower_case: bool = True, **config):
        """Saves a model of this class with a tokenizer; returns its folder, itself and the tokenizer that its folder gives."""
        folder = self.folder / name
        kind = next((kind for kind in SEE_PADDING if name.startswith(kind)), "Bert")
        sizes = getattr(transformers, f"{kind}Config")(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24, vocab_size=len(VOCAB),
                                        max_position_embeddings=POSITIONS, pad_token_id=0, **config)  # fmt: skip
        model = getattr(transformers, name)(sizes).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
        model.save_pretrained(folder)
        (self.folder / "vocab.txt").write_text("\n".join(VOCAB))
        limit = self.rng.choice([16, 512])
        transformers.BertTokenizer(str(self.folder / "vocab.txt"), do_lower_case=do_lower_case, model_max_length=limit).save_pretrained(folder)
        return folder, model, transformers.AutoTokenizer.from_pretrained(folder)

    def run_posenc(self, *arguments, given: str | None = None) -> str:
        """The output; `notes` is what is said besides."""
        done = subprocess.run([options.posenc, *map(str, arguments)], input=given, capture_output=True, text=True, timeout=3000)
        self.assertEqual(done.returncode, 0, f"{self.seed}\n{done.stderr}")
        self.notes = done.stderr
        return done.stdout

    def refused(self, rule: str, *arguments, given: str | None = None) -> str:
        """What was written before the error, whose message must have `rule` in it."""
        done = subprocess.run([options.posenc, *map(str, arguments)], input=given, capture_output=True, text=True, timeout=3000)
        self.assertNotEqual(done.returncode, 0, self.seed)
        self.assertIn(rule, done.stderr, self.seed)
        return done.stdout

    def json_lines(self, *arguments) -> list[dict]:
        return [json.loads(line) for line in self.run_posenc(*arguments).splitlines()]

    def close(self, got: torch.Tensor, expected: torch.Tensor) -> None:
        self.assertEqual(got.shape, expected.shape, self.seed)
        worst = (got - expected).abs().max().item()
        self.assertLessEqual(worst, TOLERANCE * max(1.0, expected.abs().max().item()), self.seed)

    def limit(self, tokenizer) -> int:
        return min(tokenizer.model_max_length, POSITIONS)


def main() -> None:
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], *rest])

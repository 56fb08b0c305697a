#!/usr/bin/env python3
"""What docs/from_torchscript.md says of files: their tensors, a model's folder made of one, and those that have none.

    tests/docs/from_torchscript_test.py --posenc build/release/posenc --seed 1
"""

import argparse
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

options: argparse.Namespace
SIZES = dict(vocab_size=40, hidden_size=32, num_attention_heads=4, intermediate_size=48, max_position_embeddings=32)
WIDTH = 32


class Wrapper(torch.nn.Module):
    """What people trace, since a model returns no tuple."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, ids, mask):
        return self.bert(input_ids=ids, attention_mask=mask).last_hidden_state


def posenc(*arguments) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([options.posenc, *map(str, arguments)], capture_output=True, text=True)


class FromTorchScript(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")  # TorchScript's deprecation, and the tracer's
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = Path(place.name)
        torch.manual_seed(options.seed)
        rng = random.Random(options.seed)
        self.config = transformers.BertConfig(**SIZES, num_hidden_layers=rng.randint(1, 3))
        self.model = Wrapper(transformers.BertModel(self.config)).eval()
        self.ids = torch.randint(4, 40, (2, rng.randint(5, 9)))
        self.mask = torch.ones_like(self.ids)
        self.mask[1, 3:] = 0
        self.traced = torch.jit.trace(self.model, (self.ids, self.mask))

    def run_posenc(self, *arguments):
        done = posenc(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_folder_with_the_tensors_of_a_trace(self):
        self.traced.save(self.folder / "bert.pt")
        self.config.save_pretrained(self.folder)
        self.run_posenc("convert", self.folder / "bert.pt", self.folder / "model.safetensors")
        save_file({"input_ids": self.ids, "attention_mask": self.mask}, self.folder / "ids.safetensors")
        self.run_posenc("encode", self.folder, "--in", self.folder / "ids.safetensors", "--out", self.folder / "out.safetensors")
        found = load_file(self.folder / "out.safetensors")["last_hidden_state"]
        with torch.no_grad():
            expected = self.traced(self.ids, self.mask)
        real = self.mask.bool()
        self.assertLess((found - expected)[real].abs().max().item(), 1e-5 * max(1, expected[real].abs().max().item()))

    def test_names_and_values_are_those_of_the_state_dict(self):
        module = torch.nn.Sequential(torch.nn.Embedding(7, WIDTH), torch.nn.Linear(WIDTH, 3))
        torch.jit.script(module).save(self.folder / "own.pt")
        torch.export.save(torch.export.export(module, (self.ids % 7,)), self.folder / "own.pt2")
        for name in ("own.pt", "own.pt2"):
            self.run_posenc("convert", self.folder / name, self.folder / "own.safetensors")
            found = load_file(self.folder / "own.safetensors")
            self.assertEqual(set(found), set(module.state_dict()), name)
            for key, value in module.state_dict().items():
                self.assertTrue(found[key].equal(value), f"{name} {key}")

    def test_a_frozen_file_is_an_error_that_says_what_to_save(self):
        for name, module in [("freeze", torch.jit.freeze(self.traced)), ("optimized", torch.jit.optimize_for_inference(self.traced))]:
            path = self.folder / f"{name}.pt"
            module.save(path)
            done = posenc("convert", path, self.folder / "none.safetensors")
            self.assertEqual(done.returncode, 1, name)
            self.assertRegex(done.stderr, r"is frozen TorchScript .*save the module", name)
            self.assertFalse((self.folder / "none.safetensors").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True, help="the command line's binary")
    parser.add_argument("--seed", type=int, default=1)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

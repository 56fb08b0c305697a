#!/usr/bin/env python3
"""The small programs of examples/, built with an installed posenc: they do what their first lines say.

tests/package/examples_test.py FOLDER LIVE    the folder of their build, and that of small models
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

with_sentences = unittest.skipIf(importlib.util.find_spec("sentence_transformers") is None, "needs sentence-transformers")

ROOT = Path(__file__).resolve().parent.parent.parent
programs: Path
live: Path


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, name: str, *arguments: object, status: int = 0) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run([programs / name, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def test_neighbours_prints_the_nearest_lines(self):
        (self.folder / "lines.txt").write_text("how do i bake bread\nwhere is the cat\n\nrates rise again\n")
        printed = self.run_program("neighbours/neighbours", live / "encoder/emotions", "lines.txt", "where is the cat", 2).stdout.splitlines()
        self.assertEqual(len(printed), 2)
        cosine, line = printed[0].split("\t")
        self.assertEqual(line, "where is the cat")
        self.assertAlmostEqual(float(cosine), 1.0, places=5)
        self.assertIn("no-such-model", self.run_program("neighbours/neighbours", "no-such-model", "lines.txt", "x", status=1).stderr)

    def test_search_prints_the_best_lines(self):
        (self.folder / "lines.txt").write_text("how do i bake bread\nwhere is the cat\n\nrates rise again\n")
        arguments = [live / "encoder/bert", live / "encoder/reranker", "lines.txt", "where is the cat", 2]
        scores, lines = zip(*(line.split("\t") for line in self.run_program("search/dense", *arguments).stdout.splitlines()))
        self.assertEqual(len(set(lines)), 2)
        self.assertGreaterEqual(float(scores[0]), float(scores[1]))
        self.assertIn("no-such-model", self.run_program("search/dense", "no-such-model", *arguments[1:], status=1).stderr)

    @with_sentences
    def test_sparse_search_finds_what_the_package_finds(self):
        from sentence_transformers import SparseEncoder

        (self.folder / "lines.txt").write_text("how do i bake bread\nwhere is the cat\n\nrates rise again\n")
        arguments = [live / "encoder/masked", "lines.txt", "where is the cat", 2]
        lines = self.run_program("search/sparse", *arguments).stdout.splitlines()
        model = SparseEncoder(str(live / "encoder/masked"), device="cpu")
        texts = ["how do i bake bread", "where is the cat", "rates rise again"]
        expected = model.similarity(model.encode_query(["where is the cat"]), model.encode_document(texts))[0]
        self.assert_best(lines, texts, expected)
        self.assertIn("no-such-model", self.run_program("search/sparse", "no-such-model", *arguments[1:], status=1).stderr)

    @with_sentences
    def test_late_interaction_finds_what_the_package_finds(self):
        from sentence_transformers import MultiVectorEncoder
        from sentence_transformers.base.modules import Normalize, Transformer

        (self.folder / "lines.txt").write_text("how do i bake bread\nwhere is the cat\n\nrates rise again\n")
        encoder = Transformer(str(live / "encoder/bert"), query_expansion={"strategy": "fixed", "length": 12})
        model = MultiVectorEncoder(modules=[encoder, Normalize("token_embeddings")], device="cpu")
        model.save_pretrained(str(self.folder / "model"), create_model_card=False)
        lines = self.run_program("search/late", "model", "lines.txt", "where is the cat", 2).stdout.splitlines()
        texts = ["how do i bake bread", "where is the cat", "rates rise again"]
        self.assert_best(lines, texts, model.similarity(model.encode_query(["where is the cat"]), model.encode_document(texts))[0])
        self.assertIn("no-such-model", self.run_program("search/late", "no-such-model", "lines.txt", "x", status=1).stderr)

    def assert_best(self, lines: list[str], texts: list[str], scores: torch.Tensor):
        best = scores.topk(2)
        self.assertEqual([line.split("\t")[1] for line in lines], [texts[i] for i in best.indices])
        for line, score in zip(lines, best.values):
            self.assertAlmostEqual(float(line.split("\t")[0]) / float(score), 1.0, places=4)

    def test_own_class_computes_what_python_computes_and_its_test_finds_a_difference(self):
        golden = ROOT / "examples/own_class/golden.safetensors"
        shutil.copy(golden, self.folder)
        self.assertIn("PASSED", self.run_program("own_class/tagger_test").stdout)
        with safe_open(golden, "pt") as file:
            tensors, metadata = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()
        save_file(tensors | {"param.attn.v.bias": tensors["param.attn.v.bias"] + 0.01}, self.folder / golden.name, metadata)
        self.assertIn("output 'output': ", self.run_program("own_class/tagger_test", status=1).stdout)

    def test_finetune_writes_a_folder_that_transformers_opens(self):
        (self.folder / "pairs.tsv").write_text("hello\thallo\ngood day\tguten tag\n" * 4)
        model, out = live / "marian/shared", self.folder / "out"
        self.assertEqual(self.run_program("finetune/finetune", model, "pairs.tsv", out, 4).stdout, f"saved {out}\n")
        loaded, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(out, output_loading_info=True)
        self.assertFalse(any(info.values()), info)
        before = transformers.AutoModelForSeq2SeqLM.from_pretrained(model)
        self.assertGreater((loaded.model.shared.weight - before.model.shared.weight).abs().max().item(), 1e-6)
        for path in (model / "source.spm", model / "vocab.json"):
            self.assertEqual(path.read_bytes(), (out / path.name).read_bytes())
        self.assertFalse(Path(f"{out}.checkpoint").exists())


if __name__ == "__main__":
    programs, live = (Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main()

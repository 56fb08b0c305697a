#!/usr/bin/env python3
"""`posenc encode --text`, `classify` and `fill` beside AutoTokenizer, torch and the pipelines of transformers, on random BERT models.

    tests/text/sentences_test.py --posenc build/release/posenc [--seed N]
"""

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
from safetensors.torch import load_file, save_file
from tokenizers import normalizers

options: argparse.Namespace
WORDS = "the a cat dog Sat on Mat river BANK über Naïve hello world , . ! 12 日本".split()
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({word.lower() for word in WORDS} | {"Sat", "BANK"}), "##s", "naive", "u", "##ber"]
TOLERANCE = 1e-5
WIDTH, POSITIONS = 16, 20
SEE_PADDING = ["ConvBert", "FNet", "MobileBert"]  # models whose tokens see padding, so that a batch has to be of texts of one length


def write_json(path: Path, value) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value))


class Sentences(unittest.TestCase):
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

    def run_posenc(self, *arguments) -> str:
        done = subprocess.run([options.posenc, *map(str, arguments)], capture_output=True, text=True, timeout=3000)
        self.assertEqual(done.returncode, 0, f"{self.seed}\n{done.stderr}")
        return done.stdout

    def json_lines(self, *arguments) -> list[dict]:
        return [json.loads(line) for line in self.run_posenc(*arguments).splitlines()]

    def vectors(self, folder: Path, lines: list[str], *more) -> torch.Tensor:
        out = self.folder / "out.safetensors"
        self.run_posenc("encode", folder, "--text", self.file(lines), "--out", out, *more)
        return load_file(out)["embeddings"]

    def close(self, got: torch.Tensor, expected: torch.Tensor) -> None:
        self.assertEqual(got.shape, expected.shape, self.seed)
        worst = (got - expected).abs().max().item()
        self.assertLessEqual(worst, TOLERANCE * max(1.0, expected.abs().max().item()), self.seed)

    def hidden(self, model, tokenizer, text: str, limit: int) -> torch.Tensor:
        """The last hidden state of one text alone."""
        given = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            return model(**given).last_hidden_state[0]

    def limit(self, tokenizer) -> int:
        return min(tokenizer.model_max_length, POSITIONS)

    def test_folder_without_stages(self):
        folder, model, tokenizer = self.model("BertModel")
        lines = self.lines(9)
        expected = [self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines]
        self.close(self.vectors(folder, lines, "--batch", self.rng.randint(1, 9)), torch.stack(expected))

    def test_each_text_is_as_if_alone(self):
        for kind in SEE_PADDING:
            folder, model, tokenizer = self.model(f"{kind}Model")
            lines = self.lines(9)
            expected = [self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines]
            self.close(self.vectors(folder, lines), torch.stack(expected))

    def test_stages_and_prompts(self):
        folder, model, tokenizer = self.model("BertModel")
        most = self.rng.choice([None, 8, POSITIONS])
        prompts = {"query": "hello world ", "passage": "the cat"}
        kinds = ["Transformer", "Pooling", "Dense", "Normalize"]
        write_json(folder / "modules.json", [{"idx": i, "name": str(i), "path": "" if i == 0 else f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"}
                                             for i, kind in enumerate(kinds)])  # fmt: skip
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": most, "do_lower_case": False})
        write_json(folder / "config_sentence_transformers.json", {"prompts": prompts, "default_prompt_name": "query"})
        pooling = self.rng.choice(["pooling_mode_mean_tokens", "pooling_mode_cls_token", "pooling_mode_lasttoken", "pooling_mode_max_tokens"])
        write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, pooling: True})
        write_json(folder / "2_Dense/config.json", {"in_features": WIDTH, "out_features": 8, "bias": True})  # no activation: Tanh
        dense = torch.nn.Linear(WIDTH, 8)
        save_file({f"linear.{name}": value.detach() for name, value in dense.named_parameters()}, folder / "2_Dense/model.safetensors")
        pool = {"pooling_mode_mean_tokens": lambda rows: rows.mean(0), "pooling_mode_cls_token": lambda rows: rows[0],
                "pooling_mode_lasttoken": lambda rows: rows[-1], "pooling_mode_max_tokens": lambda rows: rows.amax(0)}[pooling]  # fmt: skip
        lines = self.lines(9)
        for prompt, more in [("hello world ", []), ("the cat", ["--prompt", "passage"]), ("", ["--prompt", ""]), ("on ", ["--prompt-text", "on "])]:
            rows = [pool(self.hidden(model, tokenizer, prompt + line, most or self.limit(tokenizer))) for line in lines]
            with torch.no_grad():
                expected = torch.nn.functional.normalize(dense(torch.stack(rows)).tanh(), dim=-1)
            self.close(self.vectors(folder, lines, *more), expected)
            cut = torch.nn.functional.normalize(expected[:, :5], dim=-1)
            self.close(self.vectors(folder, lines, *more, "--truncate-dim", 5, "--normalize"), cut)

    def test_lowercase_before_the_tokenizer(self):
        folder, model, tokenizer = self.model("BertModel", do_lower_case=False)
        lines = ["Sat BANK", "THE Cat SAT", *self.lines(5)]
        plain = self.vectors(folder, lines)
        write_json(folder / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                                             {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])  # fmt: skip
        write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True})
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": None, "do_lower_case": True})
        backend = tokenizer.backend_tokenizer
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), backend.normalizer])
        expected = torch.stack([self.hidden(model, tokenizer, line, self.limit(tokenizer)).mean(0) for line in lines])
        self.assertGreater((plain - expected).abs().max().item(), 0.01)  # the case of letters matters to this model
        self.close(self.vectors(folder, lines), expected)

    def test_labels_of_sequences(self):
        for labels in (1, 3):
            problem = self.rng.choice([None, "multi_label_classification", "regression"])
            folder, _, tokenizer = self.model("BertForSequenceClassification", num_labels=labels, problem_type=problem)
            pipeline = transformers.pipeline("text-classification", str(folder), top_k=None, device="cpu")
            lines = self.lines(8)
            got = self.json_lines("classify", folder, "--text", self.file(lines), "--batch", self.rng.randint(1, 8))
            expected = [pipeline([line], truncation=True, max_length=self.limit(tokenizer))[0] for line in lines]
            self.assertEqual(len(got), len(lines))
            for ours, theirs in zip(got, expected):
                theirs = {one["label"]: one["score"] for one in theirs}
                self.assertEqual(set(ours["scores"]), set(theirs), self.seed)
                self.close(torch.tensor([ours["scores"][name] for name in theirs]), torch.tensor(list(theirs.values())))
                self.assertEqual(ours["label"], max(ours["scores"], key=ours["scores"].get))

    def test_pairs(self):
        folder, model, tokenizer = self.model("BertForSequenceClassification", num_labels=1)
        pairs = list(zip(self.lines(6), ["", *self.lines(5)]))
        write_json(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.activation.Tanh",
                                                                  "prompts": {"query": "hello world "}, "default_prompt_name": "query"})  # fmt: skip
        file = self.file([f"{a}\t{b}" for a, b in pairs])
        for prompt, more in [("hello world ", []), ("", ["--prompt", ""]), ("the ", ["--prompt-text", "the "]), ("hello world ", ["--prompt", "query"])]:
            got = self.json_lines("classify", folder, "--pair", "--text", file, *more)
            self.assertEqual(len(got), len(pairs))
            for ours, (a, b) in zip(got, pairs):
                # A batch, as an empty second text is no pair in a call for one text.
                given = tokenizer([prompt + a], [b], truncation="longest_first", max_length=self.limit(tokenizer), return_tensors="pt")
                with torch.no_grad():
                    self.close(torch.tensor([ours["score"]]), model(**given).logits[0].tanh())

    def test_prompts_that_are_refused(self):
        folder, _, _ = self.model("BertForTokenClassification", num_labels=3)
        for more, rule in [(["--prompt", "query"], "must be one of the folder's (it has none). Got query"), (["--prompt-text", "a "], "a prompt is not for it")]:
            done = subprocess.run([options.posenc, "classify", folder, "--text", self.file(["the cat"]), *more], capture_output=True, text=True, timeout=3000)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(rule, done.stderr)

    def test_labels_of_tokens(self):
        folder, _, tokenizer = self.model("BertForTokenClassification", num_labels=3)
        pipeline = transformers.pipeline("token-classification", str(folder), ignore_labels=[], device="cpu")
        pipeline.tokenizer.model_max_length = self.limit(tokenizer)
        lines = self.lines(8)
        got = self.json_lines("classify", folder, "--text", self.file(lines))
        self.assertEqual(len(got), len(lines))
        for line, ours in zip(lines, got):
            theirs = pipeline(line)
            self.assertEqual([(one["label"], one["begin"], one["end"], one["text"]) for one in ours["tokens"]],
                             [(one["entity"], one["start"], one["end"], line[one["start"] : one["end"]]) for one in theirs], self.seed)  # fmt: skip
            self.close(torch.tensor([one["score"] for one in ours["tokens"]]), torch.tensor([float(one["score"]) for one in theirs]))

    def test_masks(self):
        folder, _, _ = self.model("BertForMaskedLM")
        pipeline = transformers.pipeline("fill-mask", str(folder), top_k=4, device="cpu")
        lines = ["the [MASK] Sat on the Mat", "hello [MASK] [MASK] .", "[MASK]"]
        got = self.json_lines("fill", folder, "--top", 4, "--text", self.file(lines))
        self.assertEqual(len(got), len(lines))
        for line, ours in zip(lines, got):
            theirs = pipeline(line)
            theirs = [theirs] if isinstance(theirs[0], dict) else theirs
            self.assertEqual([[(one["id"], one["token"]) for one in mask] for mask in ours["masks"]],
                             [[(one["token"], one["token_str"]) for one in mask] for mask in theirs], self.seed)  # fmt: skip
            self.close(torch.tensor([[one["score"] for one in mask] for mask in ours["masks"]]), torch.tensor([[one["score"] for one in mask] for mask in theirs]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    warnings.filterwarnings("ignore")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], *rest])

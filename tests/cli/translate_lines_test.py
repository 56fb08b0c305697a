"""`posenc translate` and `posenc generate`: languages, whose value an error names, windows of batches, and samples, beside transformers.

    tests/cli/translate_lines_test.py --posenc build/release/posenc [--seed N]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/differential"), str(ROOT / "tests/models/marian")]
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false")
import make_models  # noqa: E402
import tokenizer_folders  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

options: argparse.Namespace
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "max_position_embeddings": 24, "init_std": 0.5}  # fmt: skip
MBART, NLLB = ["ar_AR", "de_DE", "en_XX", "fr_XX", "ja_XX"], ["deu_Latn", "eng_Latn", "fra_Latn", "zul_Latn"]


def words() -> dict[str, int]:
    letters = sorted(set("".join(tokenizer_folders.WORDS)))
    return {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *sorted("▁" + word for word in tokenizer_folders.WORDS if word), *letters, "▁"])}


TOKENIZERS = {
    "mBART": (lambda: transformers.MBartTokenizer(**tokenizer_folders.unigrams()), MBART),
    "NLLB": (lambda: transformers.NllbTokenizer(vocab=words(), merges=[]), NLLB),
    "NLLB, legacy": (lambda: transformers.NllbTokenizer(vocab=words(), merges=[], legacy_behaviour=True), NLLB),
}


class TranslateLines(unittest.TestCase):
    def setUp(self):
        self.seed = options.seed if options.seed is not None else random.randrange(2**32)
        self.rng = random.Random(f"{self.seed} {self._testMethodName}")
        torch.manual_seed(self.seed)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def posenc(self, *arguments, text: str | None = None, refused: bool = False) -> str:
        done = subprocess.run([options.posenc, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=250)
        where = f"--seed {self.seed}: {arguments}\n{done.stdout}{done.stderr}"
        self.assertEqual(done.returncode, 1 if refused else 0, where)
        if refused:
            self.assertEqual(done.stdout, "", where)
        return done.stderr if refused else done.stdout

    def model_with(self, name: str):
        """A folder with an untrained model for this tokenizer, and the tokenizer."""
        folder = self.folder / name.replace(", ", "-")
        TOKENIZERS[name][0]().save_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        of = "MBart" if name == "mBART" else "M2M100"
        config = getattr(transformers, f"{of}Config")(vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, bos_token_id=0, **SIZES)
        getattr(transformers, f"{of}ForConditionalGeneration")(config).save_pretrained(folder)
        return folder, tokenizer

    def marian(self) -> Path:
        folder = self.folder / "marian"
        make_models.make_tokenizer(folder, separate=False)
        vocabulary = json.loads((folder / "vocab.json").read_text())
        vocabulary[">>fr<<"] = len(vocabulary)
        (folder / "vocab.json").write_text(json.dumps(vocabulary))
        pad = vocabulary["<pad>"]
        config = transformers.MarianConfig(vocab_size=len(vocabulary), decoder_vocab_size=len(vocabulary), pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, forced_eos_token_id=None, **SIZES)
        model = transformers.MarianMTModel(config)
        model.generation_config.update(max_length=None, max_new_tokens=6, bad_words_ids=[[pad]])
        model.save_pretrained(folder)
        return folder

    def test_the_language_of_a_source_is_that_of_the_option(self):
        for name, (_, codes) in TOKENIZERS.items():
            folder, tokenizer = self.model_with(name)
            source, target = self.rng.sample(codes, 2)
            lines = [f"{self.rng.choice(codes)} hello", f"hello {self.rng.choice(codes)}", self.rng.choice(codes), "hello world", f"{source} {target} the cat"]
            out = self.posenc("translate", "--model", folder, "--src-lang", source, "--tgt-lang", target, "--max-length", 1, "--json", "--alignments", text="".join(f"{line}\n" for line in lines))
            tokenizer.src_lang = source
            got = [json.loads(line)["source_ids"] for line in out.splitlines()]
            self.assertEqual(got, [tokenizer(line).input_ids for line in lines], f"--seed {self.seed}: {name} {source} {lines}")

    def test_a_language_of_a_line_precedes_that_of_the_option(self):
        folder = self.marian()
        answer = dict(zip(("fr", "de", "none"), self.posenc("translate", "--model", folder, text=">>fr<< six\n>>de<< six\nsix\n").split("\n")))
        self.assertEqual(self.posenc("translate", "--model", folder, "--tgt-lang", "de", text=">>fr<< six\nsix\n").split("\n"), [answer["fr"], answer["de"], ""])

    def test_errors_name_whose_value_it_was(self):
        folder = self.marian()
        given, out = self.folder / "in.safetensors", self.folder / "out.safetensors"
        save_file({"input_ids": torch.tensor([[5, 6, 0]])}, given)
        generate = ["generate", folder, "--in", given, "--out", out]
        for setting, rule in [("num_beams=0", "num_beams must be an integer from 1"), ("top_p=[]", ""), ("max_new_tokens=1000", "max_new_tokens must be at most the model's max_len 24. Got 1000"),
                              ("no_such=3", "no_such must be a setting of transformers' generate()"), ("eos_token_id=100000", "eos_token_id must be a token")]:  # fmt: skip
            error = self.posenc(*generate, "--set", setting, "--set", "do_sample=true", refused=True)
            self.assertIn(f"--set {rule or 'top_p must be a number'}", error)
            self.assertNotIn("generation_config.json", error)
        for text in ("six\n", "\n", ""):
            error = self.posenc("translate", folder, "--max-length", 1000, text=text, refused=True)
            self.assertIn("--max-length must be at most the model's max_len 24. Got 1000", error)
        settings = json.loads((folder / "generation_config.json").read_text())
        for own, rule in [({"num_beams": 0}, "num_beams must be an integer from 1"), ({"max_new_tokens": 1000}, "max_new_tokens must be at most the model's max_len 24")]:
            (folder / "generation_config.json").write_text(json.dumps(settings | own))
            self.assertIn(f"generation_config.json: {rule}", self.posenc(*generate, refused=True))
            self.assertIn(f"generation_config.json: {rule}", self.posenc("translate", folder, text="", refused=True))

    def test_windows_grow_from_one_batch(self):
        """A line that is cut has its warning when it is read, so that warnings and answers in one file show what is read at a time."""
        folder = self.marian()
        lines = self.folder / "lines.txt"
        lines.write_text("".join("six " * 40 + "\n" for _ in range(240)))
        both = self.folder / "both.txt"
        with both.open("ab") as file:
            done = subprocess.run([options.posenc, "translate", "--model", folder, lines, "--truncate", "--max-length", "1", "--batch", "48"], stdout=file, stderr=file, timeout=250)
        self.assertEqual(done.returncode, 0)
        windows, before = [], False
        for line in both.read_text().splitlines():
            is_warning = "was truncated" in line
            if is_warning and not before:
                windows.append(0)
            windows[-1] += is_warning
            before = is_warning
        self.assertEqual(windows, [2, 4, 8, 16, 32, 32, 32, 32, 32, 32, 18])  # two lines a batch

    def test_the_model_may_be_the_first_argument(self):
        folder = self.marian()
        lines = self.folder / "lines.txt"
        lines.write_text("six\nseven\n")
        expected = self.posenc("translate", "--model", folder, lines)
        self.assertEqual(self.posenc("translate", folder, lines), expected)
        self.assertEqual(self.posenc("translate", folder, text="six\nseven\n"), expected)
        self.assertEqual(self.posenc("translate", "--model", folder, "-", text="six\nseven\n"), expected)
        for arguments, rule in [([], "MODEL_DIR is required"), (["--model", folder, folder, lines], "--model and MODEL_DIR exclude each other")]:
            done = subprocess.run([options.posenc, "translate", *map(str, arguments)], capture_output=True, text=True, timeout=250, input="")
            self.assertEqual(done.returncode, 2)
            self.assertIn(rule, done.stderr)

    def test_samples_are_in_the_order_drawn(self):
        folder = self.marian()
        model = transformers.MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
        given, out = self.folder / "in.safetensors", self.folder / "out.safetensors"
        for _ in range(4):
            ids = torch.tensor([[self.rng.randrange(3, 60) for _ in range(5)] + [0]])
            seed = self.rng.randrange(2**31)
            save_file({"input_ids": ids}, given)
            settings = {"do_sample": True, "num_return_sequences": 6, "max_new_tokens": 6, "eos_token_id": None, "top_k": 0}
            self.posenc("generate", folder, "--in", given, "--out", out, "--seed", seed, *(f"--set={name}={json.dumps(value)}" for name, value in settings.items()))
            model.generation_config.eos_token_id = None
            torch.manual_seed(seed)
            theirs = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=True, num_return_sequences=6, max_new_tokens=6, top_k=0)
            self.assertEqual(load_file(out)["sequences"].tolist(), theirs.tolist(), f"--seed {self.seed}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    torch.set_num_threads(1)
    unittest.main(argv=[sys.argv[0], *rest])

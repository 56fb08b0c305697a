#!/usr/bin/env python3
"""The commands, files and names mentioned in the documents exist; `posenc` lines are run.

    tests/docs/commands_test.py --posenc build/release/posenc --pronounce build/release/posenc-pronounce --live build/release/live
"""

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
import wave
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FOREIGN = {"convert_hf_to_gguf.py", "cuda.h", "tagger_test.cpp"}  # source files outside this tree
FOLDERS = r"(?:include|src|examples|tests|docs|tools|cmake|notebooks_ref)"
options: argparse.Namespace


@cache
def text(path: Path) -> str:
    return path.read_text()


@cache
def help_of(program: str, *words: str) -> str:
    return subprocess.run([program, *words, "--help"], capture_output=True, text=True, check=True).stdout


@cache
def tree() -> "list[str]":
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    return [str(path.relative_to(ROOT)) for folder in FOLDERS[3:-1].split("|") for path in (ROOT / folder).rglob("*")]


def shell_lines() -> "list[tuple[str, str]]":
    """(where, line) for every ```sh block."""
    found = []
    for path in DOCUMENTS:
        inside = False
        for number, line in enumerate(text(path).splitlines(), 1):
            if line.startswith("```"):
                inside = line == "```sh"
            elif inside and line.strip() and not line.startswith("#"):
                found.append((f"{path.relative_to(ROOT)}:{number}", line))
    return found


def commands(line: str) -> "list[list[str]]":
    """The commands in a shell line, without redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&>;")
    lexer.whitespace_split = True
    found, words = [[]], iter(lexer)
    for word in words:
        if set(word) <= set("|&;"):
            found.append([])
        elif set(word) <= set(">"):
            next(words)
        else:
            found[-1].append(word)
    return [command for command in found if command]


@cache
def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", text(path), flags=re.S | re.M)


def in_backticks() -> "list[tuple[str, str]]":
    """(document, word) for each `word` in the text, outside code blocks."""
    return [(str(path.relative_to(ROOT)), word) for path in DOCUMENTS for word in re.findall(r"`([^`\n]+)`", prose(path))]


def make_model(folder: Path) -> None:
    """Writes model.safetensors, the notebook's Transformer."""
    sys.path.insert(0, str(ROOT / "notebooks_ref"))
    from reference.transformer import Transformer
    from safetensors.torch import save_file

    model = Transformer(20, 30, d_model=16, num_heads=8, num_encoder_layers=1, num_decoder_layers=1, d_ff=24, max_seq_length=12)
    save_file(model.state_dict(), folder / "model.safetensors")


def make_adapter(folder: Path) -> None:
    """Writes adapters/sentiment, an adapter of PEFT for models/bert-base-uncased."""
    import torch
    from safetensors.torch import save_file

    adapter = folder / "adapters" / "sentiment"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["query"]}')
    module = "base_model.model.bert.encoder.layer.{}.attention.self.query"
    save_file({f"{module.format(layer)}.{part}.weight": torch.randn(size) for layer in range(2) for part, size in (("lora_A", (2, 16)), ("lora_B", (16, 2)))},
              adapter / "adapter_model.safetensors")  # fmt: skip


def make_rotary(folder: Path) -> None:
    """Writes config.json, a Llama's, and qk.safetensors with as many heads as tokens: either layout fits."""
    import torch
    from safetensors.torch import save_file

    (folder / "config.json").write_text('{"model_type": "llama", "head_dim": 8}')
    heads = {name: torch.randn(1, 4, 4, 8) for name in "qk"}
    save_file({"position_ids": torch.arange(4)[None], **heads}, folder / "qk.safetensors")
    ids = torch.tensor([[7, 9, 5, 0]])
    save_file({"input_ids": ids, "decoder_input_ids": ids.clone()}, folder / "ids.safetensors")
    save_file({"grid": torch.tensor([14, 14])}, folder / "patches.safetensors")
    save_file({"position_ids": torch.arange(12).view(4, 3)}, folder / "flux_ids.safetensors")


def make_sentences(folder: Path) -> None:
    """Writes sentences.safetensors and prompts.safetensors, ids with their mask, of BERT's vocabulary and of any."""
    import torch
    from safetensors.torch import save_file

    ids = torch.tensor([[101, 7592, 2088, 102], [101, 7592, 102, 0]])
    save_file({"input_ids": ids, "attention_mask": (ids != 0).long()}, folder / "sentences.safetensors")
    prompts = torch.tensor([[0, 7, 9, 5], [4, 8, 6, 3]])
    save_file({"input_ids": prompts, "attention_mask": (prompts != 0).long()}, folder / "prompts.safetensors")


def make_retrieval(folder: Path, live: Path) -> None:
    """Writes models/splade, a SparseEncoder, and models/router, of which both routes have one encoder."""
    package = "sentence_transformers"
    splade, router = folder / "models" / "splade", folder / "models" / "router"
    shutil.copytree(live / "encoder" / "masked", splade)
    stages = [{"name": "0", "path": "", "type": f"{package}.sparse_encoder.models.MLMTransformer"},
              {"name": "1", "path": "pooling", "type": f"{package}.sparse_encoder.models.SpladePooling"}]  # fmt: skip
    (splade / "modules.json").write_text(json.dumps(stages))
    (splade / "pooling").mkdir()
    (splade / "pooling" / "config.json").write_text("{}")
    (splade / "config_sentence_transformers.json").write_text('{"model_type": "SparseEncoder"}')
    shutil.copytree(live / "encoder" / "bert", router / "encoder")
    (router / "pooling").mkdir()
    (router / "pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    (router / "modules.json").write_text(json.dumps([{"name": "0", "path": "", "type": f"{package}.models.Router"}]))
    routes = {route: ["encoder", "pooling"] for route in ("query", "document")}
    types = {"encoder": f"{package}.models.Transformer", "pooling": f"{package}.models.Pooling"}
    (router / "router_config.json").write_text(json.dumps({"types": types, "structure": routes, "parameters": {}}))


def make_sounds(folder: Path) -> None:
    """Writes files of sound."""
    for name in ("speech", "one", "two"):
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(bytes(range(256)) * 100)


class Commands(unittest.TestCase):
    def check_make(self, arguments: "list[str]") -> None:
        makefile = text(ROOT / "Makefile")
        for word in arguments:
            name, _, value = word.partition("=")
            known = rf"\$\((?:or \$\()?{name}\b|\$\(if \$\({name}\b" if value or "=" in word else rf"^{re.escape(name)}:"
            self.assertRegex(makefile, re.compile(known, re.M), f"make knows {name}")

    def check_cmake(self, arguments: "list[str]") -> None:
        presets = json.loads(text(ROOT / "CMakePresets.json"))
        kind = "buildPresets" if "--build" in arguments else "configurePresets"
        name = arguments[arguments.index("--preset") + 1]
        self.assertIn(name, [entry["name"] for entry in presets[kind]])

    def check_options(self, known: str, arguments: "list[str]") -> None:
        for word in arguments:
            if word.startswith("--"):
                self.assertRegex(known, rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])")

    def test_every_command_of_a_block_exists(self):
        for where, line in shell_lines():
            with self.subTest(where, line=line):
                syntax = subprocess.run(["bash", "-n"], input=line, capture_output=True, text=True)
                self.assertEqual((syntax.returncode, syntax.stderr), (0, ""))
                for program, *arguments in commands(line):
                    if program == "make":
                        self.check_make(arguments)
                    elif program == "cmake" and "--preset" in arguments:  # others: tests/package/quick_start_test.py
                        self.check_cmake(arguments)
                    elif Path(program).name == "posenc":
                        self.check_options(help_of(options.posenc, *(word for word in arguments[:1] if not word.startswith("-"))), arguments)
                    elif Path(program).name == "posenc-pronounce":  # not run: needs minutes of training
                        self.check_options(help_of(options.pronounce, arguments[0]), arguments)
                    elif program == ".venv/bin/python":  # a script of tools/ and its subcommand
                        self.check_options(help_of(sys.executable, str(ROOT / arguments[0]), arguments[1]), arguments)
                    else:
                        self.assertIn(program, ["build/app", "build/tagger_test", "cd", "cmake", "echo", "export", "g++", "ln", "pip", "tar", "torchrun"], "a command that this test knows")

    def test_posenc_commands_run(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            live = Path(options.live).resolve()
            (folder / "bin").mkdir()
            (folder / "bin" / "posenc").symlink_to(Path(options.posenc).resolve())
            (folder / "opus-mt-en-de").symlink_to(live / "marian" / "shared")
            (folder / "models").mkdir()
            for model, made in {"bert-base-uncased": "masked", "all-MiniLM-L6-v2": "bert", "bert-emotions": "emotions", "bert-entities": "entities",
                                "bert-large-uncased": "masked", "colbertv2.0": "colbert", "ms-marco-MiniLM-L6-v2": "reranker"}.items():  # fmt: skip
                (folder / "models" / model).symlink_to(live / "encoder" / made)
            (folder / "models" / "gpt2").symlink_to(live / "llama" / "story")
            for model in ("whisper-tiny", "whisper-small"):
                (folder / "models" / model).symlink_to(live / "whisper")
            chats = shutil.copytree(live / "llama" / "story", folder / "models" / "Qwen3-0.6B")
            (chats / "chat_template.jinja").write_text("{% for message in messages %}{{ message.content }}\n{% endfor %}")
            (folder / "settings.json").write_text('{"preset": "mpt", "dtype": "float32", "bias_max": 8, "heads": 12, "keys": 64}')
            (folder / "lines.txt").write_text("A cat sleeps.\nInterest rates rise.\n")
            (folder / "queries.txt").write_text("Where is the cat?\nHow do I bake bread?\n")
            (folder / "letter.txt").write_text("two hundred and five\n\nseven\n")
            shutil.copy(live / "transformer_scripts" / "none_real_masks.pt", folder / "model.pt")
            make_model(folder)
            make_rotary(folder)
            make_adapter(folder)
            make_sentences(folder)
            make_retrieval(folder, live)
            make_sounds(folder)
            ran = 0
            for where, line in shell_lines():
                used = [command for command in commands(line) if Path(command[0]).name == "posenc"]
                if not used:
                    continue
                with self.subTest(where, line=line):
                    result = subprocess.run(["bash", "-c", f'PATH="$PWD/bin:$PATH"; {line}'], cwd=folder, capture_output=True,
                                            text=True, timeout=3000)  # fmt: skip
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                    ran += 1
            self.assertGreater(ran, 3)
            self.assertEqual(len((folder / "brief.txt").read_text().splitlines()), 3)


class Names(unittest.TestCase):
    def test_commands_in_the_text(self):
        for where, words in in_backticks():
            with self.subTest(where, words=words):
                first, *arguments = words.split()[:2] + [""]
                if first == "make" and re.fullmatch(r"[a-z]+", arguments[0]):
                    self.assertRegex(text(ROOT / "Makefile"), re.compile(rf"^{arguments[0]}:", re.M))
                elif first == "posenc" and re.fullmatch(r"[a-z-]+", arguments[0]):
                    help_of(options.posenc, arguments[0])
                elif first == "posenc-pronounce" and re.fullmatch(r"[a-z-]+", arguments[0]):
                    help_of(options.pronounce, arguments[0])
                elif re.fullmatch(r"tools/\w+\.py", first):
                    known = help_of(sys.executable, str(ROOT / first))
                    for word in re.findall(r"--[\w-]+", words):
                        self.assertIn(word, known)

    def test_paths_in_the_text(self):
        """`src/weights/load`, `tests/weights/{a,b}.py`; placeholders like `<stem>` or `NN_slug` match any name."""
        for where, words in in_backticks():
            for path in re.findall(rf"(?<![\w/.]){FOLDERS}/[\w./<>{{}},*-]+", words):
                with self.subTest(where, path=path):
                    pattern = re.escape(path.rstrip("/."))
                    pattern = re.sub(r"<\w+>|\\\*|NN_slug|slug|NAME", r"[^/]+", pattern)
                    pattern = re.sub(r"\\{([^}]*)\\}", lambda found: "(?:" + found.group(1).replace(",", "|") + ")", pattern)
                    self.assertTrue(any(re.match(rf"{pattern}(/|\.\w+$|$)", name) for name in tree()), f"{path} exists")

    def test_source_files_in_the_text(self):
        names = {Path(name).name for name in tree()} | FOREIGN
        for where, words in in_backticks():
            for name in re.findall(r"(?<![\w<>.*}/-])(\w+\.(?:cpp|h|py|sh))\b", words):
                with self.subTest(where, name=name):
                    self.assertTrue(name in names, f"{name} is a file of the tree")

    def test_links(self):
        for path in DOCUMENTS:
            for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose(path)):
                if not re.match(r"https?:", target):
                    with self.subTest(str(path.relative_to(ROOT)), target=target):
                        self.assertTrue((path.parent / target).exists())

    def test_a_file_that_is_shown_is_the_file(self):
        self.assertIn(text(ROOT / "tools/golden.py").split('"""\n', 1)[1].strip(), text(ROOT / "docs/parity.md"))
        shown = text(ROOT / "examples/data_parallel/nccl_group.cpp").partition("\n#include")
        self.assertIn("".join(shown[1:]).strip(), text(ROOT / "docs/developers/distributed.md"))

    def test_every_document_is_linked(self):
        linked = {(path.parent / target).resolve() for path in DOCUMENTS
                  for target in re.findall(r"\]\(([^)\s#]+)", prose(path)) if not target.startswith("http")}  # fmt: skip
        for path in DOCUMENTS[1:]:
            self.assertTrue(path in linked or path.parent in linked, f"{path.relative_to(ROOT)} is linked from a document")

    def test_public_names_in_the_text(self):
        code = "\n".join(text(ROOT / name) for name in tree() if name.startswith("include/"))
        for where, words in in_backticks():
            for name in re.findall(r"\b(?:posenc|AttentionMask|Tying|EarlyStopping|Precision|TableSource|RegisterAs|GemmBackend)::(\w+)", words):
                with self.subTest(where, name=name):
                    self.assertRegex(code, rf"\b{name}\b")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True, help="the command line's binary")
    parser.add_argument("--pronounce", required=True, help="the binary of examples/pronounce")
    parser.add_argument("--live", required=True, help="the folder of what Python wrote for the tests")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

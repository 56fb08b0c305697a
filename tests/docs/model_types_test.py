#!/usr/bin/env python3
"""The recipes of docs/developers/model_types.md for a model type and for a family, applied to a copy of src/models: what is built there loads what
transformers has saved, and computes what transformers does. The copy is compiled with the commands of a build folder of Ninja.

    tests/docs/model_types_test.py BUILD
"""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/developers/model_types.md"
SKIPPED = 77


def apply(block: str, copy: Path) -> None:
    """Changes the file that the first line names: a line of it begins with a blank, and `+` and `-` are changes below the line before them."""
    name, *lines = block.splitlines()
    file = copy / name
    text, at = file.read_text().splitlines() if file.exists() else [], 0
    for line in lines:
        kind, own = line[:1], line[1:]
        if kind == "+":
            text.insert(at, own)
            at += 1
        elif kind == "-":
            del text[text.index(own, at)]
        else:
            at = text.index(own, at) + 1
    file.write_text("\n".join(text) + "\n")


def build(folder: Path, copy: Path) -> Path:
    """The program with the models of the copy."""
    commands = subprocess.run(["ninja", "-C", folder, "-t", "commands", "posenc-cli"], capture_output=True, text=True, check=True).stdout.splitlines()
    sources, there = re.findall(r"[\w/]+\.cpp", (copy / "src/models/CMakeLists.txt").read_text()), f"{ROOT}/src/models/"
    objects, compiled = [], [command for command in commands if "/posenc_models_objects.dir/" in command and " -c " in command]
    units = [Path(shlex.split(command)[-1]) for command in compiled]
    texts = [unit.read_text() if "Unity" in unit.parts else f'#include "{unit}"\n' for unit in units]
    new = [source for source in sources if not any(f"{there}{source}" in text for text in texts)]
    last = next(i for i, text in enumerate(texts) if "families/bert_like.cpp" in text)
    texts[last] += "".join(f'#include "{there}{source}"\n' for source in new)
    running = []
    for number, (command, text) in enumerate(zip(compiled, texts)):
        unit, own = copy / f"unit_{number}.cpp", copy / f"unit_{number}.o"
        unit.write_text(text.replace(there, f"{copy}/src/models/"))
        words = shlex.split(command.replace(f"-I{ROOT}/src ", f"-I{copy}/src -I{ROOT}/src "))
        begin = next(i for i, word in enumerate(words) if word.startswith("-M"))
        running.append(subprocess.Popen([*words[:begin], "-o", str(own), "-c", str(unit)], cwd=folder))
        objects.append(own)
    for one in running:
        if one.wait() != 0:
            sys.exit("the copy is not compiled")
    archive, program = copy / "libposenc_models.a", copy / "posenc"
    subprocess.run(["ar", "qcs", archive, *objects], check=True)
    link = commands[-1].replace("src/models/libposenc_models.a", str(archive)).replace(" -o posenc ", f" -o {program} ")
    subprocess.run(link, shell=True, check=True, cwd=folder)
    return program


def compare(program: Path, model: torch.nn.Module, folder: Path) -> None:
    """What `posenc encode` computes of a saved model, beside the model."""
    model.eval().save_pretrained(folder)
    ids = torch.randint(3, 40, (2, 7))
    save_file({"input_ids": ids}, folder / "ids.safetensors")
    subprocess.run([program, "encode", folder, "--in", folder / "ids.safetensors", "--out", folder / "out.safetensors"], check=True)
    with torch.no_grad():
        expected = model(ids).last_hidden_state
    torch.testing.assert_close(load_file(folder / "out.safetensors")["last_hidden_state"], expected, rtol=1e-4, atol=1e-5)
    print(f"{type(model).__name__}: as transformers")


def main() -> int:
    import transformers

    folder = Path(sys.argv[1]).resolve()
    if not (folder / "build.ninja").exists() or shutil.which("ninja") is None:
        print("skipped: not a build of Ninja")
        return SKIPPED
    blocks = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(), re.S | re.M)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch)
        shutil.copytree(ROOT / "src/models", copy / "src/models")
        for block in blocks:
            apply(block, copy)
        program = build(folder, copy)
        small = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
        compare(program, transformers.AlignTextModel(transformers.AlignTextConfig(**small)), copy / "bert")
        gpt = transformers.OpenAIGPTConfig(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=20)
        compare(program, transformers.OpenAIGPTModel(gpt), copy / "openai-gpt")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The first step of the demo: a BERT of transformers in C++, from text.

encoder.py --program posenc-demo-encoder --out FOLDER [--saved FOLDER]
    saves a random BERT of MiniLM's size with transformers in FOLDER, and compares the C++ program with it. With --saved,
    or where transformers is not installed, the folder is that, or tools/demo/small_bert, and only C++ runs.
encoder.py --write-small [FOLDER]
    writes tools/demo/small_bert, or another folder, by means of transformers
encoder.py --check-small
    exits with 1 unless transformers still computes what tools/demo/small_bert holds

A folder holds config.json, model.safetensors, the files of a tokenizer, sentences.txt, and sample.safetensors: the ids that
transformers makes of the sentences, the mask, and the result.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

SMALL = Path(__file__).resolve().parent / "small_bert"
ROOT = Path(__file__).resolve().parents[2]
BOUND = 1e-5  # docs/encoders.md: matrix products are summed in another order
ROUNDS, WARM_UP = 11, 2
# The sizes of all-MiniLM-L6-v2, and of the committed model.
MINILM = dict(vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
TINY = dict(vocab_size=100, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, max_position_embeddings=32)


# Short and long, with capitals, accents, and characters that no token has.
SENTENCES = [
    "Hello world!",
    "A cat sleeps on the warm sofa.",
    "Où est la bibliothèque?",
    "The kitten is having a nap, isn't it?",
    "C++ reads what Python has saved: 中文 as well, and 🤗.",
    "Interest rates rise again, and nobody knows for how long.",
    "She said that the train would leave at 9:45, but it had left before we came.",
    "Words that are in no vocabulary, such as antidisestablishmentarianism, are divided into pieces that are.",
]


def exact(shape: torch.Size, source: torch.Generator) -> torch.Tensor:
    """Random multiples of 2^-14 in [-1/32, 1/32): the same on every machine, unlike normally distributed numbers."""
    return torch.randint(-512, 512, shape, generator=source) / 16384.0


def random_bert(sizes: dict):
    """A BERT of which every parameter is random, the biases and the norms too."""
    import transformers
    from transformers import BertConfig, BertModel

    transformers.logging.disable_progress_bar()
    source = torch.Generator().manual_seed(0)
    model = BertModel(BertConfig(**sizes), add_pooling_layer=False).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = name.endswith("LayerNorm.weight")
            parameter.copy_(exact(parameter.shape, source) + (1.0 if is_scale else 0.0))
    return model


def vocabulary(text: str, most: int) -> list[str]:
    """Tokens of BERT: its special ones, letters, and the most frequent words of a text."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,:!?+'0123456789", *letters, *(f"##{letter}" for letter in letters)]
    words = Counter(word for word in re.findall("[a-z]+", text.lower()) if len(word) > 1)
    frequent = sorted(words, key=lambda word: (-words[word], word))
    return (tokens + frequent)[:most]


def save(model, tokens: list[str], sentences: list[str], folder: Path) -> None:
    from transformers import BertTokenizer

    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer = BertTokenizer(vocab={token: number for number, token in enumerate(tokens)})
    tokenizer.save_pretrained(folder)
    (folder / "sentences.txt").write_text("".join(f"{sentence}\n" for sentence in sentences))
    given = tokenizer(sentences, padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.inference_mode():
        result = model(**given).last_hidden_state
    save_file({**given, "last_hidden_state": result.contiguous()}, folder / "sample.safetensors")


class Program:
    """posenc-demo-encoder: it prints how many ids differ and by how much the results do, and then answers each line with the
    milliseconds of a forward pass."""

    def __init__(self, path: str, folder: Path) -> None:
        command = [path, str(folder), str(torch.get_num_threads())]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wrong_ids = int(self._number())
        self.difference = self._number()

    def _number(self) -> float:
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"demo: posenc-demo-encoder failed with status {self._process.wait()}")
        return float(line)

    def forward(self) -> float:
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._number()

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


def forward_time(model, given: dict[str, torch.Tensor]) -> float:
    """Milliseconds of transformers."""
    with torch.inference_mode():
        start = time.perf_counter()
        model(**given)
        return 1000.0 * (time.perf_counter() - start)


def medians(*measures) -> list[float]:
    """Of rounds in which all take their turn, so that other work on the machine meets all of them."""
    rounds = [[measure() for measure in measures] for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    return [statistics.median(times) for times in zip(*rounds)]


def described(folder: Path) -> str:
    config = json.loads((folder / "config.json").read_text())
    return (f"{config['num_hidden_layers']} layers of width {config['hidden_size']}, "
            f"{config['num_attention_heads']} heads, {config['vocab_size']:,} tokens")  # fmt: skip


def report(folder: Path, program: Program) -> bool:
    """Prints the comparison. Returns whether it is within the bound."""
    sample = load_file(folder / "sample.safetensors")
    lengths = sample["attention_mask"].sum(1)
    values = int(lengths.sum()) * sample["last_hidden_state"].shape[2]
    good = program.difference <= BOUND and program.wrong_ids == 0
    print(f"model         {described(folder)}")
    print(f"input         {len(lengths)} sentences, of {lengths.min()} to {lengths.max()} tokens")
    print(f"ids           {int(lengths.sum())}, of which {program.wrong_ids} differ from those of transformers")
    print(f"outputs       {values:,} numbers, the largest {sample['last_hidden_state'].abs().max():.2f}")
    print(f"difference    at most {program.difference:.1e}; allowed {BOUND:.0e}{'' if good else ': WRONG'}")
    return good


def compare(arguments: argparse.Namespace) -> bool:
    folder, model = arguments.saved, None
    if folder is None:
        try:
            model = random_bert(MINILM)
        except ImportError:
            folder = SMALL
            print("transformers is not installed: a small model that it saved earlier takes\n"
                  "the place of a large one, and C++ is timed alone.\n")  # fmt: skip
        else:
            folder = arguments.out
            text = "".join(path.read_text() for path in sorted(ROOT.glob("docs/*.md")))
            save(model, vocabulary(text, MINILM["vocab_size"]), SENTENCES, folder)
    program = Program(arguments.program, folder)
    good = report(folder, program)
    threads = torch.get_num_threads()
    how = f"median of {ROUNDS} forward passes, {threads} thread{'s' if threads > 1 else ''}"
    if model is None:
        (cpp,) = medians(program.forward)
        print(f"time          posenc {cpp:.2f} ms; {how}")
    else:
        given = load_file(folder / "sample.safetensors")
        del given["last_hidden_state"]
        cpp, python = medians(program.forward, lambda: forward_time(model, given))
        print(f"time          transformers {python:.1f} ms, posenc {cpp:.1f} ms: {python / cpp:.1f} times as fast")
        print(f"              {how} each, taken in turn")
    program.close()
    return good


def check_small() -> bool:
    """Whether transformers still computes what the committed folder holds."""
    from transformers import BertModel

    sample = load_file(SMALL / "sample.safetensors")
    expected = sample.pop("last_hidden_state")
    model = BertModel.from_pretrained(SMALL, add_pooling_layer=False).eval()
    fresh = random_bert(TINY).state_dict()
    same = all(torch.equal(value, fresh[name]) for name, value in model.state_dict().items())
    with torch.inference_mode():
        difference = (model(**sample).last_hidden_state - expected).abs().max().item()
    print(f"weights {'as drawn' if same else 'DIFFER'}, outputs within {difference:.1e}")
    return same and difference <= BOUND


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="posenc-demo-encoder")
    parser.add_argument("--out", type=Path, help="where the large model is written")
    parser.add_argument("--saved", type=Path, help="a folder to compare with, instead of a new model")
    parser.add_argument("--write-small", nargs="?", type=Path, const=SMALL)
    parser.add_argument("--check-small", action="store_true")
    arguments = parser.parse_args()
    if arguments.write_small:
        save(random_bert(TINY), vocabulary(" ".join(SENTENCES), TINY["vocab_size"]), SENTENCES[:4], arguments.write_small)
        return 0
    if arguments.check_small:
        return 0 if check_small() else 1
    if not (arguments.program and (arguments.out or arguments.saved)):
        parser.error("give --program and --out, or --program and --saved")
    return 0 if compare(arguments) else 1


if __name__ == "__main__":
    sys.exit(main())

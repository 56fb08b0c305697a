#!/usr/bin/env python3
"""The tables of docs/developers/distributed.md on what processes send and how fast they train, and the numbers that a simulation of up to 16 processes is
checked with.

The speeds are those of docs/performance/ranks.json: `make bench-ranks JSON=docs/performance/ranks.json`.

tools/distributed_doc.py --write    rewrite the page's tables and tests/parallel/wire.json
tools/distributed_doc.py --check    exit 1 where they are others
"""

import json
import sys
from dataclasses import dataclass

import page_tables

WIRE = page_tables.DOCS.parent / "tests/parallel/wire.json"
FLOAT = 4  # bytes
COUNT = 128  # bytes of the header with a number of tokens
ID = 4  # bytes of a token's id
RANKS = (8, 64, 1024)


# What one of W processes sends. An engine's allreduce is a ring: each process sends each element twice, except for its
# own part.
def all_reduce(ranks: int, size: float) -> float:
    return 2 * (ranks - 1) / ranks * size


def to_each_other(ranks: int, size: float) -> float:
    """An all_gather of `size` bytes, or an exchange of `size` bytes with each other process."""
    return (ranks - 1) * size


def same(ranks: int, tokens: int, width: int, vocab: int, number: int = FLOAT) -> dict[str, float]:
    """Bytes that each process sends if all pass the same `tokens`. The size of the vocabulary does not matter."""
    rows = tokens * width * number
    return {
        "embedding forward": all_reduce(ranks, rows),
        "embedding backward": 0,
        "output forward": 0,
        "output backward": all_reduce(ranks, rows),
        "loss forward": to_each_other(ranks, 3 * tokens * number),
        "loss backward": 0,
    }


def own(ranks: int, tokens: int, width: int, vocab: int, number: int = FLOAT) -> dict[str, float]:
    """Bytes that each process sends if each passes `tokens` of its own."""
    rows = tokens * width * number
    return {
        "embedding forward": to_each_other(ranks, COUNT + tokens * ID + rows),
        "embedding backward": to_each_other(ranks, rows),
        "output forward": to_each_other(ranks, COUNT + rows),
        "output backward": to_each_other(ranks, rows),
        "loss forward": to_each_other(ranks, COUNT + tokens * ID + 3 * ranks * tokens * number),
        "loss backward": 0,
    }


def simulated() -> str:
    """What tests/parallel/vocab_parallel_wire_test.cpp counts."""
    cases = []
    for ranks in (2, 3, 4, 8, 16):
        for name, formula in (("Same", same), ("Own", own)):
            for tokens, width, vocab in ((5, 6, 43), (12, 8, 5)):
                cases.append({"ranks": ranks, "rank_tokens": name, "tokens": tokens, "width": width, "vocab": vocab,
                              "sent": formula(ranks, tokens, width, vocab)})
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


@dataclass
class Model:
    name: str
    parameters: float
    matrices: int  # of the vocabulary, that are not tied
    vocab: int
    width: int
    source: int  # source tokens of a process and step
    target: int

    @property
    def table_bytes(self) -> float:
        return self.matrices * self.vocab * self.width * FLOAT

    @property
    def body_bytes(self) -> float:
        return self.parameters * FLOAT - self.table_bytes

    def ends(self, formula, ranks: int) -> float:
        """Bytes of both ends: embeddings of source and target tokens, the output layer and the loss."""
        embedding = [formula(ranks, tokens, self.width, self.vocab) for tokens in (self.source, self.target) if tokens]
        rest = embedding[-1]
        return sum(e["embedding forward"] + e["embedding backward"] for e in embedding) + sum(
            rest[step] for step in ("output forward", "output backward", "loss forward", "loss backward"))


MODELS = (
    Model("60 M encoder-decoder, V = 32,000, D = 512, three-way tied, 1,024 + 1,024 tokens a process", 60.6e6, 1, 32000, 512, 1024, 1024),
    Model("1.2 G decoder, V = 128,256, D = 2,048, tied, 4,096 tokens a process", 1.24e9, 1, 128256, 2048, 0, 4096),
)


def amount(size: float) -> str:
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= one:
            return f"{size / one:,.{0 if size >= 100 * one else 1}f} {unit}"
    return f"{size:.0f} B"


def step_table() -> str:
    lines = ["| model | processes | tables by data parallel | tables split, own tokens | whole model by data parallel | split, own tokens | own tokens, bytes a token |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    for model in MODELS:
        for ranks in RANKS:
            tables, ends = all_reduce(ranks, model.table_bytes), model.ends(own, ranks)
            body = all_reduce(ranks, model.body_bytes)
            lines.append(f"| {model.name} | {ranks:,} | {amount(tables)} | {amount(ends)} | {amount(tables + body)} | {amount(ends + body)} "
                         f"| {amount(ends / (model.source + model.target))} |")
    return "\n".join(lines) + "\n"


def pays_up_to(model: Model) -> int:
    ranks = 1
    while model.ends(own, ranks + 1) < all_reduce(ranks + 1, model.table_bytes):
        ranks += 1
    return ranks


def limit_table() -> str:
    lines = ["| model | own tokens send less than the tables' gradients | logits of its target tokens | of one of 8 processes with `Same` |", "|---|---|---:|---:|"]
    for model in MODELS:
        logits = model.target * model.vocab * FLOAT
        lines.append(f"| {model.name} | up to {pays_up_to(model)} processes | {amount(logits)} | {amount(logits / 8)} |")
    return "\n".join(lines) + "\n"


# vocab_size and hidden_size of the models' config.json; whether embedding and output layer are two matrices
EMBEDDINGS = (
    ("GPT-2 XL", 50257, 1600, 1),
    ("mT5 XXL", 250112, 4096, 2),
    ("Gemma 3 27B", 262208, 5376, 1),
    ("Llama 3.1 8B", 128256, 4096, 2),
    ("Llama 3.1 405B", 128256, 16384, 2),
)


def embedding_table() -> str:
    lines = ["| model | V | D | matrices | numbers | training in float32 |", "|---|---:|---:|---:|---:|---:|"]
    for name, vocab, width, matrices in EMBEDDINGS:
        numbers = vocab * width * matrices
        lines.append(f"| {name} | {vocab:,} | {width:,} | {matrices} | {numbers / 1e9:.2f} G | {amount(numbers * 4 * FLOAT)} |")
    return "\n".join(lines) + "\n"


def speed_table() -> str:
    """What `make bench-ranks` has measured; the first case is what the others are compared with."""
    run = json.loads((page_tables.DOCS / "performance/ranks.json").read_text())
    lines = [f"{run['processor']}, torch {run['torch']}, {run['date']}, the least of {run['rounds']} interleaved rounds:", "",
             "| | a step | tokens a second | |", "|---|---:|---:|---:|"]
    cases = run["cases"]
    first = next(iter(cases.values()))["tokens_per_second"]
    for title, case in cases.items():
        lines.append(f"| {title} | {case['seconds']:.2f} s | {case['tokens_per_second']:.0f} | {case['tokens_per_second'] / first:.2f}x |")
    return "\n".join(lines) + "\n"


def main() -> int:
    options = page_tables.arguments(reads_posenc=False)
    tables = {"speed": speed_table, "a step": step_table, "where it pays": limit_table, "embeddings": embedding_table}
    failed = page_tables.update("developers/distributed.md", tables, options)
    if options.write:
        WIRE.write_text(simulated())
    elif WIRE.read_text() != simulated():
        print(f"{WIRE}: out of date; tools/distributed_doc.py --write")
        return 1
    return failed


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""How many of the nearest texts are still found when vectors are kept in 8 bits or 1 bit an entry.

    tools/quantized_recall.py MODEL [--posenc POSENC] [--texts FILE] [--count N] [--queries N] [--write]

MODEL is a folder of sentence-transformers, such as build/published/all-MiniLM-L6-v2. The texts are those of this repository, or the lines of
a file; the queries are some of them, cut in half, which are no texts of the corpus. --write puts the table into docs/retrieval.md.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from page_tables import DOCS, ROOT, filled, table
from published_texts import real_texts
from safetensors.torch import load_file

NEAREST = 10
GROUP = 10  # queries that have ranges of their own
PAGE = DOCS / "retrieval.md"


def unpacked(bits: torch.Tensor, width: int) -> torch.Tensor:
    """Bits as 1 and -1."""
    return (bits.unsqueeze(-1) >> torch.arange(7, -1, -1)).bitwise_and(1).flatten(1)[:, :width].float() * 2 - 1


class Search:
    """Vectors of a corpus and of queries, in several precisions."""

    def __init__(self, posenc: str, model: Path, folder: Path, corpus: list[str], queries: list[str]):
        self._posenc, self._model, self._folder = posenc, model, folder
        self.groups = [f"queries-{i}" for i in range(0, len(queries), GROUP)]
        groups = [queries[i : i + GROUP] for i in range(0, len(queries), GROUP)]
        for name, texts in (("corpus", corpus), ("queries", queries), *zip(self.groups, groups)):
            (folder / f"{name}.txt").write_text("".join(text + "\n" for text in texts))

    def run(self, *arguments: object) -> None:
        done = subprocess.run([self._posenc, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)

    def file(self, texts: str, precision: str = "float32", ranges: Path | None = None) -> Path:
        out = self._folder / f"{texts}-{precision}{'-given' if ranges else ''}.safetensors"
        if not out.exists():
            task = "document" if texts == "corpus" else "query"
            more = [] if precision == "float32" else ["--precision", precision, *(["--ranges", ranges] if ranges else [])]
            self.run("encode", self._model, "--text", self._folder / f"{texts}.txt", "--task", task, "--out", out, *more)
        return out

    def scores(self, queries: Path, corpus: Path, similarity: str) -> torch.Tensor:
        out = self._folder / "scores.safetensors"
        self.run("similarity", queries, corpus, "--similarity", similarity, "--out", out)
        return load_file(out)["scores"]


def recall(scores: torch.Tensor, truth: torch.Tensor) -> str:
    """The share of the nearest that are among the nearest by these scores."""
    found = scores.topk(NEAREST).indices
    return f"{(found.unsqueeze(2) == truth.topk(NEAREST).indices.unsqueeze(1)).any(1).float().mean():.2f}"


def rows(search: Search) -> list[tuple]:
    exact, queries = search.file("corpus"), search.file("queries")
    truth = search.scores(queries, exact, "cosine")
    levels, bits = search.file("corpus", "int8"), search.file("corpus", "ubinary")
    width = load_file(exact)["embeddings"].shape[1]
    query_bits = search.file("queries", "ubinary")
    by_bits = search.scores(query_bits, bits, "hamming")
    signs = load_file(queries)["embeddings"] @ unpacked(load_file(bits)["embeddings"], width).t()
    near = by_bits.topk(4 * NEAREST).indices  # then by the vectors in 8 bits
    again = torch.full_like(truth, -torch.inf).scatter(1, near, search.scores(queries, levels, "dot").gather(1, near))
    given = search.scores(search.file("queries", "int8", levels), levels, "dot")
    own = torch.cat([search.scores(search.file(group, "int8"), levels, "dot") for group in search.groups])
    return [("float32", "float32, `cosine`", 4 * width, recall(truth, truth)),
            ("`int8`", "float32, `dot`", width, recall(search.scores(queries, levels, "dot"), truth)),
            ("`int8`", "`int8` with the corpus' ranges, `dot`", width, recall(given, truth)),
            ("`int8`", f"`int8` with ranges of their own, {GROUP} at a time, `dot`", width, recall(own, truth)),
            ("`ubinary`", "float32, product with 1 and -1", width // 8, recall(signs, truth)),
            ("`ubinary`", "`ubinary`, `hamming`", width // 8, recall(by_bits, truth)),
            ("`ubinary` and `int8`", f"`hamming`, then float32 by `dot` on the best {4 * NEAREST}", width // 8 + width, recall(again, truth))]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"))
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    texts = real_texts(options.count, options.texts)
    step = max(1, len(texts) // options.queries)
    queries = [" ".join(text.split()[: max(3, len(text.split()) // 2)]) for text in texts[::step]]
    with tempfile.TemporaryDirectory(prefix="posenc-recall-") as folder:
        found = rows(Search(options.posenc, options.model, Path(folder), texts, queries))
    made = table(["corpus", "queries, similarity", "bytes a vector", f"of the {NEAREST} nearest"], found)
    print(f"{options.model.name}, {len(texts)} texts, {len(queries)} queries\n{made}")
    if options.write:
        PAGE.write_text(filled(PAGE.read_text(), {"recall": lambda: made}, Path(__file__).name))
    return 0


if __name__ == "__main__":
    sys.exit(main())

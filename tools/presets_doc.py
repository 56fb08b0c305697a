#!/usr/bin/env python3
"""docs/presets.md from the output of `posenc presets --json`.

tools/presets_doc.py --posenc BINARY --write    rewrite the page
tools/presets_doc.py --posenc BINARY --check    exit 1 if the page is out of date
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "presets.md"
NOT_TABLES_FILE = ROOT / "tools" / "zoo" / "not_tables.txt"

HEAD = """# Presets

There are {count} presets with {recipes} recipes. `posenc::preset(name, dim, params)` returns the options that reproduce the table of a
system; `posenc table --preset NAME --dim D --length L --param key=value --out FILE` writes the table. `make zoo` compares
the bits of every preset with the original package on your machine, or with a reimplementation of its steps if the system exists only
as a repository.

A table has the bits that the original system computes with the same LibTorch, on the same machine, with one thread; posenc gives these
bits with any number of threads. Between machines, the last bits of float32 tables differ, in PyTorch too.

D is the number of channels of a row, L the nominal length. Relative tables have 2 L - 1 rows. A grid has height * width
(* depth) rows in row-major order, and one more if a class token comes first. Real positions are start + step * k.

## By name

Presets with the same recipe have the same bits at every dimension.

| preset | system | how the system keeps the table | recipe |
|---|---|---|---|
"""

ALSO = """
## Other systems

These are bit-identical to a preset, too, with a limitation in parentheses.

| system | preset |
|---|---|
"""

NOT_TABLES = """
## Not tables of positions

The models of transformers 5.23.0 have more sines and cosines. Apart from rotary embeddings, these functions compute them:

| function | why |
|---|---|
"""

RECIPES = """
## By recipe

A parameter without a value is required; the other parameters are shown with their defaults. Flags are 0 or 1.

| recipe | presets | parameters |
|---|---|---|
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def origin(source: str) -> str:
    """The program names the notebook of a reference class by its number; a reader looks for its folder."""
    found = re.match(r"notebook (\d+): (.*)", source)
    return cell(f"notebooks_ref, {next(ROOT.glob(f'notebooks_ref/{found[1]}_*.ipynb')).name}: {found[2]}" if found else source)


def system(entry: dict, names: set[str]) -> str:
    former = "".join(f"; formerly `{name}`" for name in entry["aliases"] if name not in names)
    return origin(entry["source"]) + former


def params_of(entry: dict) -> str:
    shown = []
    for param in entry["params"]:
        default = param["default"]
        value = "" if default is None else f"={default}"
        shown.append(f"`{param['name']}{value}` {cell(param['meaning'])}")
    if entry["bound"]:
        shown.append(f"equal within {cell(entry['bound'])}")
    return "; ".join(shown)


def page(entries: list[dict]) -> str:
    groups = [list(group) for _, group in itertools.groupby(entries, key=lambda entry: entry["recipe"])]
    names = {entry["name"] for entry in entries}
    rows = [f"| `{entry['name']}` | {system(entry, names)} | {cell(entry['storage'])} | {number} |\n"
            for number, group in enumerate(groups, 1) for entry in group]  # fmt: skip
    text = HEAD.format(count=len(entries), recipes=len(groups)) + "".join(sorted(rows)) + RECIPES
    for number, group in enumerate(groups, 1):
        names = ", ".join(f"`{entry['name']}`" for entry in group)
        text += f"| {number} | {names} | {params_of(group[0])} |\n"
    also = [(system, entry["name"]) for entry in entries for system in entry["also"]]
    text += ALSO + "".join(f"| {cell(system)} | `{name}` |\n" for system, name in sorted(also))
    return text + NOT_TABLES + "".join(f"| `{function}` | {reason} |\n" for function, reason in not_tables())


def not_tables() -> "list[list[str]]":
    lines = NOT_TABLES_FILE.read_text().splitlines()
    return [line.split("  ", 1) for line in lines if line and not line.startswith("#")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--posenc", required=True)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    listed = subprocess.run([arguments.posenc, "presets", "--json"], check=True, capture_output=True, text=True)
    text = page(json.loads(listed.stdout))
    if arguments.write:
        PAGE.write_text(text)
        return 0
    if not PAGE.is_file() or PAGE.read_text() != text:
        print("docs/presets.md is out of date: tools/presets_doc.py --posenc build/release/posenc --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

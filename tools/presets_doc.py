#!/usr/bin/env python3
"""docs/presets.md from what `posenc presets --json` says.

tools/presets_doc.py --posenc BINARY --write    rewrite the page
tools/presets_doc.py --posenc BINARY --check    exit 1 where the page is another
"""

import argparse
import itertools
import json
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "presets.md"

HEAD = """# Presets

{count} names, {recipes} recipes. `posenc::preset(name, dim, params)` gives the options that reproduce a system's own
table, `posenc table --preset NAME --dim D --length L --param key=value --out FILE` writes it. Names in one row have the
same bits at every dimension. `make zoo` compares every one with the real package, as int32, on your machine; a system
that lives only in a repository is compared with a re-derivation of its steps.

The bits are those of the system under the same LibTorch on the same machine, with one thread; at any number of threads
they are the same here. Between machines the last bits of float32 tables differ, with every PyTorch.

- D: channels of a row. L: the nominal length; relative tables have 2 L - 1 rows, a grid has height * width (* depth),
  and one more where a class token stands first.
- A parameter without a value has to be given; of the others the value shown is the default. Flags are 0 or 1.
- Grids are row-major, channels last. Real positions are start + step * k.

| preset | system | how the system keeps it | parameters |
|---|---|---|---|
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


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
    text = HEAD.format(count=len(entries), recipes=len(groups))
    for group in groups:
        names = "<br>".join(f"`{entry['name']}`" for entry in group)
        sources = "<br>".join(cell(entry["source"]) for entry in group)
        storage = "<br>".join(cell(entry["storage"]) for entry in group)
        text += f"| {names} | {sources} | {storage} | {params_of(group[0])} |\n"
    return text


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
        print("docs/presets.md is stale: tools/presets_doc.py --posenc build/release/posenc --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

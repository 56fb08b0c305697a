#!/usr/bin/env python3
"""The tables of docs/rotary.md from what `posenc presets --rotary --json` says.

tools/rotary_doc.py --posenc BINARY --write    rewrite the page's tables
tools/rotary_doc.py --posenc BINARY --check    exit 1 where they are others
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
Table = Callable[[list[dict]], str]


def by_preset(entries: list[dict]) -> str:
    lines = ["| preset | what sets it apart | class |", "|---|---|---|"]
    lines += [f"| `{entry['name']}` | {entry['summary']} | {entry['source']} |" for entry in entries]
    return "\n".join(lines) + "\n"


def by_model_type(entries: list[dict]) -> str:
    rows = sorted((name, entry["name"]) for entry in entries for name in entry["model_types"])
    return "\n".join(["| `model_type` | preset |", "|---|---|"] + [f"| `{name}` | `{preset}` |" for name, preset in rows]) + "\n"


def with_tables(text: str, entries: list[dict], script: str, tables: dict[str, Table]) -> str:
    for name, table in tables.items():
        begin, end = f"<!-- {name}: tools/{script} -->\n", f"<!-- end of {name} -->\n"
        text, found = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table(entries) + end, text, flags=re.S)
        if found != 1:
            sys.exit(f"there must be one place for the table `{name}`, between {begin}and {end}")
    return text


def main(kind: str, tables: dict[str, Table]) -> int:
    """Writes or checks the tables of docs/KIND.md, from `posenc presets --KIND --json`."""
    page = DOCS / f"{kind}.md"
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    said = subprocess.run([options.posenc, "presets", f"--{kind}", "--json"], capture_output=True, text=True, check=True)
    text = page.read_text()
    wanted = with_tables(text, json.loads(said.stdout), f"{kind}_doc.py", tables)
    if options.write:
        page.write_text(wanted)
    elif wanted != text:
        print(f"{page}: out of date; {sys.argv[0]} --posenc {options.posenc} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("rotary", {"presets": by_preset, "model types": by_model_type}))

#!/usr/bin/env python3
"""The tables of docs/rotary.md from the output of `posenc presets --rotary --json`.

tools/rotary_doc.py --posenc BINARY --write    rewrite the page's tables
tools/rotary_doc.py --posenc BINARY --check    exit 1 where they are others
"""

import json
import subprocess
import sys

import page_tables


def by_preset(entries: list[dict]) -> str:
    lines = ["| preset | what sets it apart | class |", "|---|---|---|"]
    lines += [f"| `{entry['name']}` | {entry['summary']} | {entry['source']} |" for entry in entries]
    return "\n".join(lines) + "\n"


def by_model_type(entries: list[dict]) -> str:
    rows = sorted((name, entry["name"]) for entry in entries for name in entry["model_types"])
    return "\n".join(["| `model_type` | preset |", "|---|---|"] + [f"| `{name}` | `{preset}` |" for name, preset in rows]) + "\n"


def main() -> int:
    options = page_tables.arguments(reads_posenc=True)
    said = subprocess.run([options.posenc, "presets", "--rotary", "--json"], capture_output=True, text=True, check=True)
    entries = json.loads(said.stdout)
    return page_tables.update("rotary.md", {"presets": lambda: by_preset(entries), "model types": lambda: by_model_type(entries)}, options)


if __name__ == "__main__":
    sys.exit(main())

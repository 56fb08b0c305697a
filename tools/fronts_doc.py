#!/usr/bin/env python3
"""The table of docs/fronts.md from what `posenc presets --fronts --json` says.

tools/fronts_doc.py --posenc BINARY --write    rewrite the page's table
tools/fronts_doc.py --posenc BINARY --check    exit 1 where it is another
"""

import sys

import rotary_doc


def table(entries: list[dict]) -> str:
    lines = ["| preset | formula | class | model types |", "|---|---|---|---|"]
    for entry in entries:
        types = ", ".join(f"`{name}`" for name in entry["model_types"])
        lines.append(f"| `{entry['name']}` | {entry['formula']} | {entry['source']} | {types} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(rotary_doc.main("fronts", {"presets": table}))

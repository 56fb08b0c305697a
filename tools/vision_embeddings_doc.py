#!/usr/bin/env python3
"""The table of docs/vision_embeddings.md from the output of `posenc presets --vision --json`.

tools/vision_embeddings_doc.py --posenc BINARY --write    rewrite the page's table
tools/vision_embeddings_doc.py --posenc BINARY --check    exit 1 where it is another
"""

import json
import subprocess
import sys

import page_tables


def table(entries: list[dict]) -> str:
    lines = ["| preset | result | rule | class | model types |", "|---|---|---|---|---|"]
    for entry in entries:
        types = ", ".join(f"`{name}`" for name in entry["model_types"])
        resize = "none" if entry["resize"] == "refuse" else f"`{entry['resize']}`"
        lines.append(f"| `{entry['name']}` | {entry['formula']} | {resize} | {entry['source']} | {types} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    options = page_tables.arguments(reads_posenc=True)
    said = subprocess.run([options.posenc, "presets", "--vision", "--json"], capture_output=True, text=True, check=True)
    return page_tables.update("vision_embeddings.md", {"presets": lambda: table(json.loads(said.stdout))}, options)


if __name__ == "__main__":
    sys.exit(main())

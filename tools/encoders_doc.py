#!/usr/bin/env python3
"""The table of docs/encoders.md from the output of `posenc presets --embeddings --json` and `posenc encode --help`.

tools/encoders_doc.py --posenc BINARY --write    rewrite the page's table
tools/encoders_doc.py --posenc BINARY --check    exit 1 where it is another
"""

import json
import re
import subprocess
import sys

import page_tables


def code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def loaded_types(help_text: str) -> list[str]:
    """The names after `Models:`, which the help breaks into lines."""
    listed = re.search(r"Models:\n(.*?)\nExample:", help_text, re.S)
    return re.split(r",\s*", " ".join(listed.group(1).split()))


def table(presets: list[dict], loaded: list[str]) -> str:
    lines, rest = ["| embeddings | model types |", "|---|---|"], set(loaded)
    for preset in presets:
        types = [name for name in preset["model_types"] if name in rest]
        rest -= set(types)
        if types:
            lines.append(f"| `{preset['name']}` | {code(types)} |")
    pairs = {name for name in rest if f"{name}_text_model" in loaded}
    lines.append(f"| of images | {code(sorted(rest - pairs))} |")
    lines.append(f"| `clip`, `bert` | pairs: {code(sorted(pairs))} |")
    return "\n".join(lines) + "\n"


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    options = page_tables.arguments(reads_posenc=True)
    embeddings = json.loads(output(options.posenc, "presets", "--embeddings", "--json"))
    loaded = loaded_types(output(options.posenc, "encode", "--help"))
    return page_tables.update("encoders.md", {"encoders": lambda: table(embeddings, loaded)}, options)


if __name__ == "__main__":
    sys.exit(main())

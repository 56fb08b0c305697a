#!/usr/bin/env python3
"""The tables of docs/vision_fronts.md from those of src/models/front and src/functional/resize_positions.

tools/vision_fronts_doc.py --write    rewrite the page's tables
tools/vision_fronts_doc.py --check    exit 1 where they are others
"""

import re
import sys
from pathlib import Path

import page_tables

ROOT = Path(__file__).resolve().parent.parent


def rows_of(path: str, pattern: str) -> list[tuple[str, ...]]:
    text = re.sub(r'"\s*\n\s*"', "", (ROOT / path).read_text())  # literals over several lines
    found = [match.groups() for match in re.finditer(pattern, text)]
    if not found:
        raise RuntimeError(f"{path}: no rows")
    return found


def table() -> str:
    rules = dict(rows_of("src/functional/resize_positions/rules.cpp", r'PositionResize::(\w+),\s*\.name = "(\w+)"'))
    models = rows_of("src/models/front/vision_models.cpp", r'\{"([\w-]+)", "(\w+)", \{')
    presets = rows_of("src/models/front/vision_presets.cpp", r'\{"(\w+)", "([^"]+)",\s*"([^"]+)",\s*PositionResize::(\w+),')
    lines = ["| preset | result | rule | class | model types |", "|---|---|---|---|---|"]
    for name, source, formula, rule in presets:
        types = ", ".join(f"`{model}`" for model, preset in models if preset == name)
        resize = "none" if rule == "Refuse" else f"`{rules[rule]}`"
        lines.append(f"| `{name}` | {formula} | {resize} | {source} | {types} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(page_tables.update("vision_fronts.md", {"presets": table}, page_tables.arguments(reads_posenc=False)))

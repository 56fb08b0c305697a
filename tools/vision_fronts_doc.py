#!/usr/bin/env python3
"""The tables of docs/vision_fronts.md from those of src/models/front and src/functional/resize_positions.

tools/vision_fronts_doc.py --write    rewrite the page's tables
tools/vision_fronts_doc.py --check    exit 1 where they are others
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "vision_fronts.md"
BEGIN, END = "<!-- presets: tools/vision_fronts_doc.py -->\n", "<!-- end of presets -->\n"


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    page = PAGE.read_text()
    wanted = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + table() + END, page, flags=re.S)
    if options.write:
        PAGE.write_text(wanted)
    elif wanted != page:
        print(f"{PAGE}: out of date; {sys.argv[0]} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

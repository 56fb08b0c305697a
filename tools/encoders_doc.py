#!/usr/bin/env python3
"""The table of docs/encoders.md from what `posenc presets --fronts --json` and `posenc encode --help` say.

tools/encoders_doc.py --posenc BINARY --write    rewrite the page's table
tools/encoders_doc.py --posenc BINARY --check    exit 1 where it is another
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "encoders.md"
BEGIN, END = "<!-- encoders: tools/encoders_doc.py -->\n", "<!-- end of encoders -->\n"


def code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def loaded_types(help_text: str) -> list[str]:
    """The names after `Models:`, which the help breaks into lines."""
    listed = re.search(r"Models:\n(.*?)\nExample:", help_text, re.S)
    return re.split(r",\s*", " ".join(listed.group(1).split()))


def table(fronts: list[dict], loaded: list[str]) -> str:
    lines, rest = ["| front | model types |", "|---|---|"], set(loaded)
    for front in fronts:
        types = [name for name in front["model_types"] if name in rest]
        rest -= set(types)
        if types:
            lines.append(f"| `{front['name']}` | {code(types)} |")
    pairs = {name for name in rest if f"{name}_text_model" in loaded}
    lines.append(f"| of images | {code(sorted(rest - pairs))} |")
    lines.append(f"| `clip`, `bert` | pairs: {code(sorted(pairs))} |")
    return "\n".join(lines) + "\n"


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    fronts = json.loads(output(options.posenc, "presets", "--fronts", "--json"))
    loaded = loaded_types(output(options.posenc, "encode", "--help"))
    page = PAGE.read_text()
    wanted = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + table(fronts, loaded) + END, page, flags=re.S)
    if options.write:
        PAGE.write_text(wanted)
    elif wanted != page:
        print(f"{PAGE}: out of date; {sys.argv[0]} --posenc {options.posenc} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

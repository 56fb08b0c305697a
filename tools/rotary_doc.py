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
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rotary.md"
BEGIN, END = "<!-- presets: tools/rotary_doc.py -->\n", "<!-- end of presets -->\n"


def table(entries: list[dict]) -> str:
    lines = ["| preset | what sets it apart | class | model types |", "|---|---|---|---|"]
    for entry in entries:
        types = ", ".join(f"`{name}`" for name in entry["model_types"])
        lines.append(f"| `{entry['name']}` | {entry['summary']} | {entry['source']} | {types} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    said = subprocess.run([options.posenc, "presets", "--rotary", "--json"], capture_output=True, text=True, check=True)
    page = PAGE.read_text()
    wanted = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + table(json.loads(said.stdout)) + END, page, flags=re.S)
    if options.write:
        PAGE.write_text(wanted)
    elif wanted != page:
        print(f"{PAGE}: out of date; {sys.argv[0]} --posenc {options.posenc} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

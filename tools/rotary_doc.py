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


def by_preset(entries: list[dict]) -> str:
    lines = ["| preset | what sets it apart | class |", "|---|---|---|"]
    lines += [f"| `{entry['name']}` | {entry['summary']} | {entry['source']} |" for entry in entries]
    return "\n".join(lines) + "\n"


def by_model_type(entries: list[dict]) -> str:
    rows = sorted((name, entry["name"]) for entry in entries for name in entry["model_types"])
    return "\n".join(["| `model_type` | preset |", "|---|---|"] + [f"| `{name}` | `{preset}` |" for name, preset in rows]) + "\n"


TABLES = {"presets": by_preset, "model types": by_model_type}


def with_tables(page: str, entries: list[dict]) -> str:
    for name, table in TABLES.items():
        begin, end = f"<!-- {name}: tools/rotary_doc.py -->\n", f"<!-- end of {name} -->\n"
        page, found = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + table(entries) + end, page, flags=re.S)
        assert found == 1, name
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    said = subprocess.run([options.posenc, "presets", "--rotary", "--json"], capture_output=True, text=True, check=True)
    page = PAGE.read_text()
    wanted = with_tables(page, json.loads(said.stdout))
    if options.write:
        PAGE.write_text(wanted)
    elif wanted != page:
        print(f"{PAGE}: out of date; {sys.argv[0]} --posenc {options.posenc} --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

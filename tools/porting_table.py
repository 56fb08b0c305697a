#!/usr/bin/env python3
"""The table of docs/porting.md, made from tools/modules.json. --check fails if it is out of date.

`keys` are a module's keys in order; an entry `layers.N: TransformerEncoderLayer` stands for that class's
keys under `layers.0.`, `layers.1.` and so on. tests/nn/module_keys_test.cpp compares them with the modules."""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "porting.md"
BEGIN, END = "<!-- table: tools/porting_table.py -->\n", "<!-- end of table -->"


def keys_of(row: dict) -> str:
    def text(keys: "list[str]") -> str:
        parts = [key.split(": ") for key in keys]
        return ", ".join(f"`{part[0]}`" if len(part) == 1 else f"`{part[0]}.` + the keys of `{part[1]}`" for part in parts)

    if not row["keys"]:
        return "a function" if row["class"].islower() else "no keys"
    other = row.get("keys_where")
    return text(row["keys"]) + (f"; if {other['when']}: {text(other['keys'])}" if other else "")


def table() -> str:
    lines = ["| reference or system | class in Python | class in C++ | keys | test | fixtures or presets |", "|" + "---|" * 6]
    for row in json.loads((ROOT / "tools" / "modules.json").read_text()):
        link = lambda key: f"[{Path(row[key]).name}](../{row[key]})"  # noqa: E731
        system = "system" in row  # a real system instead of a notebook
        if "torch_class" in row:
            origin, python = "PyTorch", row["torch_class"]
        else:
            origin, python = (row["system"], row["system_class"]) if system else (link("notebook"), row["notebook_class"])
        python = f"{row['after']}`, then `{python}" if "after" in row else python  # the system has two classes for it
        reference = ", ".join(f"`{name}`" for name in row["presets"]) if "presets" in row else "run with the tests"
        if "fixtures" in row:
            reference = link("fixtures")
        cells = [origin, f"`{python}`", f"[`{row['class']}`](../{row['header']})", keys_of(row), link("test"), reference]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = DOCUMENT.read_text()
    head, rest = text.split(BEGIN)
    tail = rest[rest.index(END) :]
    wanted = head + BEGIN + table() + tail
    if arguments.write:
        DOCUMENT.write_text(wanted)
    elif wanted != text:
        print("docs/porting.md: its table is out of date; run tools/porting_table.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The ```cpp blocks of Markdown files as one gtest source, so that what the docs show is compiled
and run. A block stands alone: its #include lines go to the top, the rest becomes a test's body, run
in an empty folder."""

import argparse
import re
import sys
from pathlib import Path


def tests_of(document: Path) -> "tuple[list[str], list[str]]":
    includes, bodies = [], []
    for number, block in enumerate(re.findall(r"^```cpp\n(.*?)^```", document.read_text(), re.S | re.M)):
        lines = block.splitlines()
        includes += [line for line in lines if line.startswith("#include")]
        body = "\n".join("  " + line for line in lines if not line.startswith("#include"))
        suite = re.sub(r"\W", "_", document.stem)
        bodies.append(f"TEST({suite}, Snippet{number}) {{\n  InEmptyFolder here;\n{body}\n}}\n")
    return includes, bodies


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("documents", type=Path, nargs="+")
    arguments = parser.parse_args()
    includes, bodies = ["#include <gtest/gtest.h>", '#include "support/empty_folder.h"'], []
    for document in arguments.documents:
        more_includes, more_bodies = tests_of(document)
        includes += more_includes
        bodies += more_bodies
    if not bodies:
        print("no ```cpp block found", file=sys.stderr)
        return 1
    text = "\n".join(dict.fromkeys(includes)) + "\n\nusing posenc::testing::InEmptyFolder;\n\n"
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text + "\n".join(bodies))
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks the spelling of the documents and of the comments of public headers, in British English with -ise: `make docs`.

    tools/spelling.py

Aspell knows the language, docs/doxygen/words.txt the field's words, a word a line. Code, links, names with capitals and words of two letters are not
looked at. A word of that list that no text has is an error too.
"""

import re
import subprocess
import sys
from pathlib import Path

from reference_filter import ROOT, documents

WORDS = ROOT / "docs/doxygen/words.txt"
CODE = re.compile(r"^[ >]*```.*?^[ >]*```$|<!--.*?-->|``.+?``|`[^`]*`|\]\([^)]*\)|\w+://\S+|^ {4,}(?![-*\d ]).*$", re.MULTILINE | re.DOTALL)
WORD = re.compile(r"(?<![\w.@/_:~^\\-])[a-z][a-z’']{2,}(?![\w/_@(=:.^-]*[\w(])")


def prose_of(path: Path) -> str:
    """The text without what is code, line by line."""
    text = path.read_text()
    if path.suffix == ".h":
        text = re.sub(r"(?m)^(?:(?!///).)*(?:///<? ?)?", "", text)
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def words_of(paths: "list[Path]") -> "dict[str, str]":
    """Each word with the first place where it is."""
    found: "dict[str, str]" = {}
    for path in paths:
        for number, line in enumerate(prose_of(path).splitlines(), 1):
            for word in WORD.findall(line):
                found.setdefault(word.replace("’", "'").removesuffix("'").removesuffix("'s"), f"{path.relative_to(ROOT)}:{number}")
    return found


def unknown(words: "list[str]") -> "set[str]":
    said = subprocess.run(["aspell", "list", "--lang=en_GB-ise", "--encoding=utf-8"], input="\n".join(words), capture_output=True, text=True, check=True)
    return set(said.stdout.split())


def main() -> int:
    known = WORDS.read_text().split()
    found = words_of([*documents(), *sorted((ROOT / "include").rglob("*.h"))])
    strange = unknown(sorted(found))
    wrong = [f"{found[word]}: the spelling of `{word}`: mend it, or add it to {WORDS.relative_to(ROOT)}" for word in sorted(strange - set(known))]
    wrong += [f"{WORDS.relative_to(ROOT)}: no text needs `{word}`" for word in known if word not in strange]
    wrong += [] if known == sorted(set(known)) else [f"{WORDS.relative_to(ROOT)}: its words must be in order, each once"]
    for entry in wrong:
        print(f"spelling: {entry}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

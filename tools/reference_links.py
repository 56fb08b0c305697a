#!/usr/bin/env python3
"""Checks that the links and pictures of the reference lead to existing files and anchors.

    tools/reference_links.py build/docs/html

Doxygen itself only checks references; it copies what it takes for plain HTML.
"""

import re
import sys
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r'<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]*)"')
UNHELD = "#nested-classes"  # Doxygen links it on pages of classes whose only nested class is private
ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')


def main(folder: Path) -> int:
    pages = {path.name: path.read_text(errors="replace") for path in folder.glob("*.html")}
    anchors = {name: set(ANCHOR.findall(text)) for name, text in pages.items()}
    broken = set()
    for page, text in pages.items():
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target) or target == UNHELD:
                continue
            name, _, anchor = unquote(target).partition("#")
            name = name or page
            if not (folder / name).is_file() or (anchor and name in anchors and anchor not in anchors[name]):
                broken.add(f"{page}: {target}")
    for entry in sorted(broken):
        print(f"reference: broken link in {entry}", file=sys.stderr)
    if "index.html" not in pages:
        print(f"reference: no front page in {folder}", file=sys.stderr)
    return 1 if broken or "index.html" not in pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

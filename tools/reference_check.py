#!/usr/bin/env python3
"""Checks the finished reference against what it is made from.

    tools/reference_check.py build/docs/VERSION

- Links and pictures lead to existing files and anchors: Doxygen itself checks references only, and copies what it takes
  for plain HTML.
- Every block of code and every code span of a document is on its page as it was written, and every block of code of a
  header is on some page.
- Every header of a module has an example.
- Every component that a program links has an entry in the navigation, docs/doxygen/layout.xml.
- Every public header has a subject, and every pattern of docs/doxygen/topics.dox has a header.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from components import INNER
from reference_components import known
from reference_filter import ROOT, documents, modules_of, page_of
from reference_topics import misfits

LINK = re.compile(r'<(?:a|img)\b[^>]*?\b(?:href|src)="([^"]*)"')
UNHELD = "#nested-classes"  # Doxygen links it on pages of classes whose only nested class is private
ANCHOR = re.compile(r'\b(?:id|name)="([^"]+)"')
FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^\n]+?)(?<!`)\1(?!`)")
COMMENT = re.compile(r"(?:^\s*///(?: .*)?\n)+", re.MULTILINE)


class Code(HTMLParser):
    """The blocks of code and the code spans of a page, as a reader sees them."""

    def __init__(self, text: str):
        super().__init__()
        self.blocks: "list[str]" = []
        self.spans: "set[str]" = set()
        self.open: "list[tuple[str, str]]" = []  # elements, with what they collect: block, line, span or nothing
        self.span = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in ("img", "br", "hr", "meta", "link", "input"):
            return
        kind = (dict(attributes).get("class") or "").split(" ")[0]
        what = {"fragment": "block", "line": "line", "tt": "span"}.get(kind, "span" if tag in ("code", "tt") else "")
        if what == "block":
            self.blocks.append("")
        elif what == "span" and not self.inside("span"):
            self.span = ""
        self.open.append((tag, what))

    def handle_endtag(self, tag):
        while self.open:
            name, what = self.open.pop()
            if what == "line":
                self.blocks[-1] += "\n"
            elif what == "span" and not self.inside("span"):
                self.spans.add(plain(self.span))
            if name == tag:
                break

    def handle_data(self, data):
        if self.inside("span"):
            self.span += data
        elif self.inside("line") or (self.open and self.open[-1] == ("pre", "block")):
            self.blocks[-1] += data

    def inside(self, what: str) -> bool:
        return any(kind == what for _, kind in self.open)


def plain(code: str) -> str:
    """Code without what a browser does not show: the spaces at the ends of lines, and how many are in a row."""
    return "\n".join(" ".join(line.split()) for line in code.strip().splitlines())


def broken_links(pages: "dict[str, str]", folder: Path) -> "list[str]":
    anchors = {name: set(ANCHOR.findall(text)) for name, text in pages.items()}
    broken = set()
    for page, text in pages.items():
        for target in LINK.findall(text):
            if re.match(r"[a-z]+:", target) or target == UNHELD:
                continue
            name, _, anchor = unquote(target).partition("#")
            name = name or page
            if not (folder / name).is_file() or (anchor and name in anchors and anchor not in anchors[name]):
                broken.add(f"broken link in {page}: {target}")
    return sorted(broken)


def garbled_documents(pages: "dict[str, str]") -> "list[str]":
    found = []
    for path in documents():
        page = page_of(path) + ".html"
        shown, text = Code(pages.get(page, "")), path.read_text()
        blocks = {plain(block) for block in shown.blocks}
        pieces = [(block, plain(block) in blocks) for block in FENCE.findall(text)]
        pieces += [(span, plain(span) in shown.spans) for _, span in SPAN.findall(FENCE.sub("", text))]
        found += [f"{path.relative_to(ROOT)}: this code is not on {page}:\n{code}" for code, is_shown in pieces if not is_shown]
    return found


def garbled_headers(pages: "dict[str, str]") -> "list[str]":
    shown = [Code(text) for name, text in pages.items() if not name.endswith("_source.html")]
    blocks = {plain(block) for page in shown for block in page.blocks}
    spans = {span for page in shown for span in page.spans}
    found = []
    for path in sorted((ROOT / "include").rglob("*.h")):
        for comment in COMMENT.findall(path.read_text()):
            text = re.sub(r"(?m)^\s*/// ?", "", comment)
            pieces = [(block, plain(block) in blocks) for block in FENCE.findall(text)]
            pieces += [(span, plain(span) in spans) for _, span in SPAN.findall(FENCE.sub("", text))]
            found += [f"{path.relative_to(ROOT)}: this code is on no page:\n{code}" for code, is_shown in pieces if not is_shown]
    return found


def without_example() -> "list[str]":
    headers = {path: path.read_text() for path in sorted((ROOT / "include").rglob("*.h"))}
    return [f"{path.relative_to(ROOT)}: a header of a module has an example" for path, text in headers.items()
            if modules_of(text) and "/// ```cpp" not in text]  # fmt: skip


def without_page(components: "list[str]") -> "list[str]":
    layout = (ROOT / "docs/doxygen/layout.xml").read_text()
    return [f"docs/doxygen/layout.xml: component-{name} has no tab" for name in components if name not in INNER and f'"@ref component-{name}"' not in layout]


def main(folder: Path) -> int:
    pages = {path.name: path.read_text(errors="replace") for path in folder.glob("*.html")}
    found = broken_links(pages, folder) + garbled_documents(pages) + garbled_headers(pages) + without_example() + without_page(known().names) + misfits()
    found += [] if "index.html" in pages else [f"no front page in {folder}"]
    for entry in found:
        print(f"reference: {entry}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

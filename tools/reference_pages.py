#!/usr/bin/env python3
"""Finishes the pages that Doxygen has written: comments in code, and the search.

    tools/reference_pages.py build/docs VERSION

- Comments in code, which tools/reference_filter.py has marked, become comments again.
- Doxygen's own search knows names only. The index made here, build/docs/VERSION/search_index.js, has the names and the text of
  each section of each document, from Doxygen's XML, and docs/doxygen/search.js finds them.
- build/docs/index.html leads to the newest version, and names the others whose folders are beside it: the address of a page has its version.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path

from reference_filter import MARKED

COMMENT = re.compile(f"{MARKED[0]}(.*?){MARKED[1]}")
WORD = re.compile(r"\w+")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # MultiheadAttention: Multihead, Attention
SECTIONS = ("sect1", "sect2", "sect3")
# What a word counts that is the whole name of a class or a function, is in a title, and is in a text, by its share of that.
WHOLE, TITLE, TEXT = 24, 10, (1, 4)
SHORT = 50  # words: in a shorter text one of them is no larger share
GUIDE = 2  # how much more it counts in a guide or a subject


class Index:
    def __init__(self):
        self.entries: "list[tuple[str, str, str]]" = []  # title, where it is, address
        self.words: "dict[str, list[int]]" = defaultdict(list)  # an entry and the word's weight in it, in turn

    def add(self, title: str, place: str, url: str, text: str, factor: int = 1, whole: int = 0) -> None:
        weights = Counter()
        words = words_of(text)
        for word, count in Counter(words).items():
            weights[word] = factor * min(TEXT[1], TEXT[0] + 100 * count // max(SHORT, len(words)))
        for word in set(words_of(title)):
            weights[word] += TITLE * factor
        weights[title.lower()] += whole
        for word, weight in weights.items():
            if weight:
                self.words[word] += [len(self.entries), weight]
        self.entries.append((title, place, url))

    def script(self) -> str:
        index = {"entries": self.entries, "words": dict(sorted(self.words.items()))}
        return f"const POSENC_INDEX = {json.dumps(index, ensure_ascii=False, separators=(',', ':'))};\n"


def words_of(text: str) -> "list[str]":
    found = []
    for word in WORD.findall(text):
        parts = [part for piece in word.split("_") for part in PART.findall(piece) or [piece]]
        found += [word.lower(), *(part.lower() for part in parts if len(parts) > 1)]
    return found


def text_of(node: "ElementTree.Element | None", without: "tuple[str, ...]" = ()) -> str:
    if node is None:
        return ""
    inner = [part for child in node if child.tag not in without for part in (text_of(child, without), child.tail or "")]
    return " ".join([node.text or "", *inner]) if node.tag in ("para", *SECTIONS) else "".join([node.text or "", *inner])


def described(node: ElementTree.Element) -> str:
    return " ".join(text_of(node.find(name)) for name in ("briefdescription", "detaileddescription"))


def add_document(index: Index, compound: ElementTree.Element) -> None:
    label = compound.get("id").removesuffix("page")
    title, url = text_of(compound.find("title")), f"{label}.html"
    description = compound.find("detaileddescription")
    index.add(title, "guide", url, text_of(description, SECTIONS), GUIDE)
    for section in (found for tag in SECTIONS for found in description.iter(tag)):
        anchor = section.get("id").partition("_1")[2]
        index.add(text_of(section.find("title")), title, f"{url}#{anchor}", text_of(section, SECTIONS), GUIDE)


def add_names(index: Index, compound: ElementTree.Element) -> None:
    """A class or a subject, and its members."""
    kind, page = compound.get("kind"), f"{compound.get('id')}.html"
    name = compound.findtext("title") if kind == "group" else compound.findtext("compoundname").removeprefix("posenc::")
    index.add(name, "subject" if kind == "group" else kind, page, described(compound), *((GUIDE, 0) if kind == "group" else (1, WHOLE)))
    for member in compound.iter("memberdef"):
        values = " ".join(f"{value.findtext('name')} {described(value)}" for value in member.iter("enumvalue"))
        title = member.findtext("name")
        if member.get("prot") == "public" and title != name and not title.startswith(("operator", "~")):
            url = f"{page}#{member.get('id').rpartition('_1')[2]}"
            index.add(title, name, url, f"{described(member)} {values}", whole=WHOLE if kind == "group" else 0)


def index_of(xml: Path) -> Index:
    index = Index()
    kinds = {"page": add_document, "group": add_names, "class": add_names, "struct": add_names}
    for path in sorted(xml.glob("*.xml")):
        compound = ElementTree.parse(path).find("compounddef")
        if compound is not None and compound.get("kind") in kinds:
            kinds[compound.get("kind")](index, compound)
    return index


def finished(page: str) -> str:
    page = COMMENT.sub(r'<span class="comment">/*\1*/</span>', page)
    return page.replace("</head>", '<script src="search.js"></script>\n</head>', 1)


def versions(folder: Path) -> "list[str]":
    """Those that the site has, the newest first."""
    found = [path.parent.name for path in folder.glob("*/index.html") if re.fullmatch(r"\d+(\.\d+)+", path.parent.name)]
    return sorted(found, key=lambda version: list(map(int, version.split("."))), reverse=True)


def front_page(found: "list[str]") -> str:
    links = ", ".join(f'<a href="{version}/index.html">{version}</a>' for version in found)
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>posenc</title><meta http-equiv="refresh" content="0; url={found[0]}/index.html"></head>
<body><p>posenc: {links}</p></body>
</html>
"""


def main(folder: Path, version: str) -> None:
    for path in (folder / version).glob("*.html"):
        path.write_text(finished(path.read_text(errors="replace")))
    (folder / version / "search_index.js").write_text(index_of(folder / "xml").script())
    (folder / "index.html").write_text(front_page(versions(folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

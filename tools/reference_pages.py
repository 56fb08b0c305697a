#!/usr/bin/env python3
"""Finishes the pages that Doxygen has written: comments in code, and the search.

    tools/reference_pages.py build/docs

- Comments in code, which tools/reference_filter.py has marked, become comments again.
- Doxygen's own search knows names only. The index made here, FOLDER/html/search_index.js, has the names and the text of
  each section of each document, from Doxygen's XML, and docs/doxygen/search.js finds them.
"""

import json
import math
import re
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path

from reference_filter import MARKED

COMMENT = re.compile(f"{MARKED[0]}(.*?){MARKED[1]}")
WORD = re.compile(r"[^\W_]+")
PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")  # MultiheadAttention: Multihead, Attention
SECTIONS = ("sect1", "sect2", "sect3")
# What a word counts that is an entry's whole name, is in its title, and is in its text.
WHOLE, TITLE, TEXT = 24, 10, 1
GUIDE = 2  # and how much more in a guide's title, which explains a subject


class Index:
    def __init__(self):
        self.entries: "list[tuple[str, str, str]]" = []  # title, where it is, address
        self.words: "dict[str, list[int]]" = defaultdict(list)  # an entry and the word's weight in it, in turn

    def add(self, title: str, place: str, url: str, text: str, factor: int = 1) -> None:
        weights = Counter()
        for word, count in Counter(words_of(text)).items():
            weights[word] = TEXT * (1 + round(math.log2(count)))
        for word in set(words_of(title)):
            weights[word] += TITLE * factor
        weights[title.lower()] += WHOLE if WORD.fullmatch(title) else 0
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
        parts = PART.findall(word)
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
    index.add(name, "subject" if kind == "group" else kind, page, described(compound), GUIDE if kind == "group" else 1)
    for member in compound.iter("memberdef"):
        values = " ".join(f"{value.findtext('name')} {described(value)}" for value in member.iter("enumvalue"))
        title = member.findtext("name")
        if member.get("prot") == "public" and title != name and not title.startswith(("operator", "~")):
            index.add(title, name, f"{page}#{member.get('id').rpartition('_1')[2]}", f"{described(member)} {values}")


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


def main(folder: Path) -> None:
    for path in (folder / "html").glob("*.html"):
        path.write_text(finished(path.read_text(errors="replace")))
    (folder / "html" / "search_index.js").write_text(index_of(folder / "xml").script())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

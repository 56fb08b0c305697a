"""The subjects of the API reference and their headers (docs/doxygen/topics.dox)."""

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "doxygen" / "topics.dox"
INCLUDE = ROOT / "include" / "posenc"
HEADERS = re.compile(r"^headers: (.*?)(?= \*/|$)", re.MULTILINE)


@cache
def patterns() -> "dict[str, str]":
    """The subject of each pattern."""
    blocks = re.findall(r"@defgroup (\w+)(.*?)\*/", PAGE.read_text(), re.DOTALL)
    return {pattern: topic for topic, text in blocks for line in HEADERS.findall(text + "*/") for pattern in line.split()}


def topic_of(header: Path) -> "str | None":
    name = header.relative_to(INCLUDE).as_posix()
    matching = [pattern for pattern in patterns() if fnmatch(name, pattern)]
    return patterns()[max(matching, key=len)] if matching else None


def misfits() -> "list[str]":
    """Headers without a subject, patterns without a header, and links without a document."""
    headers, page = sorted(INCLUDE.rglob("*.h")), PAGE.relative_to(ROOT)
    names = [header.relative_to(INCLUDE).as_posix() for header in headers]
    found = [f"{name} has no subject in {page}" for name, header in zip(names, headers) if not topic_of(header)]
    found += [f"{page}: no header is {pattern}" for pattern in patterns() if not any(fnmatch(name, pattern) for name in names)]
    guides = re.findall(r"\]\(([^)]+)\)", PAGE.read_text())
    return found + [f"{page}: there is no {guide}" for guide in guides if not (PAGE.parent / guide).is_file()]

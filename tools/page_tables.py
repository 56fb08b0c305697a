"""What the scripts that write tables into pages share."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def table(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def filled(text: str, tables: dict[str, Callable[[], str]], script: str = "docs.py") -> str:
    """The text of a page with these tables in their places, from `<!-- NAME: tools/SCRIPT -->` to `<!-- end of NAME -->`."""
    for name, made in tables.items():
        begin, end = f"<!-- {name}: tools/{script} -->\n", f"<!-- end of {name} -->\n"
        text, found = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: begin + made() + end, text, flags=re.S)
        if found != 1:
            raise ValueError(f"a page must have one place for the table `{name}`, from {begin}to {end}Got {found}")
    return text

"""The tables of docs/components.md: what cmake/posenc_components.cmake says, the first sentences of the components' READMEs, the
lines of their folders, and what tools/build_times.py has measured."""

import json
import re
from functools import cache

from components import INNER, TABLE, Components
from page_tables import DOCS, ROOT, table

MEASURED = DOCS / "components.json"
# What tools/build_times.py builds: the value of POSENC_COMPONENTS, and what the program has that it links.
SELECTIONS = {
    "positions;weights": "`PositionalEncoding` and `load_weights`",
    "tokenizers": "a text to ids and back",
    "all": "`PositionalEncoding` and `load_weights`",
}


@cache
def known() -> Components:
    return Components((ROOT / TABLE).read_text())


def closure(*names: str) -> "list[str]":
    """These and all that they need, in the order of building; `all` is each."""
    reached = set().union(*map(known().reached, known().names if names == ("all",) else names))
    return [name for name in known().names if name in reached]


def lines(name: str) -> int:
    """The lines of a component's sources and headers, public and private."""
    folders = ROOT / "src" / name, ROOT / "include/posenc" / name
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".h", ".cpp", ".inc")]
    return sum(path.read_bytes().count(b"\n") for path in [*files, *(ROOT / "include/posenc").glob(f"{name}.h")])


def rounded(number: int) -> str:
    """To two digits, so that the page changes seldom."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return f"{round(number / unit) * unit:,}"


def purpose(name: str) -> str:
    """The first sentence of its README."""
    text = (ROOT / "src" / name / "README.md").read_text().split("\n\n")[1].replace("\n", " ")
    return re.match(r"(.*?[^.]\.)(?= [A-Z`]|$)", text)[1].replace("|", "\\|")


def readme(name: str) -> str:
    return f"[`{name}`](../src/{name}/README.md)"


def components() -> str:
    """All that can be chosen, and the inner ones."""
    rows = []
    for name, needed in known().needs.items():
        link = "with the others" if name in INNER else f"`posenc::{name}`, `posenc_{name}`"
        own, whole = (rounded(sum(map(lines, part))) for part in ([name], closure(name)))
        rows.append((readme(name), purpose(name), ", ".join(needed), own, whole, link))
    return table(["component", "what it is for", "needs", "lines", "with all it needs", "CMake target, pkg-config"], rows)


def recorded() -> dict:
    return json.loads(MEASURED.read_text()) if MEASURED.is_file() else {}


def selections() -> str:
    """What is built for a value of POSENC_COMPONENTS, and once it is measured, how long that takes."""
    run, rows = recorded(), []
    for selection in SELECTIONS:
        built = closure(*selection.split(";"))
        row = [f"`{selection}`", "each" if built == known().names else ", ".join(built), rounded(sum(map(lines, built)))]
        rows.append(row + (measured(run["selections"][selection]) if run else []))
    if not run:
        return table(["`POSENC_COMPONENTS`", "built", "lines"], rows)
    head = ["`POSENC_COMPONENTS`", "built", "lines", "configured, built and installed", "a stripped program", "that has"]
    shared = f" Stripped, `libposenc_tokenizers.so` has {megabytes(run['shared_tokenizers'])}."
    about = f"\n{run['processor']}, {run['cores']} cores, {run['compiler']}, torch {run['torch']}, {run['date']}, without a compiler's cache.{shared}\n"
    return table(head, [row + [SELECTIONS[selection]] for row, selection in zip(rows, SELECTIONS)]) + about


def measured(run: dict) -> "list[str]":
    return [f"{sum(run['seconds'].values()):.0f} s", megabytes(run["program"])]


def megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"

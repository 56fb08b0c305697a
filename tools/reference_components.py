"""What the page of a component has beside its README: how it is linked, its guides, and its headers with what they declare.

The README of src/NAME is the page; tools/reference_filter.py adds this to it. The table of components, the groups of docs/README.md and the
headers themselves say it, so that nothing is written twice.
"""

import re
from pathlib import Path

from components import INNER, TABLE, Components

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include/posenc"
# A namespace that begins, one that ends, a module, a class.
DECLARED = re.compile(r"^(?:namespace ([\w:]+)(?: POSENC_EXPORT)? \{$|(\}  // namespace)|TORCH_MODULE\((\w+)\)|(?:class|struct) (?:POSENC_\w+ )?(\w+)(?: final)?(?: :.*)? ?\{)", re.MULTILINE)
FORWARD = re.compile(r"^namespace [\w: ]+\{\n(?:.*;\n)+\}$", re.MULTILINE)  # a namespace of classes that are declared elsewhere
GROUP = re.compile(r"^\*\*.*?\*\* \((.*?)\)\n\n((?:- .*\n(?:  .*\n)*)+)", re.MULTILINE)


def known() -> Components:
    return Components((ROOT / TABLE).read_text())


def version() -> str:
    """The major and the minor number, which find_package takes."""
    return re.search(r'POSENC_VERSION "(\d+\.\d+)', (INCLUDE / "version.h").read_text())[1]


def linking(name: str) -> str:
    if name in INNER:
        return "It comes with the others: no program links it by its name."
    lines = [f"find_package(posenc {version()} REQUIRED COMPONENTS {name})", f"target_link_libraries(app PRIVATE posenc::{name})"]
    umbrella = f"include `<posenc/{name}.h>`, or single headers of those below"
    return "```cmake\n" + "\n".join(lines) + f"\n```\n\nWithout CMake, pkg-config knows it as `posenc_{name}`. Programs {umbrella}."


def neighbours(name: str, components: Components) -> str:
    """Which components come with it, and which are built on it."""

    def links(names: "list[str]") -> str:
        return ", ".join(f"[{one}](@ref component-{one})" for one in names)

    below = [one for one in components.names if one in components.reached(name) - {name}]
    above = [one for one in components.names if name in components.needs[one]]
    needs = "It needs no other component" if not below else f"With it come {links(below)}"
    torch = "" if name in components.plain + ["kernels"] else ", and LibTorch"
    return f"{needs}{torch}." + (f" Built on it: {links(above)}." if above else "")


def guides(name: str) -> str:
    """The documents of docs/README.md whose group names the component; links are still those of that page."""
    groups = [text for names, text in GROUP.findall((ROOT / "docs/README.md").read_text()) if f"`posenc::{name}`" in names]
    return "".join(groups)


def headers(name: str) -> "list[Path]":
    return sorted((INCLUDE / name).rglob("*.h"))


def declared(header: Path) -> "list[str]":
    """The classes of a header that have a page, by their qualified names without `posenc::`."""
    spaces: "list[str]" = []
    names = []
    for begin, end, module, plain in DECLARED.findall(FORWARD.sub("", header.read_text())):
        if begin:
            spaces = ["posenc"] if begin == "posenc" else [*spaces, begin]  # a first one may have forward declarations only
        elif end and spaces:
            spaces.pop()
        else:
            names.append("::".join([*spaces, module or plain]).removeprefix("posenc::"))
    handles = {f"{name}Impl": name for name in names}
    shown = dict.fromkeys(handles.get(name, name) for name in names)
    return [name for name in shown if "detail" not in name.split("::")]


def listed(name: str) -> str:
    rows = []
    for header in headers(name):
        path = header.relative_to(INCLUDE.parent).as_posix()
        rows.append(f"| @ref {path} \"{header.relative_to(INCLUDE / name).as_posix()}\" | " + ", ".join(f"@ref posenc::{one} \"{one}\"" for one in declared(header)) + " |")
    return "| header | classes |\n|---|---|\n" + "\n".join(rows)


def added(name: str) -> "list[tuple[str, str]]":
    """Headings and texts, in Doxygen's Markdown but for the guides."""
    components = known()
    parts = [("Linking", linking(name)), ("Other components", neighbours(name, components)), ("Guides", guides(name))]
    return [(title, text) for title, text in [*parts, ("Public headers", listed(name) if headers(name) else "")] if text]

#!/usr/bin/env python3
"""Doxygen's input filter: prints a header or a document of this tree in the form that Doxygen should read.

    tools/reference_filter.py FILE

Headers keep their line numbers, so that warnings refer to the right line:
- TORCH_ARG(T, name) and POSENC_OPTIMIZER_ARG(T, name) become a member `T name`: one entry per option, with its default.
  The page of such a class says how an option is set and read.
- TORCH_MODULE(Name) becomes the class that it declares, with a comment that links to NameImpl.
- Overrides of torch::nn::Module (reset, pretty_print, to) are left out. They do what LibTorch documents, and LibTorch is
  not part of the reference, so Doxygen cannot inherit its comments.
- A paragraph that begins with `Errors:`, `Keys:` or `Source:` becomes a section.
Documents: a link to another document becomes a reference, which Doxygen checks, a link to a header becomes one to its
class, and a link to a file that is not in the reference becomes plain text. Headings get the anchors that they have on
GitHub, prefixed with the name of the document.
"""

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

OPTION = re.compile(r"^(\s*)(?:TORCH_ARG|POSENC_OPTIMIZER_ARG)\((.*), (\w+)\)( = .*|;.*)$")
MODULE = re.compile(r"^TORCH_MODULE\((\w+)\);$")
HOLDER = r"/** @holder_of{\1Impl} */ class \1 : public torch::nn::ModuleHolder<\1Impl> {};"
OPTIONS = re.compile(r"^((?:struct|class) \w+ .*\{)$")
NOTE = r"/** An option `x` is set by `.x(value)`, which can be chained, and read by `.x()`. */ \1"
DERIVED = re.compile(r"^ private:\n  using Derived = \w+;$", re.MULTILINE)  # the setters of optimiser options are public
OVERRIDE = re.compile(r"^\s*(?:void (?:reset|pretty_print|to)\(.*\).* override|using torch::nn::Module::to);$")
SECTION = re.compile(r"^(\s*///) (Errors|Keys|Source): ")

# The parts of a document that are changed; code comes first, because nothing in it changes.
TOKEN = re.compile(
    r"(?P<code>^```.*?^```$|``.+?``|`[^`\n]+`)"
    r"|(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)"
    r"|(?P<at>@)"
    r"|^(?P<marks>#+) (?P<title>[^\n]+)$",
    re.MULTILINE | re.DOTALL)


def header(text: str) -> str:
    lines = []
    for block in re.split(r"(?m)(?=^(?:struct|class|template) )", DERIVED.sub("\n", text)):
        lines += header_lines(block)
    return "\n".join(lines) + "\n"


def header_lines(block: str) -> "list[str]":
    """The lines of one class, including what precedes the next one."""
    has_options = re.search(r"^\s*(?:TORCH_ARG|POSENC_OPTIMIZER_ARG)\(", block, re.MULTILINE)
    lines = []
    for line in block.splitlines():
        line = OPTIONS.sub(NOTE, line) if has_options else line
        line = OPTION.sub(r"\1\2 \3\4", line)
        line = re.sub(r"\{nullptr\}(?=[;,])", "", line)
        line = MODULE.sub(HOLDER, line)
        line = SECTION.sub(r"\1 @section_of{\2} ", line)
        lines.append("" if OVERRIDE.match(line) else line)
    return lines


def page_of(path: Path) -> str:
    """The label of a document: `cli`, `design-0001-...`; README.md is the front page."""
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    return "index" if name == "README" else name.removeprefix("docs/").lower().replace("/", "-")


def anchor_of(heading: str) -> str:
    """GitHub's anchor for a heading."""
    words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def class_of(target: Path, text: str) -> str:
    """A link to the class that a header declares, or only its name."""
    name = text.strip("`")
    declared = re.search(rf"^(?:TORCH_MODULE\({name}\)|(?:class|struct) {name}\b)", target.read_text(), re.MULTILINE)
    return f'@ref posenc::{name} "{name}"' if declared else text


def link(path: Path, text: str, target: str) -> str:
    if re.match(r"\w+:", target):
        return f"[{text}]({target})"
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if file.suffix == ".md" and file.is_file():
        return f"[{text}](@ref {page_of(file)}{'-' if anchor else ''}{anchor})"
    return class_of(file, text) if file.suffix == ".h" and file.is_file() else text


def document(path: Path, text: str) -> str:
    page, labels = page_of(path), Counter()

    def replaced(found: "re.Match[str]") -> str:
        if found["target"]:
            return link(path, found["text"], found["target"])
        if found["at"]:
            return "\\@"  # not a Doxygen command
        if not found["title"]:
            return found.group()
        label = page if found["marks"] == "#" else f"{page}-{anchor_of(found['title'])}"
        labels[label] += 1
        label += f"-{labels[label] - 1}" if labels[label] > 1 else ""  # as on GitHub for equal headings
        return found.group() if label == "index" else f"{found.group()} {{#{label}}}"

    return TOKEN.sub(replaced, text)


if __name__ == "__main__":
    file = Path(sys.argv[1]).resolve()
    read = file.read_text()
    print(header(read) if file.suffix == ".h" else document(file, read), end="")

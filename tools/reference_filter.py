#!/usr/bin/env python3
"""Doxygen's input filter: prints a header or a document of this tree in the form that Doxygen should read.

    tools/reference_filter.py FILE

Headers keep their line numbers, so that warnings refer to the right line:
- TORCH_ARG(T, name), POSENC_ARG(T, name), POSENC_OPTIMIZER_ARG(T, name) and POSENC_BASE_ARG(T, name) become a member `T name`: one entry per option, with its default.
  The page of such a class says how an option is set and read.
- A module has one page: NameImpl is called Name, the holder that TORCH_MODULE(Name) declares is left out, and the members
  of a holder that is written out follow those of its NameImpl.
- Its declarations belong to the subject that docs/doxygen/topics.dox gives to the header.
- Code in comments: Doxygen cannot end a comment in a comment, nor read an apostrophe in a code span. Comments in code
  become MARKED, which tools/reference_pages.py makes comments again, and such spans have two backquotes.
- Overrides of torch::nn::Module (reset, pretty_print, to) are left out. They do what LibTorch documents, and LibTorch is
  not part of the reference, so Doxygen cannot inherit its comments.
- A paragraph that begins with `Errors:`, `Keys:` or `Source:` becomes a section.
Documents: a link to another document becomes a reference, which Doxygen checks, a link to a header becomes one to its
class, and a link to a file that is not in the reference becomes plain text. Headings get the anchors that they have on
GitHub, prefixed with the name of the document. In topics.dox only the links change, and `headers:` disappears.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from reference_components import added, known
from reference_topics import HEADERS, PAGE, ROOT, topic_of

OPTION = re.compile(r"^(\s*)(?:TORCH_ARG|POSENC_(?:\w+_)?ARG)\((.*), (\w+)\)( = .*|;.*)$")
MODULE = re.compile(r"^TORCH_MODULE\((\w+)\);$", re.MULTILINE)
# From the end of an Impl to the members of its holder, if that is a class in the header.
HOLDER = re.compile(r"^};\n((?:\n|///.*\n)*)class (\w+) : public torch::nn::ModuleHolder<\2Impl> \{\n public:\n.*::ModuleHolder;$", re.MULTILINE)
IMPL = r"^(class) {0}Impl\b(.*?^}};)"
HANDLE = r"/** @handle_of{{{0}}} */ \1 {0}\2"
NAMESPACE = re.compile(r"^(namespace posenc(?: POSENC_EXPORT)? \{$)(.*?)(^\}  // namespace posenc$)", re.MULTILINE | re.DOTALL)
# Inside of that, which is not itself a member of the subject: a blank line, its comment, its members and its end.
INNER = re.compile(r"^\n((?:///[^\n]*\n)*namespace \w+(?: POSENC_EXPORT)? \{$)(.*?)^\}  // namespace \w+$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^ *///\s+```\w*$.*?```$", re.MULTILINE | re.DOTALL)
MARKED = "\uE000", "\uE001"
QUOTED = re.compile(r"(?<!`)`([^`\n]*'[^`\n]*)`(?!`)")
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


def header(path: Path, text: str) -> str:
    lines = []
    for block in re.split(r"(?m)(?=^(?:struct|class|template) )", DERIVED.sub("\n", of_one_page(code(text)))):
        lines += header_lines(block)
    return NAMESPACE.sub(lambda found: grouped(topic_of(path), *found.groups()), "\n".join(lines) + "\n")


def grouped(topic: "str | None", begin: str, members: str, end: str) -> str:
    opened, closed = f"/** @addtogroup {topic} */ /** @{{ */", "/** @} */"
    members = INNER.sub(rf"{closed}\n\1 {opened}\2{closed} }} {opened}", members)
    return f"{begin} {opened}{members}{closed} {end}"


def code(text: str) -> str:
    """The code of comments, in a form that Doxygen prints as it is."""
    text = FENCE.sub(lambda block: block.group().replace("/*", MARKED[0]).replace("*/", MARKED[1]), text)
    return re.sub(r"(?m)//[/ ].*$", lambda comment: QUOTED.sub(r"``\1``", comment.group()), text)


def modules_of(text: str) -> "list[str]":
    """The modules that a header declares."""
    return MODULE.findall(text) + [found[2] for found in HOLDER.finditer(text)]


def of_one_page(text: str) -> str:
    """Each module as one class."""
    names = modules_of(text)
    text = HOLDER.sub(lambda found: "\n public:" + "\n" * (found.group().count("\n") - 1), MODULE.sub("", text))
    for name in names:
        owned = re.compile(IMPL.format(name), re.MULTILINE | re.DOTALL)
        text = owned.sub(lambda found: re.sub(rf"\b{name}Impl\b", name, found.expand(HANDLE.format(name))), text)
    return re.sub(r"(?m)(?<=//).*$", lambda comment: re.sub(r"Impl(?=::)", "", comment.group()), text)


def header_lines(block: str) -> "list[str]":
    """The lines of one class, including what precedes the next one."""
    has_options = re.search(r"^\s*(?:TORCH_ARG|POSENC_(?:\w+_)?ARG)\(", block, re.MULTILINE)
    lines = []
    for line in block.splitlines():
        line = OPTIONS.sub(NOTE, line) if has_options else line
        line = OPTION.sub(r"\1\2 \3\4", line)
        line = re.sub(r"\{nullptr\}(?=[;,])", "", line)
        line = SECTION.sub(r"\1 @section_of{\2} ", line)
        lines.append("" if OVERRIDE.match(line) else line)
    return lines


def page_of(path: Path) -> str:
    """The label of a document: `cli`, `design-0001-...`, `component-models` for src/models/README.md; README.md is the front page."""
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    if name.startswith("src/"):
        return f"component-{path.parent.name}"
    return "index" if name == "README" else name.removeprefix("docs/").lower().replace("/", "-")


def anchor_of(heading: str) -> str:
    """GitHub's anchor for a heading."""
    words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def class_of(target: Path, text: str) -> str:
    """A link to the class that a header declares, or only its name."""
    name = text.strip("`")
    declared = re.search(rf"^(?:TORCH_MODULE\({name}\)|(?:class|struct) {name}\b)", target.read_text(), re.MULTILINE)
    return f'<code>@ref posenc::{name} "{name}"</code>' if declared else text


def link(path: Path, text: str, target: str) -> str:
    if "\n" in text:  # Doxygen reads the rest of the document as text if this is in a last line
        return link(path, " ".join(text.split()), target)
    if re.match(r"\w+:", target):
        return f"[{text}]({target})"
    name, _, anchor = target.partition("#")
    file = (path.parent / name).resolve() if name else path
    if file.suffix == ".md" and file.is_file():
        label = page_of(file) + ("-" if anchor else "") + anchor
        whole = re.fullmatch(r"`([^`]+)`", text)
        return f'<code>@ref {label} "{whole[1]}"</code>' if whole else f"[{text}](@ref {label})"
    return class_of(file, text) if file.suffix == ".h" and file.is_file() else text


def document(path: Path, text: str) -> str:
    page, labels = page_of(path), Counter()

    def replaced(found: "re.Match[str]") -> str:
        if found["target"]:
            return link(path, found["text"], found["target"])
        if found["at"]:
            return "\\@"  # not a Doxygen command
        if not found["title"]:
            return QUOTED.sub(r"``\1``", found.group()) if found["code"] else found.group()
        label = page if found["marks"] == "#" else f"{page}-{anchor_of(found['title'])}"
        labels[label] += 1
        label += f"-{labels[label] - 1}" if labels[label] > 1 else ""  # as on GitHub for equal headings
        return found.group() if label == "index" else f"{found.group()} {{#{label}}}"

    return TOKEN.sub(replaced, text)


def component(path: Path, text: str) -> str:
    """A component's README with what the reference adds to it. Guides are links of docs/README.md."""
    name, page = path.parent.name, page_of(path)
    parts = [document(path, text)]
    for title, more in added(name):
        parts.append(f"## {title} {{#{page}-{anchor_of(title)}}}\n\n" + (document(ROOT / "docs/README.md", more) if title == "Guides" else more))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def topics(text: str) -> str:
    linked = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", lambda found: link(PAGE, *found.groups()), text)
    return HEADERS.sub("", linked)


def documents() -> "list[Path]":
    """The documents of the reference."""
    named = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")]
    return [*named, *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "src").glob("*/README.md"))]


def filtered(path: Path) -> str:
    if path == PAGE:
        return topics(path.read_text())
    if path.suffix == ".h":
        return header(path, path.read_text())
    is_component = path.name == "README.md" and path.parent.parent == ROOT / "src" and path.parent.name in known().names
    return (component if is_component else document)(path, path.read_text())


if __name__ == "__main__":
    print(filtered(Path(sys.argv[1]).resolve()), end="")

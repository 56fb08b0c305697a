#!/usr/bin/env python3
"""Doxygen's input filter: prints a header or a document of this tree as Doxygen should read it.

    tools/reference_filter.py FILE

Headers keep their lines, so that warnings name the right one:
- TORCH_ARG(T, name) and POSENC_OPTIMIZER_ARG(T, name) become the member `T name`: one entry an option, with its default.
- TORCH_MODULE(Name) becomes the class that it declares, with a comment that leads to NameImpl.
- Overrides of torch::nn::Module (reset, pretty_print, to) go: they do what LibTorch's documentation says, and LibTorch is
  not in the reference, so that Doxygen could not inherit its comments.
- A line that begins with `Errors:`, `Keys:`, `Shape:` or `Source:` begins a section.

Documents: links to the heading of a document become references, which Doxygen checks; a link to what is no page of the
reference becomes its text. Headings get their anchors.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

OPTION = re.compile(r"^(\s*)(?:TORCH_ARG|POSENC_OPTIMIZER_ARG)\((.*), (\w+)\)( = .*|;.*)$")
MODULE = re.compile(r"^TORCH_MODULE\((\w+)\);$")
HOLDER = (r"/** @copybrief \1Impl A shared handle to a \1Impl, as all modules of LibTorch have one: copies share the module, "
          r"and `->` reaches its members. */ class \1 : public torch::nn::ModuleHolder<\1Impl> {};")
OVERRIDE = re.compile(r"^\s*(?:void (?:reset|pretty_print|to)\(.*\).* override|using torch::nn::Module::to);$")
SECTION = re.compile(r"^(\s*///) (Errors|Keys?|Shapes?|Source): ")


def header(text: str) -> str:
    lines = []
    for line in text.splitlines():
        line = OPTION.sub(r"\1public: \2 \3\4", line)
        line = MODULE.sub(HOLDER, line)
        line = SECTION.sub(r"\1 @section_of{\2} ", line)
        lines.append("" if OVERRIDE.match(line) or "POSENC_FORWARD_HAS_DEFAULT_ARGS" in line else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    text = path.read_text()
    print(header(text) if path.suffix == ".h" else text, end="")

#!/usr/bin/env python3
"""The C++ examples of README, docs and header comments as gtest sources, so that they are compiled and run.

    tools/snippets.py --out A.cpp B.cpp ...      the examples, divided among these sources
    tools/snippets.py --alone A.cpp B.cpp ...    one source for each set of #includes in the examples
    tools/snippets.py --list                     where the examples are

An example is a ```cpp block of a document, or of a `///` comment in a public header (a ```c block of a header is C, and none), in which #include
<posenc/posenc.h> is implied. It becomes the body of a function. With --alone it sees only its own #includes: examples with different ones are in different
sources, which are compiled without the precompiled header. The sources of --out, which run, have the #includes of all.

A program for gtest is left to tests/package/quick_start_test.py, which builds it.

Declarations that the examples of a header assume are in tests/docs/context/<header's stem>.inc.

An example runs in an empty folder, as it is. If it declares one of INPUTS, it also runs with a padded batch of four
sequences of four tokens, in which axes can be confused, and with a ragged batch (tests/docs/given.h). A shape that the
example states is checked: `torch::Tensor x = f();  // (B, L, 8)`.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = ROOT / "tests" / "docs" / "context"
UMBRELLA = "#include <posenc/posenc.h>"
MAIN = "int main() {"
# The declarations whose values tests/docs/given.h supplies: type, names, and the function that returns the value.
INPUTS = [
    ("torch::Tensor", "ids|src|tgt|mask", "tensor"),
    ("torch::Tensor", "vectors", "vectors"),
    ("std::vector<torch::Tensor>", "sequences", "sequences"),
    ("std::vector<posenc::TokenPair>", "pairs", "pairs"),
]
SHAPE = re.compile(r"^(\s*(?:torch::Tensor|auto) (\w+) = .*;)(\s*// (\(\w+(?:, \w+)*,?\)))")
LOOSE_CODE = re.compile(r"^\s*///\s{2,}(?=\S).*(;\s*(//.*)?$|\w::\w+\()")


class Example(NamedTuple):
    source: str  # the file, relative to the root
    line: int  # number of its first line
    includes: "tuple[str, ...]"
    body: "list[str]"  # #include lines are empty here, to keep line numbers


def example(source: str, line: int, lines: "list[str]", default: "tuple[str, ...]" = ()) -> Example:
    includes = tuple(text for text in lines if text.startswith("#include")) or default
    body = ["" if text.startswith("#include") else text for text in lines]
    if MAIN in body:  # a whole program: its main() (tests/package/quick_start_test.py builds it as it is)
        body[body.index(MAIN)] = ""
        body[len(body) - 1 - body[::-1].index("}")] = ""
    return Example(source, line, includes, body)


def examples_of(name: str, text: str) -> "list[Example]":
    """The examples of a document or of a header, whose comment marks are removed."""
    header = name.endswith(".h")
    implied = (UMBRELLA,) if header else ()
    found, block, language = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*/// ?(.*)", line) if header else None
        content = comment.group(1) if comment else None if header else line
        if block is None:
            if content == "```cpp" or (header and content == "```c"):
                block = (number + 1, [])
                language = content
            elif header and LOOSE_CODE.match(line):
                raise ValueError(f"{name}:{number}: code in a comment must be between ```cpp and ```, so that it is compiled")
        elif content == "```" or content is None:
            if language == "```cpp" and not any(text.startswith("TEST(") for text in block[1]):
                found.append(example(name, *block, implied))
            block = None
        else:
            block[1].append(content)
    return found


def all_examples() -> "list[Example]":
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    headers = sorted((ROOT / "include").rglob("*.h"))
    return [entry for path in documents + headers for entry in examples_of(str(path.relative_to(ROOT)), path.read_text())]


def prepared(entry: Example) -> "tuple[str, bool]":
    """The body after its context, with inputs and stated shapes passed to `given`; and whether it has inputs."""
    context = CONTEXT / (Path(entry.source).stem + ".inc")
    before = [context.read_text().rstrip(), f'#line {entry.line} "{entry.source}"'] if context.is_file() else []
    text = "\n".join(SHAPE.sub(r'\1 given.shape("\2", \2, "\4");\3', line) for line in before + entry.body)
    inputs = 0
    for kind, names, function in INPUTS:
        declared = re.compile(rf"(?<![\w:<])({re.escape(kind)}) ({names}) = ([^;]*);")
        text, count = declared.subn(rf'\1 \2 = given.{function}("\2", \3);', text)
        inputs += count
    return text, inputs > 0


def function(number: int, entry: Example, body: str) -> str:
    return (f"void example_{number}([[maybe_unused]] posenc::testing::Given& given) {{\n"
            f'#line {entry.line} "{entry.source}"\n{body}\n}}\n')  # fmt: skip


def source(entries: "list[Example]") -> str:
    """One gtest source; examples that do not use `given` come before its include."""
    includes = sorted({include for entry in entries for include in entry.includes})
    alone, served, rows = [], [], []
    for number, entry in enumerate(entries):
        body, has_inputs = prepared(entry)
        (served if "given." in body else alone).append(function(number, entry, body))
        rows.append(f'    {{"{entry.source}", {entry.line}, {str(has_inputs).lower()}, &example_{number}}},')
    parts = ["// Made by tools/snippets.py.", *includes, "", "namespace posenc::testing { class Given; }",
             "namespace {", "", *alone, "}  // namespace", '#include "docs/given.h"', "namespace {", "", *served,
             "const posenc::testing::Example kExamples[] = {", *rows, "};",
             "[[maybe_unused]] const bool kAdded = posenc::testing::add_examples(kExamples, std::size(kExamples));",
             "", "}  // namespace", ""]  # fmt: skip
    return "\n".join(parts)


def sources(entries: "list[Example]") -> "list[str]":
    groups: "dict[tuple[str, ...], list[Example]]" = {}
    for entry in entries:
        groups.setdefault(tuple(sorted(set(entry.includes))), []).append(entry)
    return [source(group) for group in groups.values()]


def divided(entries: "list[Example]", count: int) -> "list[str]":
    return [source(entries[len(entries) * part // count : len(entries) * (part + 1) // count]) for part in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--list", action="store_true")
    mode.add_argument("--out", type=Path, nargs="+")
    mode.add_argument("--alone", type=Path, nargs="+")
    arguments = parser.parse_args()
    try:
        entries = all_examples()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.list:
        for entry in entries:
            print(f"{entry.source}:{entry.line}: {' '.join(entry.includes)}{', with inputs' * prepared(entry)[1]}")
        return 0
    paths = arguments.out or arguments.alone
    texts = divided(entries, len(paths)) if arguments.out else sources(entries)
    if len(texts) != len(paths):
        print(f"the examples show {len(texts)} different sets of #includes, and tests/docs/CMakeLists.txt names "
              f"{len(paths)} sources", file=sys.stderr)  # fmt: skip
        return 1
    for path, text in zip(paths, texts):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text() != text:  # unchanged sources are not recompiled
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

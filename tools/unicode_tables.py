#!/usr/bin/env python3
"""Writes the tables of Unicode in src/text/unicode/tables/.

    tools/unicode_tables.py           writes them
    tools/unicode_tables.py --check   exits with 1 if they are not as written; with 77 where unicodedataplus is missing

`tokenizers` 0.23.3 asks its questions of different versions of Unicode, 8.0 to 17.0. unicodedataplus 16.0.0.post1
(PyPI) knows 16.0 and the version that added each character, from which 8.0 and 9.0 follow but for a few characters,
named here; so is what 17.0 added. That the answers are those of the package is a test, on all characters
(tests/text/unicode_test.py).
"""

import argparse
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

try:
    import unicodedataplus as ucd
except ImportError:
    ucd = None

OUT = Path(__file__).resolve().parent.parent / "src/text/unicode/tables"
VERSION = "16.0.0"
COUNT = 0x110000
WIDTH = 116

# What 17.0 added, with the general category.
ADDED_17 = """
88F Lo  C5C Lo  CDC Lo  1ACF-1ADD Mn  1AE0-1AEB Mn  20C1 Sc  2B96 So  A7CE Lu  A7CF Ll  A7D2 Lu  A7D4 Lu  A7F1 Lm
FBC3-FBD2 So  FD90-FD91 So  FDC8-FDCE So  10940-10959 Lo  10EC5 Lm  10EC6-10EC7 Lo  10ED0 Po  10ED1-10ED8 So
10EFA-10EFB Mn  11B60 Mn  11B61 Mc  11B62-11B64 Mn  11B65 Mc  11B66 Mn  11B67 Mc  11DB0-11DD8 Lo  11DD9 Lm
11DDA-11DDB Lo  11DE0-11DE9 Nd  16EA0-16EB8 Lu  16EBB-16ED3 Ll  16FF2-16FF3 Lm  16FF4-16FF6 Nl  187F8-187FF Lo
18D09-18D1E Lo  18D80-18DF2 Lo  1CCFA-1CCFC So  1CEBA-1CED0 So  1CEE0-1CEEF So  1CEF0 Sm  1E6C0-1E6DE Lo
1E6E0-1E6E2 Lo  1E6E3 Mn  1E6E4-1E6E5 Lo  1E6E6 Mn  1E6E7-1E6ED Lo  1E6EE-1E6EF Mn  1E6F0-1E6F4 Lo  1E6F5 Mn
1E6FE Lo  1E6FF Lm  1F6D8 So  1F777-1F77A So  1F8D0-1F8D8 Sm  1FA54-1FA57 So  1FA8A So  1FA8E So  1FAC8 So  1FACD So
1FAEA So  1FAEF So  1FBFA So  2B73A-2B73F Lo  2CEA2-2CEAD Lo  323B0-33479 Lo
"""
# Lower-case forms that the oldest Python which runs this (3.11, of Unicode 14.0) does not know: first, last, the form
# of the first.
LOWER_17 = [(0x1C89, 0x1C89, 0x1C8A), (0xA7CB, 0xA7CB, 0x264), (0xA7CC, 0xA7CC, 0xA7CD), (0xA7CE, 0xA7CE, 0xA7CF),
            (0xA7D2, 0xA7D2, 0xA7D3), (0xA7D4, 0xA7D4, 0xA7D5), (0xA7DA, 0xA7DA, 0xA7DB), (0xA7DC, 0xA7DC, 0x19B),
            (0x10D50, 0x10D65, 0x10D70), (0x16EA0, 0x16EB8, 0x16EBB)]  # fmt: skip

# As in Category of characters.h.
CATEGORIES = "Cn Cc Cf Co Cs Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()
# As in Break of characters.h.
BREAKS = "Other Control CR LF Extend Prepend SpacingMark L V T LV LVT Regional_Indicator ZWJ".split()
CONJUNCTS = "None Consonant Linker Extend".split()

WHITE_SPACE = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
CJK = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B81F), (0x2B920, 0x2CEAF),
       (0x2F800, 0x2FA1F)]  # fmt: skip
# Letters of enclosed alphanumerics have the property Alphabetic, though they are symbols.
ALPHABETIC_SYMBOLS = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]
# Ignorable by default where they are unassigned, and controls to grapheme clusters.
IGNORABLE = [(0x2065, 0x2065), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF)]


def within(c: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= c <= last for first, last in ranges)


def surrogate(c: int) -> bool:
    return 0xD800 <= c < 0xE000


class Data:
    """What is asked of a character. Normalization is that of 9.0: newer characters stay as they are."""

    def __init__(self):
        self.added: dict[int, str] = {}
        for item in filter(None, ADDED_17.replace("\n", "  ").split("  ")):
            points, category = item.split()
            first, _, last = points.partition("-")
            self.added.update(dict.fromkeys(range(int(first, 16), int(last or first, 16) + 1), category))
        ages = [ucd.age(chr(c)) for c in range(COUNT)]
        self.ages = [99.0 if age == "Unassigned" else float(age) for age in ages]
        self.categories = [ucd.category(chr(c)) for c in range(COUNT)]
        self.lower = {c: [ord(x) for x in chr(c).lower()] for c in range(COUNT)
                      if not surrogate(c) and chr(c).lower() != chr(c) and self.category_17(c) != "Cn"}  # fmt: skip
        for first, last, form in LOWER_17:
            self.lower.update({c: [form + c - first] for c in range(first, last + 1)})
        self.forms = {name: self.changed(name) for name in ("NFD", "NFC", "NFKD", "NFKC")}
        self.pairs = self.compositions()
        self.seconds = {second for _, second in self.pairs} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}

    def category_17(self, c: int) -> str:
        return self.added.get(c, self.categories[c])

    def changed(self, form: str) -> dict[int, list[int]]:
        """The normal forms of the characters of 9.0 that change."""
        made = {}
        for c in range(COUNT):
            if not surrogate(c) and self.ages[c] <= 9 and (text := ucd.normalize(form, chr(c))) != chr(c):
                made[c] = [ord(x) for x in text]
        return made

    def compositions(self) -> dict[tuple[int, int], int]:
        made = {}
        for c in self.forms["NFD"]:
            parts = ucd.decomposition(chr(c)).split()  # Hangul has none here
            if len(parts) == 2 and c not in self.forms["NFC"]:
                made[int(parts[0], 16), int(parts[1], 16)] = c
        return made

    def combining(self, c: int) -> int:
        return ucd.combining(chr(c)) if self.ages[c] <= 9 else 0

    def flags(self, c: int) -> int:
        """As the constants of characters.h, the first in the lowest bit."""
        category, age = self.categories[c], self.ages[c]
        ascii_punctuation = c < 0x80 and not chr(c).isalnum() and 0x20 < c < 0x7F
        answers = [
            c in WHITE_SPACE,
            ascii_punctuation or age <= 8 and category[0] == "P" or c in (0x166D, 0x111C9),
            age <= 8 and category == "Mn" and c not in (0x1885, 0x1886, 0xA9BD, 0x111C9) or c in (0x1734, 0x1171E),
            age <= 8 and category in ("Cc", "Cf", "Co") and c not in (9, 10, 13) or c == 0xFFFD,
            within(c, CJK),
            age <= 9 and category[0] == "M" and c != 0x111C9 or c in (0x1CF2, 0x1CF3),
            self.category_17(c)[0] == "N",
            category[0] in "LM" or category in ("Nd", "Nl", "Pc") or c in (0x200C, 0x200D) or within(c, ALPHABETIC_SYMBOLS),
            c in self.lower,
            c in self.forms["NFD"],
            c in self.forms["NFKD"] and self.forms["NFKD"][c] != self.forms["NFD"].get(c),
            c in self.forms["NFC"] or c in self.seconds,
            c in self.forms["NFKC"] or c in self.seconds,
        ]
        return sum(bool(answer) << bit for bit, answer in enumerate(answers))

    def cluster(self, c: int) -> int:
        """The byte `cluster` of a Character: what decides where a grapheme cluster of 17.0 ends."""
        added = self.added.get(c, "")
        if added:
            kind = {"Mn": "Extend", "Mc": "SpacingMark"}.get(added, "Other")
            conjunct = "Extend" if added == "Mn" else "None"
        else:
            kind, conjunct = ucd.grapheme_cluster_break(chr(c)).replace(" ", "_"), ucd.indic_conjunct_break(chr(c))
        if c == 0x11A3A:  # no more since 17.0
            kind = "Other"
        if self.categories[c] == "Cn" and within(c, IGNORABLE):
            kind = "Control"
        pictographic = ucd.is_extended_pictographic(chr(c))
        return BREAKS.index(kind) | CONJUNCTS.index(conjunct) << 4 | pictographic << 6

    def character(self, c: int) -> tuple[int, ...]:
        return CATEGORIES.index(self.categories[c]), self.flags(c), self.combining(c), self.cluster(c)


def runs(values: Sequence[int], most: int) -> list[int]:
    """Each value with how often it follows itself: pairs of (value, times - 1)."""
    out: list[int] = []
    for value in values:
        if out and out[-2] == value and out[-1] < most:
            out[-1] += 1
        else:
            out += [value, 0]
    return out


def array(kind: str, name: str, values: Iterable[object]) -> str:
    lines, line = [f"constexpr {kind} {name}[] = {{"], ""
    for value in values:
        if len(line) + len(str(value)) + 1 > WIDTH:
            lines.append(line)
            line = ""
        line += f"{value},"
    return "\n".join([*lines, line, "};"]) + "\n"


def source(includes: Sequence[str], arrays: Sequence[str], rest: str) -> str:
    head = "// Written by tools/unicode_tables.py.\n// posenc-budget: a table\n"
    body = "".join(f'#include "text/unicode/{name}"\n' for name in includes)
    own = "namespace {\n\n" + "\n".join(arrays) + "\n}  // namespace\n\n" if arrays else ""
    begin, end = "\n// clang-format off\nnamespace posenc::text::unicode {\n", "\n}  // namespace posenc::text::unicode\n"
    return head + body + begin + own + rest + end


def characters(data: Data) -> str:
    kinds: dict[tuple[int, ...], int] = {}
    pages: dict[tuple[int, ...], int] = {}
    index = []
    for begin in range(0, COUNT, 256):
        page = tuple(kinds.setdefault(data.character(c), len(kinds)) for c in range(begin, begin + 256))
        index.append(pages.setdefault(page, len(pages)))
    if len(kinds) > 256 or len(pages) > 192:
        raise ValueError(f"the tables of characters must have at most 256 kinds and 192 pages. Got {len(kinds)}, {len(pages)}")
    flat = [kind for page in pages for kind in page]
    records = [f"{{1u<<{category},{flags},{combining},{cluster}}}" for category, flags, combining, cluster in kinds]
    return source(
        ["characters.h", "expand.h"],
        [array("uint8_t", "kPageRuns", runs(index, 255)), array("uint8_t", "kKindRuns", runs(flat, 255))],
        "constinit const std::array<uint8_t, 0x1100> kPages = expand<0x1100>(kPageRuns);\n"
        "constinit const std::array<uint8_t, kMostPages * 256> kKinds = expand<kMostPages * 256>(kKindRuns);\n"
        + array("Character", "kRecords", records).replace("constexpr Character kRecords[]", "constinit const Character kRecords[256]"),
    )


def lowercase(data: Data) -> str:
    """Ranges of characters, each `step` after the one before it, that have their lower-case forms at one distance."""
    ranges: list[list[int]] = []
    for c, form in sorted(data.lower.items()):
        if len(form) != 1:
            if c != 0x130:
                raise ValueError(f"only U+0130 may have a lower-case form of two characters. Got U+{c:04X}")
            continue
        distance = form[0] - c
        last = ranges[-1] if ranges else None
        if last and last[3] == distance and c - last[1] in (1, 2) and last[2] in (0, c - last[1]):
            last[1], last[2] = c, c - last[1]
        else:
            ranges.append([c, c, 0, distance])
    return source(["lowercase.h"], [],
                  array("LowerRange", "kLower", [f"{{{first},{last},{step or 1},{distance}}}" for first, last, step, distance in ranges])
                  .replace("constexpr LowerRange kLower[]", "constinit const LowerRange kLowerRanges[]")
                  + "const std::size_t kLowerRangeCount = sizeof kLowerRanges / sizeof *kLowerRanges;\n")  # fmt: skip


def units(text: Iterable[int]) -> list[int]:
    """The text in UTF-16."""
    encoded = "".join(map(chr, text)).encode("utf-16-le")
    return [encoded[i] | encoded[i + 1] << 8 for i in range(0, len(encoded), 2)]


def decompositions(data: Data) -> str:
    """The full decompositions; Hangul is computed."""
    hangul = range(0xAC00, 0xD7A4)
    canonical = {c: text for c, text in sorted(data.forms["NFD"].items()) if c not in hangul}
    compatible = {c: text for c, text in sorted(data.forms["NFKD"].items())
                  if c not in hangul and data.forms["NFD"].get(c) != text}  # fmt: skip
    arrays, rest = [], ""
    for name, forms in (("Canonical", canonical), ("Compatible", compatible)):
        keys = list(forms)
        gaps = [key - before for key, before in zip(keys, [0, *keys])]
        texts = [units(text) for text in forms.values()]
        arrays += [array("uint32_t", f"k{name}Gaps", gaps), array("uint8_t", f"k{name}Lengths", map(len, texts)),
                   array("char16_t", f"k{name}Units", (unit for text in texts for unit in text))]  # fmt: skip
        rest += (f"constexpr auto k{name}Index = make_index(k{name}Gaps, k{name}Lengths);\n"
                 f"constinit const Decompositions k{name} = {{k{name}Index.view(), k{name}Units}};\n")  # fmt: skip
    return source(["decompositions.h"], arrays, rest)


def compositions(data: Data) -> str:
    pairs = sorted((second, first, c) for (first, second), c in data.pairs.items())
    rows = [f"{{{second},{first},{c}}}" for second, first, c in pairs]
    return source(["compositions.h"], [],
                  array("Composition", "k", rows).replace("constexpr Composition k[]", "constinit const Composition kCompositions[]")
                  + "const std::size_t kCompositionCount = sizeof kCompositions / sizeof *kCompositions;\n")  # fmt: skip


def scripts(data: Data) -> str:
    """Ranges of one script. Any, Common and so on are numbered like the others; no name is needed."""
    numbers = {"Any": 0}
    ranges: list[list[int]] = []
    for c in range(COUNT):
        name = "Common" if c in (0x589, 0x61C) else "Devanagari" if c in (0x953, 0x954) else ucd.script(chr(c))
        if name in ("Hiragana", "Katakana") or c == 0x30FC:
            name = "Han"
        if data.ages[c] > 9 or name == "Unknown" or c == 0x20:
            name = "Any"
        number = numbers.setdefault(name, len(numbers))
        if ranges and ranges[-1][1] == number:
            ranges[-1][0] = c
        else:
            ranges.append([c, number])
    rows = [f"{{{last},{number}}}" for last, number in ranges]
    return source(["scripts.h"], [],
                  array("ScriptRange", "k", rows).replace("constexpr ScriptRange k[]", "constinit const ScriptRange kScriptRanges[]")
                  + "const std::size_t kScriptRangeCount = sizeof kScriptRanges / sizeof *kScriptRanges;\n")  # fmt: skip


def script_properties(_: Data) -> str:
    """The property Script of 16.0, for \\p{Han} in regular expressions."""
    ranges: list[list[int]] = []
    numbers: dict[str, int] = {}
    for c in range(COUNT):
        number = numbers.setdefault(ucd.script(chr(c)).replace("Unassigned", "Unknown"), len(numbers))
        if ranges and ranges[-1][1] == number:
            ranges[-1][0] = c
        else:
            ranges.append([c, number])
    names = {}
    for name, aliases in ucd.property_value_aliases["script"].items():
        for one in (name, *aliases):
            if name in numbers:
                names[one.lower().replace("_", "")] = numbers[name]
    rows = [f"{{{last},{number}}}" for last, number in ranges]
    named = [f'{{"{name}",{number}}}' for name, number in sorted(names.items())]
    return source(["scripts.h"], [],
                  array("ScriptRange", "k", rows).replace("constexpr ScriptRange k[]", "constinit const ScriptRange kScriptPropertyRanges[]")
                  + "const std::size_t kScriptPropertyRangeCount = sizeof kScriptPropertyRanges / sizeof *kScriptPropertyRanges;\n"
                  + array("ScriptName", "k", named).replace("constexpr ScriptName k[]", "constinit const ScriptName kScriptNames[]")
                  + "const std::size_t kScriptNameCount = sizeof kScriptNames / sizeof *kScriptNames;\n")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file would change")
    check = parser.parse_args().check
    if ucd is None or ucd.unidata_version != VERSION:
        print(f"unicode_tables.py needs unicodedataplus {VERSION}: pip install unicodedataplus=={VERSION}.post1", file=sys.stderr)
        return 77
    data = Data()
    made = {"characters.cpp": characters, "compositions.cpp": compositions, "decompositions.cpp": decompositions,
            "lowercase.cpp": lowercase, "script_properties.cpp": script_properties, "scripts.cpp": scripts}  # fmt: skip
    different = []
    for name, make in made.items():
        path, text = OUT / name, make(data)
        if check:
            if not path.exists() or path.read_text() != text:
                different.append(name)
        else:
            OUT.mkdir(exist_ok=True)
            path.write_text(text)
    for name in different:
        print(f"src/text/unicode/tables/{name}: must be as tools/unicode_tables.py writes it (Python {unicodedata.unidata_version})")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

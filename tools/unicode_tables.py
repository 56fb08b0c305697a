#!/usr/bin/env python3
"""Writes the tables of Unicode in src/tokenizers/unicode/tables/.

    tools/unicode_tables.py           writes them
    tools/unicode_tables.py --check   exits with 1 if they are not as written; with 77 where unicodedataplus is missing

`tokenizers` 0.23.3 asks its questions of different versions of Unicode, 8.0 to 17.0. unicodedataplus 16.0.0.post1
(PyPI) knows 16.0 and the version that added each character, from which 8.0 and 9.0 follow but for a few characters,
named here; so is what 17.0 added. That the answers are those of the package is a test, on all characters
(tests/tokenizers/unicode_test.py).
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

OUT = Path(__file__).resolve().parent.parent / "src/tokenizers/unicode/tables"
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

# What the properties of 16.0 have beside the categories L and Nl, Lu, and Ll: Other_Alphabetic and so on. unicodedataplus lacks them.
OTHER_PROPERTIES = {
    "Alphabetic": """
345 363-36F 5B0-5BD 5BF 5C1-5C2 5C4-5C5 5C7 610-61A 64B-657 659-65F 670 6D6-6DC 6E1-6E4 6E7-6E8 6ED 711 730-73F
7A6-7B0 816-817 81B-823 825-827 829-82C 897 8D4-8DF 8E3-8E9 8F0-903 93A-93B 93E-94C 94E-94F 955-957 962-963 981-983
9BE-9C4 9C7-9C8 9CB-9CC 9D7 9E2-9E3 A01-A03 A3E-A42 A47-A48 A4B-A4C A51 A70-A71 A75 A81-A83 ABE-AC5 AC7-AC9 ACB-ACC
AE2-AE3 AFA-AFC B01-B03 B3E-B44 B47-B48 B4B-B4C B56-B57 B62-B63 B82 BBE-BC2 BC6-BC8 BCA-BCC BD7 C00-C04 C3E-C44
C46-C48 C4A-C4C C55-C56 C62-C63 C81-C83 CBE-CC4 CC6-CC8 CCA-CCC CD5-CD6 CE2-CE3 CF3 D00-D03 D3E-D44 D46-D48 D4A-D4C
D57 D62-D63 D81-D83 DCF-DD4 DD6 DD8-DDF DF2-DF3 E31 E34-E3A E4D EB1 EB4-EB9 EBB-EBC ECD F71-F83 F8D-F97 F99-FBC
102B-1036 1038 103B-103E 1056-1059 105E-1060 1062-1064 1067-106D 1071-1074 1082-108D 108F 109A-109D 1712-1713
1732-1733 1752-1753 1772-1773 17B6-17C8 1885-1886 18A9 1920-192B 1930-1938 1A17-1A1B 1A55-1A5E 1A61-1A74 1ABF-1AC0
1ACC-1ACE 1B00-1B04 1B35-1B43 1B80-1B82 1BA1-1BA9 1BAC-1BAD 1BE7-1BF1 1C24-1C36 1DD3-1DF4 24B6-24E9 2DE0-2DFF
A674-A67B A69E-A69F A802 A80B A823-A827 A880-A881 A8B4-A8C3 A8C5 A8FF A926-A92A A947-A952 A980-A983 A9B4-A9BF A9E5
AA29-AA36 AA43 AA4C-AA4D AA7B-AA7D AAB0 AAB2-AAB4 AAB7-AAB8 AABE AAEB-AAEF AAF5 ABE3-ABEA FB1E 10376-1037A 10A01-10A03
10A05-10A06 10A0C-10A0F 10D24-10D27 10D69 10EAB-10EAC 10EFC 11000-11002 11038-11045 11073-11074 11080-11082
110B0-110B8 110C2 11100-11102 11127-11132 11145-11146 11180-11182 111B3-111BF 111CE-111CF 1122C-11234 11237 1123E
11241 112DF-112E8 11300-11303 1133E-11344 11347-11348 1134B-1134C 11357 11362-11363 113B8-113C0 113C2 113C5
113C7-113CA 113CC-113CD 11435-11441 11443-11445 114B0-114C1 115AF-115B5 115B8-115BE 115DC-115DD 11630-1163E 11640
116AB-116B5 1171D-1172A 1182C-11838 11930-11935 11937-11938 1193B-1193C 11940 11942 119D1-119D7 119DA-119DF 119E4
11A01-11A0A 11A35-11A39 11A3B-11A3E 11A51-11A5B 11A8A-11A97 11C2F-11C36 11C38-11C3E 11C92-11CA7 11CA9-11CB6
11D31-11D36 11D3A 11D3C-11D3D 11D3F-11D41 11D43 11D47 11D8A-11D8E 11D90-11D91 11D93-11D96 11EF3-11EF6 11F00-11F01
11F03 11F34-11F3A 11F3E-11F40 1611E-1612E 16F4F 16F51-16F87 16F8F-16F92 16FF0-16FF1 1BC9E 1E000-1E006 1E008-1E018
1E01B-1E021 1E023-1E024 1E026-1E02A 1E08F 1E947 1F130-1F149 1F150-1F169 1F170-1F189
""",
    "Uppercase": """
2160-216F 24B6-24CF 1F130-1F149 1F150-1F169 1F170-1F189
""",
    "Lowercase": """
AA BA 2B0-2B8 2C0-2C1 2E0-2E4 345 37A 10FC 1D2C-1D6A 1D78 1D9B-1DBF 2071 207F 2090-209C 2170-217F 24D0-24E9 2C7C-2C7D
A69C-A69D A770 A7F2-A7F4 A7F8-A7F9 AB5C-AB5F AB69 10780 10783-10785 10787-107B0 107B2-107BA 1E030-1E06D
""",
}

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
    body = "".join(f'#include "tokenizers/unicode/{name}"\n' for name in includes)
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


def other_properties(_: Data) -> str:
    """Ranges, first and last."""
    rest = ""
    for name, text in OTHER_PROPERTIES.items():
        ends = [word.partition("-") for word in text.split()]
        rows = [f"{{{int(first, 16)},{int(last or first, 16)}}}" for first, _, last in ends]
        rest += array("Range", "k", rows).replace("constexpr Range k[]", f"constinit const Range kOther{name}[{len(rows)}]")
    return source(["other_properties.h"], [], rest)


EMOJI = ["Emoji", "Emoji_Presentation", "Emoji_Modifier", "Emoji_Modifier_Base", "Emoji_Component"]  # the package finds other Extended_Pictographic than 16.0 has


def emoji(_: Data) -> str:
    """Ranges, first and last, of each property of 16.0."""
    rest, names = "", []
    for name in EMOJI:
        answers = getattr(ucd, f"is_{name.lower()}")
        rows: list[list[int]] = []
        for c in filter(lambda c: answers(chr(c)), range(COUNT)):
            if rows and rows[-1][1] == c - 1:
                rows[-1][1] = c
            else:
                rows.append([c, c])
        table = "k" + name.replace("_", "")
        rest += array("Range", table, [f"{{{first},{last}}}" for first, last in rows])
        names += [f'{{"{name.replace("_", "").lower()}",{table},sizeof {table} / sizeof *{table}}}']
    return source(["other_properties.h"], [rest], array("RangeProperty", "k", names).replace(
        "constexpr RangeProperty k[]", f"constinit const RangeProperty kEmojiProperties[{len(names)}]"))  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, and fail where a file would change")
    check = parser.parse_args().check
    if ucd is None or ucd.unidata_version != VERSION:
        print(f"unicode_tables.py needs unicodedataplus {VERSION}: pip install unicodedataplus=={VERSION}.post1", file=sys.stderr)
        return 77
    data = Data()
    made = {"characters.cpp": characters, "compositions.cpp": compositions, "decompositions.cpp": decompositions,
            "emoji.cpp": emoji, "lowercase.cpp": lowercase, "other_properties.cpp": other_properties, "script_properties.cpp": script_properties, "scripts.cpp": scripts}  # fmt: skip
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
        print(f"src/tokenizers/unicode/tables/{name}: must be as tools/unicode_tables.py writes it (Python {unicodedata.unidata_version})")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

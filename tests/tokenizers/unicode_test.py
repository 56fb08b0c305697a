"""What posenc knows about characters is what `tokenizers` knows: every question is asked of both, on all 1,112,064 characters.

    tests/tokenizers/unicode_test.py --cases build/release/tests/unicode_cases [--sequences 20000] [--seed N]
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import unittest
from collections import defaultdict

import cases
from pipeline_test import double_array
from tokenizers import NormalizedString, PreTokenizedString, Regex
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre

options: argparse.Namespace
ALL = [*range(0xD800), *range(0xE000, 0x110000)]
TEXT = "".join(map(chr, ALL))
EACH = pre.Split(Regex("(?m)."), "isolated")
FLAGS = ("white_space punctuation nonspacing_mark bert_control bert_cjk mark number word lower decomposes "
         "decomposes_compatibly not_nfc not_nfkc").split()  # fmt: skip
CATEGORIES = "Cn Cc Cf Co Cs Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()


def ask(questions: "list[str]") -> "list[list[str]]":
    run = subprocess.run([options.cases], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True)
    return [line.split() for line in run.stdout.splitlines()]


def numbers(question: str) -> "dict[int, int]":
    (line,) = ask([question])
    assert len(line) == len(ALL), f"unicode_cases {question}: must answer for all characters. Got {len(line)}"
    return dict(zip(ALL, (int(word, 16) for word in line)))


def points(text: str) -> str:
    return " ".join(f"{ord(c):x}" for c in text)


def each(normalizer, guard: str = "1") -> "dict[int, str]":
    """What a normalizer makes of each character, all others being apart from it."""
    rest = TEXT.replace(guard, "")
    out = normalizer.normalize_str(guard + guard.join(rest) + guard).split(guard)
    assert len(out) == len(rest) + 2 and out[0] == out[-1] == "", f"{normalizer}: a guard is gone"
    return {**dict(zip(map(ord, rest), out[1:-1])), ord(guard): normalizer.normalize_str(guard)}


def dropped(pre_tokenizer, text: str = TEXT) -> "set[int]":
    """The characters that a pre-tokenizer removes."""
    at, out = 0, set()
    for _, (begin, end) in pre_tokenizer.pre_tokenize_str(text):
        out.update(map(ord, text[at:begin]))
        at = end
    return out | set(map(ord, text[at:]))


class Characters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        values = numbers("flags")
        cls.sets = {name: {c for c, flags in values.items() if flags >> bit & 1} for bit, name in enumerate(FLAGS)}

    def equal(self, name: str, theirs: "set[int]", ours: "set[int] | None" = None):
        ours = self.sets[name] if ours is None else ours
        wrong = sorted(ours ^ theirs)
        self.assertFalse(wrong, f"{name}: {len(wrong)} characters differ, first {[f'U+{c:04X}' for c in wrong[:12]]}")
        self.assertTrue(ours, f"{name}: no character has it")

    def test_white_space(self):
        self.equal("white_space", dropped(pre.WhitespaceSplit()))
        self.equal("white_space", dropped(pre.Split(Regex(r"\s"), "removed")))

    def test_punctuation(self):
        self.equal("punctuation", dropped(pre.Punctuation("removed")))

    def test_bert(self):
        bare = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
        cleaned = each(norm.BertNormalizer(**{**bare, "clean_text": True}))
        self.equal("bert_control", {c for c, text in cleaned.items() if text == ""})
        self.equal("white_space", {c for c, text in cleaned.items() if text == " "},
                   self.sets["white_space"] - self.sets["bert_control"])  # fmt: skip
        cjk = each(norm.BertNormalizer(**{**bare, "handle_chinese_chars": True}))
        self.equal("bert_cjk", {c for c, text in cjk.items() if text != chr(c)})
        stripped = each(norm.BertNormalizer(**{**bare, "strip_accents": True}))
        decomposed = each(norm.NFD())
        marks = self.sets["nonspacing_mark"]
        self.equal("nonspacing_mark", {c for c in ALL if decomposed[c] == chr(c) and stripped[c] == ""},
                   {c for c in marks if decomposed[c] == chr(c)})  # fmt: skip
        for c in ALL:
            ours = "".join(x for x in decomposed[c] if ord(x) not in marks)
            self.assertEqual(ours, stripped[c], f"U+{c:04X} without its accents")

    def test_marks(self):
        self.equal("mark", {c for c, text in each(norm.StripAccents()).items() if text == ""})

    def test_numbers(self):
        pieces = pre.Digits(individual_digits=True).pre_tokenize_str("".join(f"a{chr(c)}a" for c in ALL))
        self.equal("number", {ord(text) for text, _ in pieces if len(text) == 1 and text != "a"})

    def test_word(self):
        text = "".join(f"a{chr(c)} " for c in ALL)
        pieces = {text: 1 for text, _ in pre.Whitespace().pre_tokenize_str(text)}
        self.equal("word", {c for c in ALL if "a" + chr(c) in pieces})

    def test_lowercase(self):
        (line,) = ask(["lower"])
        lower = each(norm.Lowercase())
        ours = {c: "".join(chr(int(x, 16)) for x in word.split(",")) for c, word in zip(ALL, line)}
        self.equal("lower", {c for c in ALL if lower[c] != chr(c)})
        self.equal("lowercase", {c for c in ALL if lower[c] != ours[c]} ^ {0}, {0})

    def test_scripts(self):
        scripts = numbers("scripts")
        examples: "dict[int, list[int]]" = defaultdict(list)
        for c, script in scripts.items():
            examples[script].append(c)
        guard = {script: chr(members[0]) for script, members in examples.items() if script}
        self.assertGreater(len(guard), 130)
        splitter = pre.UnicodeScripts()
        for script, members in examples.items():
            others = [x for other, x in guard.items() if other != script]
            same = guard.get(script, "a")
            other = others[0]
            # A character of a script stays with its like, and is cut from others; one of no script stays with all.
            pieces = splitter.pre_tokenize_str(same + "".join(map(chr, members)))
            self.assertEqual(len(pieces), 1, f"script {script}: {[f'U+{ord(p[0]):04X}' for p, _ in pieces[:3]]}")
            for x in others if script else ():
                self.assertEqual(len(splitter.pre_tokenize_str(same + x)), 2, f"{same!r} and {x!r}")
            if script:
                text = "".join(other + chr(c) for c in members)
                self.assertEqual(len(splitter.pre_tokenize_str(text)), 2 * len(members), f"script {script}")

    def test_categories(self):
        values = numbers("categories")
        by_category = defaultdict(set)
        for c, bit in values.items():
            by_category[CATEGORIES[bit.bit_length() - 1]].add(c)
        for name in CATEGORIES:
            if name != "Cs":
                self.equal(name, dropped(pre.Split(Regex(rf"\p{{{name}}}"), "removed")), by_category[name])


class Sequences(unittest.TestCase):
    """Random texts, with far more marks, Hangul and joiners than in any language."""

    def setUp(self):
        self.random = random.Random(options.seed)
        values = numbers("flags")
        self.pools = [[c for c, flags in values.items() if flags >> FLAGS.index(name) & 1]
                      for name in ("mark", "decomposes", "decomposes_compatibly", "not_nfc", "lower")]  # fmt: skip
        self.pools += [[*range(0x1100, 0x1200)], [*range(0xAC00, 0xD7A4)], [*range(0x20, 0x7F)], ALL]

    def text(self, pools: "list[list[int]]", most: int = 8) -> str:
        return "".join(chr(self.random.choice(self.random.choice(pools))) for _ in range(self.random.randint(1, most)))

    def test_normal_forms(self):
        forms = {"nfd": norm.NFD(), "nfc": norm.NFC(), "nfkd": norm.NFKD(), "nfkc": norm.NFKC()}
        singles = [chr(c) for pool in self.pools[:4] for c in self.random.sample(pool, cases.samples(len(pool)))]
        singles += [chr(c) for c in self.random.sample(ALL, cases.samples(3000))]
        texts = singles + [self.text(self.pools) for _ in range(options.sequences)]
        for name, normalizer in forms.items():
            answers = ask([f"{name} {points(text)}" for text in texts])
            for text, answer in zip(texts, answers):
                theirs = NormalizedString(text)
                normalizer.normalize(theirs)
                if answer == ["="]:
                    ours, places = text, [(i, i + 1) for i in range(len(text))]
                else:
                    changes = [(chr(int(c, 16)), int(n)) for c, n in (word.split(":") for word in answer)]
                    ours, places = "".join(c for c, _ in changes), self.places(changes)
                self.assertEqual(ours, theirs.normalized, f"{name} of {points(text)}")
                if len(text) < 12:
                    self.assertEqual(places, self.their_places(text, normalizer), f"places of {name} of {points(text)}")

    @staticmethod
    def places(changes: "list[tuple[str, int]]") -> "list[tuple[int, int]]":
        """The characters that the new ones stand for, by the rule of aligned_text.h."""
        out, at = [], 0
        for _, change in changes:
            if change > 0:
                out.append((at - 1, at) if at else (0, 0))
            else:
                out.append((at, at + 1))
                at += 1 - change
        return out

    @staticmethod
    def their_places(text: str, normalizer) -> "list[tuple[int, int]]":
        """The same of the package: the places of the new text's characters, each cut out."""
        parts = PreTokenizedString(text)
        parts.normalize(normalizer.normalize)
        EACH.pre_tokenize(parts)
        return [place for _, place, _ in parts.get_splits("original", "char")]


class Clusters(unittest.TestCase):
    """A Precompiled normalizer shows where clusters end: of one with less than 6 bytes only its first character is left."""

    SMALL = [0xD, 0xA, 0x200B, 0xAD, 0x61, 0x62, 0xE9, 0xA9, 0xAE, 0x203C, 0x200D, 0x20E3, 0xFE0F, 0x23, 0x31, 0x903, 0x93E, 0xE33, 0x300,
             0x301, 0x5BF, 0x64B, 0x600, 0x605, 0x6DD, 0x70F, 0x8E2, 0x110BD, 0x915, 0x94D, 0x1F3FB, 0xE0020, 0x1100]  # fmt: skip

    def normalizer(self, keys: "list[int]"):
        """Puts a sign after each of these characters that it finds."""
        texts, begins = b"", {}
        for c in keys:
            begins[chr(c).encode()] = len(texts)
            texts += chr(c).encode() + b"|\0"
        trie = double_array(begins)
        return norm.Precompiled(struct.pack("<I", len(trie)) + trie + texts)

    def compare(self, keys: "list[int]", texts: "list[str]"):
        normalizer, marked = self.normalizer(keys), set(map(chr, keys))
        for text, answer in zip(texts, ask([f"clusters {points(text)}" for text in texts]), strict=True):
            ours, at = "", 0
            for count in map(int, answer):
                cluster = text[at : at + count]
                at += count
                if len(cluster.encode()) < 6 and cluster[0] in marked:
                    ours += cluster[0] + "|"
                else:
                    ours += "".join(c + "|" if c in marked else c for c in cluster)
            self.assertEqual(at, len(text))
            theirs = normalizer.normalize_str(text)
            if ours != theirs:
                parts = [i for i, (a, b) in enumerate(zip(ours.split("\n"), theirs.split("\n"))) if a != b]
                self.fail(f"clusters of {points(text[:20])}: {len(parts)} lines differ: "
                          f"{[points(text.split(chr(10))[i]) for i in parts[:10]]}")  # fmt: skip

    def test_all(self):
        """Each character after a letter, and before one where this shows."""
        rest = [c for c in ALL if c not in (0xA, 0xD)]
        self.compare([0x61], ["\n".join("a" + chr(c) for c in rest)])
        self.compare(self.SMALL, ["\n".join(chr(c) + "a" for c in self.SMALL)])
        prepended = [c for c, answer in zip(rest, ask([f"clusters {c:x} 61" for c in rest]), strict=True) if answer == ["2"]]
        self.assertGreater(len(prepended), 20)
        self.compare(prepended, ["\n".join(chr(c) + "a" for c in prepended)])
        self.compare(prepended[:5], ["\n".join(chr(prepended[0]) + chr(c) for c in rest)])

    def test_sequences(self):
        rng = random.Random(options.seed)
        self.compare(self.SMALL, ["".join(chr(rng.choice(self.SMALL)) for _ in range(rng.randint(1, 6))) for _ in range(options.sequences)])


def main() -> int:
    global options
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", required=True, help="the program unicode_cases")
    parser.add_argument("--sequences", type=int, default=cases.samples(20000), help="random texts")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    options, rest = parser.parse_known_args()
    print(f"seed {options.seed}", file=sys.stderr)
    return not unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())

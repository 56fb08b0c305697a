"""Regular expressions find what `tokenizers` finds: those of well-known tokenizers, each class on all characters, and random ones.

    tests/tokenizers/regex_test.py --cases build/release/tests/regex_cases [--texts 1000] [--patterns 300] [--seed N]
"""

import argparse
import os
import random
import subprocess
import sys
import unittest

import cases
from tokenizers import Regex
from tokenizers import normalizers as norm
from tokenizers import pre_tokenizers as pre

options: argparse.Namespace
ALL = [*range(0xD800), *range(0xE000, 0x110000)]
CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
OTHERS = r"[^\r\n\p{L}\p{N}]?"
KNOWN = {
    "GPT-2": CONTRACTIONS + r"| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "Llama 3": rf"(?i:{CONTRACTIONS})|{OTHERS}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",
    "Qwen 2": rf"(?i:{CONTRACTIONS})|{OTHERS}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{SPACES}",
    "Qwen 3.5": rf"(?i:{CONTRACTIONS})|{OTHERS}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{SPACES}",
    "cl100k": rf"'(?i:[sdmt]|ll|ve|re)|{OTHERS}+\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "o200k": rf"{OTHERS}[{UPPER}]*[{LOWER}]+(?i:{CONTRACTIONS})?|{OTHERS}[{UPPER}]+[{LOWER}]*(?i:{CONTRACTIONS})?|\p{{N}}{{1,3}}"
             rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}",
    "Tekken": rf"{OTHERS}[{UPPER}]*[{LOWER}]+|{OTHERS}[{UPPER}]+[{LOWER}]*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{SPACES}",
    "DeepSeek V3": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
                   + SPACES,
    "DeepSeek V3, Han": "[一-龥぀-ゟ゠-ヿ]+",
    "DeepSeek, numbers": r"\p{N}{1,3}",
    "CLIP": CONTRACTIONS + r"|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
    "Bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "NLLB": r" {2,}",
    "DeBERTa": r"\s{2,}|[\n\r\t]",
    "words": r"\w+|[^\w\s]+",
    "Kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}  # fmt: skip
# What only Oniguruma itself can search: what is before a place, and what depends on what was read.
GENERAL = [r"(?<=\p{Lu})\p{Ll}+", r"^", r"$", r"^\s+|\s+$", r"\b", r"\B", r"\b\w", r"[\w]+\b|\W", r"(?=\w)\w|[^\w]+", r"(?<!\p{L})\d+", r"(\w)\1", r"(?>\s+)\S", r"\s++$",
           r"(?i)straße|é", r"[\w&&[^\d]]+", r"[[:digit:][:space:]]+", r"[^[:punct:]]+", r"\p{^L}+", r"\P{Lu}\w", r"[\p{L}-z]+", r"[+-\d]+",
           r"(?i:[^\p{Lu}])", r"(?i:\p{Lu}+)", r"(?i:[\p{Lu}]+)", r"(?>)(?i:a)[\p{Lu}]|(?:(?i)b)[\p{Ll}]", r"(?i)(?-i:[\p{Lu}])[\p{L}]", r"(?i:ss|st)", r"(?i:ſ)", r"a{,2}b", r"(?m:.)+", r"\Aa|b\z", r"\K", r"x*",
           r"(?<n>[ab])\g<n>", r"\R", r"\h+", r"[]a]+", r"(?x: a b)", r"(?#[)\d", r"(?~ab)", r"()", "", r"[a-c&&b-d]", r"\x{1F600}", r"\N+",
           r"(?x) a b # c)\n [#] | c", "a(?x) b\n#(\nc|[ d]", r"(?x:a # [\n)#|b", r"(?i:[\p{Lu}&&[^K]])", r"(?i:[[:^upper:]&&\p{L}]+)", r"(?i:[\p{Lu}\d-]+)",
           r"\p{Greek}+|\p{hiragana}", r"\p{Script_Extensions=Greek}|a", r"\p{IsAlpha}", r"(", r"[b-a]", r"a**", r"{1}", r"*a"]  # fmt: skip
CLASSES = [rf"\p{{{name}}}" for name in
           "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Cn Co LC "
           "Letter Uppercase_Letter Mark Number Punctuation Symbol Separator Other Han Hiragana Katakana Hangul Greek Cyrillic "
           "Emoji Emoji_Presentation EPres Emoji_Modifier EMod Emoji_Modifier_Base EBase Emoji_Component EComp "
           "Arabic Latin Thai Devanagari Common Inherited Unknown zyyy ASCII Any Assigned Cntrl Digit Space White_Space Word XDigit"
           .split()] + [r"\w", r"\d", r"\s", r"\h", ".", r"[\w]", r"[^\w]", r"[\d]", r"[^\s]", r"\W", r"[[:word:]]", r"[[:digit:]]", r"[[:space:]]", r"[[:cntrl:]]",
                        *(f"[[:{name}:]]" for name in ("alpha", "^alpha", "alnum", "upper", "lower", "^lower", "graph", "^graph", "print")),
                        *(rf"\p{{{name}}}" for name in ("Alpha", "Alphabetic", "Alnum", "Upper", "Lowercase", "Graph", "^Print", "Blank", "Punct")),
                        r"(?i:[\p{Lu}])", r"(?i:[^\p{Lu}])", r"(?i:[[:lower:]])", r"(?i:[^[:upper:]])", r"[[:blank:]]", r"[[:punct:]]", r"[[:xdigit:]]", r"[[:ascii:]]", r"(?i:s)", r"(?i:[a-z])", r"(?i:k)", r"(?i:[^a])"]  # fmt: skip


def points(text: str) -> str:
    return " ".join(f"{ord(c):x}" for c in text)


def ask(question: str, pattern: str, texts: "list[str]" = (), *, everything: bool = False) -> "tuple[str, list[list[tuple[int, int]] | str]]":
    """What is said of a pattern, and the matches in each text: places, or an error."""
    lines = [f"{question} {points(pattern)}", *(f"find {points(text)}" for text in texts), *(["all"] if everything else [])]
    run = subprocess.run([options.cases], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    answer, *found = run.stdout.splitlines()
    return answer, [line if line.startswith("error: ") else [tuple(map(int, word.split(":"))) for word in line.split()] for line in found]


class RegexTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(options.seed)
        self.refused: "list[str]" = []
        self.pools = [list(map(ord, "'stremvldSTREMVLD K\u017fk")), [0x20, 0x20, 0xA, 0xD, 9, 0xA0, 0x3000, 0x85], [*range(0x21, 0x7F)], list(map(ord, "ab \n")),
                      [*range(0xC0, 0x250)], [*range(0x4E00, 0x4F00)], [*range(0x300, 0x370)], [*range(0x660, 0x66A), *range(0x30, 0x3A)],
                      [*range(0x1F300, 0x1F650)], [*range(0x3040, 0x3100)], [*range(0x900, 0x980)],
                      [0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE, 0x200C, 0x200D, 0xAA, 0x2C6, 0x24B6, 0x203F], ALL]  # fmt: skip

    def text(self, most: int = 14) -> str:
        pools = self.random.sample(self.pools, self.random.randint(1, 4))
        return "".join(chr(self.random.choice(self.random.choice(pools))) for _ in range(self.random.randint(0, most)))

    def compare(self, pattern: str, texts: "list[str]", question: str = "regex") -> str:
        """Compares all matches, of which a normalizer shows the empty ones and a pre-tokenizer where the others are."""
        answer, found = ask(question, pattern, texts)
        try:
            theirs = Regex(pattern) if question == "regex" else pattern
        except Exception:  # noqa: BLE001 - the package's own class is not exported
            self.assertTrue(answer.startswith("error: "), f"{pattern!r}: the package refuses it. Got {answer}")
            return answer
        if answer.startswith("error: "):
            self.refused.append(pattern)
            return answer
        replace, split = norm.Replace(theirs, "\ue000"), pre.Split(theirs, "removed", invert=True)
        for text, matches in zip(texts, found, strict=True):
            if isinstance(matches, str):  # the package ends with a panic
                with self.assertRaises(BaseException, msg=f"{pattern!r} in {text!r}: {matches}"):
                    replace.normalize_str(text)
                continue
            out, at = "", 0
            for begin, end in matches:
                out, at = out + text[at:begin] + "\ue000", end
            self.assertEqual(out + text[at:], replace.normalize_str(text), f"{pattern!r} in {text!r}")
            places = [place for _, place in split.pre_tokenize_str(text)]
            self.assertEqual([match for match in matches if match[0] < match[1]], places, f"{pattern!r} in {text!r}")
        return answer

    def test_known(self):
        for name, pattern in KNOWN.items():
            with self.subTest(name):
                texts = [self.text() for _ in range(options.texts)]
                self.assertEqual(self.compare(pattern, texts), "simple")
                # The same without the tables: Oniguruma with classes of 16.0.
                texts = texts[: options.texts // 4]
                general, found = ask("regex", f"(?>)(?:{pattern})", texts)
                self.assertEqual((general, found), ("general", ask("regex", pattern, texts)[1]))

    def test_general(self):
        for pattern in GENERAL:
            with self.subTest(pattern):
                self.compare(pattern, [self.text(10) for _ in range(options.texts // 4)])
        self.assertEqual(self.refused, [])

    def test_literals(self):
        for literal in ("", " ", "ab", "é", "中", ".", "\n", "aa"):
            with self.subTest(literal):
                self.compare(literal, [self.text(10) for _ in range(options.texts // 4)], "literal")

    def test_classes(self):
        """Each class, on all characters, with the tables and with Oniguruma."""
        everything = "".join(map(chr, ALL))
        for pattern in self.random.sample(CLASSES, cases.samples(len(CLASSES))):
            with self.subTest(pattern):
                theirs = norm.Replace(Regex(pattern), "").normalize_str(everything)
                self.assertNotEqual(theirs, everything)
                for form in (pattern, f"(?>){pattern}"):
                    answer, (places,) = ask("regex", form, everything=True)
                    ours, at = [], 0
                    for begin, end in places:
                        ours.append(everything[at:begin])
                        at = end
                    left = "".join(ours) + everything[at:]
                    wrong = sorted(set(left) ^ set(theirs)) if left != theirs else []
                    self.assertFalse(wrong, f"{form} ({answer}): {len(wrong)} differ: {[f'U+{ord(c):04X}' for c in wrong[:8]]}")

    def test_random(self):
        """Expressions from a grammar of what is simple, and a little more."""
        choose = self.random.choice

        def atom(depth: int) -> str:
            if depth and self.random.random() < 0.3:
                return choose(("(?:{})", "({})", "(?i:{})")).format(expression(depth - 1))
            return choose(["a", "b", "s", "é", " ", r"\s", r"\S", r"\p{L}", r"\p{N}", r"\w", ".", "[ab]", "[^a]", r"[\p{L}\p{M}]", r"[^\s\p{L}]", "[a-z]",
                           r"[a-z&&[^b]]", r"\n", r"\d", "'", "[[a]b]", r"\p{Lu}", r"\P{N}", r"[^\r\n]"])  # fmt: skip

        def expression(depth: int) -> str:
            parts = []
            for _ in range(self.random.randint(1, 3)):
                one = atom(depth) + choose(["", "", "", "?", "*", "+", "{1,3}", "{2}", "{2,}", "{,2}", "*?", "+?", "??", "?+", "++", "*+", "{1,2}+"])
                parts.append(one + (choose(["", "", r"(?!\S)", r"(?=\s)", "(?!a)", "|", "|"]) if depth else ""))
            return "".join(parts).strip("|")

        simple = 0
        for _ in range(options.patterns):
            pattern = expression(2)
            with self.subTest(pattern):
                texts = [self.text(10) for _ in range(20)]
                simple += self.compare(pattern, texts) == "simple"
        self.assertGreater(simple, options.patterns // 4)
        self.assertEqual(self.refused, [])

    def test_limits(self):
        cases = [(r"(a+)+$", "a" * 40 + "b"), (r"(?>)\s+$", " " * 100_000 + "b"), (r"\s+b", " " * 100_000 + "c")]
        for pattern, text in cases:
            with self.subTest(pattern):
                _, (answer,) = ask("regex", pattern, [text])
                self.assertTrue(answer[:7] == "error: " and "reasonable time" in answer, answer[:200])
        for pattern in ("(" * 5000 + ")" * 5000, "a{100001}", "a" * 20001, r"\p{Foo}", r"\p{Extended_Pictographic}", r"\X", "(?W)a", "[[:foo:]]", "(?<a", "(?{"):
            with self.subTest(pattern[:20]):
                self.assertTrue(ask("regex", pattern)[0].startswith("error: Regex: "), pattern[:20])


def main() -> int:
    global options
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", required=True, help="the program regex_cases")
    parser.add_argument("--texts", type=int, default=cases.samples(1000), help="random texts for each known expression")
    parser.add_argument("--patterns", type=int, default=cases.samples(300), help="random expressions")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    options, rest = parser.parse_known_args()
    print(f"seed {options.seed}", file=sys.stderr)
    return not unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())

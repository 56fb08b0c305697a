"""What the tests of posenc::text share: the program that tokenizes, the package's answers, and random text."""

import json
import os
import random
import subprocess

import tokenizers

EXHAUSTIVE = "POSENC_EXHAUSTIVE" in os.environ  # whole samples, and times: `make test-all`


def samples(every: int) -> int:
    """How many of all samples a test takes: a tenth, or all of them where EXHAUSTIVE."""
    return every if EXHAUSTIVE else (every + 9) // 10
# Words and characters on which tokenizers differ: scripts, marks, controls, blanks, forms, emoji.
WORDS = """Hello world don't it's TOKENIZE naïve café Ångström fiancée ﬁne Ⅷ ½ ½x ÀÉÎ İstanbul ΑΣ ΟΔΟΣ straße ǅungla
Привет мир Україна йод ёлка 日本語 中文字 カタカナ ガ ひらがな ー 한국어 각 हिन्दी किताब ไทย ভাষা العربية עברית
123 12½Ⅷ 3.14 1,000 ４２ 三 ① -the-final--countdown- a.b,c! $+<=>^`|~ «x» “q” … — ¿? ' 's 'll 're
👍🏽 👨‍👩‍👧 🇩🇪 ⌘ ▁a▁▁b ĠHello Ċ [UNK] [CLS] [SEP] <s> </s> <mask> ab abc abcd ababab aaa xx""".split()
MARKS = "\u0301\u0323\u0308\u0327\u0345\u0334\u093f\u093c\u0e31\u05b8\u064b\u3099\u200d\ufe0f\u1cf2\u111c9\u302e\u1dca\u08d4"
BLANKS = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u3000\u200b\u200e\ufeff\x1c\u2581"
CONTROLS = "\x00\x01\x07\x08\x0e\x1b\x7f\x8f\x9f\xad\u0600\ue000\ufffd\uffff\U000e0001\U00010ffff"[:-1]


def character(rng: random.Random) -> str:
    while True:
        point = rng.choice((rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x10000), rng.randrange(0x110000)))
        if not 0xD800 <= point < 0xE000:
            return chr(point)


def text(rng: random.Random, extra: "list[str]" = [], most: int = 12) -> str:
    parts = []
    for _ in range(rng.randint(0, most)):
        kind = rng.random()
        if kind < 0.45:
            parts.append(rng.choice(WORDS))
        elif kind < 0.55 and extra:
            parts.append(rng.choice(extra))
        elif kind < 0.65:
            parts.append(rng.choice("aeoun中A") + "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 4))))
        elif kind < 0.72:
            parts.append(rng.choice(BLANKS) * rng.randint(1, 3))
        elif kind < 0.76:
            parts.append(rng.choice(CONTROLS))
        elif kind < 0.84:
            parts.append("".join(character(rng) for _ in range(rng.randint(1, 4))))
        else:
            parts.append("".join(rng.choice("abxy  ") for _ in range(rng.randint(1, 8))))
        if rng.random() < 0.5:
            parts.append(" ")
    return "".join(parts)


class Posenc:
    """The program posenc-tokenize-cases."""

    def __init__(self, program: str):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"posenc-tokenize-cases ended with {self.process.wait()} at {question!r}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def without_panics(call):
    """The result of a call, or the error or panic as {"error": text}. Panics of the package are no Exceptions."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: B902
        return {"error": f"{type(error).__name__}: {error}"}


def rows(encoding) -> "list[dict]":
    return [{"ids": one.ids, "type_ids": one.type_ids, "special_tokens_mask": one.special_tokens_mask,
             "offsets": [list(pair) for pair in one.offsets], "tokens": one.tokens}
            for one in (encoding, *encoding.overflowing)]  # fmt: skip


class Package:
    """The same answers of tokenizers."""

    def __init__(self):
        self.tokenizer = None

    def load(self, file: str):
        def made():
            self.tokenizer = tokenizers.Tokenizer.from_str(file)
            return {}

        return without_panics(made)

    def encode(self, text: str, pair=None, special=True, truncation=None):
        def encoded():
            if truncation is None:
                self.tokenizer.no_truncation()
            else:
                self.tokenizer.enable_truncation(**truncation)
            return {"rows": rows(self.tokenizer.encode(text, pair, add_special_tokens=special))}

        return without_panics(encoded)

    def decode(self, ids, skip):
        return without_panics(lambda: {"text": self.tokenizer.decode(ids, skip_special_tokens=skip)})


def same(ours, theirs) -> bool:
    """Whether both answers are equal, or both are errors."""
    if "error" in ours or "error" in theirs:
        return "error" in ours and "error" in theirs
    if "rows" in ours:  # an empty list is not written where it was not wanted
        return [{**{"offsets": [], "tokens": []}, **row} for row in ours["rows"]] == theirs["rows"]
    return ours == theirs

"""The rule `english` of tools/lint.py: the field's words in the sources and documents, and British spelling in prose.

Names keep the spelling that they have in PyTorch (`optimizer`, `normalize`), so American spelling is looked for in
comments and documents only, outside `code`.
"""

import re
from pathlib import Path

# Words that this project once used in a sense of its own, and what to write instead. Applies to comments, messages and
# names.
WORDS = [
    (r"(?<!left )(?<!left_)behind", "after, or at the end of"),
    (r"twins?", "counterpart"),
    (r"nobody['’]s|somebody['’]s", "a sentence with a subject"),
    (r"so many", "that many, or the number"),
    (r"for ever", "endlessly"),
    (r"stands?(?! (?:for|in|out|up|alone)\b)", "is"),
    (r"(?:is|are|be|was|were) told(?! apart\b)", "is given, or be determined"),
    (r"got none", "the value that came, or no such part (`no tensor`)"),
    (r"got (?:what|something that) is no", "the value that came"),
]  # fmt: skip

# The same for what users read: README, CONTRIBUTING and docs/, outside `code`.
DOCUMENT_WORDS = [
    (r"notebooks? 0\d", "the class's name, or `the reference class X in notebooks_ref`"),
    (r"(?:has|have|having|gives?|get|gets) the (?:same )?bits of", "is bit-identical to"),
    (r"refus(?:e|es|ed|ing)", "does not support, or is an error"),
    (r"goals?", "the measured number alone; goals are in tools/bench_goals.py"),
    (r"missed", "the measured number alone"),
    (r"live", "run with the tests"),
    (r"(?<!conda-)forges?", "workflow"),
    (r"engines?", "backend"),
]  # fmt: skip
DOCUMENTS = re.compile(r"(?:README|CONTRIBUTING|docs/.*)\.md$")

# American spelling: stem, and how the tree spells it.
AMERICAN = {
    "analyz": "analys", "behavior": "behaviour", "canceled": "cancelled", "centered": "centred", "color": "colour",
    "favor": "favour", "generaliz": "generalis", "honor": "honour", "initializ": "initialis", "labeled": "labelled",
    "materializ": "materialis", "maximiz": "maximis", "memoriz": "memoris", "minimiz": "minimis", "neighbor": "neighbour",
    "normaliz": "normalis", "optimiz": "optimis", "organiz": "organis", "parallelize": "parallelise", "quantiz": "quantis",
    "randomiz": "randomis", "recogniz": "recognis", "specializ": "specialis", "standardiz": "standardis",
    "summariz": "summaris", "synchroniz": "synchronis", "utiliz": "utilis", "vectoriz": "vectoris",
}  # fmt: skip

FILES = re.compile(r"(?!notebooks_ref/.*\.ipynb$|tests/fixtures/|tools/lint_english\.py$|tests/tools/).*\.(h|cpp|md|py|sh|cmake|txt|in)$|.*Makefile$")


def any_of(words):
    return re.compile("|".join(rf"(?P<w{i}>(?<![a-z])(?:{pattern})(?![a-z]))" for i, (pattern, _) in enumerate(words)), re.IGNORECASE)


WORD, DOCUMENT_WORD = any_of(WORDS), any_of(DOCUMENT_WORDS)
# A lower-case word that is no part of a name: neither `a_normalized` nor `torch::optim` nor `std.initialize`.
SPELLING = re.compile(rf"(?<![\w.:/-])((?i:(?:re|un|de)?({'|'.join(AMERICAN)})))[a-z]*(?![\w(]|::|\.\w)")


def comment_of(name, text):
    """What a line says in prose."""
    if not name.endswith(".md"):
        mark = "//" if name.endswith((".h", ".cpp", ".in")) else "#"
        text = text.partition(mark)[2]
    return re.sub(r"`[^`]*`|\]\([^)]*\)|\"[^\"]*\"|'[^']*'", " ", text)


def check_words(tree, where, found, words):
    for match in found:
        instead = next(words[int(key[1:])][1] for key, text in match.groupdict().items() if text)
        tree.say(*where, "english", f"not `{match.group(0)}`: {instead}")


def check_english(tree):
    for name in tree.matching(FILES.pattern):
        fenced = False
        for number, text in enumerate(tree.lines(name), 1):
            check_words(tree, (name, number), WORD.finditer(text), WORDS)
            if Path(name).suffix == ".md" and text.lstrip().startswith("```"):
                fenced = not fenced
            if DOCUMENTS.match(name) and not fenced:
                check_words(tree, (name, number), DOCUMENT_WORD.finditer(comment_of(name, text)), DOCUMENT_WORDS)
            for match in [] if fenced else SPELLING.finditer(comment_of(name, text)):
                tree.say(name, number, "english", f"British spelling in prose: `{match.group(0)}` with {AMERICAN[match.group(2).lower()]}")

#!/usr/bin/env python3
"""docs/performance.md and the README's table of speed, from docs/performance.json.

tools/performance_doc.py --write [--results build/bench/results.json]   take a run's sections, if any; rewrite both
tools/performance_doc.py --check                                        exit 1 where one of them shows other numbers
"""

import argparse
import json
import sys
from pathlib import Path

from bench_goals import SECTIONS, competitor

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, README = ROOT / "docs" / "performance.json", ROOT / "docs" / "performance.md", ROOT / "README.md"
BEGIN, END = "<!-- table: tools/performance_doc.py -->\n", "<!-- end of table -->"

HEAD = """# Performance

Made by `make bench` and `make bench BENCH=decode`, each followed by `tools/performance_doc.py --write --results build/bench/results.json`. Processor: {processor}, {cores} cores
(load average {load} before the run); torch {torch}; float32, V = 32,000, D = 512 and one thread unless said. Every figure is a median
of {rounds} rounds or fewer, in which ours and its competitors, each in a process of its own, took turns. Where results can be equal to the
bit, they were compared before anything was timed.

"How many times" is the competitor's median over ours, then the same of the least times; a goal is what the project promises itself
for the medians, and a missed one is marked.
"""
BUSY = "\n**Other programs were running on the machine: its times are too long, and ratios with two threads mean nothing.**\n"

# The rows of README's table: title of the comparison, the case that is compared, and its competitors.
README_ROWS = [
    ("a forward of one token", "embed/module/1/512/1", ("composed", "eager")),
    ("a training forward of 4,096 tokens, dropout", "embed_train/module/4096/512/1", ("composed", "eager")),
    ("64 tokens for each of 8 sentences, greedy", "decode/decode/posenc/8/32/1", ("ctranslate2",)),
    ("the same by four beams", "decode/decode_beams/posenc/8/32/1", ("ctranslate2", "hf")),
    ("Adam on a table of 32,000 x 512", "adam/fused/32000/512/1", ("libtorch", "python")),
]


def merged(known: dict, run: dict) -> dict:
    """The known results with the sections of a later run in place of theirs; what is said of all is said for the worse."""
    sections = {row["section"] for row in run["ratios"]}
    if sections >= {row["section"] for row in known["ratios"]}:
        return run
    rows = [row for row in known["ratios"] if row["section"] not in sections]
    return run | {
        "load": max(known["load"], run["load"]),
        "rounds": max(known["rounds"], run["rounds"]),
        "cases": known["cases"] | run["cases"],
        "ratios": rows + run["ratios"],
    }


def human(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def page(results: dict) -> str:
    text = HEAD.format(**results) + (BUSY if results["load"] > 0.5 else "")
    cases = results["cases"]
    for section, title in SECTIONS.items():
        rows = [row for row in results["ratios"] if row["section"] == section]
        if not rows:
            continue
        text += f"\n## {title}\n\n| case | ours | against | its time | how many times | goal |\n|---|---|---|---|---|---|\n"
        for row in rows:
            goal = row["goal"]
            promised = "" if goal is None else f"{goal:.3g}x{'' if row['ratio'] >= goal else ' **missed**'}"
            text += (f"| {row['title']} | {human(cases[row['ours']]['median'])} | {competitor(row['theirs'])} "
                     f"| {human(cases[row['theirs']]['median'])} | {times(row['ratio'])}, {times(row['ratio_of_minima'])} | {promised} |\n")  # fmt: skip
    return text


def readme_table(results: dict) -> str:
    found = {(row["ours"], part): row["ratio"] for row in results["ratios"] for part in row["theirs"].split("/")}
    text = "| one thread, float32, D = 512 | times as fast as |\n|---|---|\n"
    for title, ours, competitors in README_ROWS:
        shown = [f"{competitor(f'/{name}/')} {times(found[ours, name])}" for name in competitors if (ours, name) in found]
        if shown:
            text += f"| {title} | {', '.join(shown)} |\n"
    return text


def wanted(results: dict) -> dict[Path, str]:
    readme = README.read_text()
    head, rest = readme.split(BEGIN)
    return {PAGE: page(results), README: head + BEGIN + readme_table(results) + rest[rest.index(END) :]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, help="with --write: a run's results, whose sections go into docs/performance.json")
    arguments = parser.parse_args()
    if arguments.write and arguments.results:
        results = merged(json.loads(RESULTS.read_text()), json.loads(arguments.results.read_text()))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    documents = wanted(json.loads(RESULTS.read_text()))
    stale = [path for path, text in documents.items() if not path.is_file() or path.read_text() != text]
    if arguments.write:
        for path in stale:
            path.write_text(documents[path])
        return 0
    for path in stale:
        print(f"{path.relative_to(ROOT)} is stale: tools/performance_doc.py --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

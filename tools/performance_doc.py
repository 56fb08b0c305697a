#!/usr/bin/env python3
"""docs/performance.md and the README's table of speed, from docs/performance/*.json: one file per processor.

tools/performance_doc.py --write [--results build/bench/results.json]   merge a run's sections, if given; rewrite both
tools/performance_doc.py --check                                        exit 1 if one of them shows other numbers

A run on a new processor adds a file, and with it columns of its own. A file written by hand, for a run elsewhere, names
its origin in `source`; its `ratios` have no times, and its `tables` are shown as they are.
"""

import argparse
import json
import re
import sys
from pathlib import Path

from bench_goals import PROFILES, SECTIONS, competitor, goals

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, README = ROOT / "docs" / "performance", ROOT / "docs" / "performance.md", ROOT / "README.md"
BEGIN, END = "<!-- table: tools/performance_doc.py -->\n", "<!-- end of table -->"

HEAD = """# Performance

{machines}
Unless stated otherwise: float32, V = 32,000, D = 512, one thread. "Speedup" is the competitor's median time divided by posenc's, followed
by the ratio of the minimum times. A goal is the project's own target for the ratio of the medians; a missed goal is marked. In a run of
`tools/bench.py`, posenc and its competitors run in separate processes and take turns, and results that can be bit-identical are
compared before anything is timed. Loading uses a thread per processor and reads files that are in the page cache; `memcpy` uses one thread.

**LibTorch composition** is the code that one would write without posenc: `dropout(embedding(ids) * scale + pe.slice(1, 0, length))`, with
`torch::nn::Embedding`, `torch::nn::Dropout` and a precomputed table of positions. **Python eager** is the same in Python.

To add a column for your machine, run `make bench` or `make bench BENCH=decode`, and after each
`tools/performance_doc.py --write --results build/bench/results.json`.
"""

MOST_LOAD = 1.0  # what a quiet machine still shows of the run before
BUSY = "**other programs were running, so times are too long and ratios with two threads are meaningless**"
PROFILED = """Medians of the thread's processor time, from `make bench BENCH=profile`. Each part is timed by itself in a loop and shown with
its share of the forward. The rows in italics are not parts of the forward; they are shown with their ratio to it."""

# The rows of README's table: title, our cases and those that they are compared with.
README_ROWS = [
    ("one token, against LibTorch composition", ["embed/module/1/512/1"], "composed"),
    ("4,096 and 32,768 tokens, against LibTorch composition", ["embed/module/4096/512/1", "embed/module/32768/512/1"], "composed"),
    ("training forward of 4,096 tokens with dropout, against LibTorch composition", ["embed_train/module/4096/512/1"], "composed"),
    ("Adam step of a 32,000 x 512 table, against LibTorch's Adam", ["adam/fused/32000/512/1"], "libtorch"),
    ("64 tokens, greedy, batch 1, 8 and 32, against CTranslate2 in float32",
     [f"decode/decode/posenc/{batch}/32/1" for batch in (1, 8, 32)], "ctranslate2"),
    ("64 tokens, four beams, batch 8, against CTranslate2 in float32", ["decode/decode_beams/posenc/8/32/1"], "ctranslate2"),
    ("**slower:** loading 1 GiB of safetensors, two threads, against safetensors.torch", ["load/1GiB/safetensors"], "load_file"),
    ("sparse SGD step of 128 rows, against LibTorch's SGD", ["sgd_rows/rows/128/512/1"], "libtorch"),
    ("**slower:** training step of 60 million parameters, two threads, against the same with LibTorch's Adam", ["train_step/posenc/base/2"], "libtorch"),
]  # fmt: skip


def runs() -> list[dict]:
    """All known results, one per processor, and those that only have tables."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


RUN = ("load", "rounds", "date", "torch")  # what is known of each section's run


def keep(run: dict) -> None:
    """Merges a run's sections into its processor's file."""
    path = RESULTS / (re.sub(r"\W+", "_", run["processor"].lower()).strip("_") + ".json")
    sections = {row["section"] for row in run["ratios"]}
    runs = {section: {key: run[key] for key in RUN} for section in sections}
    if path.is_file():
        known = json.loads(path.read_text())
        rows = [row for row in known["ratios"] if row["section"] not in sections]
        run = run | {"cases": known["cases"] | run["cases"], "ratios": rows + run["ratios"]}
        runs = {row["section"]: known["runs"][row["section"]] for row in rows} | runs
    path.write_text(json.dumps({key: value for key, value in run.items() if key not in RUN} | {"runs": runs}, indent=1) + "\n")


def human(seconds: float) -> str:
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def times(ratio: float) -> str:
    return f"{ratio:.0f}x" if ratio >= 20 else f"{ratio:.1f}x" if ratio >= 2 else f"{ratio:.2f}x"


def ratio_of(run: dict, ours: str, theirs: str) -> "dict | None":
    return next((row for row in run["ratios"] if (row["ours"], row["theirs"]) == (ours, theirs)), None)


def machine(run: dict) -> str:
    """A row for each time that the benchmarks were run, and the sections that are from it."""
    if "runs" not in run:
        load = "idle" if run["load"] is None else run["load"]
        return f"| {run['processor']} | {run['cores']} | {load} | {run['date']} | torch {run['torch']} | {run['source']} |\n"
    rows: dict[tuple, list[str]] = {}
    for section in SECTIONS:
        if section in run["runs"]:
            about = run["runs"][section]
            rows.setdefault((about["load"], about["date"], about["torch"]), []).append(section)
    text = ""
    for (load, date, torch), sections in rows.items():
        rounds = max(run["runs"][section]["rounds"] for section in sections)
        names = "; ".join(SECTIONS[section].split(":")[0].split(" (")[0] for section in sections)
        text += (f"| {run['processor']} | {run['cores']} | {load} before the run{f': {BUSY}' if load > MOST_LOAD else ''} | {date} "
                 f"| torch {torch} | `tools/bench.py`, medians of at most {rounds} rounds: {names} |\n")  # fmt: skip
    return text


def cells(run: dict, ours: str, theirs: str, goal: "float | None") -> list[str]:
    found = ratio_of(run, ours, theirs)
    timed = [""] * 2 if run.get("cases") else []
    if found is None:
        return timed + [""]
    if timed:
        timed = [human(run["cases"][name]["median"]) for name in (ours, theirs)]
    second = found.get("ratio_of_minima", found.get("again"))
    missed = " **missed**" if goal is not None and found["ratio"] < goal else ""
    return timed + [times(found["ratio"]) + (f", {times(second)}" if second else "") + missed]


def section_table(title: str, rows: list[tuple], measured: list[dict]) -> str:
    shown = [run for run in measured if any(ratio_of(run, *row[2:4]) for row in rows)]
    head = ["case", "against", "goal"]
    for run in shown:
        columns = ["posenc", "competitor", "speedup"] if run.get("cases") else ["speedup"]
        head += [f"{run['processor']}: {columns[0]}", *columns[1:]]
    text = f"\n## {title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
    for _, case, ours, theirs, goal in rows:
        found = [cell for run in shown for cell in cells(run, ours, theirs, goal)]
        if any(found):
            promised = "" if goal is None else f"{goal:.3g}x"
            text += f"| {' | '.join([case, competitor(theirs), promised, *found])} |\n"
    return text


def plain_table(table: dict) -> str:
    first = table["rows"][0]
    text = f"\n## {table['title']}\n\n{table['note']}\n\n| | {' | '.join(table['columns'])} |\n|{'---|' * len(first)}\n"
    for name, *seconds in table["rows"]:
        shown = [human(value) + (f" ({times(base / value)})" if base != value else "") for value, base in zip(seconds, first[1:])]
        text += f"| {name} | {' | '.join(shown)} |\n"
    return text


def profile_table(profile: tuple, measured: list[dict]) -> str:
    """Returns "" if no processor has the profile."""
    title, tokens, parts, others, note = profile
    shown = [run for run in measured if f"profile/{tokens}/forward" in run.get("cases", {})]
    if not shown:
        return ""
    names = ["forward", *(name for _, name in [*parts, *others] if name)]
    taken = [{name: run["cases"][f"profile/{tokens}/{name}"]["median"] for name in names} for run in shown]
    rows = [("the forward", [human(one["forward"]) for one in taken])]
    for text, name in parts:
        alone = [one[name] if name else one["forward"] - sum(one[other] for _, other in parts if other) for one in taken]
        rows.append((text, [f"{human(part)}, {part / one['forward']:.0%}" for part, one in zip(alone, taken)]))
    rows += [(f"*{text}*", [f"{human(one[name])} ({times(one[name] / one['forward'])})" for one in taken]) for text, name in others]
    text = f"\n## {title}\n\n{PROFILED}\n\n| | {' | '.join(run['processor'] for run in shown)} |\n|{'---|' * (1 + len(shown))}\n"
    return text + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows) + f"\n{note}\n"


def page(known: list[dict]) -> str:
    measured = [run for run in known if "ratios" in run]
    machines = "| processor | cores | load | date | versions | method |\n|---|---|---|---|---|---|\n" + "".join(map(machine, measured))
    text = HEAD.format(machines=machines)
    for section, title in SECTIONS.items():
        rows = [row for row in goals() if row[0] == section]
        if any(ratio_of(run, *row[2:4]) for row in rows for run in measured):
            text += section_table(title, rows, measured)
    text += "".join(profile_table(profile, measured) for profile in PROFILES)
    return text + "".join(plain_table(table) for run in known for table in run.get("tables", []))


def readme_table(known: list[dict]) -> str:
    measured = [run for run in known if "ratios" in run]
    text = "| one thread, float32, D = 512 | speedup |\n|---|---|\n"
    for title, cases, name in README_ROWS:
        ratios = [row[key] for run in measured for row in run["ratios"] for key in ("ratio", "again")
                  if row["ours"] in cases and name in row["theirs"].split("/") and key in row]  # fmt: skip
        low, high = times(min(ratios)), times(max(ratios))
        text += f"| {title} | {low if low == high else f'{low} to {high}'} |\n"
    tables = {table["title"].split(":")[0]: table["rows"] for run in known for table in run.get("tables", [])}
    whole, (ours, int8) = tables["A whole training step"], tables["Decoding"]
    loaded = " and ".join(run["processor"] for run in measured if any(one["load"] > MOST_LOAD for one in run.get("runs", {}).values()))
    busy = f"\nOther programs were running during some of the runs on the {loaded} machine." if loaded else ""
    gains = [round(100 * (before / after - 1)) + 0 for before, after in zip(whole[0][1:], whole[1][1:])]
    seconds = [", ".join(f"{value:.2f}" for value in row[1:4]) for row in (int8, ours)]
    return text + (
        f"\nRanges cover the sizes and the processors measured: {' and '.join(run['processor'] for run in measured)}.{busy}\n"
        f"The embedding alone saves {min(gains)} to {max(gains)} % of a training step; the layers, `FusedAdam` and `freeze()` save more. At decoding,\n"
        f"CTranslate2 with int8, which posenc does not have, is faster: {seconds[0]} s against {seconds[1]} s at batch 1, 8 and 32,\n"
        f"and {int8[4]:.2f} s against {ours[4]:.2f} s with four beams. See [performance](docs/performance.md).\n"
    )


def wanted(known: list[dict]) -> dict[Path, str]:
    readme = README.read_text()
    head, rest = readme.split(BEGIN)
    return {PAGE: page(known), README: head + BEGIN + readme_table(known) + rest[rest.index(END) :]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    parser.add_argument("--results", type=Path, help="with --write: a run's results, whose sections are kept under docs/performance")
    arguments = parser.parse_args()
    if arguments.write and arguments.results:
        keep(json.loads(arguments.results.read_text()))
    documents = wanted(runs())
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

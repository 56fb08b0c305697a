"""What docs/developers/benchmarks.md says about speed, from docs/performance/*.json: one file per processor.
tools/docs.py writes it.

A run on a new processor adds a file, and with it columns of its own. A run on a machine that was not idle is rejected, unless it
says so itself (`tools/bench.py --shared`): it counts as another processor's, whose name says it. A file
written by hand, for a run elsewhere, names its origin in `records`; it may have ratios without times, and its `tables` are
shown as they are.
"""

import json
import re
import sys

from bench import SHARED
from bench_goals import PROFILES, SECTIONS, competitor, goals
from page_tables import DOCS, table

RESULTS = DOCS / "performance"
MOST_LOAD = 1.0  # what a quiet machine still shows of the run before
PROFILED = """Medians of the thread's processor time, from `make bench BENCH=profile`. Each part is timed by itself in a loop and shown with
its share of the forward. The rows in italics are not parts of the forward; they are shown with their ratio to it."""

SLOWER = 0.95  # ratios below this are listed as slower


def bert(cases: str = "1x16 1x128 8x128 8_ragged 32_ragged") -> list[str]:
    return [f"bert/{case}/posenc/{threads}" for case in cases.split() for threads in (1, 2)]


def one_thread(model: str) -> list[str]:
    return [f"{model}/{case}/posenc/1" for case in ("1x16", "1x128", "8x128", "1x2048", "8_unequal")]


def of_shape(shape: str) -> list[str]:
    """Greedy for 1, 8 and 32 sources, and four beams for 1 and 8."""
    cases = [("decode", batch) for batch in (1, 8, 32)] + [("decode_beams", batch) for batch in (1, 8)]
    return [f"{shape}/{act}/posenc/{batch}/16/1" for act, batch in cases]


def in_8_bits(cases: list[str]) -> list[str]:
    return [case.replace("/posenc/", "/posenc_int8/") for case in cases]


ENCODE = [f"decode/encode/posenc/{size}/1" for size in ("1/16", "1/128", "8/128")]
GREEDY = [f"decode/decode/posenc/{batch}/32/1" for batch in (1, 8, 32)]
BEAMS = ["decode/decode_beams/posenc/8/32/1"]
SHAPES = (("nllb", "24 tokens with the shape of NLLB-600M"), ("t5", "24 tokens with the shape of T5-base"))
ENCODERS = (("minilm", "MiniLM"), ("bert", "BERT-base"), ("modernbert", "ModernBERT-base"))
RELATIVE_ENCODERS = (("t5", "T5-base's encoder"), ("deberta", "DeBERTa-v3-base"))

# The rows of the summary: what, our cases, and those that they are compared with.
SUMMARY_ROWS = [
    ("BERT-base, frozen, 1 to 32 sequences, one and two threads", bert(), "transformers"),
    ("", bert(), "torch_nn"),
    ("", bert(), "ctranslate2"),
    *((f"{title}, frozen, 16 to 2,048 tokens" if peer == "transformers" else "", one_thread(model), peer)
      for model, title in ENCODERS
      for peer in ("transformers", "onnxruntime", "ctranslate2") if (model, peer) != ("modernbert", "ctranslate2")),
    *((f"{title}, frozen, 16 to 2,048 tokens", one_thread(model), "transformers") for model, title in RELATIVE_ENCODERS),
    *((f"{title}, in 8 bits" if peer == "onnxruntime_int8" else "", in_8_bits(one_thread(model)), peer)
      for model, title in ENCODERS
      for peer in ("onnxruntime_int8", "ctranslate2_int8") if (model, peer) != ("modernbert", "ctranslate2_int8")),
    *((title + (", in 8 bits" if converted else ""), in_8_bits(cases) if converted else cases, "ctranslate2_int8" if converted else "ctranslate2")
      for title, cases in (("encoder of 6 layers (d 512), frozen, 16 to 1,024 tokens", ENCODE), ("64 tokens, greedy, batch 1, 8 and 32", GREEDY),
                           ("64 tokens, four beams, batch 8", BEAMS))
      for converted in (False, True)),
    *((f"{title}, 1 to 32 rows" + (", in 8 bits" if converted else ""), in_8_bits(of_shape(shape)) if converted else of_shape(shape),
       "ctranslate2_int8" if converted else "ctranslate2") for shape, title in SHAPES for converted in (False, True)),
    ("`TransformerEncoder`, not frozen, one and two threads",
     [f"transformer/encoder/posenc/{size}/{threads}" for size in ("1/16", "1/128", "8/128") for threads in (1, 2)], "torch_nn"),
    ("embedding of 1 to 32,768 tokens",
     [f"embed/module/{tokens}/512/1" for tokens in (1, 16, 24, 128, 160, 4000, 4096, 32000, 32768)], "composed"),
    ("the same in training, with dropout", [f"embed_train/module/{tokens}/512/1" for tokens in (16, 128, 4096)], "composed"),
    ("rotation of q and k, 1 to 2,048 tokens", [f"rotary/fused/{length}/32" for length in (1, 128, 2048)], "composed"),
    ("Adam step of a 32,000 x 512 table", ["adam/fused/32000/512/1"], "libtorch"),
    ("", ["adam/fused/32000/512/1"], "python_fused"),
]  # fmt: skip
TRAINING = "A whole training step"  # the title of the table that the summary takes its first and last row from


def runs() -> list[dict]:
    """All known results, one per processor, and those that only have tables."""
    return [json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))]


def measured(known: list[dict]) -> list[dict]:
    return [run for run in known if "ratios" in run]


RUN = ("load", "rounds", "date", "torch")  # what is known of each section's run


def keep(run: dict) -> None:
    """Merges a run's sections into its processor's file."""
    if run["load"] > MOST_LOAD and not run["processor"].endswith(SHARED):
        sys.exit(f"the machine must be idle before a run: a load of at most {MOST_LOAD}. Got {run['load']}; measure again")
    run = run | {"ratios": [{key: value for key, value in row.items() if key != "goal"} for row in run["ratios"]]}
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


def machines(known: list[dict]) -> str:
    """A row for each time that the benchmarks were run, and the sections that are from it."""
    rows = []
    for run in measured(known):
        shown = [(one["load"], one["date"], one["torch"], one["method"]) for one in run.get("records", [])]
        at_once: dict[tuple, list[str]] = {}
        for section in SECTIONS:
            if section in run.get("runs", {}):
                about = run["runs"][section]
                at_once.setdefault((about["load"], about["date"], about["torch"]), []).append(section)
        for (load, date, torch), sections in at_once.items():
            rounds = max(run["runs"][section]["rounds"] for section in sections)
            names = "; ".join(SECTIONS[section].split(":")[0].split(" (")[0] for section in sections)
            shown.append((f"{load} before the run", date, torch, f"`tools/bench.py`, medians of at most {rounds} rounds: {names}"))
        rows += [(run["processor"], run["cores"], load, date, f"torch {torch}", method) for load, date, torch, method in shown]
    return table(["processor", "cores", "load", "date", "versions", "method"], rows)


def seconds(run: dict, case: str) -> "float | None":
    """The time of a case: its median, or the minimum if only that was recorded."""
    known = run.get("cases", {}).get(case, {})
    return known.get("median", known.get("minimum"))


def cells(run: dict, ours: str, theirs: str, timed: bool) -> list[str]:
    found = ratio_of(run, ours, theirs) or {}
    taken = [human(seconds(run, case)) if found and seconds(run, case) else "" for case in (ours, theirs)] if timed else []
    return [*taken, ", ".join(times(found[key]) for key in ("ratio", "ratio_of_minima") if found.get(key))]


def section(title: str, rows: list[tuple], known: list[dict]) -> str:
    shown = [run for run in measured(known) if any(ratio_of(run, *row[2:4]) for row in rows)]
    timed = [any(seconds(run, row[2]) for row in rows) for run in shown]
    head = ["case", "against"]
    for run, with_times in zip(shown, timed):
        columns = ["posenc", "competitor", "speedup"] if with_times else ["speedup"]
        head += [f"{run['processor']}: {columns[0]}", *columns[1:]]
    found = [(case, competitor(theirs), *(cell for run, with_times in zip(shown, timed) for cell in cells(run, ours, theirs, with_times)))
             for _, case, ours, theirs, _ in rows]  # fmt: skip
    return f"\n## {title}\n\n" + table(head, (row for row in found if any(row[2:])))


def plain_table(plain: dict) -> str:
    def shown(values: list[float]) -> list[str]:
        return [human(value) + (f" ({times(base / value)})" if base != value else "") for value, base in zip(values, plain["rows"][0][1:])]

    rows = ((name, *shown(values)) for name, *values in plain["rows"])
    return f"\n## {plain['title']}\n\n{plain['note']}\n\n" + table(["", *plain["columns"]], rows)


def profile(title: str, tokens: int, parts: list, others: list, note: str, known: list[dict]) -> str:
    """Returns "" if no processor has the profile."""
    shown = [run for run in known if f"profile/{tokens}/forward" in run.get("cases", {})]
    names = ["forward", *(name for _, name in [*parts, *others] if name)]
    taken = [{name: run["cases"][f"profile/{tokens}/{name}"]["median"] for name in names} for run in shown]
    rows = [("the forward", *(human(one["forward"]) for one in taken))]
    for text, name in parts:
        alone = [one[name] if name else one["forward"] - sum(one[other] for _, other in parts if other) for one in taken]
        rows.append((text, *(f"{human(part)}, {part / one['forward']:.0%}" for part, one in zip(alone, taken))))
    rows += [(f"*{text}*", *(f"{human(one[name])} ({times(one[name] / one['forward'])})" for one in taken)) for text, name in others]
    text = f"\n## {title}\n\n{PROFILED}\n\n" + table(["", *(run["processor"] for run in shown)], rows) + f"\n{note}\n"
    return text if shown else ""


def sections(known: list[dict]) -> str:
    text = ""
    for name, title in SECTIONS.items():
        rows = [row for row in goals() if row[0] == name]
        if any(ratio_of(run, *row[2:4]) for row in rows for run in measured(known)):
            text += section(title, rows, known)
    text += "".join(profile(*one, known) for one in PROFILES)
    return (text + "".join(plain_table(plain) for run in known for plain in run.get("tables", [])) + "\n").removeprefix("\n")


def ratios(run: dict, cases: list[str], peer: str) -> list[float]:
    return [row["ratio"] for row in run["ratios"] if row["ours"] in cases and peer in row["theirs"].split("/")]


def has_threads_of(run: dict, cases: list[str]) -> bool:
    """Whether a run has some of the cases with each of their numbers of threads, with which their names end."""
    known = {row["ours"] for row in run["ratios"]}
    return {case.split("/")[-1] for case in cases} == {case.split("/")[-1] for case in cases if case in known}


def span(values: list[float]) -> str:
    """`1.05x to 2.4x`, one value if both ends look the same, and nothing for none."""
    return " to ".join(dict.fromkeys(times(value) for value in sorted(values)[:: max(1, len(values) - 1)]))


def training(known: list[dict]) -> list[float]:
    """How much faster a whole training step is, for each number of threads."""
    rows = [plain["rows"] for run in known for plain in run.get("tables", []) if plain["title"].startswith(TRAINING)]
    return [before / after for first, *_, last in rows for before, after in zip(first[1:], last[1:])]


def summary(known: list[dict]) -> str:
    rows = [(title, competitor(peer), *(span(ratios(run, cases, peer)) if has_threads_of(run, cases) else "" for run in measured(known)))
            for title, cases, peer in SUMMARY_ROWS]  # fmt: skip
    rows.append(("a whole training step (d 256, 3 + 3 layers), one and two threads", "LibTorch's modules and Adam",
                 *(span(training([run])) for run in measured(known))))  # fmt: skip
    head = ["one thread unless stated otherwise", "against", *(run["processor"] for run in measured(known))]
    return table(head, (row for row in rows if any(row[2:])))


def slower(known: list[dict]) -> str:
    rows = [(f"{SECTIONS[name].split(' (')[0]}: {case}", competitor(theirs), run["processor"], times(found["ratio"]))
            for name, case, ours, theirs, _ in goals() if "copy" not in theirs.split("/")
            for run in measured(known) if (found := ratio_of(run, ours, theirs)) and found["ratio"] < SLOWER]  # fmt: skip
    return table(["case", "against", "machine", "ratio"], rows)

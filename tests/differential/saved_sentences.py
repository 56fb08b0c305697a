"""Models of sentence-transformers that are trained by a step and saved by save_sentence_model().

transformers' from_pretrained() has to open the folder's encoder with nothing missing, and sentence_transformers, where Python has
it, the whole folder. Both have to give the vectors that the library has computed. A model with a Router is saved with all its routes.
"""

import importlib.util
import json
import logging
from pathlib import Path

import torch
from encoders import one_thread
from harness import Case, Draw, Failure, Programs
from sentence_texts import routed_folder, sentence_folder
from sentences import compare

MODELS, ROUTED, LEAST = 4, 2, 7


def case_of(draw: Draw, programs: Programs, number: int) -> tuple[Case, str]:
    import transformers

    if number >= MODELS:
        root, _, what = routed_folder(draw, programs, number)
        given = {"input_ids": draw.integers(20, 2, LEAST), "attention_mask": torch.ones(2, LEAST).long()}
        return Case({"op": "save_routes", "folder": str(root), "out": f"{root}-saved"}, given, {}), what
    root, config, what = sentence_folder(draw, programs, number)
    inner = "0_Transformer" if (root / "0_Transformer").exists() else ""
    vocab = transformers.AutoConfig.from_pretrained(root / inner).vocab_size
    # What must not be copied: weights in another form.
    (root / inner / "tf_model.h5").write_bytes(b"stale")
    rows = [draw.randint(LEAST, 12) for _ in range(3)]
    mask = (torch.arange(max(rows)) < torch.tensor(rows)[:, None]).long()
    given = {"input_ids": draw.integers(vocab, *mask.shape), "attention_mask": mask, "cotangent": draw.normal(1) * 0.1}
    options = {"op": "train_sentences", "folder": str(root), "out": f"{root}-saved"}
    return Case(options, given, {}, refused="must be no cross-encoder" if "model_type" in config else ""), what


def by_package(folder: Path, given: dict) -> torch.Tensor:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu").eval()
    rows = []
    for ids, mask in zip(given["input_ids"], given["attention_mask"]):
        own = ids[mask != 0][None]
        features = {"input_ids": own, "attention_mask": torch.ones_like(own)}
        if "token_type_ids" in model.tokenizer.model_input_names:
            features["token_type_ids"] = torch.zeros_like(own)
        rows.append(model(features)["sentence_embedding"])
    return torch.cat(rows)


def judged_routes(case: Case, got) -> str:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(case.options["out"], device="cpu").eval()
    for task, vectors in got.items():
        features = {"modality": "text"} | {name: tensor.clone() for name, tensor in case.tensors.items()}
        if why := compare(vectors, model(features, task=None if task == "none" else task)["sentence_embedding"]):
            return f"{task}: {why}"
    return ""


def judged(case: Case, got) -> str:
    import transformers

    if isinstance(got, str):
        return "" if case.refused and case.refused in got else got
    if case.refused:
        return "was not refused"
    if case.options["op"] == "save_routes":
        return judged_routes(case, got)
    folder, out = Path(case.options["folder"]), Path(case.options["out"])
    modules = json.loads((out / "modules.json").read_text())
    encoder = out / modules[0]["path"]
    config = json.loads((encoder / "config.json").read_text())
    if any(out.rglob("*.h5")):
        return "other weights were copied"
    for file in (path.relative_to(folder) for path in folder.rglob("*.json")):
        if file.name not in ("config.json", "model.safetensors.index.json") and not (out / file).exists():
            return f"{file} was not copied"
    cls = getattr(transformers, config["architectures"][0])
    _, info = cls.from_pretrained(encoder, output_loading_info=True)
    if info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]:
        return f"{info}"
    if importlib.util.find_spec("sentence_transformers") is None:
        return ""
    return compare(got["vectors"], by_package(out, case.tensors))


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL), torch.no_grad():
        logging.disable(logging.WARNING)
        made = [case_of(draw, programs, number) for number in range(MODELS + ROUTED)]
        results = programs.compute([case for case, _ in made])
        whys = [(what, judged(case, got)) for (case, what), got in zip(made, results)]
    return len(made), [Failure(f"{what}, {case.options}", why) for (case, what), (_, why) in zip(made, whys) if why]

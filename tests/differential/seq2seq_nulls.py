"""config.json of encoder-decoders with null for each setting of the class: what transformers refuses is refused by name.

What it accepts is computed as it computes it, or refused by name.
"""

import dataclasses
import json
from pathlib import Path

import seq2seq
import torch
import transformers
import whisper_logits

from harness import Case, Draw, Failure, Programs

TOLERANCE = 1e-4


def names_of(config) -> list[str]:
    """The class's own names, and the others that a file may have."""
    own = {field.name for field in dataclasses.fields(config)} - {"return_dict"}  # the form of what forward() returns
    return sorted({*own, *config.attribute_map, *(name for name in ("dense_act_fn", "is_gated_act", "scale_decoder_outputs") if hasattr(config, name))})


def with_null(folder: Path, name: str) -> Path:
    """The same model with null for a setting, and for nothing else."""
    other = folder.parent / name
    other.mkdir()
    for file in folder.iterdir():
        if file.name != "config.json":
            (other / file.name).symlink_to(file)
    settings = json.loads((folder / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(settings | {name: None}))
    return other


def logits_of(kind: str, folder: Path, tensors: dict[str, torch.Tensor]) -> torch.Tensor | None:
    """None if transformers refuses the folder, be it only when it computes; empty if it draws weights that the file lacks."""
    try:
        loaded = transformers.WhisperForConditionalGeneration if kind == "whisper" else getattr(transformers, seq2seq.KINDS[kind][1])
        model, report = loaded.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
        model.eval()
        if any(".layers." in key or ".block." in key for key in report["missing_keys"]):
            return torch.empty(0)
        if kind == "whisper":
            return whisper_logits.outputs_of(model, tensors)[0]
        return seq2seq.logits_of(model, tensors["src"], tensors["mask"], tensors["tgt"])
    except Exception:  # of many kinds: of the types of the class, of None where a number is used
        return None


def why_wrong(name: str, expected: torch.Tensor | None, got: dict[str, torch.Tensor] | str, own: str) -> str:
    if isinstance(got, str):
        return "" if name in got or own in got else f"refused without its name: {got}"
    if expected is None:
        return "was not refused"
    if not expected.numel():
        return ""
    off = (got["logits"] - expected).abs().max().item()
    return "" if off <= TOLERANCE * expected.abs().max().item() else f"off by {off:.3g}"


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    cases, expected, what = [], [], []
    with torch.no_grad():
        for kind in [*seq2seq.KINDS, "whisper"]:
            folder = programs.within(kind).folder / "model"
            if kind == "whisper":
                config = whisper_logits.folder_of(draw, folder).config
                tensors = {"src": draw.normal(2, config.num_mel_bins, 2 * config.max_source_positions), "tgt": draw.integers(12, 2, 4)}
            else:
                config = seq2seq.model_of(draw, folder, kind).config
                ids = draw.integers(12, 2, 5)  # the smallest vocabulary
                tensors = {"src": ids, "mask": torch.ones(2, 5, dtype=torch.bool), "tgt": draw.integers(12, 2, 4)}
            for name in names_of(config):
                other = with_null(folder, name)
                cases.append(Case({"op": "seq2seq_logits", "folder": str(other)}, tensors, {}))
                expected.append(logits_of(kind, other, tensors))
                what.append((kind, name, config.attribute_map.get(name, name)))
    failures = []
    for (kind, name, own), theirs, got in zip(what, expected, programs.compute(cases)):
        why = why_wrong(name, theirs, got, own)
        if why:
            failures.append(Failure(f"{kind} with null for {name}", why))
    return len(cases), failures

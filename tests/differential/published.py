"""Files of every model type with tensors that published ones are known to have besides the model's own: published_names.json.

Each is loaded by transformers too, and gives the same output. Its names are ignored, or are named in the report of the load
because no module that is computed has them, or are refused because one has: `fate`. `source` says where each name was seen.
"""

import json
import logging
from collections import defaultdict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import encoders
import seq2seq
from encoders import KINDS, encoder_of, expected_of, inputs_of, off_by, one_thread, settings
from harness import Case, Draw, Failure, Programs

PUBLISHED = json.loads((Path(__file__).parent / "published_names.json").read_text())
SEQ2SEQ_TOLERANCE = 1e-4


def tensor_of(draw: Draw, name: str) -> torch.Tensor:
    """One as such a file has, if not in its size."""
    if name.endswith(("position_ids", "relative_position_index", "visual_bbox")):
        return torch.arange(6).unsqueeze(0)
    return draw.normal(3) if name.endswith((".bias", "version", "inv_freq", "_float_tensor")) else draw.normal(3, 4)


def with_leftovers(draw: Draw, folder: Path, prefix: str, names: list[str]) -> list[str]:
    """Adds them to the file, whose names get the prefix of models with a head where the others have it; returns their names."""
    file = folder / "model.safetensors"
    tensors = load_file(file)
    is_bare = prefix and not any(key.startswith(prefix) for key in tensors)
    if is_bare and any(name.startswith(prefix) for name in names):
        tensors = {prefix + key: value for key, value in tensors.items()}
    added = [name for name in names if name not in tensors]
    save_file(tensors | {name: tensor_of(draw, name) for name in added}, file, {"format": "pt"})
    return added


def fates(entries: list[dict], added: list[str]) -> dict[str, list[str]]:
    found = defaultdict(list)
    for entry in entries:
        found[entry["fate"]] += [name for name in entry["names"] if name in added]
    return found


def of_encoder(draw: Draw, programs: Programs, kind_name: str, entries: list[dict]) -> tuple[Case, str]:
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    if kind_name == "esm":
        chosen["position_embedding_type"] = "rotary"
    if kind_name in ("deberta", "deberta-v2"):
        chosen["position_biased_input"] = False
    if kind_name == "modernbert":
        chosen["mlp_bias"] = False
    if kind_name == "t5gemma":
        chosen["is_encoder_decoder"] = False
    config = getattr(transformers, kind.config)(**chosen)
    cls = getattr(transformers, kind.model)
    model = cls(config).eval()
    for parameter in (own for name, own in model.named_parameters() if "embed_positions" not in name or kind_name != "roformer"):
        parameter.copy_(draw.normal(*parameter.shape) * 0.1)
    folder = programs.folder / f"encoder-{kind_name}"
    model.save_pretrained(folder)
    own = model.state_dict()
    names = [name for entry in entries for name in entry["names"] if name not in own]
    prefix = cls.base_model_prefix + "." if kind.dialect not in ("pair", "sam", "features") and cls.base_model_prefix else ""
    added = with_leftovers(draw, folder, prefix, names)
    attention = "sdpa" if kind_name == "falcon" else "eager"  # Falcon's eager one adds ALiBi twice
    theirs = encoders.as_loaded(cls.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).eval())
    base = encoder_of(theirs, kind.dialect)
    has_types = any("token_type_embeddings" in name for name in base.state_dict())
    given = inputs_of(draw, kind.dialect, theirs.config, has_types)
    found = fates(entries, added)
    options = {"op": "published", "loader": "encoder", "folder": str(folder), "named": found["named"], "inside": found["inside"]}
    return Case(options, given, expected_of(theirs, base, kind.dialect, given)), f"{kind_name} with {added}"


def of_seq2seq(draw: Draw, programs: Programs, kind_name: str, entries: list[dict]) -> tuple[Case, str]:
    import transformers

    folder = programs.within(f"seq2seq-{kind_name}").folder / "model"
    config = seq2seq.config_of(draw, kind_name, None)
    model = getattr(transformers, seq2seq.KINDS[kind_name][1])(config).eval()
    seq2seq.randomise(draw, model)
    model.save_pretrained(folder)
    added = with_leftovers(draw, folder, "", [name for entry in entries for name in entry["names"]])
    theirs = type(model).from_pretrained(folder, dtype=torch.float32).eval()
    ids = draw.integers(12, 2, 5)  # the smallest vocabulary
    tensors = {"src": ids, "mask": torch.ones(2, 5, dtype=torch.bool), "tgt": draw.integers(12, 2, 4)}
    found = fates(entries, added)
    options = {"op": "published", "loader": "seq2seq", "folder": str(folder), "named": found["named"], "inside": found["inside"]}
    logits = seq2seq.logits_of(theirs, tensors["src"], tensors["mask"], tensors["tgt"])
    return Case(options, tensors, {"logits": logits}), f"{kind_name} with {added}"


def why_wrong(got: dict | str, case: Case) -> str:
    if isinstance(got, str):
        return got
    mask = case.tensors.get("attention_mask")
    for name in ("last_hidden_state", "logits"):
        if name not in case.expected:
            continue
        a, b = got[name], case.expected[name]
        if name == "last_hidden_state" and mask is not None:
            a, b = a[mask != 0], b[mask != 0]
        if why := off_by(a, b):
            return f"{name}: {why}"
    return ""


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    by_kind = defaultdict(list)
    for entry in PUBLISHED:
        by_kind[entry.get("loader", "encoder"), entry["model_type"]].append(entry)
    unknown = set(KINDS) - {kind for loader, kind in by_kind if loader == "encoder"}
    unknown |= set(seq2seq.KINDS) - {kind for loader, kind in by_kind if loader == "seq2seq"}
    failures = [Failure(kind, "has no names in published_names.json") for kind in sorted(unknown)]
    with one_thread(logging.ERROR), torch.no_grad():
        makers = {"encoder": of_encoder, "seq2seq": of_seq2seq}
        made = [makers[loader](draw, programs, kind, entries) for (loader, kind), entries in sorted(by_kind.items())]
        results = programs.compute([case for case, _ in made])
    for (case, what), got in zip(made, results):
        if why := why_wrong(got, case):
            failures.append(Failure(what, why))
    return len(made), failures

"""Presets with random parameters against the packages' formulas; embed() and the notebooks' modules against PyTorch."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import safe_open
from torch.nn import functional as F

from harness import DTYPES, Case, Draw, Failure, Programs, differ, run

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "notebooks_ref"), str(ROOT / "tools/zoo")]
import table_cases as zoo  # noqa: E402
import rederived  # noqa: E402
from reference import input_embedding, position_embedding, timestep_embedding, token_and_position_embedding  # noqa: E402

PRESETS, CASES, LARGEST = 6, 16, 40_000
ROWS_FROM_ZERO = ["annotated_transformer", "hf_marian", "xlm", "nemo_tts", "opennmt_py_concat", "whisper", "sam_lynn_evans",
                  "ctrl", "d2l", "nemo_nmt"]  # fmt: skip
NOTEBOOKS = ["InputEmbedding", "TokenAndPositionEmbedding", "TimestepEmbedding", "PositionalEncoding",
             "MyPositionEncoding"]  # fmt: skip


def presets(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    """`posenc table --cases` against the re-derived formulas, including errors."""
    chosen, failures = [], []
    for name in draw.sample(rederived.NAMES, PRESETS):
        if name in ("tensor2tensor", "opennmt_tf"):  # TensorFlow's kernels: only the order of operations is known
            continue
        found = [c for c in zoo.generate(name, draw.getrandbits(31)) if c.length * c.dim <= LARGEST]
        chosen += draw.sample(found, min(len(found), 12))
    cases, out = programs.folder / "cases.json", programs.folder / "tables.safetensors"
    cases.write_text(json.dumps([{"name": f"case{k}", **c.record()} for k, c in enumerate(chosen)]))
    done = programs.posenc("table", "--cases", cases, "--out", out)
    if done.returncode:
        return 1, [Failure("posenc table --cases", done.stderr.strip())]
    with safe_open(out, "pt") as file:
        tables, messages = {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}
    for k, case in enumerate(chosen):
        got, what = tables.get(f"case{k}"), f"preset {' '.join(case.arguments())}"
        if case.expect == "error":
            if got is not None or f"case{k}" not in messages:
                failures.append(Failure(what, "was not refused"))
            continue
        if got is None:
            failures.append(Failure(what, messages.get(f"case{k}", "neither a table nor a message")))
            continue
        expected = rederived.table(case.preset, case.length, case.dim, **case.params)
        why = differ(got.reshape(expected.shape) if got.numel() == expected.numel() else got, expected, "bits")
        if why:
            failures.append(Failure(what, why))
    return len(chosen), failures


def laid(draw: Draw, ids: torch.Tensor) -> torch.Tensor:
    return ids if draw.coin() else ids.int()


def embed(draw: Draw) -> Case:
    """functional::embed() with all options, against the four operations."""
    name = draw.choice(list(DTYPES))
    dtype, dim = DTYPES[name], draw.choice([1, 2, 3, 8, 16, 31, 33, 64, 96, 200])
    vocab, length, batch = draw.randint(1, 50), draw.randint(0, 20), draw.randint(0, 6)
    batch_first, offset = draw.coin(), draw.randint(0, 5)
    shape = draw.choice([[length], [batch, length] if batch_first else [length, batch]])
    if draw.coin(0.15):
        shape = [length, length]
    rows = length + 6
    tensors = {"weight": draw.normal(vocab, dim).to(dtype), "table": draw.normal(rows, dim).to(dtype)}
    tensors["ids"] = laid(draw, draw.integers(vocab, *shape))
    positions = torch.arange(offset, offset + length)
    if draw.coin():
        offset = 0
        tensors["position_ids"] = laid(draw, draw.integers(rows, *draw.choice([[length], shape])))
        positions = tensors["position_ids"].long()
    options = {
        "op": "embed", "scale": draw.choice([None, "sqrt", 0.3, 2.0]), "batch_first": batch_first, "offset": offset,
        "padding_idx": draw.choice([None, draw.randint(-vocab, vocab - 1)]), "dropout": draw.choice([0.0, 0.1, 0.5]),
        "train": draw.coin(), "sparse": draw.coin(0.3), "seed": draw.getrandbits(31), "into_out": draw.coin(0.2),
        "dtype": name,
    }  # fmt: skip
    weight = tensors["weight"].clone().requires_grad_()
    torch.manual_seed(options["seed"])
    x = F.embedding(tensors["ids"].long(), weight, options["padding_idx"])
    scale = options["scale"]
    x = x if scale is None else x * (dim**0.5 if scale == "sqrt" else scale)
    added = tensors["table"][positions]
    if added.dim() == 2 and len(shape) == 2 and not batch_first:
        added = added.unsqueeze(1)  # (L, 1, D)
    x = F.dropout(x + added, options["dropout"], options["train"])
    tensors["cotangent"] = draw.normal(*x.shape).to(dtype)
    expected = {"out": x.detach()}
    if not options["into_out"]:
        (x * tensors["cotangent"]).sum().backward()
        expected["grad.weight"] = weight.grad
    return Case(options, tensors, expected, "bits")


def notebook(draw: Draw) -> Case:
    kind = draw.choice(NOTEBOOKS)
    dim, rows, vocab = 2 * draw.randint(1, 40), draw.randint(1, 60), draw.randint(1, 30)
    options = {"op": "notebook", "module": kind, "dim": dim, "max_len": rows, "vocab": vocab,
               "dropout": draw.choice([0.0, 0.1, 0.6]), "channels": draw.randint(1, 9), "train": draw.coin(),
               "seed": draw.getrandbits(31)}  # fmt: skip
    shape = [draw.randint(1, 5), draw.randint(1, rows)]
    tensors = {"in.ids": laid(draw, draw.integers(vocab, *shape))}
    if kind == "InputEmbedding":
        module = input_embedding.InputEmbedding(vocab, dim, rows)
    elif kind == "TokenAndPositionEmbedding":
        module = token_and_position_embedding.TokenAndPositionEmbedding(vocab, dim, rows, options["dropout"])
    elif kind == "TimestepEmbedding":
        module = timestep_embedding.TimestepEmbedding(rows, dim, options["channels"])
        tensors = {"in.ids": laid(draw, draw.integers(rows, shape[0], *draw.choice([[], [1]]))),
                   "in.image": draw.normal(shape[0], options["channels"], 3, 4)}  # fmt: skip
    else:
        own = position_embedding.MyPositionEncoding if kind == "MyPositionEncoding" else timestep_embedding.PositionalEncoding
        tensors = {"in.ids": laid(draw, draw.integers(rows, *shape))}
        return Case(options, tensors, {"out": own(rows, dim)(tensors["in.ids"].long()).detach()}, "bits")
    module.train(options["train"])
    image = tensors["in.image"].clone().requires_grad_() if "in.image" in tensors else None
    torch.manual_seed(options["seed"])
    ids = tensors["in.ids"].long()
    out = module(ids) if image is None else module.add_to(image, ids)
    tensors["cotangent"] = draw.normal(*out.shape)
    (out * tensors["cotangent"]).sum().backward()
    tensors |= {f"param.{k}": v.detach() for k, v in module.state_dict().items()}
    expected = {"out": out.detach()} | {f"grad.param.{k}": p.grad for k, p in module.named_parameters() if p.requires_grad}
    return Case(options, tensors, expected, "sums" if kind == "TimestepEmbedding" else "bits")


def positional(draw: Draw) -> Case:
    """PositionalEncoding with a preset: with its own table, and without one."""
    preset, storage = draw.choice(ROWS_FROM_ZERO), draw.randrange(3)
    if preset == "nemo_nmt" and storage == 1:  # a rescaled table has no exact rows
        storage = 0
    dim, length, offset = 2 * draw.randint(2, 40), draw.randint(1, 20), draw.choice([0, 0, 3, 40])
    rows, batch, batch_first, grow = draw.randint(1, 70), draw.randint(1, 4), draw.coin(), draw.coin(0.3)
    options = {"op": "positional_encoding", "preset": preset, "dim": dim, "max_len": rows, "storage": storage,
               "dropout": draw.choice([0.0, 0.2]), "batch_first": batch_first, "grow": grow, "offset": offset,
               "train": draw.coin(), "seed": draw.getrandbits(31)}  # fmt: skip
    shape = (batch, length, dim) if batch_first else (length, batch, dim)
    tensors = {"in.x": draw.normal(*shape)}
    recipe = rederived.recipe(preset)
    if storage == 1:  # of float64, rounded once
        recipe = replace(recipe, dtype="f64")
    whole = rederived.evaluate(recipe, 200, dim, rederived.defaults(preset))
    positions = torch.arange(offset, offset + length)
    if draw.coin(0.4):
        positions = draw.integers(rows, *draw.choice([(length,), shape[:2]]))
        tensors["in.position_ids"], options["offset"] = laid(draw, positions), 0
    added = whole[positions]
    if added.dim() == 2 and not batch_first:
        added = added.unsqueeze(1)
    x = tensors["in.x"].clone().requires_grad_()
    torch.manual_seed(options["seed"])
    out = F.dropout(x + added, options["dropout"], options["train"])
    tensors["cotangent"] = draw.normal(*out.shape)
    (out * tensors["cotangent"]).sum().backward()
    refused = ""
    if storage == 0 and not grow and int(positions.max()) >= rows:
        refused = "max_len" if "in.position_ids" not in tensors else "position"
    if storage == 1 and preset == "sam_lynn_evans":  # a cosine has another frequency than the sine before it
        refused = "one frequency for each sine and its cosine"
    if storage == 0:
        tensors["param.pe"] = whole[:rows].unsqueeze(0).contiguous()
    return Case(options, tensors, {"out": out.detach(), "grad.in.x": x.grad}, "exact" if storage == 1 else "bits",
                refused=refused)  # fmt: skip


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    count, failures = presets(draw, programs)
    more, wrong = run(programs, [draw.choice([embed, embed, notebook, positional])(draw) for _ in range(CASES)])
    return count + more, failures + wrong

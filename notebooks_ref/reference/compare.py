"""Compares a fresh set of fixtures with the committed one, by what each number promises.

Exactly equal: names, shapes, types, metadata (but the torch version), integers, masks, inputs
and trainable parameters. Within a bound, since other CPUs have other last bits of exp and pow:
* a table: 3 p 2^-24 + 1.2e-7 at position p;
* a sum with a table: the table's bound at its position, and one rounding of the result's own type;
* after a matrix product or an optimiser: SUM_BOUND, relative to the tensor's largest value.
"""

import warnings
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple

import torch
from safetensors import safe_open
from torch import Tensor

SUM_BOUND = 2e-5  # ten Adam steps on another CPU; a wrong formula is off by 1e-2 and more
MIXING = ("timestep_embedding", "adam_ten_steps")  # stems or cases with matrix products
EPS = {
    torch.float64: 2.0**-52,
    torch.float32: 2.0**-23,
    torch.bfloat16: 2.0**-7,
    torch.float16: 2.0**-10,
}


class Report(NamedTuple):
    compared: int
    bitwise: int
    differences: List[str]
    notes: List[str]


def read(path: Path) -> Tuple[Dict[str, Tensor], Dict[str, str]]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}


def table_bound(position: Tensor) -> Tensor:
    return 3 * position.to(torch.float64) * 2.0**-24 + 1.2e-7


def _is_table(name: str, stem: str) -> bool:
    if name.endswith((".pe", ".pos_enc", ".table")) or name == "param.pe":
        return True
    frozen = "param.embedding.weight", "param.pe.embedding.weight"
    return stem in ("position_embedding", "timestep_embedding") and name in frozen


def bound_of(name: str, value: Tensor, tensors: Dict[str, Tensor], meta: Dict[str, str]):
    """How far value may be off, as a tensor that broadcasts to it; None: not at all."""
    stem, case = meta.get("stem", "torchscript"), meta.get("case", "")
    if not value.is_floating_point():
        return None
    magnitude = value.to(torch.float64).abs()
    rounding = EPS[value.dtype] * magnitude
    if _is_table(name, stem):
        rows = torch.arange(value.size(-2)).unsqueeze(-1)  # (L, 1)
        return table_bound(rows) + (rounding if value.dtype.itemsize == 2 else 0)
    if name.startswith(("in.", "param.")) or name == "input":
        return None
    if stem in MIXING or case in MIXING:
        return SUM_BOUND * magnitude.max().clamp(min=1.0)
    if stem == "torchscript":
        return SUM_BOUND * magnitude.max().clamp(min=1.0)
    if name == "out.output" and stem == "position_embedding":
        return table_bound(tensors["in.position_ids"].unsqueeze(-1))
    adds_table = ("positional_encoding", "input_embedding", "token_and_position_embedding")
    if name == "out.output" and stem in adds_table:
        rows = torch.arange(value.size(-2)).unsqueeze(-1)
        return table_bound(rows) + rounding
    return None  # look-ups, scales and their gradients: the same operations on the same numbers


def compare_files(committed: Path, fresh: Path) -> Tuple[List[str], bool]:
    """What differs, and whether every number has the same bits."""
    old, old_meta = read(committed)
    new, new_meta = read(fresh)
    found: List[str] = []
    for key in sorted((old_meta.keys() | new_meta.keys()) - {"torch"}):
        if old_meta.get(key) != new_meta.get(key):
            found.append(f"metadata {key}: {old_meta.get(key)} -> {new_meta.get(key)}")
    for name in sorted(old.keys() ^ new.keys()):
        found.append(f"{name} is {'gone' if name in old else 'new'}")
    same_bits = True
    for name in sorted(old.keys() & new.keys()):
        a, b = old[name], new[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            found.append(f"{name}: {a.dtype} {tuple(a.shape)} -> {b.dtype} {tuple(b.shape)}")
        elif not torch.equal(a, b):
            same_bits = False
            bound = bound_of(name, a, old, old_meta)
            if bound is None:
                found.append(f"{name}: {int((a != b).sum())} of {a.numel()} values")
                continue
            off = (a.to(torch.float64) - b.to(torch.float64)).abs()
            if not bool((off <= bound).all()):
                worst = (off / bound).max().item()
                found.append(f"{name}: off by {off.max().item():.2e}, {worst:.1f} x the bound")
    return found, same_bits


def compare_scripts(committed: Path, fresh: Path) -> List[str]:
    """TorchScript files: class, and the parameters by key (the bytes depend on torch)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is; we need it
        old, new = torch.jit.load(committed), torch.jit.load(fresh)
    if old.original_name != new.original_name:
        return [f"class {old.original_name} -> {new.original_name}"]
    found = []
    a, b = old.state_dict(), new.state_dict()
    for key in sorted(a.keys() | b.keys()):
        if key not in a or key not in b:
            found.append(f"{key} is {'gone' if key in a else 'new'}")
        elif a[key].shape != b[key].shape:
            found.append(f"{key}: {tuple(a[key].shape)} -> {tuple(b[key].shape)}")
        elif not torch.allclose(a[key], b[key], rtol=0, atol=SUM_BOUND):
            found.append(f"{key}: other values")
    return found


PACKAGES = ("presets", "rotary", "vision")  # tools/zoo writes these, from the real packages


def _is_portable(path: Path) -> bool:
    """Whether it may be committed; the others hold on the machine that wrote them."""
    return read(path)[1].get("portable") != "false"


def compare_folders(committed: Path, fresh: Path) -> Report:
    differences: List[str] = []
    notes: List[str] = []
    versions = set()
    bitwise = 0
    names = {}
    for root in (committed, fresh):
        names[root] = {
            path.relative_to(root)
            for pattern in ("*.safetensors", "*.pt")
            for path in root.rglob(pattern)
            if path.relative_to(root).parts[0] not in PACKAGES
        }
    both = sorted(names[committed] & names[fresh])
    for name in sorted(names[committed] ^ names[fresh]):
        if name in names[fresh] and name.suffix == ".safetensors" and not _is_portable(fresh / name):
            continue
        where = "no notebook writes it" if name in names[committed] else "not committed"
        differences.append(f"{name}: {where}")
    for name in both:
        if name.suffix == ".pt":
            found, same_bits = compare_scripts(committed / name, fresh / name), True
        else:
            found, same_bits = compare_files(committed / name, fresh / name)
            versions.add(read(committed / name)[1].get("torch", ""))
        bitwise += same_bits and not found
        differences += [f"{name}: {line}" for line in found]
    here = torch.__version__.split("+")[0]
    others = sorted(versions - {here, ""})
    if others:
        notes.append(f"written by torch {', '.join(others)}, compared with {here}")
    return Report(len(both), bitwise, differences, notes)

"""Files written by torch.save (both formats), safetensors, TorchScript and torch.export: names, dtypes, shapes and
hashes from `posenc inspect`, and the output of `posenc convert`."""

import json
import sys
from collections import OrderedDict
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from harness import Case, Draw, Failure, Programs, judge

sys.path.insert(0, str(Path(__file__).parents[1] / "weights"))
from flat import flat, seen  # noqa: E402

FILES = 8
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
          torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32,
          torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]  # fmt: skip
IN_SAFETENSORS = [d for d in DTYPES if d != torch.complex128]
IN_SCRIPTS = DTYPES[:12]
WORDS = ["weight", "bias", "layers", "0", "17", "ünïcode", "with space", "a.b", "norm", "_x", "running_mean", "q-proj"]


def shape_of(draw: Draw) -> list[int]:
    return [draw.choice([0, 1, 1, 2, 3, 5, 8]) if draw.coin(0.9) else draw.randint(9, 40)
            for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4]))]  # fmt: skip


def plain(draw: Draw, dtype: torch.dtype, shape: list[int]) -> Tensor:
    count = 1
    for size in shape:
        count *= size
    if dtype == torch.bool:
        return draw.bits(0.5, *shape)
    if dtype.is_complex or dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        parts = draw.normal(*shape).double()
        return torch.complex(parts, draw.normal(*shape).double()).to(dtype) if dtype.is_complex else parts.to(dtype)
    raw = draw.integers(256, count * dtype.itemsize).to(torch.uint8)
    return raw.view(dtype).reshape(shape)


def strided(draw: Draw, x: Tensor, lazy: bool) -> Tensor:
    """Returns the tensor or a view: transposed, sliced, expanded, a single element, conjugated."""
    for _ in range(draw.choice([0, 0, 1, 2])):
        kind = draw.randrange(5)
        if kind == 0 and x.dim() > 1:
            x = x.transpose(draw.randrange(x.dim()), draw.randrange(x.dim()))
        elif kind == 1 and x.dim() and x.size(0):
            start = draw.randrange(x.size(0))
            x = x[start :: draw.randint(1, 3)]
        elif kind == 2 and x.dim() and x.size(0):
            x = x[draw.randrange(x.size(0))]
        elif kind == 3:
            x = x.unsqueeze(0).expand(draw.randint(1, 3), *x.shape)
        elif lazy and x.is_complex():
            x = x.conj() if draw.coin() else x.conj().imag if x.dtype == torch.complex64 else x
    return x


def names_of(draw: Draw, count: int) -> list[str]:
    names = set()
    while len(names) < count:
        names.add(".".join(draw.choices(WORDS, k=draw.randint(1, 4))) + (str(len(names)) if draw.coin(0.2) else ""))
    return sorted(names, key=lambda _: draw.random())


def tensors_of(draw: Draw, dtypes: list, lazy: bool = True, views: bool = True) -> OrderedDict:
    found: OrderedDict = OrderedDict()
    storage = []
    for name in names_of(draw, draw.choice([0, 1, 3, 8, 20])):
        if storage and views and draw.coin(0.3):  # a tie, or another view of an existing tensor
            x = draw.choice(storage)
        else:
            x = plain(draw, draw.choice(dtypes), shape_of(draw))
            storage.append(x)
        x = strided(draw, x, lazy) if views else x
        if draw.coin(0.2) and x.is_floating_point():
            x = nn.Parameter(x.detach(), draw.coin())
        found[name] = x
    return found


def nested(draw: Draw, tensors: OrderedDict) -> object:
    """A training checkpoint around the tensors, with other values, lists and dicts."""
    whole: dict = {"epoch": draw.randint(0, 10**12), "loss": draw.random(), "name": "a run", "none": None}
    whole["history"] = [draw.random() for _ in range(draw.randint(0, 30))]
    whole[draw.choice(["model", 3, "state_dict"])] = tensors
    whole["more"] = [(draw.normal(2), {"deep": [draw.integers(9, 2, 2)]}), draw.coin(), -draw.getrandbits(70)]
    return whole


class Holder(nn.Module):
    """A random tree of parameters and buffers, and a forward that uses none of them."""

    def __init__(self, draw: Draw, dtypes: list, depth: int = 0):
        super().__init__()
        for number in range(draw.randint(1, 4)):
            x = plain(draw, draw.choice(dtypes), shape_of(draw))
            if x.is_floating_point() and draw.coin():
                self.register_parameter(f"p{number}", nn.Parameter(x, draw.coin()))
            else:
                self.register_buffer(f"b{number}", x)
        for number in range(draw.randint(0, 2) if depth < 3 else 0):
            self.add_module(f"m{number}", Holder(draw, dtypes, depth + 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def write(draw: Draw, path: Path) -> tuple[str, list]:
    """Writes a file; returns its format and its tensors."""
    kind = draw.choice(["zip", "zip", "nested", "legacy", "safetensors", "script", "trace", "export"])
    if kind in ("zip", "legacy", "nested"):
        tensors = tensors_of(draw, DTYPES, lazy=True)
        value = nested(draw, tensors) if kind == "nested" or draw.coin(0.2) else tensors
        zipped = kind != "legacy"
        torch.save(value, path, _use_new_zipfile_serialization=zipped, pickle_protocol=draw.randint(2, 5))
        return kind, list(flat(value))
    if kind == "safetensors":
        tensors = OrderedDict((k, v.detach().contiguous().clone()) for k, v in tensors_of(draw, IN_SAFETENSORS, False).items())
        save_file(tensors, path, {"made": "here", "ü": "ü"} if draw.coin() else None)
        return kind, list(tensors.items())
    module = Holder(draw, IN_SCRIPTS if kind != "export" else DTYPES[:10]).eval()
    if kind == "export":
        with path.open("wb") as file:  # a path would have to end in .pt2
            torch.export.save(torch.export.export(module, (torch.ones(2),)), file)
    else:
        (torch.jit.script(module) if kind == "script" else torch.jit.trace(module, torch.ones(2))).save(str(path))
    return kind, list(module.state_dict().items())


def check(draw: Draw, programs: Programs, number: int) -> list[str]:
    path = programs.folder / f"file{number}{draw.choice(['.pt', '.bin', '.pt2', '.safetensors', ''])}"
    kind, tensors = write(draw, path)
    expected = sorted((seen(*one) for one in tensors), key=lambda one: one["name"])
    done = programs.posenc("inspect", "--json", path)
    if done.returncode:
        return [f"{kind} {path}: inspect: {done.stderr.strip()}"]
    ours = sorted(json.loads(done.stdout)["tensors"], key=lambda one: one["name"])
    if ours != expected:
        wrong = [(a, b) for a, b in zip(ours, expected) if a != b][:2]
        return [f"{kind} {path}: {len(ours)} tensors for {len(expected)}: {wrong}"]
    out = programs.folder / f"out{number}.safetensors"
    done = programs.posenc("convert", path, out)
    if not expected:  # nothing that could replace the file
        return [] if done.returncode == 1 and not out.exists() else [f"{kind} {path}: converted without a tensor"]
    by_name = {one["name"]: one for one in expected}
    if any(x.dtype == torch.complex128 for _, x in tensors):  # not in safetensors
        return [] if "has dtype complex128" in done.stderr else [f"{kind} {path}: complex128 was converted"]
    if done.returncode:
        return [f"{kind} {path}: convert: {done.stderr.strip()}"]
    back = {name: seen(name, x) for name, x in load_file(out).items()}
    if back != by_name:
        return [f"{kind} {path}: converted, Python reads something else: "
                f"{[n for n in by_name if back.get(n) != by_name[n]][:3]}, {sorted(set(back) - set(by_name))[:3]}"]  # fmt: skip
    return []


def saved(programs: Programs, files: list[Path]) -> list[Failure]:
    """Files that posenc writes from the tensors that it reads in `files`, read back with torch.load."""
    cases = [Case({"op": "save", "from": str(path), "to": f"{path}.saved.pt"}, {}, {}) for path in files]
    failures = judge(cases, programs.compute(cases))
    if failures:
        return failures
    for path in files:
        done = programs.posenc("inspect", "--json", path)
        expected = sorted(json.loads(done.stdout)["tensors"], key=lambda one: one["name"])
        ours = torch.load(f"{path}.saved.pt", weights_only=True)
        if sorted((seen(*one) for one in ours.items()), key=lambda one: one["name"]) != expected:
            failures.append(Failure(str(path), "saved by posenc, torch.load reads something else"))
    return failures


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    failures = []
    for number in range(FILES):
        failures += [Failure(f"file {number}", why) for why in check(draw, programs, number)]
    files = sorted(path for path in programs.folder.glob("file*") if path.is_file())
    return FILES, failures + saved(programs, files)

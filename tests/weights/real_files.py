"""Writes small real weights files in every readable format, with PyTorch and safetensors.

    real_files.py FOLDER    FOLDER/<name>, and FOLDER/expected.json: what Python reads from each, as
                            {"<name>": [{"name", "dtype", "shape", "sha256"}]}

Tests read them, mutate them at random, and seed the fuzzers with them.
"""

import json
import sys
import warnings
from collections import OrderedDict
from pathlib import Path

import torch
from flat import flat, seen
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
torch.manual_seed(7)

REALS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32,
            torch.uint64]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu, torch.float8_e4m3fnuz,
          torch.float8_e5m2fnuz]
COMPLEX = [torch.complex64, torch.complex128, torch.complex32]


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def every_dtype(others=()):
    noise = torch.randint(0, 120, (2, 3))
    tensors = {name_of(dtype): noise.to(dtype) for dtype in [*REALS, *INTEGERS, *EIGHTS[:2], *others]}
    tensors.update({name_of(dtype): (noise % 50 + 1).to(torch.uint8).view(dtype) for dtype in EIGHTS[2:]})
    tensors["bool"] = noise % 2 == 0
    tensors["complex64"] = torch.randn(3, dtype=torch.complex64)
    return tensors


def strided():
    base = torch.randn(6, 8)
    waves = torch.randn(4, 3, dtype=torch.complex64)
    return OrderedDict(base=base, tied=base, transposed=base.t(), part=base[2:5, 1::3], expanded=base[:1].expand(4, 8),
                       row=base[3], scalar=torch.tensor(2.5), none=torch.empty(3, 0), permuted=torch.randn(2, 3, 4).permute(2, 0, 1),
                       waves=waves, conj=waves.conj(), adjoint=waves.mH, imaginary=torch.randn(3, dtype=torch.complex64).conj().imag)


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.second = torch.nn.Linear(4, 4).half()
        self.tied = self.first
        self.register_buffer("table", torch.arange(6.0).reshape(2, 3))

    def forward(self, x):
        return self.norm(self.first(x)).sum() + self.table.sum() + self.second.weight.float().sum()


def training():
    """A checkpoint as written by training loops."""
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.25,
            "name": "a run", "done": False, "best": None, "big": 1 << 40, "history": [torch.randn(2), (1, torch.ones(1))]}


class Writer:
    def __init__(self, folder):
        self.folder, self.expected = Path(folder), {}
        self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, name):
        return str(self.folder / name)

    def expect(self, name, tensors):
        self.expected[name] = [seen(*one) for one in flat(tensors)]

    def safetensors(self, name, tensors, **metadata):
        save_file({key: value.contiguous() for key, value in tensors.items()}, self.path(name), metadata or None)
        self.expect(name, tensors)

    def torch_save(self, name, value, tensors=None, **options):
        torch.save(value, self.path(name), **options)
        self.expect(name, value if tensors is None else tensors)

    def index(self, name, shards):
        """`shards` maps file names to tensors; the caller writes them."""
        weight_map = {key: file for file, tensors in shards.items() for key in tensors}
        (self.folder / name).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}, indent=2))
        self.expect(name, {key: value for tensors in shards.values() for key, value in tensors.items()})


def write(folder):
    out = Writer(folder)
    out.safetensors("dtypes.safetensors", every_dtype(), made="here")
    out.safetensors("empty.safetensors", {})
    halves = {"a.safetensors": {"one": torch.randn(3), "two": torch.randn(2, 2)}, "b.safetensors": {"three": torch.ones(1)}}
    for name, tensors in halves.items():
        out.safetensors(name, tensors, format="pt")
    out.index("model.safetensors.index.json", halves)

    for protocol in range(2, 6):
        out.torch_save(f"dtypes_{protocol}.pt", every_dtype(COMPLEX[1:]), pickle_protocol=protocol)
    out.torch_save("strided.pt", strided())
    out.torch_save("state_dict.pt", Block().state_dict())
    out.torch_save("training.pt", training())
    out.torch_save("parameter.pt", {"p": torch.nn.Parameter(torch.randn(2)), "frozen": torch.nn.Parameter(torch.ones(1), False)})
    bins = {"c.bin": {"one": torch.randn(3)}, "d.bin": {"two": torch.randn(2, 2)}}
    for name, tensors in bins.items():
        out.torch_save(name, tensors)
    out.index("pytorch_model.bin.index.json", bins)

    old = {"_use_new_zipfile_serialization": False}
    out.torch_save("legacy_dtypes.pt", every_dtype(), **old)
    out.torch_save("legacy_strided.pt", strided(), **old)
    out.torch_save("legacy_training.pt", training(), **old)

    block = Block().eval()
    scripted = torch.jit.script(block)
    traced = torch.jit.trace(block, torch.randn(2, 3), check_trace=False)
    for name, module in {"script.pt": scripted, "trace.pt": traced}.items():
        module.save(out.path(name))
        out.expect(name, torch.jit.load(out.path(name)).state_dict())
    program = torch.export.export(block, (torch.randn(2, 3),))
    torch.export.save(program, out.path("export.pt2"))
    out.expect("export.pt2", torch.export.load(out.path("export.pt2")).state_dict)
    (out.folder / "expected.json").write_text(json.dumps(out.expected))


if __name__ == "__main__":
    write(sys.argv[1])

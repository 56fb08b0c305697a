"""Writes real files of every kind that PyTorch has into the working folder. Next to each FILE is FILE.expected, what
Python reads from it: a line `name dtype sizes bytes` for each tensor, with contiguous bytes in hexadecimal, and a line
`opaque name` for each object that is not a dense tensor; sorted.
"""

import argparse
import collections
import io
import pathlib
import pickle
import sys
import types
import zipfile

import torch
import torch.distributed.checkpoint
from flat import flat, raw

DTYPES = [
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128,
    torch.bool, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]


class Marked(torch.Tensor):
    """A subclass, whose bytes may mean anything."""


def is_opaque(value):
    if isinstance(value, torch.Tensor):
        return value.layout != torch.strided or value.is_quantized or isinstance(value, Marked)
    return isinstance(value, argparse.Namespace)


def expect(file, value):
    lines = []
    for name, tensor in flat(value, is_opaque=is_opaque):
        if tensor is None:
            lines.append(f"opaque {name}")
        else:
            sizes = ",".join(map(str, tensor.shape)) or "-"
            lines.append(f"{name} {str(tensor.dtype)[6:]} {sizes} {raw(tensor).hex() or '-'}")
    pathlib.Path(file + ".expected").write_text("".join(line + "\n" for line in sorted(lines)))


def save(file, value, **options):
    torch.save(value, file, **options)
    expect(file, torch.load(file, weights_only=False))


def random(dtype, *sizes):
    """Random bytes with that dtype, but no NaN, because conversions may change NaNs."""
    torch.manual_seed(len(sizes) + sum(sizes))
    if dtype is torch.bool:
        return torch.rand(sizes) < 0.5
    if dtype.is_complex:
        wide = torch.complex(torch.randn(sizes), torch.randn(sizes))
    else:
        wide = torch.randn(sizes).abs() if not dtype.is_signed else torch.randn(sizes) * 3
    return wide.to(dtype)


def views():
    base = torch.arange(24, dtype=torch.float32)
    matrix = base.view(4, 6)
    other = torch.randn(5)
    complex_base = torch.complex(torch.randn(3, 4), torch.randn(3, 4))
    return collections.OrderedDict([
        ("whole", base), ("tied", base), ("matrix", matrix), ("transposed", matrix.t()), ("offset", base[5:9]),
        ("strided", matrix[1:, ::2]), ("expanded", other.expand(3, 5)), ("expanded.scalar", other[2].expand(2, 2)),
        ("empty", torch.empty(0)), ("empty.shape", torch.empty(3, 0, 2)), ("empty.slice", base[24:]),
        ("scalar", torch.tensor(2.5)), ("conj", complex_base.conj()), ("conj.t", complex_base.t().conj()),
        ("neg", torch._neg_view(other)), ("imag", complex_base.clone().conj().imag), ("both", torch._neg_view(complex_base.conj())),
        ("double.conj", complex_base.to(torch.complex128).conj()), ("half.conj", complex_base.to(torch.complex32).conj()),
    ])


def nested():
    weight = torch.nn.Parameter(torch.randn(2, 3))
    frozen = torch.nn.Parameter(torch.randn(3), requires_grad=False)
    attributed = torch.nn.Parameter(torch.randn(2))
    attributed.note = "kept"
    buffer = torch.nn.Buffer(torch.randn(2))
    optimiser = torch.optim.Adam([weight], lr=0.1)
    weight.sum().backward()
    optimiser.step()
    return {
        "model": collections.OrderedDict([("a.weight", weight), ("b", frozen), ("c", attributed), ("d", buffer)]),
        "optimizer": optimiser.state_dict(),
        "list": [torch.ones(2), (torch.zeros(1), [torch.ones(1, 1)])],
        7: {-3: torch.ones(1), True: torch.ones(2)},
        "defaults": collections.defaultdict(list, {"x": torch.ones(1)}),
        "counter": collections.Counter("hello"),
        "epoch": 3, "big": 2**40, "bigger": 2**63 + 1, "lr": 1e-5, "text": "a\nb é", "none": None, "flag": True,
        "size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.float16, "bytes": b"\0\1",
        "namespace": argparse.Namespace(weight=torch.ones(2)), "set": {1, 2},
        "subclass": torch.ones(2).as_subclass(Marked), "sparse": torch.eye(2).to_sparse(), "csr": torch.eye(2).to_sparse_csr(),
        "quantised": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
    }


class Layer(torch.nn.Module):
    def __init__(self, tied=None):
        super().__init__()
        self.weight = tied if tied is not None else torch.nn.Parameter(torch.randn(4, 4))
        self.register_buffer("scale", torch.randn(4))
        self.register_buffer("hidden", torch.randn(4), persistent=False)
        self.register_buffer("missing", None)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight) * self.scale + self.hidden


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Layer()
        self.second = Layer(self.first.weight)
        self.stack = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
        self.table = torch.nn.Embedding(5, 4)
        self.half_scale = torch.nn.Parameter(torch.randn(4).to(torch.bfloat16).float().half())
        self.plain = torch.ones(4)
        self.factor = 2.0
        self.names = {"a": 1}

    def forward(self, x):
        return self.stack(self.second(self.first(x))) + self.plain * self.factor + self.table.weight[0]


class Dtypes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for dtype in DTYPES:
            self.register_buffer("of_" + str(dtype)[6:], random(dtype, 3, 5))
        waves = torch.complex(torch.randn(3, 4), torch.randn(3, 4))
        self.register_buffer("waves_conj", waves.conj())
        self.register_buffer("neg", torch._neg_view(torch.randn(5)))
        self.register_buffer("both", torch._neg_view(waves.conj()))

    def forward(self, x):
        return x


def script_files():
    torch.jit.script(Dtypes()).save("script_dtypes.pt")
    expect("script_dtypes.pt", torch.jit.load("script_dtypes.pt").state_dict())
    script = torch.jit.script(Net())
    script.save("script.pt")
    script._save_for_lite_interpreter("mobile.ptl")
    torch.jit.trace(Net(), torch.ones(1, 4)).save("trace.pt")
    for file in ("script.pt", "mobile.ptl", "trace.pt"):
        state = dict(torch.jit.load(file if file != "mobile.ptl" else "script.pt").state_dict())
        state["plain"] = argparse.Namespace()  # an attribute that Python does not show: opaque
        if file == "trace.pt":
            del state["plain"]  # a constant in the code
        expect(file, state)
    torch.jit.freeze(script.eval()).save("frozen.pt")


class ViewNet(torch.nn.Module):
    """Weights that are views of one storage."""

    def __init__(self):
        super().__init__()
        base = torch.randn(40)
        self.a = torch.nn.Parameter(base.as_strided((3, 4), (4, 1), 4))
        self.b = torch.nn.Parameter(base.as_strided((2, 3), (12, 3), 1))
        self.register_buffer("c", torch.randn(3).expand(2, 3))
        self.register_buffer("d", torch.arange(4))
        self.register_buffer("constant", torch.ones(3), persistent=False)
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x) @ self.a + (self.b.sum() + self.c.sum() + self.d.sum()) * self.constant.sum()


def export_files():
    for name, module, size in (("export.pt2", ViewNet(), 3), ("export_half.pt2", ViewNet().half(), 3)):
        dtype = next(module.parameters()).dtype
        program = torch.export.export(module.eval(), (torch.ones(1, size, dtype=dtype),))
        torch.export.save(program, name)
        expect(name, dict(torch.export.load(name).state_dict))
    # As written by torch.export before it had one record per weight; it still reads this.
    state = io.BytesIO()
    torch.save(torch.export.load("export.pt2").state_dict, state)
    repack("export.pt2", "export_inner.pt2", "export_inner/", lambda name, data: None if "data/weights/" in name else data,
           more={"data/weights/model.pt": state.getvalue()})
    expect("export_inner.pt2", dict(torch.export.load("export_inner.pt2").state_dict))
    repack("export.pt2", "compiled.pt2", "compiled/", lambda name, data: None if "data/weights/" in name else data,
           more={"data/aotinductor/model/model.so": b"\x7fELF"})


def repack(source, target, root, change=lambda name, data: data, method=zipfile.ZIP_STORED, more={}):
    """Copies the records to another root with Python's zipfile; `change` alters or drops them, `more` adds others."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for name in old.namelist():
            record = name.split("/", 1)[1]
            data = change(record, old.read(name))
            if data is not None:
                new.writestr(root + record, data)
        for name, data in more.items():
            new.writestr(root + name, data)


class Python2Dict:
    """Pickles like Python 2's OrderedDict, with its pairs as the argument."""

    def __init__(self, items):
        self.items = items

    def __reduce__(self):
        return collections.OrderedDict, ([list(item) for item in self.items.items()],)


class OldTensor:
    """Pickles like a tensor of PyTorch 0.1: an empty one of its class, and a state."""

    def __init__(self, tensor, cls=torch.Tensor):
        self.tensor, self.cls = tensor, cls

    def __reduce__(self):
        tensor = self.tensor
        return self.cls, (), (tensor.storage(), tensor.storage_offset(), tuple(tensor.size()), tensor.stride())


class StateDict(collections.OrderedDict):
    """As some training frameworks have their own."""


class Config(dict):
    """With attributes besides its items."""


class Weights(list):
    pass


Pair = collections.namedtuple("Pair", "weight bias")


def subclasses():
    state = StateDict([("weight", torch.randn(2, 3)), ("bias", torch.randn(2))])
    config = Config({"x": torch.ones(1), "nested": Config({"y": torch.ones(2)}), "rate": 0.5})
    config.note = "kept"
    return {"epoch": 3, "model": state, "config": config, "list": Weights([torch.ones(1), torch.ones(2)]),
            "deque": collections.deque([torch.ones(3)], maxlen=4), "steps": torch.ones(1)}


def old_tensors():
    base = torch.arange(12.0).view(3, 4)
    return collections.OrderedDict([
        ("w", OldTensor(base)), ("transposed", OldTensor(base.t())), ("of_class", OldTensor(base[1:, ::2], torch.FloatTensor)),
        ("ids", OldTensor(torch.arange(5), torch.LongTensor)), ("new", torch.ones(2)),
    ])


def partly_readable_files():
    """Files in which one or more entries are not readable tensors, and the others are."""
    packed = torch.zeros(2, dtype=torch.uint8).view(torch.bits1x8)
    torch.save({"w": packed, "b": torch.ones(2)}, "bits.pt")
    weights = {"pair": Pair(torch.ones(2), torch.zeros(2)), "epoch": 3, "b": torch.ones(2)}
    torch.save(weights, "namedtuple.pt")
    torch.save({"args": argparse.Namespace(weight=torch.ones(2))}, "namespace.pt")
    torch.save({"a.b": torch.ones(1), "c": torch.ones(2), "a": {"b": torch.ones(3)}}, "clash.pt")
    torch.save({}, "empty.pt")
    whole = torch.nn.Sequential(torch.nn.Linear(2, 3))
    torch.save({"model": whole, "epoch": 3}, "module.pt")
    torch.save({"model": whole, "epoch": 3}, "legacy_module.pt", _use_new_zipfile_serialization=False)


def torch_files():
    for protocol in (2, 3, 4, 5):
        save(f"protocol{protocol}.pt", nested(), pickle_protocol=protocol)
        save(f"legacy{protocol}.pt", nested(), pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    every = {str(dtype)[6:]: random(dtype, 3, 5) for dtype in DTYPES}
    pairs = torch.randint(256, (3, 5), dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    every.update({"float4_e2m1fn_x2": pairs, "float4_e2m1fn_x2.t": pairs.t(), "float4_e2m1fn_x2.part": pairs[1:, ::2]})
    save("dtypes.pt", every)
    save("views.pt", views())
    for file, value in (("legacy_dtypes.pt", every), ("legacy_views.pt", views())):
        # Python cannot read the newest dtypes from the legacy format.
        value = {name: tensor for name, tensor in value.items() if tensor.dtype not in torch.storage._new_dtypes()}
        save(file, value, _use_new_zipfile_serialization=False)
    save("tensor.pt", torch.randn(3))
    save("parameter.pt", torch.nn.Parameter(torch.randn(3)))
    save("list.pt", [torch.randn(3), torch.randn(2)])
    save("state_dict.pt", Net().state_dict())
    save("python2.pt", Python2Dict({"a.weight": torch.ones(2), "b": torch.zeros(3)}))
    for protocol in (2, 3, 4, 5):
        save(f"subclasses{protocol}.pt", subclasses(), pickle_protocol=protocol)
        save(f"legacy_subclasses{protocol}.pt", subclasses(), pickle_protocol=protocol, _use_new_zipfile_serialization=False)
        keys = {b"aa": torch.ones(1), b"bb": torch.ones(2), b"'\0\n\xff\\": torch.ones(3), b'"\'': torch.ones(4)}
        save(f"bytes_keys{protocol}.pt", keys, pickle_protocol=protocol)
    save("subclass.pt", subclasses()["model"])
    save("old_tensors.pt", old_tensors())
    save("legacy_old_tensors.pt", old_tensors(), _use_new_zipfile_serialization=False)
    save("history.pt", {"history": [{"loss": 0.5 * i} for i in range(150)] + [{"w": torch.ones(2)}], "epoch": 3})
    save("many.pt", {f"layer.{i}": torch.full((1 + i % 7,), i) for i in range(3000)})
    save("legacy_long.pt", {"text": "x" * 3_000_000, "weight": torch.ones(2)}, _use_new_zipfile_serialization=False)
    save("with.dots.in.name", Net().state_dict())
    old = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    save("no_crc.pt", Net().state_dict())
    torch.serialization.set_crc32_options(old)
    from torch.utils.serialization import config
    config.save.storage_alignment = 4096
    save("aligned.pt", Net().state_dict())
    config.save.storage_alignment = 64
    repack("state_dict.pt", "old.pt", "archive/", lambda name, data: None if name == "byteorder" else data)
    expect("old.pt", torch.load("old.pt"))


def refused_files():
    """Files that must be rejected; they have no expected contents."""
    this = types.ModuleType("vision_models")
    net = type("ResNet", (torch.nn.Module,), {"__module__": "vision_models"})
    this.ResNet = net
    sys.modules["vision_models"] = this
    torch.save(net(), "whole.pt")
    torch.save(net(), "legacy_whole.pt", _use_new_zipfile_serialization=False)
    repack("state_dict.pt", "deflated.pt", "state_dict/", method=zipfile.ZIP_DEFLATED)
    repack("state_dict.pt", "big_endian.pt", "archive/", lambda name, data: b"big" if name == "byteorder" else data)
    torch.distributed.checkpoint.save({"w": torch.randn(3), "b": torch.randn(2)}, checkpoint_id="shards", no_dist=True)
    legacy = pathlib.Path("legacy2.pt").read_bytes()
    pathlib.Path("legacy_big_endian.pt").write_bytes(legacy.replace(b"little_endianq\2\x88", b"little_endianq\2\x89"))


torch_files()
script_files()
export_files()
partly_readable_files()
refused_files()

"""The Python peer of load_benchmark.cpp: writes the files, then answers each line of stdin, the name of a function
below, with the seconds that it took. `load_peers.py FOLDER`."""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

torch.set_grad_enabled(False)
folder = Path(sys.argv[1])


class Model(nn.Module):
    def __init__(self, count, size):
        super().__init__()
        for i in range(count):
            self.register_parameter(f"w{i}", nn.Parameter(torch.zeros(size, size)))

    def forward(self, x):
        return x + self.w0


def save(model, name):
    for parameter in model.parameters():
        parameter.uniform_()
    torch.jit.save(torch.jit.script(model), folder / f"{name}.script.pt")
    return model


def torch_load_large():
    large.load_state_dict(torch.load(folder / "large.pt", weights_only=True))


def load_file_large():
    large.load_state_dict(load_file(folder / "large.safetensors"))


def torch_load_small():
    torch.load(folder / "small.pt", weights_only=True)


def load_file_small():
    load_file(folder / "small.safetensors")


large = save(Model(64, 2048), "large")  # 1 GiB
save(nn.Sequential(*(nn.Linear(64, 64) for _ in range(5))), "ten")
small = {f"layers.{i // 20}.block.weight_{i}": torch.rand(8) for i in range(20_000)}
for name, tensors in (("large", large.state_dict()), ("small", small)):
    torch.save(tensors, folder / f"{name}.pt")
    save_file(tensors, folder / f"{name}.safetensors")
print("ready", flush=True)
for line in sys.stdin:
    work = globals()[line.strip()]
    start = time.perf_counter()
    work()
    print(time.perf_counter() - start, flush=True)

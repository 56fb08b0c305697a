"""The Python peer of transformer_benchmark.cpp: torch.nn.TransformerEncoder in eval mode. Writes encoder.safetensors
(param.*, in.BxL, out.BxL), then answers each line of stdin, such as `encode 8x128 2` (two threads), with the seconds of
one forward. `transformer_peers.py FOLDER`."""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

torch.set_grad_enabled(False)
torch.manual_seed(1)
layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
encoder = nn.TransformerEncoder(layer, 6).eval()
inputs = {f"{b}x{n}": torch.randn(b, n, 512) for b, n in ((1, 16), (1, 128), (8, 128))}
tensors = {f"param.{key}": value for key, value in encoder.state_dict().items()}
tensors.update({f"in.{key}": value for key, value in inputs.items()})
tensors.update({f"out.{key}": encoder(value) for key, value in inputs.items()})
save_file(tensors, Path(sys.argv[1]) / "encoder.safetensors")
print("ready", flush=True)
for line in sys.stdin:
    _, shape, threads = line.split()
    torch.set_num_threads(int(threads))
    x = inputs[shape]
    start = time.perf_counter()
    encoder(x)
    print(time.perf_counter() - start, flush=True)

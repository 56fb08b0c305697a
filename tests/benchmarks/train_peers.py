"""What train_benchmark.cpp is held against: the Transformer of notebook 03 with torch.nn's layers, in
Python, with fused Adam. Writes model.safetensors (param.*, src, tgt, labels, and `loss` in eval
mode), then answers each line of stdin, a number of threads, with the seconds of one training step.
`train_peers.py FOLDER`."""

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks_ref"))
from reference.transformer import Transformer, causal  # noqa: E402

VOCABULARY, BATCH, LENGTH = 32000, 16, 64

torch.manual_seed(1)
model = Transformer(VOCABULARY, VOCABULARY, max_seq_length=LENGTH, tying="three_way")
ids = {name: torch.randint(1, VOCABULARY, (BATCH, LENGTH)) for name in ("src", "tgt", "labels")}
mask = causal(LENGTH)


def loss() -> torch.Tensor:
    logits = model(ids["src"], ids["tgt"], None, mask)
    return F.cross_entropy(logits.flatten(0, 1), ids["labels"].flatten(), label_smoothing=0.1)


with torch.no_grad():
    first = model.eval() and loss()
tensors = {f"param.{key}": value.clone() for key, value in model.state_dict().items()}
save_file({**tensors, **ids, "loss": first}, Path(sys.argv[1]) / "model.safetensors")
model.train()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
print("ready", flush=True)
for line in sys.stdin:
    torch.set_num_threads(int(line))
    start = time.perf_counter()
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()
    print(time.perf_counter() - start, flush=True)

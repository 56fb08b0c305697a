#!/usr/bin/env python3
"""The second step of the demo, on Python's side: a module of the user's own, its checkpoint, and what it computes.

module.py OUT    writes OUT/block.pt, a checkpoint as PyTorch's tutorial saves it, and OUT/block_sample.safetensors
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS = 64, 4


class Block(nn.Module):
    """A pre-norm layer of a Transformer, as many people have written their own."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.merge = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        q, k, v = (f(y).unflatten(2, (HEADS, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        x = x + self.merge(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


def main() -> None:
    out = Path(sys.argv[1])
    torch.manual_seed(0)
    torch.set_num_threads(1)  # as in C++: the threads decide in which order some sums are taken
    block = Block().eval()
    for parameter in block.parameters():
        nn.init.normal_(parameter, 0.0, 0.2)
    x = torch.randn(8, 32, WIDTH)
    with torch.no_grad():
        y = block(x)
    torch.save({"epoch": 3, "model_state_dict": block.state_dict()}, out / "block.pt")
    save_file({"x": x, "y": y}, out / "block_sample.safetensors", {"torch": torch.__version__.partition("+")[0]})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes golden.safetensors: what the class in Python computes. golden.py, which has save_golden(), is posenc's tools/golden.py.

make_golden.py [FILE]
"""

import sys

import torch

from golden import save_golden


class Attention(torch.nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x, mask):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # noqa: E731
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.o(y.transpose(1, 2).flatten(2))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 16)
        self.attn = Attention(16, heads=4)
        self.out = torch.nn.Linear(16, 5)

    def forward(self, ids, mask):
        x = self.embed(ids)
        return self.out(x + self.attn(x, mask))


torch.manual_seed(0)
ids = torch.tensor([[5, 6, 7, 8], [9, 5, 0, 0]])
save_golden(sys.argv[1] if len(sys.argv) > 1 else "golden.safetensors", Tagger(), ids, mask=ids != 0)

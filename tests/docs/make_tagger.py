#!/usr/bin/env python3
"""tagger.pt, the checkpoint that docs/from_torchscript.md loads: tests/docs/make_tagger.py FILE"""

import sys
from pathlib import Path

import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(64, 64) for _ in range(4))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(1000, 64)
        self.attn = Attention()
        self.out = torch.nn.Linear(64, 7)


Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
torch.manual_seed(0)
torch.save({"model_state_dict": Tagger().state_dict()}, sys.argv[1])

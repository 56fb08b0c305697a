"""The Python peer of train_step_benchmark.cpp: the notebook's Transformer in eager mode with fused Adam. Answers `make
MODEL` by writing MODEL.safetensors (param.*, src, tgt, loss without dropout), and `step MODEL THREADS` by running a
training step, each with the seconds that it took. `train_step_peers.py FOLDER`."""

import sys
import time
from functools import lru_cache
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks_ref"))
from reference.transformer import Transformer, causal  # noqa: E402

# vocabularies, width, heads, layers, d_ff, max_len, dropout; keyword arguments; rows, source and target tokens
MODELS = {
    "task": ((27, 42, 96, 4, 2, 2, 384, 64, 0.0), {"norm_first": True}, (256, 7, 8)),
    "base": ((32000, 32000, 512, 8, 6, 6, 2048, 64, 0.1), {"tying": "three_way"}, (16, 64, 65)),
}


class Step:
    def __init__(self, name: str):
        sizes, keywords, (rows, src, tgt) = MODELS[name]
        torch.manual_seed(1)
        self.model = Transformer(*sizes, **keywords)
        self.src = torch.randint(1, sizes[0], (rows, src))
        self.tgt = torch.randint(1, sizes[1], (rows, tgt))
        self.mask = causal(tgt - 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def loss(self) -> torch.Tensor:
        logits = self.model(self.src, self.tgt[:, :-1], tgt_mask=self.mask)
        return F.cross_entropy(logits.flatten(0, 1), self.tgt[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)

    def run(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def save(self, path: Path) -> None:
        self.model.eval()
        with torch.no_grad():
            tensors = {"src": self.src, "tgt": self.tgt, "loss": self.loss()}
        self.model.train()
        tensors |= {f"param.{key}": value.clone() for key, value in self.model.state_dict().items()}
        save_file(tensors, path)


@lru_cache(None)
def step_of(name: str) -> Step:
    return Step(name)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        act, name, *threads = line.split()
        start = time.perf_counter()
        if act == "make":
            step_of(name).save(Path(sys.argv[1]) / f"{name}.safetensors")
        else:
            torch.set_num_threads(int(threads[0]))
            step_of(name).run()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()

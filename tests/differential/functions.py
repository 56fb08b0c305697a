"""The loss, dropout's bits and schedules, against torch.nn.functional and the formulas in their papers."""

import math

import torch
from torch.nn import functional as F
from transformers.loss.loss_utils import ForCausalLMLoss

from harness import DTYPES, Case, Draw, Failure, Programs, run

CASES = 20


def loss(draw: Draw) -> Case:
    name = draw.choice(["float32", "float32", "float64", "bfloat16", "float16"])
    shape = [draw.randint(1, 6) for _ in range(draw.randint(0, 3))]
    vocab = draw.choice([1, 2, 3, 16, 17, 50, 333])
    logits = (draw.normal(*shape, vocab) * draw.choice([0.1, 3.0, 30.0])).to(DTYPES[name])
    targets = draw.integers(vocab, *shape)
    options = {"op": "loss", "label_smoothing": draw.choice([0.0, 0.1, 1.0, draw.random()]),
               "ignore_index": draw.choice([-100, 0, vocab - 1]), "gain": draw.choice([1.0, -3.0]), "dtype": name}  # fmt: skip

    def of(dtype: torch.dtype) -> dict:
        x = logits.detach().clone().to(dtype).requires_grad_()
        out = F.cross_entropy(x.reshape(-1, vocab), targets.reshape(-1), ignore_index=options["ignore_index"],
                              label_smoothing=options["label_smoothing"])  # fmt: skip
        (out * options["gain"]).backward()
        return {"out": out.detach(), "grad.logits": x.grad}

    return Case(options, {"logits": logits, "targets": targets}, of(logits.dtype), "sums", of(torch.float64))


def causal_loss(draw: Draw) -> Case:
    name = draw.choice(["float32", "bfloat16", "float16"])
    shape, vocab = [draw.randint(1, 4) for _ in range(draw.randint(1, 3))], draw.choice([1, 2, 17, 333])
    logits = (draw.normal(*shape, vocab) * draw.choice([0.1, 3.0, 30.0])).to(DTYPES[name])
    labels = draw.integers(vocab, *shape)
    ignored = draw.choice([-100, 0, vocab - 1])
    if draw.coin():
        labels = labels.masked_fill(labels % 3 == 1, ignored)
    options = {"op": "causal_loss", "ignore_index": ignored, "items": draw.choice([0, 0, 1, 7]), "dtype": name}

    def of(dtype: torch.dtype) -> dict:
        x = logits.detach().clone().to(dtype).requires_grad_()
        out = ForCausalLMLoss(x, labels, vocab, options["items"] or None, options["ignore_index"])
        out.backward()
        return {"out": out.detach(), "grad.logits": x.grad}

    return Case(options, {"logits": logits, "labels": labels}, of(logits.dtype), "sums", of(torch.float64))


def dropout(draw: Draw) -> Case:
    name = draw.choice(list(DTYPES))
    shape = [draw.randint(1, 40), draw.randint(1, 40)] + [draw.randint(1, 5)] * draw.randint(0, 1)
    x, cotangent = draw.normal(*shape).to(DTYPES[name]), draw.normal(*shape).to(DTYPES[name])
    options = {"op": "dropout", "p": draw.choice([0.0, 0.1, 0.5, 0.9, 1.0, draw.random()]), "train": draw.coin(0.8),
               "transposed": draw.coin(0.4), "seed": draw.getrandbits(63), "dtype": name}  # fmt: skip
    leaf = x.transpose(0, 1).contiguous().transpose(0, 1) if options["transposed"] else x.clone()
    leaf.requires_grad_()
    torch.manual_seed(options["seed"])
    out = F.dropout(leaf, options["p"], options["train"])
    out.backward(cotangent)
    expected = {"out": out.detach(), "next": torch.rand(5), "grad.x": leaf.grad}
    return Case(options, {"x": x, "cotangent": cotangent}, expected, "bits")


def schedule(draw: Draw) -> Case:
    steps = draw.randint(2, 400)
    warmup, width = draw.randint(1, steps - 1), draw.randint(1, 1024)
    options = {"op": "schedule", "kind": draw.choice(["warmup", "cosine"]), "d_model": width, "warmup": warmup,
               "steps": steps}  # fmt: skip
    if options["kind"] == "warmup":
        factors = [width**-0.5 * min((n + 1) ** -0.5, (n + 1) * warmup**-1.5) for n in range(steps)]
    else:
        factors = [(n + 1) / warmup if n < warmup else 0.5 * (1 + math.cos(math.pi * (n - warmup) / (steps - warmup)))
                   for n in range(steps)]  # fmt: skip
    return Case(options, {}, {"out": torch.tensor(factors, dtype=torch.float64)}, "exact")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    return run(programs, [draw.choice([loss, loss, dropout, schedule])(draw) for _ in range(CASES)])

"""Twenty training steps of the notebook's Transformer in Python, and the parts of a step.

`training_runs.py NOTEBOOKS FOLDER` writes, for tests/train/python_training_test.cpp:
run_<case>.safetensors (`start.<key>`, `src.<i>`, `tgt.<i>`, `losses`; metadata `case`),
cross_entropy.safetensors (`<case>.logits|targets|loss|gradient`, metadata `cases`) and
schedules.safetensors (`warmup`, `cosine`: the rates of two groups, one row per step).
"""

import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional as F

sys.path.insert(0, sys.argv[1])
from reference.transformer import Transformer, causal  # noqa: E402

FOLDER = Path(sys.argv[2])
STEPS, VOCAB, WIDTH, HEADS, LAYERS, WIDE, MAX_LEN, PAD = 20, 300, 64, 4, 2, 128, 32, 0
CLIP, SMOOTHING, SEED = 1.0, 0.1, 3
RUN_WARMUP = 100  # for the runs, which a higher rate would destabilise
WARMUP = 8  # for the schedules, so that they pass their peak

RUNS = {
    "post_norm": {"dropout": 0.0, "norm_first": False, "tying": "three_way"},
    "pre_norm": {"dropout": 0.0, "norm_first": True, "tying": "none"},
    "dropout_post_norm": {"dropout": 0.1, "norm_first": False, "tying": "three_way"},
    "dropout_pre_norm": {"dropout": 0.1, "norm_first": True, "tying": "decoder_output"},
}


def warmup(step: int, steps: int = WARMUP) -> float:
    """The rate in section 5.3 of the paper, for a LambdaLR that counts from 0."""
    s = step + 1
    return WIDTH**-0.5 * min(s**-0.5, s * steps**-1.5)


def cosine(step: int) -> float:
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def ragged(rows: int, longest: int) -> torch.Tensor:
    ids = torch.randint(1, VOCAB, (rows, longest))
    lengths = torch.randint(longest // 3, longest + 1, (rows,))
    lengths[0] = longest
    return ids.masked_fill(torch.arange(longest) >= lengths.unsqueeze(1), PAD)


def run(name: str, case: dict) -> None:
    torch.manual_seed(1)
    model = Transformer(
        VOCAB, VOCAB, WIDTH, HEADS, LAYERS, LAYERS, WIDE, MAX_LEN, case["dropout"],
        tying=case["tying"], norm_first=case["norm_first"],
    )  # fmt: skip
    tensors = {f"start.{key}": value.clone() for key, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: warmup(n, RUN_WARMUP))
    batches = [(ragged(8, 14), ragged(8, 12)) for _ in range(STEPS)]
    torch.manual_seed(SEED)
    losses = []
    for i, (src, tgt) in enumerate(batches):
        tensors |= {f"src.{i}": src, f"tgt.{i}": tgt}
        optimizer.zero_grad()
        logits = model(src, tgt[:, :-1], tgt_mask=causal(tgt.shape[1] - 1), src_key_padding_mask=src == PAD)
        loss = F.cross_entropy(
            logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    tensors["losses"] = torch.tensor(losses)
    sizes = {"vocab": VOCAB, "width": WIDTH, "heads": HEADS, "layers": LAYERS, "wide": WIDE, "max_len": MAX_LEN}
    step = {"warmup": RUN_WARMUP, "clip": CLIP, "smoothing": SMOOTHING, "seed": SEED, "pad": PAD}
    save_file(tensors, FOLDER / f"run_{name}.safetensors", {"case": json.dumps({**case, **sizes, **step})})


def cross_entropy() -> None:
    torch.manual_seed(2)
    cases, tensors = {}, {}
    for name, shape, vocab, options in (
        ("plain", (5,), 7, {}),
        ("sequences", (3, 4), 7, {"label_smoothing": 0.1}),
        ("padded", (3, 4), 7, {"label_smoothing": 0.1, "ignore_index": 0}),
        ("all_smooth", (2, 3, 4), 5, {"label_smoothing": 1.0}),
        ("one_token", (1, 1), 1, {"label_smoothing": 0.3}),
        ("nothing_counts", (2, 2), 5, {"ignore_index": 0}),
        ("no_tokens", (0, 4), 5, {}),
    ):
        logits = torch.randn(*shape, vocab, requires_grad=True)
        targets = torch.zeros(shape, dtype=torch.long) if name == "nothing_counts" else torch.randint(vocab, shape)
        # PyTorch expects the classes on axis 1.
        loss = F.cross_entropy(logits.movedim(-1, 1) if len(shape) > 1 else logits, targets, **options)
        loss.backward()
        cases[name] = options
        named = {"logits": logits.detach(), "targets": targets, "loss": loss.detach(), "gradient": logits.grad}
        tensors |= {f"{name}.{key}": value.contiguous() for key, value in named.items()}
    save_file(tensors, FOLDER / "cross_entropy.safetensors", {"cases": json.dumps(cases)})


def schedules() -> None:
    tensors = {}
    for name, factor in (("warmup", warmup), ("cosine", cosine)):
        groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (1.0, 0.25)]
        optimizer = torch.optim.SGD(groups)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        rates = []
        for _ in range(STEPS):
            rates.append([group["lr"] for group in optimizer.param_groups])
            optimizer.step()
            schedule.step()
        tensors[name] = torch.tensor(rates, dtype=torch.float64)
    save_file(tensors, FOLDER / "schedules.safetensors", {"case": json.dumps({"width": WIDTH, "warmup": WARMUP})})


torch.set_num_threads(1)
cross_entropy()
schedules()
for name, case in RUNS.items():
    run(name, case)

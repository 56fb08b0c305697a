"""Writes the factors of transformers' schedules for random arguments, and the losses of the label smoothings of
fairseq, OpenNMT and joeynmt: schedules.py SEED > cases.json."""

import json
import random
import sys

import torch
from torch import nn
from transformers import get_scheduler

SPECIFIC = {
    "linear": lambda r: {},
    "constant": lambda r: {},
    "constant_with_warmup": lambda r: {},
    "cosine": lambda r: r.choice([{}, {"num_cycles": r.choice([0.25, 0.5, 1.0, 1.7])}]),
    "cosine_with_restarts": lambda r: r.choice([{}, {"num_cycles": r.randint(1, 5)}]),
    "polynomial": lambda r: {"lr_end": r.choice([0.0, 1e-7, 1e-4]), "power": r.choice([1.0, 2.0, 0.5, 1.3])},
    "inverse_sqrt": lambda r: r.choice([{}, {"timescale": r.randint(1, 90)}]),
    "warmup_stable_decay": lambda r: {
        "num_decay_steps": r.randint(0, 20),
        **r.choice([{}, {"num_stable_steps": r.randint(0, 30)}]),
        "warmup_type": r.choice(["linear", "cosine", "1-sqrt"]),
        "decay_type": r.choice(["linear", "cosine", "1-sqrt"]),
        "min_lr_ratio": r.choice([0.0, 0.1]),
        "num_cycles": r.choice([0.5, 1.5]),
    },
}
NEEDS_WARMUP = {"constant_with_warmup", "linear", "cosine", "cosine_with_restarts", "polynomial", "inverse_sqrt", "warmup_stable_decay"}
NEEDS_ALL = {"linear", "cosine", "cosine_with_restarts", "polynomial"}


def schedule(r, name):
    warmup, steps, lr = r.choice([0, 1, r.randint(2, 25)]), r.randint(30, 90), r.choice([1.0, 5e-4, 0.3])
    specific = SPECIFIC[name](r)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    arguments = {}
    if name in NEEDS_WARMUP:
        arguments["num_warmup_steps"] = warmup
    if name in NEEDS_ALL or (name == "warmup_stable_decay" and "num_stable_steps" not in specific):
        arguments["num_training_steps"] = steps
    made = get_scheduler(name, optimizer, **arguments, scheduler_specific_kwargs=specific)
    rates = []
    for _ in range(steps + 15):
        rates.append(made.get_last_lr()[0])
        optimizer.step()
        made.step()
    factors = [float(made.lr_lambdas[0](n)) for n in range(steps + 15)]
    return {"name": name, "lr": lr, "options": {**arguments, **specific}, "factors": factors, "rates": rates}


def fairseq(lprobs, target, epsilon, ignore_index):
    """label_smoothed_nll_loss of fairseq.criterions.label_smoothed_cross_entropy, divided by the sample size."""
    target = target.unsqueeze(-1)
    nll_loss = -lprobs.gather(dim=-1, index=target)
    smooth_loss = -lprobs.sum(dim=-1, keepdim=True)
    pad_mask = target.eq(ignore_index)
    nll_loss.masked_fill_(pad_mask, 0.0)
    smooth_loss.masked_fill_(pad_mask, 0.0)
    eps_i = epsilon / (lprobs.size(-1) - 1)
    return ((1.0 - epsilon - eps_i) * nll_loss.sum() + eps_i * smooth_loss.sum()) / (~pad_mask).sum()


def opennmt(lprobs, target, label_smoothing, ignore_index):
    """LabelSmoothingLoss of onmt.utils.loss, divided by the number of targets."""
    size = lprobs.size(-1)
    one_hot = torch.full((size,), label_smoothing / (size - 2), dtype=lprobs.dtype)
    one_hot[ignore_index] = 0
    model_prob = one_hot.repeat(target.size(0), 1)
    model_prob.scatter_(1, target.unsqueeze(1), 1.0 - label_smoothing)
    model_prob.masked_fill_((target == ignore_index).unsqueeze(1), 0)
    return nn.functional.kl_div(lprobs, model_prob, reduction="sum") / (target != ignore_index).sum()


def joeynmt(log_probs, targets, smoothing, pad_index):
    """XentLoss of joeynmt.loss, divided by the number of targets."""
    vocab_size = log_probs.size(-1)
    smooth_dist = log_probs.new_zeros((targets.size(0), vocab_size)).fill_(smoothing / (vocab_size - 2))
    smooth_dist.scatter_(1, targets.unsqueeze(1).data, 1.0 - smoothing)
    smooth_dist[:, pad_index] = 0
    padding_positions = torch.nonzero(targets.data == pad_index)
    if len(padding_positions) > 0:
        smooth_dist.index_fill_(0, padding_positions.squeeze(1), 0.0)
    return nn.KLDivLoss(reduction="sum")(log_probs, smooth_dist) / (targets != pad_index).sum()


def smoothing(r):
    vocab, rows, e = r.randint(3, 12), r.randint(2, 9), r.choice([0.0, 0.1, 0.3, 1.0])
    pad = r.randrange(vocab)
    targets = [r.randrange(vocab) for _ in range(rows)] + [(pad + 1) % vocab]
    logits = [[r.gauss(0, 2) for _ in range(vocab)] for _ in targets]
    case = {"e": e, "pad": pad, "targets": targets, "logits": logits}
    for loss in (fairseq, opennmt, joeynmt):
        x = torch.tensor(logits, dtype=torch.double, requires_grad=True)
        value = loss(x.log_softmax(-1), torch.tensor(targets), e, pad)
        value.backward()
        case[loss.__name__] = {"value": value.item(), "gradient": x.grad.tolist()}
    return case


random_ = random.Random(int(sys.argv[1]))
json.dump(
    {
        "schedules": [schedule(random_, name) for name in SPECIFIC for _ in range(12)],
        "smoothings": [smoothing(random_) for _ in range(40)],
    },
    sys.stdout,
)

"""Notebook 03: token_and_position_embedding, and the scaled token_embedding."""

from pathlib import Path
from typing import Dict, List

import torch
from torch import Tensor, nn

from reference import token_and_position_embedding as reference
from reference.cases.common import REPEATED, ids_for, module_case, tables, token_options
from reference.fixture import fill_parameters, generator, live, parameters_of, seed_of, write

NOTEBOOK = "03_token_and_position_embedding"


def write_all(folder: Path) -> List[str]:
    """Every case of this notebook; the names that were written."""
    return _tokens_scaled(folder) + _tokens_and_positions(folder) + _training(folder)


def _tokens_scaled(folder: Path) -> List[str]:
    stem, written = "token_embedding", []
    cases = {
        "scaled_d2": (7, 2, (2, 3), "float32"),
        "scaled_d18": (23, 18, (3, 5), "float32"),
        "scaled_d96": (13, 96, (2, 4), "float32"),
        "scaled_d200": (9, 200, (1, 6), "float32"),
        "scaled_d512": (7, 512, (1, 4), "float32"),
        "scaled_float64": (13, 96, (2, 4), "float64"),
        "scaled_bfloat16": (13, 96, (2, 4), "bfloat16"),
        "scaled_float16": (13, 96, (2, 4), "float16"),
    }
    for case, (vocab_size, d_model, shape, dtype) in cases.items():
        inputs = {"ids": ids_for(stem, case, vocab_size, *shape)}
        module = reference.TransformerEmbedding(vocab_size, d_model)
        options = token_options(vocab_size, d_model, scale="sqrt_dim")
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options, dtype))
    return written


def _whole_options(vocab_size: int, d_model: int, max_len: int, dropout: float) -> Dict:
    options = token_options(vocab_size, d_model, scale="sqrt_dim")
    return {**options, "max_len": max_len, "dropout": dropout, "preset": "notebook_003"}


def _tokens_and_positions(folder: Path) -> List[str]:
    stem, written = "token_and_position_embedding", []
    cases = {  # vocab_size, d_model, max_len, batch, length, dtype
        "d2": (19, 2, 16, 2, 5, "float32"),
        "d6_length_one": (19, 6, 16, 3, 1, "float32"),
        "d18_max_len": (29, 18, 23, 3, 23, "float32"),
        "d96": (17, 96, 20, 2, 7, "float32"),
        "d200": (11, 200, 12, 1, 7, "float32"),
        "d512": (7, 512, 5, 1, 3, "float32"),
        "float64": (13, 96, 9, 2, 5, "float64"),
        "bfloat16": (17, 96, 20, 2, 7, "bfloat16"),
        "float16": (17, 96, 20, 2, 7, "float16"),
        "bfloat16_d200": (11, 200, 12, 1, 7, "bfloat16"),
        "float16_d200": (11, 200, 12, 1, 7, "float16"),
    }
    for case, (vocab_size, d_model, max_len, batch, length, dtype) in cases.items():
        inputs = {"ids": ids_for(stem, case, vocab_size, batch, length)}
        module = reference.TokenAndPositionEmbedding(vocab_size, d_model, max_len).eval()
        options = _whole_options(vocab_size, d_model, max_len, 0.1)
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options, dtype))
    for case, dropout, training in (("repeated_ids", 0.1, False), ("train_dropout_0", 0.0, True)):
        module = reference.TokenAndPositionEmbedding(11, 36, 77, dropout).train(training)
        options = _whole_options(11, 36, 77, dropout)
        inputs = {"ids": REPEATED}
        written.append(module_case(folder, NOTEBOOK, stem, case, module, inputs, options))
    build = lambda length, dim: reference.PositionalEncoding(dim, length).pe[0]  # noqa: E731
    return written + _dropped(folder) + tables(folder, NOTEBOOK, "notebook_003", build)


def _dropped(folder: Path) -> List[str]:
    """Train mode right after torch.manual_seed, live only: the mask depends on the CPU."""
    if not live():
        return []
    stem, written = "token_and_position_embedding", []
    cases = {  # vocab_size, d_model, max_len, batch, length, dropout, dtype
        "train_dropout": (17, 96, 20, 2, 7, 0.1, "float32"),
        "train_dropout_tiny": (7, 2, 16, 1, 3, 0.1, "float32"),
        "train_dropout_odd_count": (29, 18, 23, 3, 7, 0.5, "float32"),
        "train_dropout_large": (100, 512, 64, 4, 61, 0.1, "float32"),
        "train_dropout_float64": (17, 96, 20, 2, 7, 0.1, "float64"),
        "train_dropout_bfloat16": (17, 96, 20, 2, 7, 0.1, "bfloat16"),
        "train_dropout_float16": (17, 96, 20, 2, 7, 0.1, "float16"),
    }
    for case, (vocab_size, d_model, max_len, batch, length, dropout, dtype) in cases.items():
        inputs = {"ids": ids_for(stem, case, vocab_size, batch, length)}
        module = reference.TokenAndPositionEmbedding(vocab_size, d_model, max_len, dropout).train()
        options = _whole_options(vocab_size, d_model, max_len, dropout)
        written.append(
            module_case(
                folder, NOTEBOOK, stem, case, module, inputs, options, dtype,
                portable=False, dropout_seed=seed_of(stem, case) % 100000,
            )
        )  # fmt: skip
    return written


class TinyModel(nn.Module):
    """ids (B, L) -> logits (B, L, V): the smallest thing that trains through the embedding."""

    def __init__(self, vocab_size: int, d_model: int, max_len: int):
        super().__init__()
        self.embed = reference.TokenAndPositionEmbedding(vocab_size, d_model, max_len, 0.0)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embed(ids))


def _training(folder: Path) -> List[str]:
    """Ten Adam steps on one batch: losses, first gradients, first and last parameters."""
    stem, case = "token_and_position_embedding", "adam_ten_steps"
    vocab_size, d_model, max_len, batch, length, lr = 23, 18, 16, 3, 7, 0.01
    source = generator(stem, case)
    model = TinyModel(vocab_size, d_model, max_len)
    fill_parameters(model, source, gain=0.25)
    ids = torch.randint(0, vocab_size, (batch, length), generator=source)
    targets = torch.randint(0, vocab_size, (batch, length), generator=source)
    tensors = {"in.ids": ids, "in.targets": targets, **parameters_of(model)}
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        logits = model(ids)  # (B, L, V)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        if step == 0:
            tensors["out.output"] = logits.detach().clone()
            for key, parameter in model.named_parameters():
                tensors[f"grad.{key}"] = parameter.grad.clone()
        losses.append(loss.detach())
        optimizer.step()
    tensors["out.losses"] = torch.stack(losses)
    for key, parameter in model.named_parameters():
        tensors[f"final.{key}"] = parameter.detach()
    options = {**_whole_options(vocab_size, d_model, max_len, 0.0), "dtype": "float32"}
    options.update({"batch_first": True, "train": True, "steps": 10, "loss": "cross_entropy"})
    options.update({"optimizer": "adam", "lr": lr, "betas": [0.9, 0.999], "eps": 1e-8})
    return [write(folder, NOTEBOOK, "TokenAndPositionEmbedding", stem, case, tensors, options)]

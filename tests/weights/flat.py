"""A file as seen by Python: its tensors under joined names, and their bytes."""

import collections
import hashlib

import torch


def flat(value, name="", is_opaque=lambda value: False):
    """(name, tensor) for each tensor in `value`, nested names joined by dots; (name, None) for opaque objects."""
    if is_opaque(value):
        yield name, None
    elif isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flat(item, f"{name}.{key}" if name else str(key), is_opaque)
    elif isinstance(value, (list, tuple, collections.deque)):
        for index, item in enumerate(value):
            yield from flat(item, f"{name}.{index}" if name else str(index), is_opaque)


def raw(tensor):
    """The values as contiguous bytes; copied, because a single element may have any stride."""
    plain = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor.detach().resolve_conj().resolve_neg())
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""


def seen(name, tensor):
    """The tensor as listed by `posenc inspect --json`."""
    return {"name": name, "dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
            "sha256": hashlib.sha256(raw(tensor)).hexdigest()}

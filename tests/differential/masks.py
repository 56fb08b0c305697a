"""Random masks by every maker of AttentionMask, and the equivalent attn_mask of torch.nn."""

import torch
from torch import Tensor

from harness import Draw

KEYS = ["key_padding", "key_padding_mask", "padding"]  # masks over keys only
MAKERS = [*KEYS, "causal", "allowed", "allowed_pairs", "blocked", "blocked_pairs", "additive", "additive_pairs",
          "attn_mask"]  # fmt: skip


class Shape:
    """Shape of the scores: B, H, L, S."""

    def __init__(self, batch: int, heads: int, queries: int, keys: int):
        self.batch, self.heads, self.queries, self.keys = batch, heads, queries, keys


def random_mask(draw: Draw, shape: Shape, name: str, open_key: int, count: int | None = None) -> tuple[list, dict]:
    """Parts of any makers and their tensors; every query may attend to `open_key`."""
    parts, tensors = [], {}
    for number in range(draw.randint(0, 3) if count is None else count):
        kind = draw.choice([maker for maker in MAKERS if maker != "causal" or open_key == 0])
        part: dict = {"kind": kind}
        if kind == "causal":
            part["offset"] = draw.randint(0, 3)
        else:
            part["in"] = f"{name}_{number}"
            tensors[part["in"]] = tensor_of(draw, shape, part, open_key)
        parts.append(part)
    return parts, tensors


def tensor_of(draw: Draw, shape: Shape, part: dict, open_key: int) -> Tensor:
    kind = part["kind"]
    if kind in KEYS:
        padding = draw.bits(0.4, shape.batch, shape.keys)
        padding[:, open_key] = False
        if kind == "key_padding_mask":
            return padding
        if kind == "key_padding":  # any number except 0
            return (~padding).long() * draw.choice([1, -1, 7]) if draw.coin() else ~padding
        part["pad"] = draw.choice([0, 3, -1])
        ids = draw.integers(50, shape.batch, shape.keys) + 10
        return ids.masked_fill(padding, part["pad"])
    pairs = [draw.choice([shape.queries, shape.queries, 1]), draw.choice([shape.keys, shape.keys, 1])]
    of_heads = [shape.batch * shape.heads, *pairs]
    if kind.endswith("_pairs"):
        sizes = pairs
    elif kind == "attn_mask":
        sizes = draw.choice([pairs, of_heads])
    else:
        sizes = draw.choice([of_heads, [shape.batch, *pairs],
                             [draw.choice([shape.batch, 1]), draw.choice([shape.heads, 1]), *pairs]])  # fmt: skip
    if sizes is of_heads:
        part["of_heads"] = True
    if kind.startswith("additive") or (kind == "attn_mask" and draw.coin()):
        bias = draw.normal(*sizes)
        if draw.coin():
            bias = bias.masked_fill(closed(draw, sizes, open_key), float("-inf"))
        return bias
    bits = closed(draw, sizes, open_key)
    return ~bits if kind.startswith("allowed") else bits


def closed(draw: Draw, sizes: list, open_key: int) -> Tensor:
    bits = draw.bits(0.4, *sizes)
    bits[..., open_key if sizes[-1] > 1 else 0] = False
    return bits


def key_parts(parts: list) -> list:
    """The parts that are key masks, whose keys a frozen model skips."""
    return [part for part in parts if part["kind"] in KEYS]


def combined(parts: list, x: dict, shape: Shape) -> Tensor | None:
    """Returns torch.nn's (B * H, L, S): bool with true for blocked, or real if any part is."""
    if not parts:
        return None
    sizes = (shape.batch, shape.heads, shape.queries, shape.keys)
    allowed, bias = torch.ones(sizes, dtype=torch.bool), None
    for part in parts:
        kind = part["kind"]
        if kind == "causal":
            last = torch.arange(shape.queries).unsqueeze(1) + part.get("offset", 0)
            allowed = allowed & (torch.arange(shape.keys) <= last)
            continue
        mask = x[part["in"]]
        if kind in KEYS:
            keep = ~mask if kind == "key_padding_mask" else mask != part.get("pad", 0)
            allowed = allowed & keep.view(shape.batch, 1, 1, shape.keys)
            continue
        if part.get("of_heads"):
            mask = mask.view(shape.batch, shape.heads, *mask.shape[1:])
        elif mask.dim() == 3:
            mask = mask.unsqueeze(1)
        if mask.is_floating_point():
            bias = mask if bias is None else bias + mask
        else:
            allowed = allowed & (mask if kind.startswith("allowed") else ~mask)
    blocked = ~allowed
    whole = blocked if bias is None else bias.expand(sizes).masked_fill(blocked, float("-inf"))
    return whole.reshape(shape.batch * shape.heads, shape.queries, shape.keys)


def hidden_keys(parts: list, x: dict, shape: Shape) -> Tensor:
    """(B, S), true for keys that key_parts(), of which there are some, leave out."""
    one = Shape(shape.batch, 1, 1, shape.keys)
    mask = combined(key_parts(parts), x, one)
    assert mask is not None
    return mask.view(shape.batch, shape.keys)

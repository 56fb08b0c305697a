"""timm's and x-transformers' embeddings with more than a rotation of given positions: a grid that is drawn anew in training, and
polar coordinates with a learned bias. Without these packages (tests/catalogue/relative/packages.py) there is nothing to compare with.
"""

import importlib
import sys
from pathlib import Path

import torch

from harness import Case, Draw

sys.path.append(str(Path(__file__).parents[1] / "catalogue/relative"))
packages = importlib.import_module("packages")
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def timm_mrope(draw: Draw) -> Case:
    timm = importlib.import_module("timm.layers.pos_embed_sincos")
    dim, dtype, sections = 2 * draw.randint(1, 50), draw.choice(DTYPES), [draw.randint(0, 20) for _ in range(3)]
    base, prefix, grid = draw.choice([10000.0, 100.0]), draw.choice([0, 1, 5]), {"height": draw.randint(1, 12), "width": draw.randint(1, 12)}
    amounts = {"shift": draw.choice([0.0, 0.5]), "jitter": draw.choice([0.0, 1.1]), "rescale": draw.choice([0.0, 2.0])} if draw.coin() else {}
    own = timm.RotaryEmbeddingMRope(dim, sections, base, **{f"{name}_coords": value or None for name, value in amounts.items()})
    own.train(bool(amounts))
    options = grid | amounts | {"prefix_tokens": prefix} | ({"seed": draw.randint(0, 1000)} if amounts else {})
    torch.manual_seed(options.get("seed", 0))
    embed = own.get_embed(list(grid.values()))
    sin, cos = embed.chunk(2, -1)
    q, k = (draw.normal(2, 3, prefix + len(cos), dim).to(dtype) for _ in range(2))
    rotated = {name: torch.cat((x[:, :, :prefix], timm.apply_rot_embed_cat(x[:, :, prefix:], embed, half=True)), 2) for name, x in (("q", q), ("k", k))}
    params = {"head_dim": str(dim), "rope_theta": str(base), "mrope_section": ",".join(map(str, sections))}
    options |= {"op": "rotary_grid", "preset": "timm_mrope", "params": params}
    return Case(options, {"q": q, "k": k}, {"cos": cos.contiguous(), "sin": sin.contiguous()} | rotated, "bits")


def polar(draw: Draw) -> Case:
    """Forward, and the gradients of queries, keys and bias."""
    library, dtype = packages.xt, draw.choice(DTYPES)
    dim, heads, length, base = draw.choice([4, 32, 64, 70]), draw.randint(1, 5), draw.randint(1, 30), draw.choice([10000, 500])
    module = library.PolarEmbedding(dim, heads, base=base)
    with torch.no_grad():  # partly outside of the bounds to which it is clamped
        module.learned_bias.copy_(draw.normal(heads, 1, dim) * 4 - 3)
    q, k = (draw.normal(2, heads, length, dim).to(dtype).requires_grad_() for _ in range(2))
    offset = draw.choice([0, 0, 7, 3000])
    ids = torch.arange(offset, offset + length) if draw.coin() else draw.integers(draw.choice([50, 100_000]), length)
    angles, bias = module(ids)
    out = torch.cat((library.apply_polar_pos_emb(q, angles), library.apply_polar_pos_emb(k, angles + bias)), -3)
    cotangent = draw.normal(*out.shape).to(dtype)
    (out * cotangent).sum().backward()
    options = {"op": "polar_embedding", "dim": dim, "heads": heads, "base": base}
    tensors = {"in.q": q.detach(), "in.k": k.detach(), "position_ids": ids, "cotangent": cotangent}
    tensors |= {f"param.{name}": tensor for name, tensor in module.state_dict().items()}
    expected = {"out": out.detach(), "grad.in.q": q.grad, "grad.in.k": k.grad, "grad.param.learned_bias": module.learned_bias.grad}
    return Case(options, tensors, expected, "bits")


def cases(draw: Draw) -> list[Case]:
    return [] if packages.missing() else [kind(draw) for kind in (timm_mrope, polar) for _ in range(4)]

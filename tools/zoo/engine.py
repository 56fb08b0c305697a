"""A description of sinusoidal tables by independent axes, and the plain-torch code that evaluates it.

Every operation is a torch operation in the order that the real system uses, because operations and their order decide
the last bit. Nothing here knows a preset by name; `rederived.py` holds the presets as values of `Recipe`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

F32, F64 = torch.float32, torch.float64


class Forbidden(ValueError):
    """A dimension, length or parameter that the recipe does not support."""


@dataclass(frozen=True)
class Frequency:
    """The vector that multiplies (or divides) a position."""

    op: str  # see FREQUENCY_OPS
    index: str = "even"  # see INDEX_SETS
    over: str = "C"  # what the index is divided by, see DENOMINATORS
    base: float | str | Callable[[int], float] = 10000.0  # a number, the parameter that holds it, or a function of C
    split: bool = False  # one entry per channel: sin uses the even entries, cos the odd ones


@dataclass(frozen=True)
class Recipe:
    """C is the number of channels that one axis fills (D for one axis), n = C // 2."""

    frequency: Frequency
    dtype: str = "f32"  # f32 | f64 (one cast, last) | f64_angle (angle cast to f32 before sin and cos)
    phase: str = "product"  # product p * f | quotient p / f
    angle_scale: str = "none"  # see ANGLE_SCALES; applied to the finished angle
    order: str = "function frequency"  # slowest to fastest; grids also name "axis"
    first: str = "sin"  # which function comes first
    odd: str = "error"  # error | zero | more_sin | widen | narrow | truncate | length_bug
    multiple: int = 1  # D must be a multiple of this
    minimum: int = 2
    positions: str = "up"  # see POSITIONS (one axis)
    origin: int = 0
    axes: tuple[str, ...] = ()  # channel order of a grid, e.g. ("width", "height")
    axis_values: str = "plain"  # plain | one_based | detr | detr_always | detr_half | diffusers
    axis_channels: str = "equal"  # equal | ceil_even | floor_even | quarter_rest
    rows: tuple[str, ...] = ()  # outermost grid axis first
    zero_row: str = "none"  # none | padding_idx | cls | cls_token | first
    raw: bool = False  # the coordinates themselves are the first channels
    post: str = "none"  # none | div_sqrt | mul_rsqrt | standardise


# --- frequencies ---------------------------------------------------------------------------------

INDEX_SETS: dict[str, Callable[[int], torch.Tensor]] = {
    "even": lambda c: torch.arange(0, c, 2),
    "half": lambda c: torch.arange(c // 2),
    "paired": lambda c: 2 * (torch.arange(c) // 2),
    "paired_half": lambda c: 2 * (torch.arange(c // 2) // 2),
    "pair_number": lambda c: torch.arange(c) // 2,
    "doubled": lambda c: 2 * torch.arange(c),
}

DENOMINATORS: dict[str, Callable[[int], float]] = {
    "C": lambda c: c,
    "n": lambda c: c // 2,
    "C/2": lambda c: c / 2,
    "n-1": lambda c: c // 2 - 1,
    "max(n-1,1)": lambda c: max(c // 2 - 1, 1),
}


def _log32(base: float) -> torch.Tensor:
    return torch.log(torch.tensor(float(base), dtype=F32))


# i: index vector, m: denominator (a Python number), b: base (a Python number); scalars stay Python doubles.
FREQUENCY_OPS = {
    "exp_scalar": lambda i, m, b: torch.exp(i * -(math.log(b) / m)),
    "exp_scalar_of_log32": lambda i, m, b: torch.exp(i * -(_log32(b).item() / m)),
    "exp_scalar32": lambda i, m, b: torch.exp(i * -(_log32(b) / m)),
    "exp_divided_last": lambda i, m, b: torch.exp((i * -math.log(b)) / m),
    "exp_floored": lambda i, m, b: torch.exp(i * ((-math.log(b) / (2 * m)) // 2)),
    "pow_reciprocal": lambda i, m, b: 1.0 / (b ** (i / m)),
    "pow_negative": lambda i, m, b: b ** (-(i / m)),
    "pow_inverse_base": lambda i, m, b: torch.tensor(1 / b, dtype=i.dtype) ** (i / m),
    "pow": lambda i, m, b: b ** (i / m),
    "pow_of_product": lambda i, m, b: b ** (i * (2 / m)),
}


def frequencies(rule: Frequency, channels: int, params: dict, dtype: torch.dtype):
    """The vectors of sin and of cos."""
    if rule.op == "two_to_linspace":
        m = params["multires"]
        f = 2.0 ** torch.linspace(0, m - 1, m, dtype=dtype)
        return f, f
    if rule.op == "linspace":
        f = torch.linspace(1.0, params["max_resolution"] / 2, params["num_bands"], dtype=dtype)
        return f, f
    if rule.op == "periods":
        shortest = params["min_period"]
        fraction = torch.linspace(0.0, 1.0, channels // 2, dtype=dtype)
        f = 1.0 / (shortest * (params["max_period"] / shortest) ** fraction) * 2 * math.pi
        return f, f
    over = rule.over
    if over == "n-shift":
        denominator = channels // 2 - params["downscale_freq_shift"]
    else:
        denominator = DENOMINATORS[over](channels)
    if denominator == 0:
        raise Forbidden(f"{channels} channels leave {over} = 0")
    base = rule.base
    if callable(base):
        base = base(channels)
    elif isinstance(base, str):
        base = params[base]
    op = rule.op
    if op == "exp_floored_if_bug":
        op = "exp_scalar" if params["temp_bug_fix"] else "exp_floored"
    index = INDEX_SETS[rule.index](channels).to(dtype)
    f = FREQUENCY_OPS[op](index, denominator, base)
    return (f[0::2], f[1::2]) if rule.split else (f, f)


# --- positions -----------------------------------------------------------------------------------


def _xlnet(length, params):
    return torch.arange(length, -length if params["attn_type"] == "bi" else -1, -1)


POSITIONS = {
    "up": lambda length, p: torch.arange(length),
    "down": lambda length, p: torch.arange(length - 1, -1, -1),
    "relative": lambda length, p: torch.arange(length - 1, -length, -1),
    "relative_abs": lambda length, p: torch.arange(length - 1, -length, -1).abs(),
    "xlnet": _xlnet,
    "real": lambda length, p: torch.arange(length, dtype=F32) * p["step"] + p["start"],
    "start_index": lambda length, p: torch.arange(length) + p["start_index"],
    "after_pad": lambda length, p: torch.arange(length) + p["legacy_pad_idx"],
}


def axis_values(kind: str, extent: int, params: dict) -> torch.Tensor:
    """The positions along one axis of a grid, in float32."""
    v = torch.arange(extent, dtype=F32)
    if kind == "plain":
        return v
    if kind == "diffusers":
        return v / (extent / params["base_size"]) / params["interpolation_scale"]
    v = v + 1
    if kind == "detr_half":
        return (v - 0.5) / (v[-1:] + 1e-6) * (2 * math.pi)
    if kind == "detr_always" or (kind == "detr" and params["normalize"]):
        return v / (v[-1:] + 1e-6) * (2 * math.pi)
    return v


# --- angle, functions, channels ------------------------------------------------------------------


def _angle_scale(kind, angle, length, dim, params):
    if kind == "dim_over_length":
        return angle * (dim / length)
    if kind == "scale":
        return params["scale"] * angle
    if kind == "pi":
        return math.pi * angle
    return angle


def sin_cos(recipe: Recipe, position: torch.Tensor, channels: int, length: int, dim: int, params: dict):
    """sin and cos, [positions, frequencies] each, before the final cast of the f64 kinds."""
    dtype = F32 if recipe.dtype == "f32" else F64
    position = position.to(dtype)[:, None]
    out = []
    for f, function in zip(frequencies(recipe.frequency, channels, params, dtype), (torch.sin, torch.cos)):
        angle = position * f if recipe.phase == "product" else position / f
        angle = _angle_scale(recipe.angle_scale, angle, length, dim, params)
        if recipe.dtype == "f64_angle":
            angle = angle.to(F32)
        out.append(function(angle))
    return out


def arrange(blocks: list[tuple[torch.Tensor, torch.Tensor]], order: str, first: str) -> torch.Tensor:
    """blocks[axis] = (sin, cos), each [rows, frequencies] -> [rows, channels]."""
    if len(blocks) > 1 and order.split()[0] == "axis":  # axes may differ in width
        return torch.cat([arrange([b], " ".join(order.split()[1:]), first) for b in blocks], dim=1)
    swap = first == "cos"
    if len(blocks) == 1 and blocks[0][0].shape[1] != blocks[0][1].shape[1]:  # one more sin than cos
        sin, cos = blocks[0]
        if order.endswith("function frequency"):
            return torch.cat([sin, cos], dim=1)
        out = sin.new_empty(sin.shape[0], sin.shape[1] + cos.shape[1])
        out[:, 0::2], out[:, 1::2] = sin, cos
        return out
    stacked = torch.stack([torch.stack((c, s) if swap else (s, c), dim=1) for s, c in blocks], dim=1)
    names = ["axis", "function", "frequency"]  # dimensions 1, 2, 3 of `stacked`
    dims = order.split() if "axis" in order else ["axis", *order.split()]
    return stacked.permute(0, *(1 + names.index(w) for w in dims)).flatten(1)


def axis_channels(kind: str, dim: int, count: int) -> list[int]:
    if kind == "ceil_even":
        return [-(-dim // (2 * count)) * 2] * count
    if kind == "floor_even":
        return [2 * (dim // (2 * count))] * count
    if kind == "quarter_rest":
        return [dim // 4, 3 * dim // 8, 3 * dim // 8]
    return [dim // count] * count


def _coordinates(recipe, length, params):
    """Point presets: the value of each axis in every row, [length] each."""
    p = POSITIONS["real"](length, params)
    return {
        "x": p,
        "x/2": p / 2,
        "-x": -p,
        "2pi(1-x)": (1 - p) * (2 * math.pi),
        "2pi x": p * (2 * math.pi),
        "scale x": p * params.get("scale", 1),
    }


def _blocks(recipe, length, dim, params):
    """One (sin, cos) pair per axis, [rows, frequencies] each."""
    if not recipe.axes:
        p = POSITIONS[recipe.positions](length, params)
        p = p + recipe.origin if recipe.origin else p
        c = axis_channels(recipe.axis_channels, dim, 1)[0]
        return [sin_cos(recipe, p, c, length, dim, params)], p[:, None]
    widths = axis_channels(recipe.axis_channels, dim, len(recipe.axes))
    if not recipe.rows:  # points
        values = _coordinates(recipe, length, params)
        chosen = [values[a] for a in recipe.axes]
        blocks = [sin_cos(recipe, v, c, length, dim, params) for v, c in zip(chosen, widths)]
        return blocks, torch.stack(chosen, dim=1)
    rows = recipe.rows
    axes = recipe.axes
    if params.get("reverse_coord"):
        rows, axes = rows[::-1], axes[::-1]
    extents = [params[a] for a in rows]
    if length != math.prod(extents):
        raise Forbidden(f"length {length} is not the product of {extents}")
    index = dict(zip(rows, torch.meshgrid(*(torch.arange(e) for e in extents), indexing="ij")))
    blocks = []
    for axis, c in zip(axes, widths):
        values = axis_values(recipe.axis_values, params[axis], params)
        s, k = sin_cos(recipe, values, c, length, dim, params)
        at = index[axis].flatten()
        blocks.append((s[at], k[at]))
    return blocks, None


def _check(recipe: Recipe, length: int, dim: int, params: dict):
    if dim % 2 and recipe.odd == "error":
        raise Forbidden(f"dim must be even, got {dim}")
    if dim % recipe.multiple:
        raise Forbidden(f"dim must be a multiple of {recipe.multiple}, got {dim}")
    if dim < recipe.minimum:
        raise Forbidden(f"dim must be at least {recipe.minimum}, got {dim}")
    if length < 1:
        raise Forbidden("length must be positive")
    want = None
    if recipe.frequency.op == "two_to_linspace":
        want = 3 + 6 * params["multires"]
    elif recipe.frequency.op == "linspace":
        want = 1 + 2 * params["num_bands"]
    if want is not None and dim != want:
        raise Forbidden(f"dim must be {want}, got {dim}")


def evaluate(recipe: Recipe, length: int, dim: int, params: dict) -> torch.Tensor:
    """The table, float32 [rows, channels]."""
    _check(recipe, length, dim, params)
    blocks, coordinates = _blocks(recipe, length, dim, params)
    order, first = recipe.order, recipe.first
    if params.get("interleave_sin_cos"):
        order = "axis function frequency"
    if params.get("flip_sin_to_cos"):
        first = "cos"
    t = arrange(blocks, order, first).to(F32)
    if recipe.raw:
        t = torch.cat([coordinates.to(F32), t], dim=1)
    if recipe.odd == "zero" and t.shape[1] < dim:
        t = torch.nn.functional.pad(t, (0, dim - t.shape[1]))
    if recipe.odd == "truncate":
        t = t[:, :dim].contiguous()
    if recipe.odd == "length_bug" and dim % 2:
        t = torch.nn.functional.pad(t, (0, 0, 0, 1))
    t = _zero_rows(recipe, t, params)
    if recipe.post == "div_sqrt":
        t = t / math.sqrt(dim)
    elif recipe.post == "mul_rsqrt":
        t = t * (torch.ones(1) * dim**-0.5)
    elif recipe.post == "standardise":
        t = t - t.mean()
        t = t / (t.std() * 10)
    return t


def _zero_rows(recipe: Recipe, t: torch.Tensor, params: dict) -> torch.Tensor:
    kind = recipe.zero_row
    if kind == "padding_idx" and 0 <= params["padding_idx"] < t.shape[0]:
        t[params["padding_idx"]] = 0
    elif kind == "first":
        t[0] = 0
    elif kind == "cls" or (kind == "cls_token" and params["cls_token"]):
        t = torch.cat([t.new_zeros(1, t.shape[1]), t], dim=0)
    return t

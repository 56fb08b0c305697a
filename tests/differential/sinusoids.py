"""SinusoidOptions with all axes drawn at random, beyond any preset, against the formulas in sinusoid/axes.h."""

import math

import torch
from torch import Tensor

from harness import DTYPES, Case, Draw, Failure, Programs, run

CASES = 24
# The enumerations of sinusoid/axes.h in their order: the driver uses their numbers.
INDEX = ["even", "half", "paired", "pair_number", "doubled", "paired_half"]
DIVISOR = ["channels", "half_channels", "pairs"]
FREQUENCY = ["exp", "exp_of_float_log", "exp_in_float", "exp_divided_last", "exp_floored", "power", "power_reciprocal",
             "power_negative", "power_inverse_base", "power_of_product", "powers_of_two", "linear"]  # fmt: skip
PER_CHANNEL = ["paired", "pair_number", "doubled"]
RISING = ["power", "power_of_product", "powers_of_two", "linear"]  # positions are divided by these
NUMBERED = {
    "index": INDEX, "divisor": DIVISOR, "frequency": FREQUENCY, "phase": ["product", "quotient"],
    "power_shape": ["row", "grid"], "arithmetic": ["float32", "float64", "float64_angle"],
    "precision": ["reference", "exact"], "layout": ["interleaved", "halves"], "axis_depth": ["outer", "middle", "inner"],
    "odd_dim": ["error", "extra_sin", "zero_column", "truncate", "widen", "narrow", "extra_row"],
    "rows": ["up", "down", "down_from_length", "relative", "relative_distance", "relative_even"],
    "axis_values": ["plain", "one_based", "normalized", "centered", "scaled"],
    "axis_channels": ["equal", "ceil_even", "floor_even", "quarter_rest"],
    "post": ["none", "divide_by_sqrt_dim", "multiply_by_rsqrt_dim", "standardize"],
}  # fmt: skip


def options(draw: Draw) -> dict:
    """Random values for all axes; most combinations are valid."""
    some = lambda name, often=0.5: draw.choice(NUMBERED[name]) if draw.coin(often) else NUMBERED[name][0]  # noqa: E731
    o: dict = {name: some(name, 0.35) for name in NUMBERED}
    o |= {"dim": draw.randint(1, 50), "index": some("index", 0.7), "frequency": some("frequency", 0.8),
          "shift": draw.choice([0.0, 0.0, 1.0, 0.5, -2.0, 0.3]), "divisor_at_least_one": draw.coin(0.2),
          "base": draw.choice([10000.0, 100.0, 2.5, 0.5, 123456.0]), "max_frequency": draw.choice([1.0, 10.0, 0.1]),
          "angle_scale": draw.choice([1.0, 1.0, math.pi, 0.37, 2 * math.pi]), "angle_by_length": draw.coin(0.1),
          "cos_first": draw.coin(0.3), "raw_first": draw.coin(0.15), "start": draw.choice([0.0, 0.0, 1.0, -3.0, 0.25]),
          "step": draw.choice([1.0, 1.0, -1.0, 3.0, 0.1]), "cls_row": draw.coin(0.15), "grid": [], "channel_axes": [],
          "base_size": draw.choice([1.0, 16.0]), "interpolation_scale": draw.choice([1.0, 2.0]), "coordinates": []}  # fmt: skip
    default = "quotient" if o["frequency"] in RISING else "product"
    if draw.coin(0.8):
        o["phase"] = default
    if o["phase"] != default:
        o["base"] = 2.5  # angles of a million turns are dominated by rounding
    places = draw.choice(["row", "row", "row", "grid", "points"])
    if places == "grid":
        o["grid"] = [draw.randint(1, 4) for _ in range(draw.randint(1, 3))]
        if draw.coin():
            o["channel_axes"] = draw.sample(range(len(o["grid"])), len(o["grid"]))
    elif places == "points":
        o["coordinates"] = [[draw.coin(), draw.choice([1.0, 2.0, 0.3])] for _ in range(draw.randint(1, 3))]
    else:
        o["axis_channels"] = draw.choice(["equal", o["axis_channels"]])
    if draw.coin(0.6):  # a suitable width
        o["dim"] = 16 * len(o["grid"] or o["coordinates"] or [0]) * draw.randint(1, 3)
        if o["raw_first"]:
            o["dim"] += axes(o)
    o["zero_row"] = draw.choice([None, None, 0, 2, 1000, -1])
    return o


def axes(o: dict) -> int:
    return len(o["grid"]) or len(o["coordinates"]) or 1


def widths(o: dict) -> list[int]:
    dim, count, kind = o["dim"], axes(o), o["axis_channels"]
    if kind == "quarter_rest":
        return [dim // 4, 3 * dim // 8, 3 * dim // 8]
    width = (dim - (count if o["raw_first"] else 0)) // count
    if kind == "ceil_even" or (kind == "equal" and o["odd_dim"] == "truncate"):
        width = -(-dim // (2 * count)) * 2
    if kind == "floor_even":
        width = dim // (2 * count) * 2
    if width % 2 and o["odd_dim"] != "extra_sin":
        width += 1 if o["odd_dim"] == "widen" else -1
    return [width] * count


def pairs(o: dict, width: int) -> tuple[int, int, int]:
    """The channels C of the formula, and the numbers of frequencies for sines and for cosines."""
    channels = o["dim"] if o["odd_dim"] == "widen" else width
    if o["frequency"] in ("powers_of_two", "linear"):
        if o["index"] in PER_CHANNEL:
            return channels, -1, -1
        return channels, channels // 2, channels // 2
    if o["index"] in ("half", "paired_half"):
        return channels, channels // 2, channels // 2
    if o["index"] == "even":
        return channels, (channels + 1) // 2, (channels + 1) // 2
    return channels, (channels + 1) // 2, channels // 2


def divisor(o: dict, channels: int) -> float:
    m = {"channels": channels, "half_channels": channels / 2, "pairs": channels // 2}[o["divisor"]] - o["shift"]
    return max(m, 1.0) if o["divisor_at_least_one"] else m


def refused(o: dict, length: int) -> str:
    """Returns the error expected for invalid options; "" if a table is expected."""
    dim, all_widths = o["dim"], widths(o)
    raw = axes(o) if o["raw_first"] else 0
    if dim < 2 and o["odd_dim"] not in ("extra_sin", "truncate"):
        return "dim must be at least 2"
    if o["axis_channels"] == "quarter_rest" and axes(o) != 3:
        return "[sinusoid]"
    if o["odd_dim"] == "error":
        multiple = 16 if o["axis_channels"] == "quarter_rest" else 2 * axes(o)
        if sum(all_widths) + raw != dim if raw else dim % multiple:
            return "dim must be"
    if o["grid"] and raw:
        return "raw_first"
    if o["odd_dim"] == "truncate" and sum(all_widths) + raw < dim:
        return "OddDim::Truncate"
    for width in all_widths:
        if width <= 0:
            return "[sinusoid]"
        _, sines, cosines = pairs(o, width)
        if o["frequency"] not in ("powers_of_two", "linear") and divisor(o, width) <= 0:
            return "divides by"
        if width % 2 and (o["odd_dim"] != "extra_sin" or o["cos_first"]):
            return "OddDim::ExtraSin"
        shared = o["index"] not in PER_CHANNEL
        if sines != (width + 1) // 2 or (cosines < width // 2 if shared else cosines != width // 2):
            return "frequencies"
    if axes(o) > 1 and o["axis_depth"] != "outer" and (len(set(all_widths)) > 1 or all_widths[0] % 2):
        return "axis_depth"
    if o["precision"] == "exact":
        integer_shift = 2 * o["shift"] == math.trunc(2 * o["shift"])
        falls = o["phase"] == ("quotient" if o["frequency"] in ("power", "power_of_product") else "product")
        powers = all(math.frexp(abs(factor))[0] == 0.5 for _, factor in o["coordinates"])
        if (o["frequency"] in ("exp_floored", "linear") or o["angle_by_length"] or o["post"] != "none"
                or o["axis_values"] not in ("plain", "one_based") or not integer_shift or not powers
                or not falls):  # fmt: skip
            return "Precision::Exact is not defined"
    return ""


def frequencies(o: dict, width: int, cosine: bool, dtype: torch.dtype) -> Tensor:
    channels, sines, cosines = pairs(o, width)
    kind, m, base = o["frequency"], divisor(o, channels), o["base"]
    count = width // 2 if cosine else (width + 1) // 2
    if kind == "powers_of_two":
        return torch.pow(2.0, torch.linspace(0, sines - 1, sines, dtype=dtype))[:count]
    if kind == "linear":
        return torch.linspace(1.0, o["max_frequency"], sines, dtype=dtype)[:count]
    k = torch.arange(count)
    i = {"even": 2 * k, "half": k, "paired": 2 * k, "pair_number": k, "doubled": 4 * k + (2 if cosine else 0),
         "paired_half": 2 * (k // 2)}[o["index"]].to(dtype)  # fmt: skip
    if kind == "exp_floored":
        return torch.exp(i * math.floor((-math.log(base) / (2 * m)) / 2))
    if kind.startswith("exp"):
        return torch.exp(i * -(math.log(base) / m))
    if kind in ("power", "power_of_product"):
        return torch.pow(base, i * (2 / m) if kind == "power_of_product" else i / m)
    return torch.pow(1 / base, i / m) if kind == "power_inverse_base" else torch.pow(base, -(i / m))


def angles(o: dict, values: Tensor, width: int, cosine: bool, dtype: torch.dtype, length: int) -> Tensor:
    f = frequencies(o, width, cosine, dtype)
    p = values.to(dtype).unsqueeze(1)
    angle = p * f if o["phase"] == "product" else p / f
    if o["angle_by_length"]:
        angle = angle * (o["dim"] / length)
    return angle * o["angle_scale"]


def assemble(o: dict, blocks: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Assembles rows from the sines and cosines of each axis, (N, count) each."""
    order = [(c, s) if o["cos_first"] else (s, c) for s, c in blocks]
    if o["axis_depth"] == "outer" or len(order) == 1:
        return torch.cat([row_of(o, first, second) for first, second in order], 1)
    firsts, seconds = [first for first, _ in order], [second for _, second in order]
    if o["layout"] == "halves":
        join = torch.cat if o["axis_depth"] == "middle" else lambda x, axis: torch.stack(x, 2).flatten(1)
        return torch.cat([join(firsts, 1), join(seconds, 1)], 1)
    if o["axis_depth"] == "middle":
        return torch.stack([x for pair in order for x in pair], 2).flatten(1)
    return torch.stack([*firsts, *seconds], 2).flatten(1)


def row_of(o: dict, first: Tensor, second: Tensor) -> Tensor:
    if o["layout"] == "halves":
        return torch.cat([first, second], 1)
    if first.size(1) == second.size(1):
        return torch.stack([first, second], 2).flatten(1)
    return torch.cat([torch.stack([first[:, :-1], second], 2).flatten(1), first[:, -1:]], 1)


def cells(o: dict, axis: int, dtype: torch.dtype) -> Tensor:
    extent = o["grid"][axis]
    v = torch.arange(extent, dtype=torch.float32)
    one = v + 1
    value = {"plain": v, "one_based": one, "normalized": one / (one[-1:] + 1e-6) * (2 * math.pi),
             "centered": (one - 0.5) / (one[-1:] + 1e-6) * (2 * math.pi),
             "scaled": v / (extent / o["base_size"]) / o["interpolation_scale"]}[o["axis_values"]]  # fmt: skip
    places = torch.cartesian_prod(*[torch.arange(n) for n in o["grid"]]).view(-1, len(o["grid"]))
    return value[places[:, axis]].to(dtype)


def rows_at(o: dict, positions: Tensor | None, dtype: torch.dtype, length: int) -> Tensor:
    """The rows of positions, or of the grid's cells."""
    if o["grid"]:
        values = [cells(o, axis, dtype) for axis in o["channel_axes"] or range(axes(o))]
    elif o["coordinates"]:
        p = positions.to(dtype)
        values = [(1 - p if complement else p) * factor for complement, factor in o["coordinates"]]
    else:
        values = [positions.to(dtype)]
    narrow = torch.float32 if o["arithmetic"] == "float64_angle" and dtype != torch.float64 else dtype
    wide = torch.float64 if o["arithmetic"] == "float64_angle" else dtype
    blocks = []
    for value, width in zip(values, widths(o)):
        of = [angles(o, value, width, cosine, wide, length).to(narrow) for cosine in (False, True)]
        blocks.append((of[0].sin(), of[1].cos()))
    out = assemble(o, blocks)
    if o["raw_first"]:
        out = torch.cat([torch.stack([v.to(out.dtype) for v in values], 1), out], 1)
    if o["odd_dim"] == "zero_column" and out.size(1) < o["dim"]:
        out = torch.cat([out, out.new_zeros(out.size(0), o["dim"] - out.size(1))], 1)
    return out[:, : o["dim"]] if o["odd_dim"] == "truncate" else out


def positions_of(o: dict, length: int) -> Tensor:
    whole = o["start"] == math.trunc(o["start"]) and o["step"] == math.trunc(o["step"])
    kind = o["rows"]
    if kind == "up":
        if whole:
            return torch.arange(length) * int(o["step"]) + int(o["start"])
        return torch.arange(length, dtype=torch.float32) * o["step"] + o["start"]
    first, last = {"down": (length - 1, 0), "down_from_length": (length, 0), "relative": (length - 1, 1 - length),
                   "relative_distance": (length - 1, 1 - length), "relative_even": (length, 1 - length)}[kind]  # fmt: skip
    places = torch.arange(first, last - 1, -1)
    return places.abs() if kind == "relative_distance" else places


def finished(o: dict, table: Tensor, wide: bool) -> Tensor:
    table = table if wide else table.float()
    if o["post"] == "divide_by_sqrt_dim":
        return table / math.sqrt(o["dim"])
    if o["post"] == "multiply_by_rsqrt_dim":
        return table * o["dim"] ** -0.5
    if o["post"] == "standardize":
        table = table - table.mean()
        return table / (table.std() * 10)
    return table


def table_of(o: dict, length: int, dtype: torch.dtype) -> Tensor:
    positions = None if o["grid"] else positions_of(o, length)
    rows = rows_at(o, positions, dtype, length)
    zero = o["zero_row"]
    if zero is not None and 0 <= zero < len(rows):
        rows[zero] = 0
    none = rows.new_zeros(1, rows.size(1))
    rows = torch.cat([none, rows]) if o["cls_row"] else rows
    rows = torch.cat([rows, none]) if o["odd_dim"] == "extra_row" and o["dim"] % 2 else rows
    return finished(o, rows, dtype == torch.float64)


def single_rows(o: dict, positions: Tensor, dtype: torch.dtype) -> Tensor:
    rows = rows_at(o, positions.reshape(-1), dtype, 1)
    if o["zero_row"] is not None:
        rows[positions.reshape(-1).double() == o["start"] + o["step"] * o["zero_row"]] = 0
    return finished(o, rows, dtype == torch.float64).view(*positions.shape, -1)


def one(draw: Draw) -> Case:
    o = options(draw)
    length = math.prod(o["grid"]) if o["grid"] else draw.randint(2, 40)
    exact = o["precision"] == "exact"
    numbered = {name: NUMBERED[name].index(o[name]) for name in NUMBERED}
    given = {"op": "sinusoid", **o, **numbered, "length": length, "names": {name: o[name] for name in NUMBERED}}
    tensors = {}
    why = refused(o, length)
    if why:
        return Case(given, tensors, {}, refused=why)
    if not o["grid"] and not o["angle_by_length"] and o["post"] != "standardize":
        tensors["positions"] = draw.choice([draw.integers(60, 3, 2) - 20, draw.integers(9, 4), draw.normal(5) * 9])
    # The table in Python's arithmetic, and before rounding.
    own = torch.float64 if exact or o["arithmetic"] == "float64" else torch.float32
    expected, truth = {"table": table_of(o, length, own).float()}, {"table": table_of(o, length, torch.float64)}
    if tensors:
        expected["rows"] = single_rows(o, tensors["positions"], own).float()
        truth["rows"] = single_rows(o, tensors["positions"], torch.float64)
    return Case(given, tensors, expected, "exact" if exact else "sums", truth)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    return run(programs, [one(draw) for _ in range(CASES)])

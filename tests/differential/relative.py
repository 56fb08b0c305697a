"""Relative positions of every preset against the system's own class: bits in the dtypes that it has, and gradients in float32.

The cases are those of tests/catalogue/relative, which also compares them by the command.
"""

import importlib
import sys
import types
from pathlib import Path

import torch

import relative_configs as configs
from harness import Case, Draw, Failure, Programs, judge

sys.path.append(str(Path(__file__).parents[1] / "catalogue/relative"))
for name in ("alibi", "axes", "blocks", "buckets", "clamped", "deberta", "documents", "packages", "transformer_xl", "windows"):
    importlib.import_module(name)
RELATIVE = importlib.import_module("relative_registry").RELATIVE
T5, modeling = importlib.import_module("buckets").PREFIXES, importlib.import_module("buckets").modeling
packages = importlib.import_module("packages")

CASES = 4  # of each preset in a batch, beside one with gradients
WRONG = 3  # calls of each preset with something wrong
ONE_THREAD = {"OMP_NUM_THREADS": "1"}  # as the reference has: products of LibTorch have other bits with more
FAR = 4  # of T5's kin in a batch, each with two million distances


def bits(draw: Draw, name: str) -> Case:
    case = RELATIVE[name].case(draw.getrandbits(48))
    return Case({"op": "relative", "settings": case.settings}, case.tensors, case.expected, "bits")


def in_float32(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key: value.float() if value.dtype == torch.float64 else value for key, value in tensors.items()}


def gradients(draw: Draw, name: str) -> Case | None:
    """None where no output depends on a tensor."""
    seed = draw.getrandbits(48)
    case = RELATIVE[name].case(seed, gradients=True)
    is_table = sum(value.requires_grad for value in case.tensors.values()) == 1  # whose gradient is a sum of cotangents
    if is_table:  # of up to a million, which Python adds up badly in float32
        case = RELATIVE[name].case(seed, gradients=True, in_float64=True)
    outputs = {key: value for key, value in case.expected.items() if value.requires_grad}
    leaves = {key: value for key, value in case.tensors.items() if value.requires_grad}
    if not outputs:
        return None
    cotangents = {key: draw.normal(*value.shape).to(value.dtype) for key, value in outputs.items()}
    if is_table:  # or the sum may be near 0, of which a bound relative to it says nothing
        cotangents = {key: value.abs() for key, value in cotangents.items()}
    found = torch.autograd.grad(list(outputs.values()), list(leaves.values()), list(cotangents.values()), allow_unused=True)
    expected = {f"grad.{key}": value for key, value in zip(leaves, found) if value is not None}
    tensors = case.tensors | {f"cotangent.{key}": value for key, value in cotangents.items()}
    return Case({"op": "relative", "settings": case.settings}, in_float32(tensors), in_float32(expected), "gradients")


def distances(draw: Draw) -> torch.Tensor:
    """Key - query: every one to 2^20 on both sides, and those near 2^31."""
    near = torch.arange(-(2**20), 2**20 + 1)
    far = torch.randint(2**20, 2**31, (1000,), generator=draw.torch)
    return torch.cat([near, far, -far, 2**31 - torch.arange(100), torch.arange(100) - 2**31])


def far_buckets(draw: Draw, name: str) -> Case:
    """The rows of all distances, which decide the bits of a bias, by the function of one of T5's kin."""
    both = name in ("wavlm", "cpmant", "mpnet") or (name != "prophetnet" and draw.coin())
    count = draw.choice([4, 8, 32, 64, 320, 512]) if both else draw.choice([2, 6, 32, 33, 101])
    most = max(draw.choice([count, 128, 800, 2048, draw.randint(count, 5000)]), count // 2 + 1)
    index = {"num_buckets": count, "max_distance": most, "bidirectional": both, "truncate_sum": name in ("wavlm", "prophetnet")}
    given, named = distances(draw), {"num_buckets": count, "max_distance": most}
    library = modeling(name) if name != "x_transformers" else packages.xt
    if name == "umt5":
        own = {"is_decoder": not both, "relative_attention_num_buckets": count, "relative_attention_max_distance": most}
        rows = library.UMT5Attention._relative_position_bucket(types.SimpleNamespace(**own), given)
    elif name in T5:
        rows = getattr(library, f"{T5[name]}Attention")._relative_position_bucket(given, bidirectional=both, **named)
    elif name == "mpnet":
        rows = library.MPNetEncoder.relative_position_bucket(given, **named)
    elif name == "wavlm":
        rows = library.WavLMAttention._relative_positions_bucket(types.SimpleNamespace(**named), given)
    elif name == "layoutlmv2":
        rows = library.relative_position_bucket(given, bidirectional=both, **named)
    elif name == "layoutlmv3":
        rows = library.LayoutLMv3Encoder.relative_position_bucket(None, given, bidirectional=both, **named)
    elif name == "cpmant":
        rows = library.CpmAntSegmentPositionEmbedding._position_bucket(None, given, **named)
    elif name == "prophetnet":
        rows = library.compute_relative_buckets(count, most, given, both)
    else:
        rows = library.RelativePositionBias._relative_position_bucket(given, causal=not both, **named)
    return Case({"op": "relative_index", "index": index, "of": name}, {"distances": given}, {"rows": rows.long()}, "bits")


def far_logarithms(draw: Draw) -> Case:
    """DeBERTa v2's and SEW-D's, whose rows are those of query - key, kept inside of the table."""
    buckets, name = draw.choice([8, 32, 256, draw.randint(2, 300)]), draw.choice(["deberta_v2", "sew_d"])
    index = {"buckets": buckets, "max_position": buckets + draw.choice([4, 256, 5000])}
    given = distances(draw)
    rows = modeling(name).make_log_bucket_position(-given, buckets, index["max_position"]).long()
    return Case({"op": "relative_index", "index": index, "of": name}, {"distances": given},
                {"rows": (rows + buckets).clamp(0, 2 * buckets - 1)}, "bits")  # fmt: skip


def wrong(draw: Draw, name: str) -> Case:
    """A setting or a tensor that is another than the preset takes."""
    case = RELATIVE[name].case(draw.getrandbits(48))
    settings, tensors = dict(case.settings), dict(case.tensors)
    if draw.coin(0.4) or not tensors:
        key = draw.choice([key for key in settings if key != "preset"])
        values = [-1, 0, 1, 3, -(2**62), 2**40, 2**62, 1.5, -0.5, True, "word", [], [0, 0], [3], [3, 2], [-1, 4], [2**40, 2**40], ["p2c"]]
        settings[key] = draw.choice(values)
        if draw.coin(0.2):
            del settings[key]
        return Case({"op": "relative", "settings": settings}, tensors, {})
    key = draw.choice(list(tensors))
    tensor = tensors.pop(key)
    axis = draw.randrange(tensor.dim())
    kind = draw.choice(["longer", "shorter", "empty", "rank", "flat", "dtype", "absent", "swapped"])
    if kind == "longer":
        tensor = torch.cat([tensor, tensor.narrow(axis, 0, 1)], axis)
    elif kind == "shorter":
        tensor = tensor.narrow(axis, 0, tensor.shape[axis] - 1)
    elif kind == "empty":
        tensor = tensor.narrow(axis, 0, 0)
    elif kind == "rank":
        tensor = tensor.unsqueeze(axis)
    elif kind == "flat":
        tensor = tensor.flatten()
    elif kind == "dtype":
        tensor = tensor.to(draw.choice([torch.int64, torch.float64, torch.float32, torch.bfloat16, torch.bool]))
    elif kind == "swapped":
        tensor = tensor.transpose(axis, 0)
    if kind != "absent":
        tensors[key] = tensor
    return Case({"op": "relative", "settings": settings, "wrong": f"{kind} {key}"}, tensors, {})


def unnamed(cases: list[Case], results: list) -> list[Failure]:
    """Errors that do not begin with the name of the preset or of the function, and the ends of the driver. What fits after all is
    computed."""
    return [Failure(f"wrong: {case.options}", got) for case, got in zip(cases, results) if isinstance(got, str) and not got.startswith("[")]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    cases = []
    for name, reference in RELATIVE.items():
        cases += [bits(draw, name) for _ in range(CASES)]
        if "float32" in reference.dtypes:
            cases += [case for case in [gradients(draw, name)] if case]
    kin = [*T5, "mpnet", "wavlm", "layoutlmv2", "layoutlmv3", "cpmant", "prophetnet"] + ["x_transformers"] * (not packages.missing())
    cases += [far_buckets(draw, name) for name in draw.sample(kin, FAR)] + [far_logarithms(draw)]
    cases += [configs.case(draw, model_type) for model_type in configs.TYPES]
    count, failures = len(cases), judge(cases, programs.compute(cases, environment=ONE_THREAD))
    others = [wrong(draw, name) for name in RELATIVE for _ in range(WRONG)]
    return count + len(others), failures + unnamed(others, programs.compute(others, "wrong"))

"""Layers with weights in 8 bits, and scores of attention, against the arithmetic that docs/int8.md states, in integers of 64 bits:
equal bits with every instruction set of the processor, on one to three threads. Whole models, in 8 bits and in bfloat16, have the same
bits and find the same tokens with all sets that have fused multiply-add."""

import logging
import re

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

import encoders
from harness import Case, Draw, Failure, Programs, judge

CASES, ATTENTIONS = 24, 8
LEAST_KEYS = 64  # of a sequence whose scores are in 8 bits
ENCODERS = ("convbert", "deberta", "deberta-v2", "mobilebert", "wav2vec2-conformer", "xlnet")
# Of the norm of the result. A few layers that are 8 channels wide lose more than real ones.
BOUNDS = {"int8": 0.1, "bfloat16": 0.02}
WITH_LINEAR_LAYERS = ("bert", "distilbert", "eurobert", "llama", "mt5", "t5", "umt5")  # alone, which are computed here too
TIES = 0.01  # of the norm: of numbers that are rounded the other way, since those before them differ in their last bit
WITHOUT_FUSED = ("generic", "sse2")  # on x86-64; elsewhere all have it
WIDTHS = [1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 130, 257]
UNUSUAL = [0.0, -0.0, 1e-45, 1e-40, 2.0**-126, 2.0**-101, 2.0**-100, 7.9e-31, 1e30, 3.4e38, -3.4e38, float("inf"),
           float("-inf"), float("nan")]  # fmt: skip


def converted(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the integers and the unit of each row of a weight."""
    integers, units = np.zeros(rows.shape, np.int64), np.zeros(len(rows), np.float32)
    for i, row in enumerate(rows):
        if not np.isfinite(row).all():
            units[i] = np.nan
            continue
        largest = np.abs(row).max()
        if largest < np.float32(2.0**-100):
            continue
        scale = np.float32(127) / largest
        units[i] = largest / np.float32(127)
        integers[i] = np.rint(row * scale)  # to nearest, ties to even
    return integers, units


def converted_inputs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the integers less their row's zero, and the unit of each row, of inputs."""
    integers, units = np.zeros(rows.shape, np.int64), np.zeros(len(rows), np.float32)
    for i, row in enumerate(rows):
        if not np.isfinite(row).all():
            units[i] = np.nan
            continue
        least, most = min(row.min(), np.float32(0)), max(row.max(), np.float32(0))
        if max(-least, most) < np.float32(2.0**-100):
            continue
        half = most / np.float32(2) - least / np.float32(2)
        scale = np.float32(127) / half
        units[i] = half / np.float32(127)
        zero = np.rint(-least * scale) - 127
        integers[i] = np.minimum(np.rint(row * scale) + zero, 127) - zero
    return integers, units


def parts(rows: np.ndarray, block: int) -> list[np.ndarray]:
    """The blocks of rows, or with 0 the rows."""
    return np.split(rows, range(block, rows.shape[1], block), axis=1) if block else [rows]


def layer(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None, block: int) -> np.ndarray:
    terms = []
    for of_x, of_weight in zip(parts(x, block), parts(weight, block), strict=True):
        (q_x, unit_x), (q_w, unit_w) = converted_inputs(of_x), converted(of_weight)
        terms.append((q_x @ q_w.T).astype(np.float32) * unit_w * unit_x[:, None])
    out = terms[0]
    for term in terms[1:]:
        out = out + term
    assert out.dtype == np.float32
    return out if bias is None else out + bias


def table(weight: np.ndarray, block: int) -> np.ndarray:
    rows = [integers.astype(np.float32) * units[:, None] for integers, units in map(converted, parts(weight, block))]
    return np.concatenate(rows, axis=1)


def unusual(draw: Draw, matrix: Tensor) -> None:
    """Changes some rows, or a block of them, to what a conversion could get wrong."""
    for row in matrix:
        if draw.coin(0.3):
            block = draw.choice([64, 128])
            start = block * draw.randrange((len(row) + block - 1) // block)
            row = row[start : start + block]
        kind = draw.randrange(12)
        if kind == 0:  # one number
            row[draw.randrange(len(row))] = draw.choice(UNUSUAL)
        elif kind == 1:  # nothing else
            row.fill_(draw.choice(UNUSUAL))
        elif kind == 2:  # halves, which are ties where the scale is 1
            row.copy_(draw.integers(254, len(row)) - 126.5)
            row[draw.randrange(len(row))] = draw.choice([127.0, -127.0])
        elif kind == 3:  # of one sign and the largest size, which would saturate 16 bits
            row.fill_(draw.choice([2.0, -3.0]))
        elif kind == 4:
            row.mul_(10.0 ** draw.randint(-38, 30))
        elif kind == 5:  # subnormal
            row.mul_(2.0**-130)


def case_of(draw: Draw) -> Case:
    rows = draw.choice([1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 30, 70])
    inner, outer, beside = draw.choice(WIDTHS), draw.choice(WIDTHS), draw.choice([0, 0, 1, 5])
    if draw.coin(0.1):
        inner, outer = draw.choice([(2048, 48), (512, 333), (3000, 1)])
    block = draw.choice([0, 64, 128])
    x, weight = draw.normal(rows, inner + beside), draw.normal(outer, inner)
    if draw.coin(0.7):
        unusual(draw, x)
    if draw.coin(0.5):
        unusual(draw, weight)
    tensors = {"x": x, "weight": weight, "ids": draw.integers(outer, draw.randint(1, 9))}
    if draw.coin():
        tensors["bias"] = draw.normal(outer) * draw.choice([0.0, 1.0, 100.0])
    bias = tensors["bias"].numpy() if "bias" in tensors else None
    expected = {"out": torch.from_numpy(layer(x[:, :inner].numpy(), weight.numpy(), bias, block)),
                "rows": torch.from_numpy(table(weight.numpy(), block))[tensors["ids"]]}  # fmt: skip
    return Case({"op": "int8_layer", "block": block, "threads": draw.randint(1, 3)}, tensors, expected, "bits")


def scores_of(q: Tensor, k: Tensor, scale: np.float32) -> Tensor:
    """The scores (B, H, L, S) of queries (B, H, L, Dh) and keys (B, H, S, Dh), without biases."""
    (q_q, unit_q), (q_k, unit_k) = (converted(x.flatten(0, 2).numpy()) for x in (q, k))
    sums = q_q.reshape(q.shape) @ q_k.reshape(k.shape).swapaxes(2, 3)
    of_queries = unit_q.reshape(q.shape[:3]) * scale
    scores = (sums.astype(np.float32) * of_queries[..., None]) * unit_k.reshape(k.shape[:3])[:, :, None]
    assert scores.dtype == np.float32
    return torch.from_numpy(scores)


def attention_pair(draw: Draw) -> tuple[Case, Case, Tensor]:
    """Attention with scores in 8 bits; the same in float32, whose scores are those of numpy as a bias, from which both have the
    same bits; and PyTorch's attention of these scores in float64."""
    kv_heads, group, width, batch = draw.randint(1, 2), draw.randint(1, 3), draw.choice([1, 2, 5, 8, 16, 20, 32, 64, 80, 130]), draw.randint(1, 2)
    heads, keys, causal = kv_heads * group, draw.choice([1, 30, 63, 64, 65, 100, 129, 200]), draw.coin(0.3)
    queries = keys if causal else draw.randint(1, 130)
    given = {"q": draw.normal(batch, queries, heads * width), "k": draw.normal(batch, keys, kv_heads * width)}
    if draw.coin(0.7):
        for x in given.values():
            rows = x.view(-1, width)
            unusual(draw, rows[draw.integers(len(rows), 1)[0] :][:3])
    v, added = draw.normal(batch, keys, kv_heads * width), torch.zeros(batch, heads, queries, keys)
    if draw.coin():
        added = given["bias"] = draw.normal(batch, heads, queries, keys)
    q = given["q"].unflatten(2, (heads, width)).transpose(1, 2)
    k = given["k"].unflatten(2, (kv_heads, width)).transpose(1, 2).repeat_interleave(group, 1)
    options = {"op": "sequence_attention", "threads": draw.randint(1, 3), "heads": heads, "causal": causal}
    if keys < LEAST_KEYS:
        plain, scores = given, (q.double() @ k.double().transpose(2, 3)) * width**-0.5 + added.double()
    else:
        scores = scores_of(q, k, np.float32(1) / np.sqrt(np.float32(width))) + added
        plain = {"q": torch.zeros_like(given["q"]), "k": torch.zeros_like(given["k"]), "bias": scores}
    if causal:
        scores = scores.masked_fill(torch.ones(queries, keys).triu(1) > 0, float("-inf"))
    mixed = scores.double().softmax(3) @ v.double().unflatten(2, (kv_heads, width)).transpose(1, 2).repeat_interleave(group, 1)
    cases = [Case(options | {"products": dtype}, tensors | {"v": v}, {}, "bits") for dtype, tensors in (("int8", given), ("float32", plain))]
    return cases[0], cases[1], mixed.transpose(1, 2).flatten(2)


def attentions(draw: Draw, programs: Programs, names: list[str]) -> tuple[int, list[Failure]]:
    with np.errstate(all="ignore"):
        pairs = [attention_pair(draw) for _ in range(ATTENTIONS)]
    narrow, wide = [one for one, _, _ in pairs], [one for _, one, _ in pairs]
    failures, of_fused = [], {}
    for name in reversed(names):  # the best one first
        results = programs.compute(wide + narrow, f"attention-{name}", {"POSENC_ISA": name, "OMP_NUM_THREADS": str(draw.randint(1, 3))})
        for i, case in enumerate(narrow):
            if isinstance(results[i], str):
                failures.append(Failure(f"{name}: {wide[i].options}", str(results[i])))
                continue
            case.expected = results[i]
            error = (results[i]["out"].double() - pairs[i][2]).abs()
            error = error[pairs[i][2].isfinite()]
            if error.numel() and error.max() > 1e-4:
                failures.append(Failure(f"{name}: {case.options}", f"off by {error.max():.3g}"))
            if name not in WITHOUT_FUSED or "sse2" not in names:
                first = of_fused.setdefault(i, results[i]["out"])
                if not torch.equal(first.nan_to_num(1e9), results[i]["out"].nan_to_num(1e9)):
                    failures.append(Failure(f"{name}: {case.options}", "has other bits than the first set"))
        failures += [Failure(f"{name}: {one.what}", one.why) for one in judge(narrow, results[len(wide) :])]
    return 2 * len(pairs) * len(names), failures


def model_case(draw: Draw, programs: Programs, dtype: str) -> Case:
    """A Transformer of any sizes with random weights, which are written to a file."""
    heads = draw.choice([1, 2, 3])
    width, hidden, layers = heads * 2 * draw.randint(2, 17), draw.randint(1, 90), draw.randint(1, 3)
    src_vocab, tgt_vocab, most = draw.randint(4, 60), draw.randint(4, 90), 24
    half = np.exp(np.arange(0, width, 2) * -(np.log(10000.0) / width))
    angles = np.arange(most)[:, None] * half
    table = torch.from_numpy(np.stack([np.sin(angles), np.cos(angles)], 2).reshape(1, most, width)).float()
    tensors = {"final_layer.weight": draw.normal(tgt_vocab, width), "final_layer.bias": draw.normal(tgt_vocab)}
    for side, vocab in (("src", src_vocab), ("tgt", tgt_vocab)):
        tensors[f"{side}_embedding.token_embedding.weight"] = draw.normal(vocab, width)
        tensors[f"{side}_embedding.position_encoding.pe"] = table.clone()
    for side, attentions in (("encoder", ["self_attn"]), ("decoder", ["self_attn", "multihead_attn"])):
        for i in range(layers + 1):
            name = f"{side}.layers.{i}." if i < layers else f"{side}."
            norms = [f"norm{n + 1}" for n in range(len(attentions) + 1)] if i < layers else ["norm"]
            for norm in norms:
                tensors[f"{name}{norm}.weight"] = 1 + 0.1 * draw.normal(width)
                tensors[f"{name}{norm}.bias"] = 0.1 * draw.normal(width)
            parts = {"linear1": (hidden, width), "linear2": (width, hidden)}
            for attention in attentions:
                parts |= {f"{attention}.in_proj": (3 * width, width), f"{attention}.out_proj": (width, width)}
            for part, (rows, columns) in parts.items() if i < layers else ():
                dot = "_" if part.endswith("in_proj") else "."
                tensors[f"{name}{part}{dot}weight"] = draw.normal(rows, columns) * columns**-0.5
                tensors[f"{name}{part}{dot}bias"] = 0.1 * draw.normal(rows)
    file = programs.folder / f"{dtype}.safetensors"
    save_file(tensors, file, {"format": "pt"})
    batch = draw.randint(1, 12)
    src = 1 + draw.integers(src_vocab - 1, batch, draw.randint(1, 20))
    src[-1, src.shape[1] // 2 + 1 :] = 0
    options = {"op": "converted_transformer", "weights": dtype, "block": draw.choice([0, 64, 128]) if dtype == "int8" else 0, "file": str(file), "src_vocab": src_vocab, "tgt_vocab": tgt_vocab,
               "d_model": width, "heads": heads, "layers": layers, "d_ff": hidden, "max_len": most, "begin": 1, "end": 2, "pad": 0,
               "most": draw.randint(1, 12)}  # fmt: skip
    return Case(options, {"src": src, "tgt": draw.integers(tgt_vocab, batch, draw.randint(1, 20))}, {}, "bits")


class Converted(torch.nn.Module):
    """A linear layer of transformers by this arithmetic."""

    def __init__(self, linear: torch.nn.Linear, block: int):
        super().__init__()
        self.weight, self.bias, self.block = linear.weight, linear.bias, block

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.weight.numpy(), None if self.bias is None else self.bias.numpy()
        return torch.from_numpy(layer(x.flatten(0, -2).numpy(), weight, bias, self.block)).view(*x.shape[:-1], -1)


def converted_by_hand(kind: str, folder: str, given: dict, block: int) -> Tensor:
    """What transformers computes with converted linear layers and tokens."""
    import transformers

    model = getattr(transformers, encoders.KINDS[kind].model).from_pretrained(folder, attn_implementation="eager").eval()
    for name, module in list(model.named_modules()):
        for part, linear in module.named_children():
            if isinstance(linear, torch.nn.Linear) and "pooler" not in name:
                setattr(module, part, Converted(linear, block))
    tokens = model.get_input_embeddings().weight
    tokens.copy_(torch.from_numpy(table(tokens.numpy(), block)))
    return model(**given).last_hidden_state


def encoder_cases(draw: Draw, programs: Programs) -> tuple[list[Case], list[Tensor], dict[str, float]]:
    """An encoder in both dtypes, and what transformers makes of its weights in float32, or of converted ones."""
    kind, block = draw.choice([*ENCODERS, *WITH_LINEAR_LAYERS]), draw.choice([0, 64, 128])
    with torch.no_grad(), encoders.one_thread(logging.ERROR):
        made, *_ = encoders.one(draw, programs, kind, 0)
        given, exact, folder = made[0].tensors, made[0].expected["last_hidden_state"], made[0].options["folder"]
        given = {name: tensor for name, tensor in given.items() if name != "computed_mask"}
        is_linear = kind in WITH_LINEAR_LAYERS
        converted = converted_by_hand(kind, folder, given, block) if is_linear else exact
    cases = [Case({"op": "converted_encoder", "weights": dtype, "block": block if dtype == "int8" else 0, "folder": folder}, given, {}, "bits")
             for dtype in BOUNDS]  # fmt: skip
    return cases, [converted if dtype == "int8" else exact for dtype in BOUNDS], BOUNDS | ({"int8": TIES, "bfloat16": 0.1} if is_linear else {})  # T5 does not scale its scores


def far(case: Case, got: Tensor, exact: Tensor, bounds: dict[str, float] = BOUNDS) -> str:
    """Why the rows of tokens are not near those that are expected; "" if they are."""
    mask = case.tensors.get("attention_mask")
    a, b = (got, exact) if mask is None else (got[mask != 0], exact[mask != 0])
    error = ((a - b).norm() / b.norm().clamp(min=1e-6)).item()
    return f"off by {error:.3g} of its norm" if error > bounds[case.options["weights"]] else ""


def models(draw: Draw, programs: Programs, names: list[str]) -> tuple[int, list[Failure]]:
    cases = [model_case(draw, programs, dtype) for dtype in ("int8", "bfloat16")]
    of_encoders, exact, bounds = encoder_cases(draw, programs)
    cases += of_encoders
    fused = [name for name in names if name not in WITHOUT_FUSED or "sse2" not in names]
    failures = []
    for name in reversed(fused):  # the best one first
        threads = draw.randint(1, 3)
        results = programs.compute(cases, f"models-{name}", {"POSENC_ISA": name, "OMP_NUM_THREADS": str(threads)})
        for case, got in zip(cases, results):
            if not case.expected and not isinstance(got, str):
                case.expected = got
        if name == fused[-1]:
            pairs = zip(of_encoders, results[-len(of_encoders) :], exact)
            wrong = [(case, far(case, got["out"], truth, bounds)) for case, got, truth in pairs if not isinstance(got, str)]
            failures += [Failure(f"{case.options}", why) for case, why in wrong if why]
        failures += [Failure(f"{name}, {threads} threads: {one.what}", one.why) for one in judge(cases, results)]
    return len(cases) * len(fused), failures


def set_names(programs: Programs, case: Case) -> list[str]:
    """Returns the instruction sets of this processor, which the error for an unknown one lists."""
    answer = programs.compute([case], "sets", {"POSENC_ISA": "unknown"})[0]
    found = re.search(r"this processor has: (.*)\. Got", str(answer))
    assert found, answer
    return found[1].split(", ")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with np.errstate(all="ignore"):
        cases = [case_of(draw) for _ in range(CASES)]
    names = set_names(programs, cases[0])
    count, failures = models(draw, programs, names)
    of_attention = attentions(draw, programs, names)
    count, failures = count + of_attention[0], failures + of_attention[1]
    for name in names:
        results = programs.compute(cases, name, {"POSENC_ISA": name})
        count += len(cases)
        failures += [Failure(f"{name}: {one.what}", one.why) for one in judge(cases, results)]
    return count, failures

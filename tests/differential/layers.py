"""Attention, layers, stacks, whole Transformers and frozen ones against torch.nn: outputs and gradients."""

import copy
import sys
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from harness import DTYPES, Case, Draw, Failure, Programs, run
from masks import Shape, combined, hidden_keys, key_parts, random_mask

sys.path.insert(0, str(Path(__file__).parents[2] / "notebooks_ref"))
from reference import transformer as reference  # noqa: E402

CASES = 24
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": F.silu, "gelu_tanh": partial(F.gelu, approximate="tanh"),
               "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x)}  # fmt: skip
TYINGS = ["none", "encoder_decoder", "decoder_output", "three_way"]


class Sizes:
    """The options of one case, and the sizes of its masks."""

    def __init__(self, draw: Draw, dtype: str):
        self.draw = draw
        self.heads = draw.choice([1, 1, 2, 3, 4, 8])
        self.width = self.heads * draw.choice([1, 2, 3, 5, 8, 16, 17])
        self.batch, self.queries, self.keys = draw.randint(1, 5), draw.randint(1, 12), draw.randint(1, 12)
        if draw.coin(0.15):  # sizes for which confused axes go unnoticed
            self.queries = self.keys = self.batch
        self.dropout = draw.choice([0.0, 0.1, 0.5])
        self.options = {
            "heads": self.heads, "width": self.width, "d_ff": draw.choice([1, 2, 7, 16, 33, 64]),
            "dropout": self.dropout, "activation": draw.choice(list(ACTIVATIONS)), "norm_first": draw.coin(),
            "eps": draw.choice([1e-5, 1e-6, 1e-3]), "bias": draw.coin(0.7), "batch_first": draw.coin(0.7),
            "layers": draw.randint(1, 3), "norm": draw.coin(), "dtype": dtype, "train": draw.coin(0.4),
            "seed": draw.getrandbits(31),
        }  # fmt: skip

    def even(self) -> None:
        """Makes the width even, as the sinusoid requires."""
        self.width *= 1 + self.width % 2
        self.options["width"] = self.width

    def sequence(self, length: int, width: int | None = None) -> torch.Tensor:
        x = self.draw.normal(self.batch, length, width or self.width)
        return x if self.options["batch_first"] else x.transpose(0, 1).contiguous()

    def shape(self, queries: int, keys: int) -> Shape:
        return Shape(self.batch, self.heads, queries, keys)

    def mask(self, queries: int, keys: int, name: str) -> tuple[list, dict]:
        """Parts for torch_nn() and the driver to combine, and their tensors; every query keeps a key."""
        draw = self.draw
        if draw.coin():
            return random_mask(draw, self.shape(queries, keys), name, draw.choice([0, draw.randrange(keys)]))
        parts, tensors = self.torch_nn_mask(queries, keys, name)
        return [{**part, "torch_nn": True} for part in parts], tensors

    def torch_nn_mask(self, queries: int, keys: int, name: str) -> tuple[list, dict]:
        """Parts that are arguments of torch.nn, which combines them itself."""
        draw, kind = self.draw, self.draw.choice(["none", "matrix", "bias", "padding", "heads", "both", "causal"])
        padding = draw.bits(0.4, self.batch, keys)
        padding[:, draw.randrange(keys)] = False
        matrix = draw.bits(0.4, queries, keys)
        matrix[:, draw.randrange(keys)] = False
        parts: list = []
        tensors = {}
        if kind in ("matrix", "bias"):
            parts = [{"kind": "attn_mask", "in": name}]
            tensors[name] = matrix if kind == "matrix" else draw.normal(queries, keys)
        elif kind == "heads":
            bits = draw.bits(0.4, self.batch * self.heads, queries, keys)
            bits[..., draw.randrange(keys)] = False
            parts, tensors[name] = [{"kind": "attn_mask", "in": name}], bits
        elif kind == "causal" and queries <= keys:
            parts = [{"kind": "causal"}]
        if kind in ("padding", "both"):
            parts.append({"kind": "key_padding_mask", "in": f"{name}_padding"})
            tensors[f"{name}_padding"] = padding
        if kind == "both":
            matrix[:, :] = draw.bits(0.3, queries, keys)
            matrix[:, (~padding).all(0)] = False  # a key that is open everywhere, if there is one
            if bool((matrix.unsqueeze(0) | padding.unsqueeze(1)).all(-1).any()):
                matrix[:, :] = False
            parts.append({"kind": "attn_mask", "in": name})
            tensors[name] = matrix
        return parts, tensors


def cast(tensors: dict, dtype: torch.dtype) -> dict:
    return {key: value.to(dtype) if value.is_floating_point() else value for key, value in tensors.items()}


def gradients(module: nn.Module, inputs: dict, cotangent: torch.Tensor, call, seed: int) -> dict:
    """Returns `out` and all gradients under the driver's names."""
    module.zero_grad()
    leaves = {k: v.clone().requires_grad_() if v.is_floating_point() else v for k, v in inputs.items()}
    torch.manual_seed(seed)
    out = call(module, leaves)
    result = {"out": out.detach()}
    if cotangent is None:
        return result
    (out * cotangent).sum().backward()
    found = {f"grad.param.{k}": p.grad for k, p in module.named_parameters()}
    found |= {f"grad.in.{k}": v.grad for k, v in leaves.items() if v.is_floating_point()}
    return result | {key: value.clone() for key, value in found.items() if value is not None}


def made(op: str, sizes: Sizes, module: nn.Module, inputs: dict, masks: dict, call, rule: str = "sums") -> Case:
    """`masks` maps names of arguments to their parts."""
    dtype = DTYPES[sizes.options["dtype"]]
    with torch.no_grad():  # norms and biases start as ones and zeros; torch.nn draws all others
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.add_(sizes.draw.normal(*parameter.shape), alpha=0.2)
    module = module.to(dtype).train(sizes.options["train"])
    inputs = cast(inputs, dtype)
    seed = sizes.options["seed"]
    with torch.no_grad():
        shape = call(module, inputs).shape
    cotangent = None if rule == "frozen" else sizes.draw.normal(*shape).to(dtype)
    expected = gradients(module, inputs, cotangent, call, seed)
    truth = {}
    if not (sizes.options["train"] and sizes.dropout):  # dropout would draw other masks in float64
        wide = None if cotangent is None else cotangent.double()
        truth = gradients(copy.deepcopy(module).double(), cast(inputs, torch.float64), wide, call, seed)
    options = {"op": op, **sizes.options, **{name: parts for name, parts in masks.items() if parts}}
    tensors = {f"param.{k}": v for k, v in module.state_dict().items()}
    tensors |= {f"in.{k}": v for k, v in inputs.items()}
    if cotangent is not None:
        tensors["cotangent"] = cotangent
    return Case(options, tensors, expected, rule, truth)


def attention(draw: Draw, dtype: str) -> Case:
    sizes = Sizes(draw, dtype)
    kdim, vdim = draw.choice([None, None, 5]), draw.choice([None, None, 7])
    sizes.options |= {"kdim": kdim, "vdim": vdim}
    module = nn.MultiheadAttention(
        sizes.width, sizes.heads, sizes.dropout, sizes.options["bias"], kdim=kdim, vdim=vdim,
        batch_first=sizes.options["batch_first"],
    )  # fmt: skip
    parts, tensors = sizes.mask(sizes.queries, sizes.keys, "mask")
    inputs = {"query": sizes.sequence(sizes.queries), "key": sizes.sequence(sizes.keys, kdim),
              "value": sizes.sequence(sizes.keys, vdim), **tensors}  # fmt: skip

    def call(module, x):
        mask, padding = torch_nn(parts, x, sizes.shape(sizes.queries, sizes.keys))
        return module(x["query"], x["key"], x["value"], padding, need_weights=False, attn_mask=mask)[0]

    return made("attention", sizes, module, inputs, {"mask": parts}, call)


def torch_nn(parts: list, x: dict, shape: Shape):
    """Returns the parts as (attn_mask, key_padding_mask); a bias needs a padding mask of its own dtype."""
    mask = padding = None
    if not all(part.get("torch_nn") for part in parts):
        return combined(parts, x, shape), None
    for part in parts:
        if part["kind"] == "causal":
            mask = torch.ones(shape.queries, shape.keys, dtype=torch.bool).triu(1)
        elif part["kind"] == "attn_mask":
            mask = x[part["in"]]
        else:
            padding = x[part["in"]]
    return mask, padding


def layer_of(kind, sizes: Sizes):
    o = sizes.options
    return kind(o["width"], o["heads"], o["d_ff"], o["dropout"], ACTIVATIONS[o["activation"]], o["eps"],
                batch_first=o["batch_first"], norm_first=o["norm_first"], bias=o["bias"])  # fmt: skip


def encoder(draw: Draw, dtype: str, stack: bool, frozen: bool = False) -> Case:
    sizes = Sizes(draw, dtype)
    o, length = sizes.options, sizes.keys
    module: nn.Module = layer_of(nn.TransformerEncoderLayer, sizes)
    if frozen:
        o |= {"train": False, "multiplier": draw.randrange(3)}
    if stack:
        norm = nn.LayerNorm(o["width"], o["eps"], bias=o["bias"]) if o["norm"] else None
        module = nn.TransformerEncoder(module, o["layers"], norm, enable_nested_tensor=False)
    parts, tensors = sizes.mask(length, length, "mask")

    def call(module, x):
        mask, padding = torch_nn(parts, x, sizes.shape(length, length))
        first = "mask" if stack else "src_mask"
        out = module(x["x"], **{first: mask}, src_key_padding_mask=padding)
        if frozen and key_parts(parts):  # it does not compute padding
            left_out = hidden_keys(parts, x, sizes.shape(length, length))
            out = out.masked_fill((left_out if o["batch_first"] else left_out.t()).unsqueeze(-1), 0.0)
        return out

    op = "frozen_encoder" if frozen else "encoder" if stack else "encoder_layer"
    inputs = {"x": sizes.sequence(length), **tensors}
    return made(op, sizes, module, inputs, {"mask": parts}, call, "frozen" if frozen else "sums")


def decoder(draw: Draw, dtype: str, stack: bool) -> Case:
    sizes = Sizes(draw, dtype)
    o = sizes.options
    module: nn.Module = layer_of(nn.TransformerDecoderLayer, sizes)
    if stack:
        norm = nn.LayerNorm(o["width"], o["eps"], bias=o["bias"]) if o["norm"] else None
        module = nn.TransformerDecoder(module, o["layers"], norm)
    own, tensors = sizes.mask(sizes.queries, sizes.queries, "mask")
    cross, more = sizes.mask(sizes.queries, sizes.keys, "memory_mask")

    def call(module, x):
        mask, padding = torch_nn(own, x, sizes.shape(sizes.queries, sizes.queries))
        memory_mask, memory_padding = torch_nn(cross, x, sizes.shape(sizes.queries, sizes.keys))
        return module(x["x"], x["memory"], mask, memory_mask, tgt_key_padding_mask=padding,
                      memory_key_padding_mask=memory_padding)  # fmt: skip

    inputs = {"x": sizes.sequence(sizes.queries), "memory": sizes.sequence(sizes.keys), **tensors, **more}
    op = "decoder" if stack else "decoder_layer"
    return made(op, sizes, module, inputs, {"mask": own, "memory_mask": cross}, call)


def transformer(draw: Draw, dtype: str, frozen: bool = False) -> Case:
    sizes = Sizes(draw, dtype)
    sizes.even()
    o, tying = sizes.options, draw.choice(TYINGS)
    vocab = draw.randint(1, 40)
    o |= {"src_vocab": vocab, "tgt_vocab": vocab if tying in ("encoder_decoder", "three_way") else draw.randint(1, 40),
          "decoder_layers": draw.randint(1, 3), "tying": tying, "max_len": 16, "batch_first": True,
          "multiplier": draw.randrange(3)}  # fmt: skip
    if frozen:
        o["train"] = False
    model = reference.Transformer(
        o["src_vocab"], o["tgt_vocab"], o["width"], o["heads"], o["layers"], o["decoder_layers"], o["d_ff"], 16,
        o["dropout"], tying, ACTIVATIONS[o["activation"]], o["eps"], o["norm_first"], o["bias"], o["norm"],
    )  # fmt: skip
    inputs = {"src": draw.integers(o["src_vocab"], sizes.batch, sizes.keys),
              "tgt": draw.integers(o["tgt_vocab"], sizes.batch, sizes.queries)}  # fmt: skip
    of_source, of_target, crossed = (sizes.shape(sizes.keys, sizes.keys), sizes.shape(sizes.queries, sizes.queries),
                                     sizes.shape(sizes.queries, sizes.keys))  # fmt: skip
    open_key = draw.choice([0, draw.randrange(sizes.keys)])
    src, tensors = random_mask(draw, of_source, "src_mask", open_key)
    tgt, more = random_mask(draw, of_target, "tgt_mask", draw.choice([0, draw.randrange(sizes.queries)]))
    if draw.coin():  # as in decoders
        tgt, more = [{"kind": "causal"}], {}
    inputs |= {**tensors, **more}
    masks: dict = {"src_mask": src, "tgt_mask": tgt}
    memory = src  # unless it has its own
    if key_parts(src) != src or draw.coin():
        own, tensors = random_mask(draw, crossed, "memory_mask", open_key, draw.randint(1, 3))
        # The frozen model has no memory at padding, so it must stay masked.
        memory = masks["memory_mask"] = own + (key_parts(src) if frozen else [])
        inputs |= tensors

    def call(model, x):
        return model(x["src"], x["tgt"], combined(src, x, of_source), combined(tgt, x, of_target), None,
                     combined(memory, x, crossed))  # fmt: skip

    op = "frozen_transformer" if frozen else "transformer"
    return made(op, sizes, model, inputs, masks, call, "frozen" if frozen else "sums")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    def one() -> Case:
        dtype = draw.choice(["float32", "float32", "float32", "float64", "bfloat16", "float16"])
        kind = draw.randrange(9)
        if kind == 0:
            return attention(draw, dtype)
        if kind in (1, 2):
            return encoder(draw, dtype, stack=kind == 2)
        if kind in (3, 4):
            return decoder(draw, dtype, stack=kind == 4)
        if kind in (5, 6):
            return transformer(draw, dtype)
        return encoder(draw, "float32", True, frozen=True) if kind == 7 else transformer(draw, "float32", frozen=True)

    return run(programs, [one() for _ in range(CASES)])

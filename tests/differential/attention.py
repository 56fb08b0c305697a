"""Attention with random rotary embeddings, masks, dtypes, padding and steps beside the models' own attention.

posenc computes what the model's class in transformers computes, or refuses the description by name. Without a rotary
embedding the other side is torch's scaled_dot_product_attention.
"""

import inspect
import json
from functools import lru_cache
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rotary_models as models
from harness import DTYPES, Case, Draw, Failure, Programs, judge
from masks import Shape, combined, random_mask
from rotary import REFUSALS, model_types
from written import read, written

CASES = 24
# Classes whose attention does more than rotate, without parameters for it.
MORE = {
    "llama4_text": "a norm of q and k, and a temperature of the position",
    "mimo_v2_flash": "a factor of the values",
    "nanochat": "a norm of q and k",
}
BY_HEAD = ("xcodec2", "neucodec")  # where the position is the number of the head
PROJECTIONS = {"q": ["q_proj", "query", "linear_q"], "k": ["k_proj", "key", "linear_k"], "v": ["v_proj", "value", "linear_v"],
               "o": ["o_proj", "out_proj", "dense", "linear_out"]}  # fmt: skip


@lru_cache
def classes(model_type: str) -> list[type[nn.Module]]:
    """The attention classes that take cos and sin."""
    module = models.modeling(model_type)
    return [value for name, value in vars(module).items()
            if isinstance(value, type) and name.endswith("Attention") and value.__module__ == module.__name__
            and "position_embeddings" in inspect.signature(value.forward).parameters]  # fmt: skip


def projections(attention: nn.Module) -> dict[str, nn.Linear] | None:
    """q, k, v and o, if the attention has no other parameters."""
    found = {}
    for name, module in attention.named_modules():
        for part, names in PROJECTIONS.items():
            if name in names and isinstance(module, nn.Linear):
                found[part] = module
    own = sum(p.numel() for module in found.values() for p in module.parameters())
    whole = sum(p.numel() for p in attention.parameters())
    return found if set(found) >= {"q", "k", "v"} and own == whole else None


def own_attention(model_type: str, config, width: int, head_dim: int) -> tuple[nn.Module, dict[str, nn.Linear]] | None:
    for kind in classes(model_type):
        try:
            takes = inspect.signature(kind.__init__).parameters
            attention = kind(config, **({"layer_idx": 0} if "layer_idx" in takes else {})).eval()
        except (*REFUSALS, TypeError, IndexError):
            continue
        found = projections(attention)
        if not found or found["q"].weight.shape != (width, width) or found["k"].weight.shape != found["v"].weight.shape:
            continue
        plain = abs(getattr(attention, "scaling", head_dim**-0.5) - head_dim**-0.5) < 1e-9
        if plain and not getattr(attention, "attn_logit_softcapping", None) and not getattr(config, "clip_qkv", None):
            return attention, found
    return None


def state(found: dict[str, nn.Linear], draw: Draw) -> dict[str, Tensor]:
    """The model's weights under the names of torch.nn; biases begin as zeros and are drawn here."""
    for linear in found.values():
        if linear.bias is not None:
            linear.bias.data = draw.normal(*linear.bias.shape) * 0.3
    width = found["q"].weight.shape[1]
    whole = {"in_proj_weight": torch.cat([found[part].weight for part in "qkv"])}
    biases = [found[part].bias for part in "qkv"]
    if any(bias is not None for bias in biases):
        whole["in_proj_bias"] = torch.cat([torch.zeros(len(found[part].weight)) if bias is None else bias
                                           for part, bias in zip("qkv", biases)])  # fmt: skip
    out = found.get("o")
    whole["out_proj.weight"] = torch.eye(width) if out is None else out.weight
    if out is not None and out.bias is not None:
        whole["out_proj.bias"] = out.bias
    return {name: value.detach() for name, value in whole.items()}


class Call:
    """A random input: sizes, positions, mask, steps, and the mask of the model's own call."""

    def __init__(self, draw: Draw, heads: int, width: int, dtype: str):
        self.batch, self.length = draw.randint(1, 3), draw.randint(1, 24)
        self.dtype, self.x = DTYPES[dtype], draw.normal(self.batch, self.length, width).to(DTYPES[dtype])
        shape = Shape(self.batch, heads, self.length, self.length)
        parts, self.tensors = random_mask(draw, shape, "mask", 0)
        self._biases(draw, parts, shape)
        self.options: dict = {"mask": parts, "dtype": dtype}
        self.positions = torch.arange(self.length).expand(self.batch, -1)
        if draw.coin(0.3):  # padding on the left, and positions that begin after it
            first = torch.tensor([draw.randrange(self.length) for _ in range(self.batch)])
            tokens = self.positions >= first.unsqueeze(1)
            parts.append({"kind": "key_padding", "in": "tokens"})
            self.tensors["tokens"] = tokens
            self.positions = (self.positions - first.unsqueeze(1)).clamp_min(0)
            self.tensors["position_ids"] = self.positions
        causal = [{"kind": "causal"}]
        if draw.coin():
            sizes, left = [], self.length
            while left:
                sizes.append(draw.choice([1, 1, draw.randint(1, left)]))
                left -= sizes[-1]
            self.options |= {"steps": sizes, "overflows": draw.coin(0.2)}
            self.mask = combined(parts + causal, self.tensors, shape)
        else:
            self.mask = combined(parts, self.tensors, shape)
        if self.mask is None:
            self.mask = torch.zeros(self.batch * heads, self.length, self.length, dtype=torch.bool)
        blocked = self.mask if self.mask.dtype == torch.bool else self.mask == float("-inf")
        self.real = ~blocked.view(self.batch, heads, self.length, -1).all(-1).any(1).unsqueeze(-1)
        zeros = torch.zeros(self.mask.shape, dtype=torch.float64)
        added = zeros.masked_fill(blocked, float("-inf")) if self.mask.dtype == torch.bool else self.mask.double()
        self.added = added.view(self.batch, heads, self.length, self.length)
        # A query without keys is not compared; here it gets all of them.
        self.added = self.added.masked_fill(blocked.view_as(self.added).all(-1, keepdim=True), 0.0)

    def _biases(self, draw: Draw, parts: list, shape: Shape) -> None:
        """A bias like those of real models: ALiBi's by key, one far from 0, and rows of the least number."""
        if not draw.coin(0.3):
            return
        bias = draw.choice([1.0, 0.2]) * torch.arange(shape.keys) / 2 ** draw.integers(8, 1, shape.heads, 1, 1)
        bias = bias.expand(1, shape.heads, shape.queries, shape.keys).contiguous()
        if draw.coin(0.3):
            bias = draw.normal(1, shape.heads, shape.queries, shape.keys) + draw.choice([300.0, 20.0])
        if draw.coin(0.2):
            bias[:, :, draw.randrange(shape.queries)] = torch.finfo(torch.float32).min
        parts.append({"kind": "additive", "in": "bias"})
        self.tensors["bias"] = bias

    def added_as(self, dtype: torch.dtype) -> Tensor:
        """What is added to the scores. The least float32 stays finite in half precision."""
        least = self.added.clamp_min(torch.finfo(dtype).min)
        return torch.where(self.added == float("-inf"), self.added, least).to(dtype)

    def inputs(self) -> dict[str, Tensor]:
        return {"in.x": self.x} | {f"in.{name}": value for name, value in self.tensors.items()}


def made(call: Call, options: dict, weights: dict[str, Tensor], compute) -> tuple[Case, Tensor]:
    """`compute` (dtype) gives the model's own result."""
    tensors = call.inputs() | {f"param.{name}": value.to(call.dtype) for name, value in weights.items()}
    expected, truth = compute(call.dtype), compute(torch.float64)
    keep = call.real.to(torch.float64)
    options = {"op": "rotary_attention", "bias": "in_proj_bias" in weights, "out_bias": "out_proj.bias" in weights} | call.options | options
    return Case(options, tensors, {"out": (expected * keep.to(expected.dtype)).detach()}, "attention", {"out": truth.detach() * keep}), call.real


def of_model(draw: Draw, model_type: str, preset: str, dtype: str):
    settings = models.Settings(draw, model_type, preset)
    heads = int(settings.arguments.get(settings.names["num_attention_heads"], 0))
    if heads and "num_key_value_heads" in settings.arguments:
        settings.arguments["num_key_value_heads"] = heads if model_type in BY_HEAD else draw.choice([1, heads // 2, heads])
    layer = draw.choice(settings.layers) if settings.layers else ""
    try:
        config = settings.config()
        text = written(draw, settings.kind, json.loads(config.to_json_string(use_diff=True)))
        config = read(settings.kind, text)
        config._attn_implementation = "sdpa"
        own = models.Embedding(model_type, config, layer, preset)
        found = own_attention(model_type, config, heads * settings.head_dim, settings.head_dim)
    except Exception:  # a configuration that transformers itself refuses, each class in its own way
        return None
    if not heads or found is None or model_type in MORE:
        return None
    attention, linears = found
    weights = state(linears, draw)
    call = Call(draw, heads, heads * settings.head_dim, dtype)

    def compute(dtype: torch.dtype) -> Tensor:
        table = own.table(torch.arange(heads).unsqueeze(0) if model_type in BY_HEAD else call.positions, dtype)
        mask = call.added.to(dtype if dtype == torch.float64 else torch.float32)
        return attention.to(dtype)(hidden_states=call.x.to(dtype), position_embeddings=table, attention_mask=mask)[0]

    options = {"width": heads * settings.head_dim, "heads": heads, "kv_heads": len(linears["k"].weight) // settings.head_dim,
               "config": json.dumps(text), "layer_type": layer, "model_type": model_type}  # fmt: skip
    try:
        return made(call, options, weights, compute)
    except (*REFUSALS, TypeError):
        return None


def roformer(draw: Draw, dtype: str):
    """RoFormer, which may rotate v as well."""
    from transformers import RoFormerConfig
    from transformers.models.roformer import modeling_roformer

    heads, width = draw.choice([1, 2, 4]), draw.choice([8, 32, 64])
    config = RoFormerConfig(hidden_size=heads * width, num_attention_heads=heads, rotary_value=draw.coin(), max_position_embeddings=64)
    attention = modeling_roformer.RoFormerSelfAttention(config).eval()
    rows = modeling_roformer.RoFormerSinusoidalPositionalEmbedding(64, width)
    rows.weight.data.copy_(rows.create_weight())
    weights, call = state(projections(attention), draw), Call(draw, heads, heads * width, dtype)

    def compute(dtype: torch.dtype) -> Tensor:
        table = rows.weight[call.positions].unsqueeze(1).to(dtype)
        return attention.to(dtype)(call.x.to(dtype), call.added_as(dtype), table)[0]

    options = {"width": heads * width, "heads": heads, "kv_heads": heads, "config": config.to_json_string(use_diff=True), "model_type": "roformer"}
    return made(call, options, weights, compute)


def conformer(draw: Draw, dtype: str):
    """Wav2Vec2-Conformer, which rotates the hidden states before it projects them."""
    from transformers import Wav2Vec2ConformerConfig
    from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer as module

    heads, width = draw.choice([1, 2, 4]), draw.choice([8, 32, 64])
    config = Wav2Vec2ConformerConfig(hidden_size=heads * width, num_attention_heads=heads, position_embeddings_type="rotary")
    attention, rotary = module.Wav2Vec2ConformerSelfAttention(config).eval(), module.Wav2Vec2ConformerRotaryPositionalEmbedding(config)
    weights, call = state(projections(attention), draw), Call(draw, heads, heads * width, dtype)
    if "position_ids" in call.tensors:  # the class counts from 0
        return None

    def compute(dtype: torch.dtype) -> Tensor:
        x = call.x.to(dtype)
        return attention.to(dtype)(x, attention_mask=call.added_as(dtype), relative_position_embeddings=rotary(x).to(dtype))[0]

    options = {"width": heads * width, "heads": heads, "kv_heads": heads, "config": config.to_json_string(use_diff=True), "model_type": "wav2vec2-conformer"}
    return made(call, options, weights, compute)


def by_the_paper(draw: Draw, dtype: str):
    """No rotary embedding, or xPos as its paper writes it: scores by distance."""
    heads, width = draw.choice([1, 2, 4]), draw.choice([8, 16, 32])
    linears = {part: nn.Linear(heads * width, heads * width) for part in "qkvo"}
    weights, call = state(linears, draw), Call(draw, heads, heads * width, dtype)
    xpos = draw.coin(0.4)

    def rotated(x: Tensor, sign: int) -> Tensor:
        pairs = torch.arange(0, width, 2, dtype=torch.float64)
        # The scale depends on the distance alone: here from the middle of the sequence.
        power = sign * (call.positions - call.length // 2).double().view(call.batch, 1, -1, 1) / 512
        scale = ((pairs + 0.4 * width) / (1.4 * width)) ** power
        angle = call.positions.double().view(call.batch, 1, -1, 1) * 10000.0 ** (-pairs / width)
        a, b, cos, sin = x[..., 0::2], x[..., 1::2], angle.cos() * scale, angle.sin() * scale
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)

    def compute(dtype: torch.dtype) -> Tensor:
        q, k, v = (F.linear(call.x.to(dtype), linears[part].weight.to(dtype), linears[part].bias.to(dtype))
                   .view(call.batch, call.length, heads, width).transpose(1, 2) for part in "qkv")  # fmt: skip
        if xpos:
            q, k = rotated(q, 1).to(dtype), rotated(k, -1).to(dtype)
        mask = call.added.to(dtype if dtype == torch.float64 else torch.float32)
        context = F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)
        return F.linear(context, linears["o"].weight.to(dtype), linears["o"].bias.to(dtype))

    options = {"width": heads * width, "heads": heads, "kv_heads": heads, "model_type": "xpos" if xpos else "torch.nn"}
    return made(call, options | ({"preset": "xpos"} if xpos else {}), weights, compute)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    known, drawn = model_types(programs), []
    while len(drawn) < CASES:
        dtype = draw.choice(["float32", "float32", "bfloat16", "float16"])
        kind = draw.random()
        if kind < 0.6:
            name = draw.choice(sorted(known))
            if known[name] in models.VISION:
                continue
            drawn.append(of_model(draw, name, known[name], dtype))
        else:
            drawn.append((roformer if kind < 0.68 else conformer if kind < 0.76 else by_the_paper)(draw, dtype))
        if drawn[-1] is None:
            drawn.pop()
    results = programs.compute([case for case, _ in drawn])
    for number, (_, real) in enumerate(drawn):
        got = results[number]
        if isinstance(got, str):
            if got.startswith("[MultiheadAttention]"):  # refused by name
                results[number] = {"out": drawn[number][0].expected["out"]}
        elif "out" in got:
            got["out"] = got["out"] * real.to(got["out"].dtype)
    return len(drawn), judge([case for case, _ in drawn], results)

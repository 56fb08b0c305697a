"""JinaBERT v2 from its folder, plain and frozen, beside its model written in PyTorch.

The code of this model is in its folders and in no package, so that the oracle is a class that was written from a reading of
it: BERT without positions, two-sided ALiBi whose slopes are float64 before they are rounded, and gated networks.
"""

import json
import math
from pathlib import Path

import torch
from encoders import compare, one_thread
from harness import Case, Draw, Failure, Programs
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

MODELS = 4


def slopes(heads: int) -> list[float]:
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    closest = 2 ** math.floor(math.log2(heads))
    return slopes(closest) + slopes(2 * closest)[0::2][: heads - closest]


def holder(**modules: nn.Module) -> nn.Module:
    module = nn.Module()
    for name, own in modules.items():
        module.add_module(name, own)
    return module


class JinaBert(nn.Module):
    def __init__(self, config: dict):
        super().__init__()
        self.config, width, wide = config, config["hidden_size"], config["intermediate_size"]

        def norm() -> nn.LayerNorm:
            return nn.LayerNorm(width, eps=config["layer_norm_eps"])

        def layer() -> nn.Module:
            own = holder(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width))
            attention = holder(**{"self": own, "output": holder(dense=nn.Linear(width, width), LayerNorm=norm())})
            return holder(attention=attention, mlp=holder(gated_layers=nn.Linear(width, 2 * wide, bias=False), wo=nn.Linear(wide, width), layernorm=norm()))

        self.embeddings = holder(word_embeddings=nn.Embedding(config["vocab_size"], width),
                                 token_type_embeddings=nn.Embedding(config["type_vocab_size"], width), LayerNorm=norm())  # fmt: skip
        self.encoder = holder(layer=nn.ModuleList([layer() for _ in range(config["num_hidden_layers"])]))
        self.pooler = holder(dense=nn.Linear(width, width))

    def attend(self, module: nn.Module, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        heads = (linear(x).unflatten(-1, (self.config["num_attention_heads"], -1)).transpose(1, 2) for linear in (module.query, module.key, module.value))
        query, key, value = heads
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        return ((scores + bias).softmax(-1) @ value).transpose(1, 2).flatten(2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, token_type_ids: torch.Tensor | None = None) -> dict:
        own, places = self.embeddings, torch.arange(input_ids.shape[1])
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        x = embeddings = own.LayerNorm(own.word_embeddings(input_ids) + own.token_type_embeddings(types))
        bias = -torch.tensor(slopes(self.config["num_attention_heads"])).view(1, -1, 1, 1) * (places[None] - places[:, None]).abs()
        if attention_mask is not None:
            bias = bias + (1 - attention_mask[:, None, None].float()) * torch.finfo(torch.float32).min
        for layer in self.encoder.layer:
            output = layer.attention.output
            x = output.LayerNorm(output.dense(self.attend(getattr(layer.attention, "self"), x, bias)) + x)
            activated, gate = layer.mlp.gated_layers(x).chunk(2, -1)
            activation = functional.gelu if self.config["feed_forward_type"] == "geglu" else functional.relu
            x = layer.mlp.layernorm(layer.mlp.wo(activation(activated) * gate) + x)
        return {"embeddings": embeddings, "last_hidden_state": x, "pooled": torch.tanh(self.pooler.dense(x[:, 0]))}


def one(draw: Draw, programs: Programs, number: int) -> tuple[list[Case], str]:
    heads = draw.choice([1, 2, 3, 5, 6, 8])
    config = {"model_type": "bert", "position_embedding_type": "alibi", "feed_forward_type": draw.choice(["geglu", "reglu"]), "vocab_size": 30,
              "hidden_size": heads * draw.choice([8, 16]), "num_hidden_layers": draw.randint(1, 3), "num_attention_heads": heads,
              "intermediate_size": draw.choice([8, 20]), "type_vocab_size": 2, "layer_norm_eps": draw.choice([1e-12, 1e-5]), "pad_token_id": 0}  # fmt: skip
    model = JinaBert(config)
    for parameter in model.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.3 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    folder = Path(programs.folder) / f"jina-{number}"
    folder.mkdir()
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    if draw.coin(0.3):  # which the class has without ALiBi
        tensors["embeddings.position_embeddings.weight"] = draw.normal(40, config["hidden_size"])
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    batch, length = draw.randint(1, 3), draw.choice([1, 4, 17, 61])
    given = {"input_ids": draw.integers(30, batch, length)}
    if draw.coin():
        given["token_type_ids"] = draw.integers(2, batch, length)
    if draw.coin(0.7):
        given["attention_mask"] = draw.integers(2, batch, length)
        given["attention_mask"][:, 0] = 1
    expected = model(**given)
    return [Case({"op": "encode", "folder": str(folder), "frozen": frozen}, given, expected) for frozen in (False, True)], json.dumps(config)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(40), torch.no_grad():
        made = [one(draw, programs, number) for number in range(MODELS)]
        results = iter(programs.compute([case for cases, _ in made for case in cases]))
    failures = []
    for cases, what in made:
        for name, case in zip(["plain", "frozen"], cases):
            got = next(results)
            why = got if isinstance(got, str) else compare(got, case.expected, case.tensors.get("attention_mask"), True)
            if why:
                failures.append(Failure(f"{what}, {name}", why))
    return 2 * len(made), failures

"""Whole models and torch.nn's stacks as files of weights, beside what Python computes with them.

    python notebooks_ref/reference/transformer_scripts.py --out DIR

<case>.pt is TorchScript, <case>.state.pt what torch.save writes of the state_dict (every copy of a
tied matrix), <case>.model.safetensors what safetensors keeps (one copy). <case>.io.safetensors holds
the inputs by the names of forward's arguments, and `output`; its metadata has `params`, what the
command line is given besides.
"""

import argparse
import multiprocessing
import random
import sys
import warnings
from pathlib import Path
from typing import Dict, List

if __name__ == "__main__":  # run as a file: import this package as the notebooks do
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch
from safetensors.torch import save_file, save_model
from torch import Tensor, nn
from torch.nn import functional as F

from reference import transformer as reference
from reference.fixture import seed_of

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": F.silu}
# Case to tying, activation, pre-norm, biases, masks. TorchScript cannot compile torch.nn's layers
# without biases: these are traced.
MODELS = {
    "none": ("none", "relu", False, True, []),
    "none_real_masks": ("none", "gelu", True, True, ["memory_mask", "real_mask"]),
    "encoder_decoder": ("encoder_decoder", "gelu", True, True, ["tgt_mask", "src_key_padding_mask"]),
    "decoder_output": ("decoder_output", "swish", False, True, ["src_mask", "tgt_mask"]),
    "three_way": ("three_way", "relu", True, True, ["src_mask", "tgt_mask", "src_key_padding_mask"]),
    "three_way_no_bias": ("three_way", "relu", False, False, []),
}
STACKS = ["encoder", "encoder_sequence_first", "decoder", "decoder_sequence_first"]


class _Draw:
    """Small random sizes, and tensors of them."""

    def __init__(self, case: str):
        dice = random.Random(seed_of("transformer_scripts", case))
        self.source = torch.Generator().manual_seed(dice.randrange(2**31))
        self.heads = dice.choice([2, 3, 4])
        self.width = self.heads * dice.choice([4, 6, 10])
        self.d_ff, self.layers = dice.choice([16, 33, 50]), dice.choice([1, 2, 3])
        self.batch, self.length = dice.choice([1, 3]), dice.randint(4, 9)
        self.eps = dice.choice([1e-5, 1e-3])
        self.norm = dice.random() < 0.5

    def mask(self, name: str) -> Tensor:
        """torch.nn's: true may not attend. The first key always may be: no row is all masked."""
        causal = torch.ones(self.length, self.length, dtype=torch.bool).triu(1)
        if name == "tgt_mask":
            return causal
        rows = self.batch if name == "src_key_padding_mask" else self.length
        mask = torch.rand(rows, self.length, generator=self.source) < 0.4
        mask[:, 0] = False
        return mask

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.source)

    def ids(self, vocabulary: int) -> Tensor:
        return torch.randint(0, vocabulary, (self.batch, self.length), generator=self.source)


def _randomise(module: nn.Module, draw: _Draw) -> nn.Module:
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(draw.normal(*parameter.shape) / 4)
    return module.eval()


def _write(folder: Path, case: str, module: nn.Module, traced: bool, inputs: Dict[str, Tensor],
           params: Dict[str, object]) -> None:  # fmt: skip
    output = module(**inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated; we need it
        if traced:
            script = torch.jit.trace(module, tuple(inputs.values()))
        else:
            script = torch.jit.script(module)
        script.save(str(folder / f"{case}.pt"))
    torch.save(module.state_dict(), folder / f"{case}.state.pt")
    save_model(module, str(folder / f"{case}.model.safetensors"))
    text = " ".join(f"{key}={value}" for key, value in params.items())
    tensors = {**inputs, "output": output.contiguous()}
    save_file(tensors, folder / f"{case}.io.safetensors", {"params": text})


def write_model(folder: Path, case: str) -> None:
    draw = _Draw(case)
    tying, activation, norm_first, bias, masks = MODELS[case]
    tgt_vocab = 23 if tying in ("encoder_decoder", "three_way") else 17
    module = _randomise(
        reference.Transformer(
            23, tgt_vocab, draw.width, draw.heads, draw.layers, 3 - draw.layers // 2, draw.d_ff, 11,
            0.1, tying, ACTIVATIONS[activation], draw.eps, norm_first, bias, draw.norm,
        ),
        draw,
    )  # fmt: skip
    inputs = {"src": draw.ids(23), "tgt": draw.ids(tgt_vocab)}
    for name in masks:
        if name == "real_mask":
            inputs["src_mask"] = draw.normal(draw.length, draw.length)
        else:
            inputs[name] = draw.mask(name)
    params = {"num_heads": draw.heads, "norm_first": int(norm_first), "activation": activation}
    _write(folder, case, module, not bias, inputs, {**params, "layer_norm_eps": draw.eps})


def write_stack(folder: Path, case: str) -> None:
    draw = _Draw(case)
    batch_first = not case.endswith("sequence_first")
    layer_kind, stack_kind = nn.TransformerEncoderLayer, nn.TransformerEncoder
    if case.startswith("decoder"):
        layer_kind, stack_kind = nn.TransformerDecoderLayer, nn.TransformerDecoder
    layer = layer_kind(draw.width, draw.heads, draw.d_ff, batch_first=batch_first)
    norm = nn.LayerNorm(draw.width) if draw.norm else None
    plain = {} if case.startswith("decoder") else {"enable_nested_tensor": False}
    module = _randomise(stack_kind(layer, draw.layers, norm, **plain), draw)
    shape = [draw.batch, draw.length] if batch_first else [draw.length, draw.batch]
    names = ["tgt", "memory"] if case.startswith("decoder") else ["src"]
    inputs = {name: draw.normal(*shape, draw.width) for name in names}
    if case.startswith("decoder"):
        inputs["tgt_mask"] = draw.mask("tgt_mask")
    params = {"num_heads": draw.heads, "batch_first": str(batch_first).lower()}
    _write(folder, case, module, False, inputs, params)


def _job(folder: Path, case: str) -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    (write_model if case in MODELS else write_stack)(folder, case)


def write_all(folder: Path) -> List[str]:
    folder.mkdir(parents=True, exist_ok=True)
    cases = [*MODELS, *STACKS]
    context = multiprocessing.get_context("fork")  # torch is imported once, here
    with context.Pool(2, maxtasksperchild=1) as pool:  # a process a script: no name is mangled
        pool.starmap(_job, [(folder, case) for case in cases], chunksize=1)
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description="Write Transformers as files of weights.")
    parser.add_argument("--out", type=Path, required=True)
    folder = parser.parse_args().out
    print(f"{len(write_all(folder))} models in {folder}")


if __name__ == "__main__":
    main()

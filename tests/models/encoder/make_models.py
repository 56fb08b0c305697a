#!/usr/bin/env python3
"""Small encoders, as transformers saves them, for the tests and for the examples in the documents.

    make_models.py --out FOLDER

`bert` has BERT's own vocabulary, so that ids of real texts fit; `clip` is a pair of encoders and `vit` one of images. The
tensors in NAME.safetensors are inputs, and the outputs of transformers: `in.*` and `out.*`. `bert_types.safetensors`
holds those of `bert` with token types and positions.
"""

import argparse
import shutil
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}


def bert():
    from transformers import BertConfig, BertModel

    return BertModel(BertConfig(**SIZES, max_position_embeddings=64, initializer_range=0.2))


def clip():
    from transformers import CLIPConfig, CLIPModel

    text = {**SIZES, "vocab_size": 60, "max_position_embeddings": 20, "eos_token_id": 7, "pad_token_id": 1}
    return CLIPModel(CLIPConfig(text_config=text, vision_config={**SIZES, "image_size": 8, "patch_size": 4}))


def vit():
    from transformers import ViTConfig, ViTModel

    return ViTModel(ViTConfig(**SIZES, image_size=12, patch_size=4, initializer_range=0.2))


def inputs_of(name: str) -> dict[str, torch.Tensor]:
    if name == "vit":
        return {"pixel_values": torch.randn(2, 3, 12, 12)}
    ids = torch.tensor([[2, 9, 30, 11, 7], [2, 8, 7, 1, 1]])
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


def types_and_positions() -> dict[str, torch.Tensor]:
    types = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    positions = torch.tensor([[3, 1, 4, 15, 9], [0, 1, 2, 63, 5]])
    return {**inputs_of("bert"), "token_type_ids": types, "position_ids": positions}


def write(model, given: dict[str, torch.Tensor], path: Path) -> None:
    with torch.no_grad():
        result = model(**given, output_hidden_states=True)
    tensors = {f"in.{key}": value for key, value in given.items()}
    tensors["out.embeddings"] = result.hidden_states[0]
    tensors["out.last_hidden_state"] = result.last_hidden_state
    tensors["out.pooled"] = result.pooler_output
    save_file({key: value.contiguous() for key, value in tensors.items()}, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(out, ignore_errors=True)
    torch.set_num_threads(1)  # the models are small, and other tests run in parallel
    for name, make in {"bert": bert, "clip": clip, "vit": vit}.items():
        torch.manual_seed(5)
        model = make().eval()
        model.save_pretrained(out / name)
        write(model.text_model if name == "clip" else model, inputs_of(name), out / f"{name}.safetensors")
        if name == "bert":
            write(model, types_and_positions(), out / "bert_types.safetensors")


if __name__ == "__main__":
    sys.exit(main())

"""Files with tensors that a class has only with a switch of its configuration, beside a configuration without it: transformers
ignores them, and what is read is computed as it would be without them."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from harness import Draw

WINDOWS = {"use_mask_token": True, "use_absolute_position_embeddings": True, "use_relative_position_bias": True,
           "use_shared_relative_position_bias": True, "layer_scale_init_value": 0.1}  # fmt: skip
TERMS = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": True}
# What a class has with each of these settings beyond what it has with others.
SWITCHES = {
    "beit": [WINDOWS | {"use_mean_pooling": True}, WINDOWS | {"use_mean_pooling": False}],
    "data2vec-vision": [WINDOWS | {"use_mean_pooling": True}, WINDOWS | {"use_mean_pooling": False}],
    "deberta": [TERMS],
    "deberta-v2": [TERMS | {"share_att_key": False, "norm_rel_ebd": "layer_norm", "conv_kernel_size": 3, "conv_groups": 1}],
    "donut-swin": [{"qkv_bias": True}],
    "layoutlmv3": [{"has_relative_attention_bias": True, "has_spatial_attention_bias": True, "visual_embed": True}],
    "sam_vision_model": [{"qkv_bias": True, "use_abs_pos": True, "use_rel_pos": True}],
    "swin": [{"qkv_bias": True, "use_absolute_embeddings": True}],
    "swinv2": [{"qkv_bias": True}],
    "wav2vec2-conformer": [{"position_embeddings_type": "relative"}, {"position_embeddings_type": "rotary"}],
}


def with_unused(draw: Draw, folder: Path, kind_name: str, cls: type, config_class: type, chosen: dict) -> str:
    """Adds to the file in `folder`, of a configuration with the settings `chosen`, the tensors of others; says how many."""
    file = folder / "model.safetensors"
    if kind_name not in SWITCHES or not file.exists() or draw.coin(0.3):
        return ""
    tensors = load_file(file)
    other = folder.parent / f"{folder.name}-switched"
    added = 0
    for switches in SWITCHES[kind_name]:
        cls(config_class(**chosen | switches)).save_pretrained(other)
        for name, tensor in load_file(other / "model.safetensors").items():
            if name not in tensors:
                tensors[name] = draw.normal(*tensor.shape) if tensor.is_floating_point() else tensor
                added += 1
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file, {"format": "pt"})
    return f", {added} unused" if added else ""

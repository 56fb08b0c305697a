"""Encoders of images in windows, with random settings: Swin, Swin v2, Donut's and SAM's."""

import json
from pathlib import Path

import torch

from harness import Draw

DIALECTS = ("swin", "sam")


def sides(value: int | list[int] | tuple[int, int]) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def fits(config, height: int, width: int) -> bool:
    """Whether the maps of all stages are at least as large as their windows, which the class of Swin does not run otherwise."""
    patch = sides(config.patch_size)
    down, across = -(-height // patch[0]), -(-width // patch[1])
    for _ in config.depths[1:]:
        down, across = (down + 1) // 2, (across + 1) // 2
    return min(down, across) >= config.window_size


def settings(draw: Draw, kind_name: str, common: dict) -> dict:
    if kind_name.startswith("sam"):
        return sam(draw, kind_name, common)
    stages, heads = draw.randint(1, 3), [draw.choice([1, 2, 4])]
    width = heads[0] * draw.choice([size for size in (2, 3, 4, 8, 16) if heads[0] * size >= 8])
    for i in range(1, stages):
        heads.append(draw.choice([count for count in (1, 2, 3, 4, 8) if width * 2**i % count == 0]))
    patch = draw.choice([2, 3, [2, 3]])
    image = draw.choice([12, 18, 24, [12, 24], [24, 18]])
    last = min(side // part for side, part in zip(sides(image), sides(patch), strict=True))
    for _ in range(1, stages):
        last = (last + 1) // 2
    chosen = {"image_size": image, "patch_size": patch, "num_channels": draw.choice([1, 3]), "embed_dim": width,
              "depths": [draw.randint(1, 3) for _ in range(stages)], "num_heads": heads + [7] * draw.randint(0, 1), "qkv_bias": draw.coin(0.8),
              "mlp_ratio": draw.choice([1.0, 1.3, 2.0, 4.0]), "hidden_act": common["hidden_act"], "layer_norm_eps": common["layer_norm_eps"],
              "window_size": draw.randint(1, last)}  # fmt: skip
    if kind_name == "donut-swin":
        return chosen
    if kind_name == "swinv2":
        return chosen | {"window_size": draw.randint(1, 6), "pretrained_window_sizes": [draw.choice([0, 0, 2, 3, 6]) for _ in range(stages)]}
    return chosen | {"use_absolute_embeddings": draw.coin(0.4)}


def sam(draw: Draw, kind_name: str, common: dict) -> dict:
    layers = common["num_hidden_layers"]
    vision = {name: value for name, value in common.items() if name != "intermediate_size"}
    vision |= {"image_size": 12, "patch_size": draw.choice([2, 3, 4]), "num_channels": draw.choice([1, 3]), "output_channels": draw.choice([8, 12]),
               "qkv_bias": draw.coin(0.8), "use_abs_pos": draw.coin(0.8), "use_rel_pos": draw.coin(0.8), "window_size": draw.choice([0, 1, 2, 3, 4, 7]),
               "global_attn_indexes": draw.sample(range(layers), draw.randint(0, layers)), "mlp_ratio": draw.choice([1.5, 4.0]),
               "mlp_dim": draw.choice([None, common["intermediate_size"]])}  # fmt: skip
    if kind_name != "sam":
        return vision
    small = {"hidden_size": 8, "num_attention_heads": 2, "mlp_dim": 8, "num_hidden_layers": 1, "iou_head_hidden_dim": 8}
    return {"vision_config": vision, "prompt_encoder_config": {"hidden_size": 8, "mask_input_channels": 4}, "mask_decoder_config": small}


def images(draw: Draw, batch: int, config) -> torch.Tensor:
    """Images of the model's own size, and where the class takes them others."""
    config = getattr(config, "vision_config", config)
    own, patch = sides(config.image_size), sides(config.patch_size)
    others = hasattr(config, "depths") and draw.coin()
    if others and getattr(config, "use_absolute_embeddings", False):  # interpolated from a square, to whole patches
        others = own[0] == own[1] and isinstance(config.patch_size, int)
    size = own
    while others:
        size = draw.randint(2, 40), draw.randint(2, 40)
        if config.use_absolute_embeddings:
            size = tuple(max(1, side // part) * part for side, part in zip(size, patch, strict=True))
        others = config.model_type != "swinv2" and not fits(config, *size)
    return draw.normal(batch, config.num_channels, *size)


def interpolates(config, pixels: torch.Tensor) -> bool:
    return config.use_absolute_embeddings and tuple(pixels.shape[2:]) != sides(config.image_size)


def with_fewer_layers(draw: Draw, folder: Path) -> None:
    """At times a stage has fewer layers than the weights."""
    file = folder / "config.json"
    config = json.loads(file.read_text())
    stage = draw.randint(0, 2)
    depths = config.get("depths", [])
    if stage < len(depths) and depths[stage] > 1 and draw.coin(0.5):
        depths[stage] -= 1
        file.write_text(json.dumps(config))

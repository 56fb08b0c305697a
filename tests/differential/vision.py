"""Vision embeddings of random configurations against transformers' own classes, and tables of positions resized by them."""

import importlib
import inspect
import json
import math

import torch
from torch.nn import functional as F

from harness import DTYPES, Case, Draw, Failure, Programs, run
from written import read, written

EMBEDDINGS, RESIZES = 30, 12
# model type: the folder in transformers, the configuration, the embeddings
CLASSES = {
    "vit": ("vit", "ViTConfig", "ViTEmbeddings"),
    "vit_msn": ("vit_msn", "ViTMSNConfig", "ViTMSNEmbeddings"),
    "flava_image_model": ("flava", "FlavaImageConfig", "FlavaImageEmbeddings"),
    "deit": ("deit", "DeiTConfig", "DeiTEmbeddings"),
    "ijepa": ("ijepa", "IJepaConfig", "IJepaEmbeddings"),
    "vit_mae": ("vit_mae", "ViTMAEConfig", "ViTMAEEmbeddings"),
    "beit": ("beit", "BeitConfig", "BeitEmbeddings"),
    "data2vec-vision": ("data2vec", "Data2VecVisionConfig", "Data2VecVisionEmbeddings"),
    "internvl_vision": ("internvl", "InternVLVisionConfig", "InternVLVisionEmbeddings"),
    "qianfan_ocr_vision": ("qianfan_ocr", "QianfanOCRVisionConfig", "QianfanOCRVisionEmbeddings"),
    "dinov2": ("dinov2", "Dinov2Config", "Dinov2Embeddings"),
    "dinov2_with_registers": ("dinov2_with_registers", "Dinov2WithRegistersConfig", "Dinov2WithRegistersEmbeddings"),
    "tipsv2_vision_model": ("tipsv2", "Tipsv2VisionConfig", "Tipsv2VisionEmbeddings"),
    "dinov3_vit": ("dinov3_vit", "DINOv3ViTConfig", "DINOv3ViTEmbeddings"),
    "eomt_dinov3": ("eomt_dinov3", "EomtDinov3Config", "EomtDinov3Embeddings"),
    "pixio": ("pixio", "PixioConfig", "PixioEmbeddings"),
    "dpt": ("dpt", "DPTConfig", "DPTViTEmbeddings"),
    "clip_vision_model": ("clip", "CLIPVisionConfig", "CLIPVisionEmbeddings"),
    "altclip_vision_model": ("altclip", "AltCLIPVisionConfig", "AltCLIPVisionEmbeddings"),
    "bridgetower_vision_model": ("bridgetower", "BridgeTowerVisionConfig", "BridgeTowerVisionEmbeddings"),
    "chinese_clip_vision_model": ("chinese_clip", "ChineseCLIPVisionConfig", "ChineseCLIPVisionEmbeddings"),
    "clipseg_vision_model": ("clipseg", "CLIPSegVisionConfig", "CLIPSegVisionEmbeddings"),
    "git_vision_model": ("git", "GitVisionConfig", "GitVisionEmbeddings"),
    "kosmos_2_vision_model": ("kosmos2", "Kosmos2VisionConfig", "Kosmos2VisionEmbeddings"),
    "metaclip_2_vision_model": ("metaclip_2", "MetaClip2VisionConfig", "MetaClip2VisionEmbeddings"),
    "mlcd_vision_model": ("mlcd", "MLCDVisionConfig", "MLCDVisionEmbeddings"),
    "owlvit_vision_model": ("owlvit", "OwlViTVisionConfig", "OwlViTVisionEmbeddings"),
    "owlv2_vision_model": ("owlv2", "Owlv2VisionConfig", "Owlv2VisionEmbeddings"),
    "xclip_vision_model": ("x_clip", "XCLIPVisionConfig", "XCLIPVisionEmbeddings"),
    "blip_vision_model": ("blip", "BlipVisionConfig", "BlipVisionEmbeddings"),
    "blip_2_vision_model": ("blip_2", "Blip2VisionConfig", "Blip2VisionEmbeddings"),
    "instructblip_vision_model": ("instructblip", "InstructBlipVisionConfig", "InstructBlipVisionEmbeddings"),
    "instructblipvideo_vision_model": ("instructblipvideo", "InstructBlipVideoVisionConfig", "InstructBlipVideoVisionEmbeddings"),
    "siglip_vision_model": ("siglip", "SiglipVisionConfig", "SiglipVisionEmbeddings"),
    "granite_docling_vision": ("granite_docling", "GraniteDoclingVisionConfig", "GraniteDoclingVisionEmbeddings"),
    "janus_vision_model": ("janus", "JanusVisionConfig", "JanusVisionEmbeddings"),
    "step3p5_vision": ("step3p7", "Step3p7VisionConfig", "Step3p7VisionEmbeddings"),
    "eomt": ("eomt", "EomtConfig", "EomtEmbeddings"),
}  # fmt: skip
# Their sizes may be lists of a height and a width.
OF_TWO_SIZES = ("vit", "vit_msn", "deit", "ijepa", "beit", "data2vec-vision", "internvl_vision", "dinov2", "dinov2_with_registers",
                "pixio")  # fmt: skip
OF_TWO_PATCH_SIZES = ("internvl_vision", "dinov2", "dinov2_with_registers")
WITH_A_MASK_TOKEN_IF_ASKED = ("vit", "vit_msn", "deit", "ijepa")
THREE_CHANNELS = ("blip_vision_model", "blip_2_vision_model", "instructblip_vision_model", "instructblipvideo_vision_model")
OF_THEIR_OWN_DTYPE = ("vit", "vit_msn", "flava_image_model", "deit", "ijepa", "vit_mae", "beit", "dpt", "eomt", "owlvit_vision_model",
                      "owlv2_vision_model")  # fmt: skip


def loaded(model_type: str, what: str) -> type:
    folder, config, embeddings = CLASSES[model_type]
    file = "data2vec_vision" if folder == "data2vec" else folder
    name = config if what == "configuration" else embeddings
    return getattr(importlib.import_module(f"transformers.models.{folder}.{what}_{file}"), name)


def settings(draw: Draw, model_type: str) -> dict:
    patch = [draw.randint(2, 6)] * 2
    if model_type in OF_TWO_PATCH_SIZES and draw.coin(0.3):
        patch[1] = draw.randint(2, 6)
    grid = [draw.randint(1, 6)] * 2
    if model_type in OF_TWO_SIZES and draw.coin(0.4):
        grid = draw.choice([[2, 8], [draw.randint(1, 6), draw.randint(1, 6)]])
    rest = draw.choice([0, 0, 1])
    image = [cells * side + rest for cells, side in zip(grid, patch)]
    lists = model_type == "internvl_vision"
    given = {
        "image_size": image if image[0] != image[1] or lists else image[0],
        "patch_size": patch if patch[0] != patch[1] or lists else patch[0],
        "hidden_size": 4 * draw.randint(1, 12),
        "num_channels": draw.randint(1, 4),
        "hidden_dropout_prob": draw.choice([0.0, 0.3]),
        "num_register_tokens": draw.randint(0, 3),
        "n_cls_tokens": draw.randint(1, 3),
        "use_mask_token": draw.coin(),
        "use_absolute_position_embeddings": draw.coin(0.8),
        "mask_ratio": draw.choice([0.0, 0.3, 0.75]),
    }  # fmt: skip
    if model_type in THREE_CHANNELS:
        given["num_channels"] = 3
    known = inspect.signature(loaded(model_type, "configuration")).parameters
    return {key: value for key, value in given.items() if key in known} | {"num_attention_heads": 1}


def pair(size: int | list[int]) -> list[int]:
    return list(size) if isinstance(size, (list, tuple)) else [size, size]


def own_embeddings(model_type: str, config, masks: bool) -> torch.nn.Module:
    more = {"use_mask_token": masks} if model_type in WITH_A_MASK_TOKEN_IF_ASKED else {}
    return loaded(model_type, "modeling")(config, **more)


def result(model_type: str, embeddings: torch.nn.Module, inputs: dict, other_size: bool) -> torch.Tensor:
    known = inspect.signature(embeddings.forward).parameters
    more = {"interpolate_pos_encoding": other_size} if "interpolate_pos_encoding" in known else {}
    noise = inputs.get("noise")
    if model_type == "vit_mae" and noise is None:  # in the order of the patches
        patch, pixels = pair(embeddings.config.patch_size), inputs["pixel_values"]
        count = (pixels.shape[2] // patch[0]) * (pixels.shape[3] // patch[1])
        embeddings.config.mask_ratio = 0.0
        more["noise"] = torch.arange(float(count)).expand(len(pixels), -1)
    out = embeddings(**inputs, **more)
    out = out[0] if isinstance(out, tuple) else out
    return out if isinstance(out, torch.Tensor) else out.last_hidden_states


def embeddings(draw: Draw, model_type: str) -> Case:
    given = settings(draw, model_type)
    kind = loaded(model_type, "configuration")
    text = json.loads(kind(**given).to_json_string(use_diff=draw.coin()))
    if text.get("model_type") is None or draw.coin(0.4):
        text = {"model_type": model_type} | given
    text = written(draw, kind, text)
    config, masks = read(kind, text), draw.coin()
    module = own_embeddings(model_type, config, masks)
    dtype = draw.choice(["float32", "float32", "bfloat16", "float16"])
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(draw.normal(*parameter.shape))
    module.to(DTYPES[dtype])
    size, patch = pair(config.image_size), pair(config.patch_size)
    other = draw.coin(0.6) and model_type != "eomt"
    image = [side * draw.randint(1, 8) + draw.randint(0, side - 1) for side in patch] if other else size
    if other and draw.coin(0.2):  # as many patches in another grid
        cells = (size[0] // patch[0]) * (size[1] // patch[1])
        image = [cells * patch[0], patch[1]]
    batch = draw.randint(1, 3)
    pixels = draw.normal(batch, getattr(config, "num_channels", 3), *image)
    inputs = {"pixel_values": pixels if model_type not in OF_THEIR_OWN_DTYPE else pixels.to(DTYPES[dtype])}
    cells = (image[0] // patch[0]) * (image[1] // patch[1])
    if getattr(module, "mask_token", None) is not None and draw.coin(0.7):
        inputs["bool_masked_pos"] = draw.bits(0.4, batch, cells)
    if model_type == "vit_mae" and draw.coin(0.7):
        inputs["noise"] = torch.rand((batch, cells), generator=draw.torch)
    train, seed = draw.coin(0.3), draw.getrandbits(30)
    module.train(train)
    options = {"op": "vision", "config": json.dumps(text), "dtype": dtype, "train": train, "seed": seed, "mask_token": masks and model_type in WITH_A_MASK_TOKEN_IF_ASKED}
    tensors = {f"param.{key}": value for key, value in module.state_dict().items()}
    tensors |= {f"in.{key}": value for key, value in inputs.items()}
    for name in ("pixel_values", "noise"):
        if name in inputs:
            inputs[name] = inputs[name].clone().requires_grad_()
    torch.manual_seed(seed)
    try:
        out = result(model_type, module, inputs, image != size)
    except (RuntimeError, ValueError):  # a table that is no square grid
        return Case(options, tensors, {}, refused="[VisionEmbeddings]")
    tensors["cotangent"] = draw.normal(*out.shape).to(out.dtype)
    (out * tensors["cotangent"]).sum().backward()
    expected = {"out": out.detach()}
    expected |= {f"grad.param.{key}": p.grad for key, p in module.named_parameters() if p.grad is not None}
    expected |= {f"grad.in.{key}": t.grad for key, t in inputs.items() if t.grad is not None}
    return Case(options, tensors, expected, "bits")


def frozen_table(draw: Draw) -> Case:
    """A new MAE's table of positions."""
    grid, patch = draw.randint(1, 9), draw.randint(2, 4)
    config = loaded("vit_mae", "configuration")(image_size=grid * patch, patch_size=patch, hidden_size=4 * draw.randint(1, 20))
    module = own_embeddings("vit_mae", config, False)
    module.initialize_weights()
    return Case({"op": "vision_table", "config": config.to_json_string()}, {}, {"table": module.position_embeddings.detach()}, "bits")


def by_tvp(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    from transformers.models.tvp import configuration_tvp, modeling_tvp

    config = configuration_tvp.TvpConfig(hidden_size=table.shape[-1], max_grid_row_position_embeddings=old[0], max_grid_col_position_embeddings=old[1])
    part = table.reshape(1, *old, -1)[:, : new[0], : new[1]]
    if new[0] > old[0] or new[1] > old[1]:
        part = modeling_tvp.TvpVisualInputEmbedding(config).interpolate_pos_encoding(part, *new)
    if part.shape[1:3] != new:
        raise ValueError("the factors are rounded to another size")
    return part.reshape(1, new[0] * new[1], -1)


def by_radio(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    from transformers.models.radio import configuration_radio, modeling_radio

    config = configuration_radio.RadioConfig(hidden_size=table.shape[-1], patch_size=2, max_img_size=2 * old[0], num_channels=1, patch_dim=4)
    module = modeling_radio.RadioPatchEmbeddings(config)
    del module.position_embedding
    module.position_embedding = table
    return module._interpolate_position_embedding(new, table.dtype)


def by_siglip2(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    from transformers.models.siglip2 import modeling_siglip2

    shapes = torch.tensor([new])
    return modeling_siglip2.Siglip2VisionEmbeddings.resize_positional_embeddings(table.reshape(*old, -1), shapes, new[0] * new[1])


def by_timesformer(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    """The embeddings of pixels and a class token of zeros: positions."""
    from transformers.models.timesformer import configuration_timesformer, modeling_timesformer

    width = table.shape[-1]
    config = configuration_timesformer.TimesformerConfig(image_size=old[0], patch_size=1, num_channels=1, hidden_size=width, attention_type="space_only")
    module = modeling_timesformer.TimesformerEmbeddings(config).to(table.dtype).eval()
    torch.nn.init.zeros_(module.patch_embeddings.projection.bias)
    del module.position_embeddings
    module.position_embeddings = torch.cat((torch.zeros_like(table[:, :1]), table), 1)
    return module(torch.zeros((1, 1, 1, *new), dtype=table.dtype))[:, 1:]


def by_layoutlmv3(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    from transformers.models.layoutlmv3 import configuration_layoutlmv3, modeling_layoutlmv3

    config = configuration_layoutlmv3.LayoutLMv3Config(hidden_size=table.shape[-1], input_size=old[0], patch_size=1, num_channels=1)
    module = modeling_layoutlmv3.LayoutLMv3PatchEmbeddings(config).to(table.dtype)
    torch.nn.init.zeros_(module.proj.bias)
    return module(torch.zeros((1, 1, *new), dtype=table.dtype), table)


def by_dinov2s_own_code(table: torch.Tensor, old: tuple[int, int], new: tuple[int, int]) -> torch.Tensor:
    """facebookresearch/dinov2, dinov2/models/vision_transformer.py, with interpolate_offset=0.1."""
    if old == new:
        return table
    w0, h0 = new
    kwargs = {"scale_factor": (float(w0 + 0.1) / old[0], float(h0 + 0.1) / old[1])}
    grid = table.float().reshape(1, *old, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid, mode="bicubic", antialias=False, **kwargs)
    return grid.permute(0, 2, 3, 1).view(1, -1, table.shape[-1]).to(table.dtype)


# rule: the system, and whether its old grid is given rather than square
RULES = {
    "bicubic_grow": (by_tvp, True),
    "bilinear_crop": (by_radio, False),
    "bilinear_antialias": (by_siglip2, False),
    "nearest": (by_timesformer, False),
    "bicubic": (by_layoutlmv3, False),
    "bicubic_offset": (by_dinov2s_own_code, False),
}  # fmt: skip


def resized(draw: Draw) -> Case:
    rule = draw.choice(list(RULES))
    system, given = RULES[rule]
    old, new = [draw.randint(1, 12)] * 2, (draw.randint(1, 15), draw.randint(2, 15))
    if given:
        old[1] = draw.randint(1, 12)
    if draw.coin(0.2):
        new = (max(old[0], 1), max(old[1], 2))
    dtype = DTYPES[draw.choice(["float32", "float64", "bfloat16", "float16"])]
    table = draw.normal(1, math.prod(old), draw.randint(1, 20)).to(dtype)
    options = {"op": "resize_positions", "rule": rule, "height": new[0], "width": new[1]}
    if given:
        options |= {"from_height": old[0], "from_width": old[1]}
    leaf = table.clone().requires_grad_()
    try:
        out = system(leaf, tuple(old), new)
    except ValueError:
        return Case(options, {"table": table}, {}, refused="the factors")
    tensors, expected = {"table": table}, {"out": out.detach()}
    tensors["cotangent"] = draw.normal(*out.shape).to(dtype)
    (out * tensors["cotangent"]).sum().backward()
    expected["grad"] = leaf.grad
    return Case(options, tensors, expected, "bits")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    cases = [embeddings(draw, name) for name in draw.sample(sorted(CLASSES), EMBEDDINGS)]
    cases += [resized(draw) for _ in range(RESIZES)] + [frozen_table(draw)]
    return run(programs, cases)

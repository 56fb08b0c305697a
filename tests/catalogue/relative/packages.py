"""timm and x-transformers. They have to be installed, without torchvision, which timm imports but does not need here:
`pip install --no-deps timm==1.0.31 x-transformers==2.31.10 torch-einops-utils==0.2.0 einx==0.3.0 einops loguru frozendict`.
"""

import contextlib
import importlib.metadata
import sys
import types
from importlib.machinery import ModuleSpec
from unittest import mock

import torch
from buckets import bucket_settings
from relative_registry import Case, Draw, Given, parameters, relative, softmax_inputs

VERSIONS = {"timm": "1.0.31", "x-transformers": "2.31.10"}


class Imported(types.ModuleType):
    """A module in which every requested name exists."""

    __path__: list = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock(name=name)


class NoTorchvision:
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Imported(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def missing() -> str:
    """Which package is not installed in its version; "" if all are."""
    for package, version in VERSIONS.items():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            if importlib.metadata.version(package) == version:
                continue
        return f"{package}=={version}"
    return ""


if not missing():
    finder = NoTorchvision()
    sys.meta_path.append(finder)
    import timm.layers.pos_embed_rel as rel
    import timm.models.efficientvit_msra as efficientvit_msra
    import timm.models.gcvit as gcvit
    import timm.models.levit as levit
    import timm.models.mvitv2 as mvitv2
    import timm.models.swin_transformer as timm_swin
    import timm.models.swin_transformer_v2 as timm_swin_v2
    import timm.models.swin_transformer_v2_cr as timm_swin_v2_cr
    import timm.models.tiny_vit as tiny_vit
    import timm.models.vision_transformer_sam as timm_sam
    import x_transformers.x_transformers as xt

    sys.meta_path.remove(finder)  # transformers asks whether there is a torchvision
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]

    def window_of(draw: Draw, least: int = 1, most: int = 8) -> list[int]:
        return [draw.integer(least, most), draw.integer(least, most)]

    @relative("timm_rel_pos_bias")
    def timm_rel_pos_bias(draw: Draw) -> Case:
        window, heads, prefix = window_of(draw), draw.integer(1, 4), draw.integer(0, 1)
        module = draw.module(rel.RelPosBias(window, heads, prefix))
        return Case({"window": window, "prefix": prefix, "heads": heads}, parameters(module), {"bias": module.get_bias()})

    @relative("timm_resized")
    def timm_resized(draw: Draw) -> Case:
        window, now, heads, prefix = window_of(draw), window_of(draw, 1, 14), draw.integer(1, 4), draw.integer(0, 1)
        module = draw.module(rel.RelPosBias(tuple(window), heads, prefix))
        weights = parameters(module)
        module.set_window_size(tuple(now))
        expected = {"table": module.relative_position_bias_table.detach(), "bias": module.get_bias()}
        return Case({"window": window, "prefix": prefix, "new_window": now, "heads": heads}, weights, expected)

    @relative("timm_mlp")
    def timm_mlp(draw: Draw) -> Case:
        mode = draw.choice(["cr", "swin"])
        window, heads, prefix = window_of(draw, 1 if mode == "cr" else 2), draw.integer(1, 4), draw.integer(0, 1)
        settings = {"window": window, "hidden": draw.choice([16, 512]), "prefix": prefix, "mode": mode}
        settings["pretrained_window"] = draw.choice([[0, 0], [6, 9]])
        module = rel.RelPosMlp(
            window, heads, settings["hidden"], prefix, mode, pretrained_window_size=settings["pretrained_window"]
        )
        module = draw.module(module)
        return Case(settings | {"heads": heads}, parameters(module), {"bias": module.get_bias()})

    @relative("timm_maxvit_tf")
    def timm_maxvit_tf(draw: Draw) -> Case:
        window, heads = window_of(draw), draw.integer(1, 4)
        module = draw.module(rel.RelPosBiasTf(window, heads))
        return Case({"window": window, "heads": heads}, parameters(module), {"bias": module.get_bias().unsqueeze(0)})

    @relative("timm_levit", "timm_levit_down", "timm_tiny_vit", "timm_efficientvit_msra")
    def timm_levit(draw: Draw, name: str) -> Case:
        window, heads = window_of(draw), draw.integer(1, 4)
        if name == "timm_efficientvit_msra":  # its windows are squares
            window = [window[0], window[0]]
        settings = {"window": window, "heads": heads}
        if name == "timm_levit_down":
            settings["stride"] = draw.integer(1, 4)
            module = levit.AttentionDownsample(8, 8, 4, heads, stride=settings["stride"], resolution=window)
        elif name == "timm_levit":
            module = levit.Attention(8, 4, heads, resolution=window)
        elif name == "timm_efficientvit_msra":
            module = efficientvit_msra.CascadedGroupAttention(8 * heads, 4, heads, resolution=window[0], kernels=(3,) * heads)
        else:
            module = tiny_vit.Attention(8, 4, heads, resolution=tuple(window))
        module = draw.module(module)
        bias = module.get_attention_biases(torch.device("cpu")).unsqueeze(0)
        return Case(settings, parameters(module, "attention_biases"), {"bias": bias})

    WINDOWS = {
        "timm_swin": lambda window, heads, width: timm_swin.WindowAttention(heads * width, heads, window_size=window),
        "timm_gcvit": lambda window, heads, width: gcvit.WindowAttentionGlobal(heads * width, heads, window, use_global=False),
        "timm_swinv2": None,  # with the window of its training
        "timm_swinv2_cr": lambda window, heads, width: timm_swin_v2_cr.WindowMultiHeadAttention(heads * width, heads, window),
    }

    @relative(*WINDOWS)
    def timm_windows(draw: Draw, name: str) -> Case:
        window, heads, width, windows = window_of(draw), draw.integer(1, 4), draw.choice([4, 7, 32]), draw.integer(1, 4)
        batch, tokens = windows * draw.integer(1, 2), window[0] * window[1]
        settings = {"window": window, "masked": draw.coin() and name != "timm_gcvit"}
        if name == "timm_swinv2":
            settings["pretrained_window"] = pretrained = draw.choice([[0, 0], [6, 9], [1, 4]])
            module = timm_swin_v2.WindowAttention(heads * width, window, heads, pretrained_window_size=pretrained)
        else:
            module = WINDOWS[name](tuple(window), heads, width)
        module = draw.module(module)
        module.fused_attn = False
        if "v2" in name:
            module.logit_scale.data = module.logit_scale.data * 3
        given = draw.query_key(batch, heads, tokens, tokens, width)
        qkv = torch.stack([given["q"], given["k"], given["k"]])  # (3, B, H, L, D) -> (B, L, 3 * H * D)
        weights = parameters(module, "relative_position_bias_table", "rel_pos", "logit_scale", "cpb_mlp", "meta_mlp")
        module.qkv = Given(qkv.permute(1, 3, 0, 2, 4).reshape(batch, tokens, -1))
        if name == "timm_swinv2":
            module.q_bias, module.qkv_bias_separate = None, False
        arguments = [draw.normal(batch, tokens, heads * width)]
        if settings["masked"]:
            hidden = torch.rand(windows, tokens, tokens, generator=draw.generator) < 0.3
            given["mask"] = torch.zeros(windows, tokens, tokens, dtype=draw.dtype).masked_fill(hidden, -100.0)
            arguments.append(given["mask"])
        with softmax_inputs() as seen:
            module(*arguments)
        sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": tokens, "keys": tokens}
        return Case(settings | sizes, given | weights, {"scores": seen[0]})

    @relative("timm_sam")
    def timm_vision_transformer_sam(draw: Draw) -> Case:
        grid, table = window_of(draw), window_of(draw)
        if draw.coin():
            table = grid
        batch, heads, width, tokens = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32]), grid[0] * grid[1]
        module = draw.module(timm_sam.Attention(heads * width, heads, use_rel_pos=True, input_size=tuple(table)))
        module.fused_attn = False
        given = draw.query_key(batch, heads, tokens, tokens, width)
        qkv = torch.stack([given["q"], given["k"], given["k"]])  # (3, B, H, L, D) -> (B, L, 3 * H * D)
        weights = parameters(module, "rel_pos_")
        module.qkv = Given(qkv.permute(1, 3, 0, 2, 4).reshape(batch, tokens, -1))
        with softmax_inputs() as seen:
            module(draw.normal(batch, *grid, heads * width))
        scores = seen[0].view(batch, heads, tokens, tokens)
        sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": tokens, "keys": tokens}
        return Case({"grid": grid, "table_grid": table} | sizes, given | weights, {"scores": scores})

    @relative("timm_mvitv2")
    def timm_mvitv2(draw: Draw) -> Case:
        queries, keys, cls = window_of(draw), window_of(draw), draw.coin()
        batch, heads, width = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32])
        given = draw.query_key(batch, heads, cls + queries[0] * queries[1], cls + keys[0] * keys[1], width)
        given["scores"] = draw.normal(batch, heads, given["q"].shape[2], given["k"].shape[2])
        tables = [draw.normal(2 * max(q, k) - 1, width) for q, k in zip(queries, keys)]
        scores = mvitv2.cal_rel_pos_type(given["scores"].clone(), given["q"], cls, queries, keys, *tables)
        weights = {"w.rel_pos_h": tables[0], "w.rel_pos_w": tables[1]}
        return Case({"q_grid": queries, "k_grid": keys, "class_token": cls}, given | weights, {"scores": scores})

    def lengths(draw: Draw) -> dict[str, int]:
        keys = draw.integer(1, 60)
        return {"queries": draw.integer(1, keys), "keys": keys}

    @relative("x_transformers_t5")
    def x_transformers_t5(draw: Draw) -> Case:
        settings, heads, sizes = bucket_settings(draw), draw.integer(1, 4), lengths(draw)
        settings["scale"] = draw.choice([2.0, 0.3])
        module = xt.RelativePositionBias(
            settings["scale"], causal=not settings["bidirectional"], num_buckets=settings["num_buckets"],
            max_distance=settings["max_distance"], heads=heads,
        )  # fmt: skip
        module = draw.module(module)
        bias = module(sizes["queries"], sizes["keys"]).unsqueeze(0)
        return Case(settings | sizes | {"heads": heads}, parameters(module), {"bias": bias})

    @relative("x_transformers_dynamic", dtypes=["float32"])
    def x_transformers_dynamic(draw: Draw) -> Case:
        settings = {"width": draw.choice([8, 32]), "depth": draw.integer(1, 3), "log_distance": draw.coin()}
        heads, sizes = draw.integer(1, 4), lengths(draw)
        module = xt.DynamicPositionBias(settings["width"], heads=heads, depth=settings["depth"], log_distance=settings["log_distance"])
        module = draw.module(module)
        bias = module(sizes["queries"], sizes["keys"]).unsqueeze(0)
        return Case(settings | sizes | {"heads": heads}, parameters(module), {"bias": bias})

    @relative("x_transformers_alibi")
    def x_transformers_alibi(draw: Draw) -> Case:
        heads, sizes = draw.integer(1, 20), lengths(draw)
        settings = {"total_heads": heads + draw.integer(0, 3)}
        module = xt.AlibiPositionalBias(heads, settings["total_heads"]).to(draw.dtype)
        bias = module(sizes["queries"], sizes["keys"]).unsqueeze(0)
        return Case(settings | sizes | {"heads": heads}, {}, {"bias": bias})

    @relative("x_transformers_forget")
    def x_transformers_forget(draw: Draw) -> Case:
        settings, heads, size = {"causal": draw.coin()}, draw.integer(1, 4), draw.choice([12, 33])
        module = draw.module(xt.DataDependentAlibi(size, heads, causal=settings["causal"]))
        hidden = draw.normal(draw.integer(1, 3), draw.integer(1, 40), size)
        return Case(settings | {"heads": heads}, {"hidden": hidden} | parameters(module), {"bias": module(hidden)})

    @relative("x_transformers_forget_by_row")
    def x_transformers_forget_by_row(draw: Draw) -> Case:
        settings, size = {"heads": draw.integer(1, 4), "dim_head": draw.choice([1, 5, 8])}, draw.choice([12, 33])
        module = draw.module(xt.PerRowDataDependentAlibi(size, settings["heads"], dim_head=settings["dim_head"]))
        hidden = draw.normal(draw.integer(1, 3), draw.integer(1, 40), size)
        return Case(settings, {"hidden": hidden} | parameters(module), {"bias": module(hidden)})

    @relative("x_transformers_mixed")
    def x_transformers_mixed(draw: Draw) -> Case:
        settings, size = {"heads": draw.integer(1, 4), "num_distance_basis": draw.integer(1, 16), "max_dist": draw.choice([1, 8, 100])}, draw.choice([12, 33])
        module = draw.module(xt.RelativeProjPositionalBias(size, settings["heads"], settings["num_distance_basis"], settings["max_dist"]))
        hidden = draw.normal(draw.integer(1, 3), draw.integer(1, 40), size)
        keys = hidden.shape[1] + draw.choice([0, 0, 7])
        return Case(settings | {"keys": keys}, {"hidden": hidden} | parameters(module), {"bias": module(hidden, keys)})

    @relative("cope")
    def cope(draw: Draw) -> Case:
        settings = {"max_pos": draw.choice([1, 4, 16])}
        batch, heads, length, width = draw.integer(1, 3), draw.integer(1, 4), draw.integer(1, 30), draw.choice([4, 7, 32])
        given = draw.query_key(batch, heads, length, length, width)
        given["logits"] = draw.normal(batch, heads, length, length)
        module = draw.module(xt.CoPE(width, heads, settings["max_pos"]))
        return Case(settings, given | parameters(module), {"bias": module(given["q"], given["logits"])})

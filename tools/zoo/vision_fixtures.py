"""Writes tests/fixtures/vision/timm_vit.safetensors: embeddings of timm's VisionTransformer and tables that its
resample_abs_pos_embed resized, by timm itself on this machine.

Tensors `0.pixel_values`, `0.param.*`, `0.out` and so on; `resize.0.table`, `resize.0.out`. Metadata: `cases` and
`resizes` (arguments, JSON), `source` and `torch`. timm has to be installed, without torchvision, which it imports but
does not need here: `pip install --no-deps timm==1.0.31`.
"""

import argparse
import json
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest import mock

import torch
from safetensors.torch import save_file

EMBEDDINGS = [
    {"img_size": 12, "patch_size": 4, "embed_dim": 8},
    {"img_size": [8, 16], "patch_size": 4, "embed_dim": 8, "reg_tokens": 2},
    {"img_size": 12, "patch_size": 4, "embed_dim": 8, "reg_tokens": 3, "no_embed_class": True},
    {"img_size": [8, 12], "patch_size": [4, 2], "embed_dim": 8, "class_token": False, "in_chans": 1},
    {"img_size": 12, "patch_size": 4, "embed_dim": 8, "pre_norm": True},
    {"img_size": 12, "patch_size": 4, "embed_dim": 8, "pos_embed": "none", "reg_tokens": 1},
]  # fmt: skip
SIZES = [None, (2, 5), (3, 3)]  # in patches; None: the model's own
RESIZES = [
    {"old": [5, 3], "new": [5, 3], "prefix": 1}, {"old": [5, 3], "new": [3, 5], "prefix": 1}, {"old": None, "new": [7, 2], "prefix": 0},
    {"old": [4, 4], "new": [9, 6], "prefix": 2}, {"old": None, "new": [4, 4], "prefix": 5},
]  # fmt: skip


class Named(type):
    """The type of classes with members of whatever name in capitals, as an enumeration has."""

    def __getattr__(cls, name: str) -> str:
        if not name.isupper():
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class Imported(types.ModuleType):
    """A module in which every requested name exists."""

    __path__: list = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return Named(name, (torch.nn.Module,), {}) if name[0].isupper() else mock.MagicMock(name=name)


class NoTorchvision:
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return Imported(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


sys.meta_path.append(NoTorchvision())
import timm  # noqa: E402
from timm.layers import resample_abs_pos_embed  # noqa: E402
from timm.models.vision_transformer import VisionTransformer  # noqa: E402


def embeddings(number: int, arguments: dict, draw: torch.Generator) -> dict[str, torch.Tensor]:
    model = VisionTransformer(depth=0, num_heads=1, num_classes=0, global_pool="avg", dynamic_img_size=True, **arguments).eval()
    names = ("cls_token", "reg_token", "pos_embed", "patch_embed.", "norm_pre.")
    params = {key: torch.randn(value.shape, generator=draw) for key, value in model.state_dict().items() if key.startswith(names)}
    model.load_state_dict(params, strict=False)
    tensors = {f"{number}.param.{key}": value for key, value in params.items()}
    patch = model.patch_embed.patch_size
    for at, size in enumerate(SIZES):
        image = model.patch_embed.img_size if size is None else (size[0] * patch[0], size[1] * patch[1])
        pixels = torch.randn((1, arguments.get("in_chans", 3), *image), generator=draw)
        with torch.no_grad():
            out = model.norm_pre(model._pos_embed(model.patch_embed(pixels)))
        tensors |= {f"{number}.{at}.pixel_values": pixels, f"{number}.{at}.out": out.contiguous()}
    return tensors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(18)
    tensors = {}
    for number, arguments in enumerate(EMBEDDINGS):
        tensors |= embeddings(number, arguments, draw)
    for number, how in enumerate(RESIZES):
        cells = how["old"][0] * how["old"][1] if how["old"] else 16
        table = torch.randn((1, cells + how["prefix"], 4), generator=draw)
        out = resample_abs_pos_embed(table, how["new"], how["old"], num_prefix_tokens=how["prefix"])
        tensors |= {f"resize.{number}.table": table, f"resize.{number}.out": out.clone()}
    metadata = {
        "cases": json.dumps(EMBEDDINGS),
        "resizes": json.dumps(RESIZES),
        "source": f"package timm {timm.__version__}",
        "torch": torch.__version__,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    save_file(tensors, args.out / "timm_vit.safetensors", metadata=metadata)
    print(f"{len(EMBEDDINGS)} embeddings and {len(RESIZES)} tables in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

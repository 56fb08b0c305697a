"""The classes of diffusers and timm that are named after a rotary embedding, of which each has to be a preset or named in one."""

import ast
import re
from pathlib import Path

from registry import module
from sources import installed

NAMES = re.compile(r"\w*(?:Rotary(?:Pos)?Emb\w*|RoPE(?:[123]D)?|M?Rope|RopeEmbedder|EmbedND\d?|PosEmbed(?:1d|3D)?)")


def classes_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and NAMES.fullmatch(node.name)}


def rotary_classes() -> set[str]:
    root = Path(installed("diffusers").__file__).parent
    found = {name for folder in ("models", "pipelines") for path in (root / folder).rglob("*.py") for name in classes_of(path)}
    timm = Path(module("timm==1.0.31", "timm/layers/grid.py").__file__).parent / "pos_embed_sincos.py"
    return found | {name for name in classes_of(timm) if not name.startswith("_")}


def uncovered(entries: list[dict]) -> list[str]:
    """Those that no preset names, of `posenc presets --rotary --json`."""
    named = {word for entry in entries for text in (entry["source"], *entry["also"]) for word in re.findall(r"\w+", text)}
    return sorted(rotary_classes() - named)

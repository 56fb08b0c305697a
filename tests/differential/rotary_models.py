"""The rotary embeddings of transformers, class and apply function of each model type, and random configurations."""

import importlib
import inspect
import json
import re
from functools import lru_cache
from pathlib import Path

import torch
import transformers.models
from torch import Tensor, nn
from transformers import PreTrainedConfig

from harness import Draw

ROOT = Path(transformers.models.__file__).parent


@lru_cache
def folders() -> dict[str, str]:
    """The folder in transformers of each model type."""
    found = {}
    for file in sorted(ROOT.glob("*/configuration_*.py")):
        for name in re.findall(r"^ +model_type(?:: \w+)? = [\"']([^\"']+)[\"']", file.read_text(), re.M):
            found.setdefault(name, file.parent.name)
    return found


@lru_cache
def config_class(model_type: str) -> type[PreTrainedConfig]:
    folder = folders()[model_type]
    module = importlib.import_module(f"transformers.models.{folder}.configuration_{folder}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, PreTrainedConfig) and value.model_type == model_type:
            return value
    raise LookupError(model_type)


# Where a folder has several rotary classes, of which none is annotated with the configuration.
CLASSES = {
    "glmasr_encoder": "GlmAsrRotaryEmbedding", "qwen3_omni_moe_text": "Qwen3OmniMoeThinkerTextRotaryEmbedding",
    "qwen3_omni_moe_talker_text": "Qwen3OmniMoeTalkerRotaryEmbedding",
    "qwen3_omni_moe_talker_code_predictor": "Qwen3OmniMoeRotaryEmbedding", "evolla": "EvollaRotaryEmbedding",
    "deepseek_ocr2_encoder": "DeepseekOcr2VisionRotaryEmbedding", "qwen2_5_omni_text": "Qwen2_5OmniRotaryEmbedding",
    "qwen2_5_omni_talker": "Qwen2_5OmniRotaryEmbedding",
}  # fmt: skip
VISION = {"qwen2_vl_vision", "muse_vision", "step3p7_vision", "kimi_k25_vision", "inkling2_vision", "pixtral",
          "gemma4_vision", "minimax_m3_vision"}  # fmt: skip
APPLY = ["apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb", "apply_rotary_emb"]


# Models without a file of their own.
MODELED_AS = {"internlm3": "llama", "iquestcoder": "llama"}


def modeling(model_type: str):
    folder = folders()[MODELED_AS.get(model_type, model_type)]
    return importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")


@lru_cache
def rotary_class(model_type: str) -> type[nn.Module]:
    module, config = modeling(model_type), config_class(model_type).__name__
    classes = [value for name, value in vars(module).items()
               if isinstance(value, type) and re.search("Rotary|RoPE|Rope", name) and value.__module__ == module.__name__
               and "forward" in vars(value) | vars(value.__base__)]  # fmt: skip
    if model_type in CLASSES:
        return getattr(module, CLASSES[model_type])
    own = [c for c in classes if re.search(rf"\b{config}\b", str(inspect.signature(c.__init__)))]
    vision = "vision" in model_type
    plain = [c for c in classes if bool(re.search("Vision", c.__name__)) == vision and "Audio" not in c.__name__] or classes
    return (own or plain)[0]


def apply_function(model_type: str, config: PreTrainedConfig, preset: str):
    """The function that the attention calls."""
    module = modeling(model_type)
    if preset in VISION and hasattr(module, "apply_rotary_pos_emb_vision"):
        return module.apply_rotary_pos_emb_vision
    if getattr(config, "rope_interleave", True) is False or model_type == "dots3_note_audio_encoder":
        return module.apply_rotary_pos_emb
    return next(getattr(module, name) for name in APPLY if hasattr(module, name))


class Embedding:
    """A model's own rotary embedding."""

    def __init__(self, model_type: str, config: PreTrainedConfig, layer_type: str, preset: str):
        self._module = rotary_class(model_type)(config)
        self._apply = apply_function(model_type, config, preset)
        self._layer = {"layer_type": layer_type} if layer_type else {}
        self._slices = model_type in ("phi", "persimmon", "stablelm", "gpt_neox_japanese")
        self._preset = preset
        self.heads_after_length = model_type in ("llama4_text", "xcodec2", "neucodec")

    def table(self, position_ids: Tensor, dtype: torch.dtype):
        return self._module(torch.zeros(1, dtype=dtype), position_ids, **self._layer)

    def rotate(self, q: Tensor, k: Tensor, table) -> tuple[Tensor, Tensor]:
        if self._preset == "gemma4_vision":
            apply = modeling("gemma4_vision").apply_multidimensional_rope
            return tuple(apply(x, *table, torch.zeros(1, 1, 2)) for x in (q, k))
        if self._preset in VISION:
            return self._apply(q, k, *table, **({"unsqueeze_dim": 0} if self._preset == "pixtral" else {}))
        if self._slices:  # outside of the function, in these models' attention
            width = table[0].shape[-1]
            rotated = self._apply(q[..., :width], k[..., :width], *table)
            return tuple(torch.cat((a, b[..., width:]), -1) for a, b in zip(rotated, (q, k)))
        names = inspect.signature(self._apply).parameters
        more = {"unsqueeze_dim": 2} if self.heads_after_length and "unsqueeze_dim" in names else {}
        if not isinstance(table, tuple):
            return self._apply(q, k, table)
        if "k" not in names:
            return self._apply(q, *table, **more), self._apply(k, *table, **more)
        return self._apply(q, k, *table, **more)


class TableEmbedding:
    """GPT-J's and CodeGen's, whose attention looks up a table and rotates the first channels."""

    heads_after_length = True

    def __init__(self, model_type: str, config: PreTrainedConfig):
        self._module, self._width = modeling(model_type), config.rotary_dim
        self._rows = self._module.create_sinusoidal_positions(config.n_positions, self._width)
        self._casts = model_type == "gptj"

    def table(self, position_ids: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        rows = self._rows[position_ids]
        sin, cos = torch.split(rows.to(dtype) if self._casts else rows, rows.shape[-1] // 2, dim=-1)
        return cos, sin

    def rotate(self, q: Tensor, k: Tensor, table: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        cos, sin, width = *table, self._width
        rotate = self._module.apply_rotary_pos_emb
        return tuple(torch.cat([rotate(x[..., :width], sin, cos), x[..., width:]], dim=-1) for x in (q, k))


def parts(table) -> dict[str, Tensor]:
    cos, sin = table if isinstance(table, tuple) else (table.real, table.imag)
    return {"cos": cos.contiguous(), "sin": sin.contiguous()}


# --- configurations ------------------------------------------------------------------------------------------------

TYPES = ["default", "default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"]


def rope_parameters(draw: Draw, kind: str, pairs: int, longest: int) -> dict:
    """Parameters of a type of scaling for `pairs` frequencies."""
    rope: dict = {"rope_type": kind, "rope_theta": draw.choice([10000.0, 500000.0, 1000000.0, 150000.0, 20011.7])}
    if kind in ("linear", "dynamic", "yarn", "llama3"):
        rope["factor"] = draw.choice([2.0, 4.0, 8.0, 3.7, 32.0])
    if kind == "yarn":
        rope |= draw.choice([{}, {"mscale": 1.0, "mscale_all_dim": 0.7}, {"attention_factor": 1.1}, {"factor": None}])
        rope |= draw.choice([{}, {"beta_fast": 24.0, "beta_slow": 2.0}, {"truncate": False}, {"beta_fast": 0.0}])
    if kind == "llama3":
        rope |= {"low_freq_factor": draw.choice([1.0, 0.5]), "high_freq_factor": draw.choice([4.0, 8.0])}
    if kind == "longrope":
        rope |= {name: [round(draw.uniform(1, 20), 3) for _ in range(pairs)] for name in ("short_factor", "long_factor")}
        rope |= draw.choice([{}, {"factor": 4.0}, {"attention_factor": 1.19}])
    if kind in ("yarn", "llama3", "longrope") and draw.coin(0.8):
        rope["original_max_position_embeddings"] = draw.choice([longest // 2, longest // 4, longest])
    return rope


def sections(draw: Draw, preset: str, pairs: int) -> list[int]:
    """mrope_section for `pairs` frequencies."""
    if preset == "ernie4_5_vl":
        each = draw.randint(1, (pairs - 1) // 2)
        return [each, each, pairs - 2 * each]
    count = 4 if preset == "hunyuan_vl" and draw.coin() else 3
    cuts = sorted(draw.sample(range(1, pairs), count - 1))
    return [b - a for a, b in zip([0, *cuts], [*cuts, pairs])]


LAYERS = {"cohere_compass_text": ["full_attention"]}  # none by default
FIXED = {"bamba", "dots3_note_audio_encoder", "dots3_note_vision_encoder", "granitemoehybrid", "gradium_phonon_tts", "pocket_tts"}  # whose widths depend on others


class Settings:
    """Arguments of a configuration class: what is drawn for one case."""

    def __init__(self, draw: Draw, model_type: str, preset: str, kinds: list[str] = TYPES):
        self.kind, self._kinds = config_class(model_type), kinds
        self.preset, self.head_dim = preset, draw.choice([16, 32, 38, 40, 52, 64, 96, 104, 118, 128])
        self.longest = draw.choice([64, 128, 500, 2048])
        default = self.kind()
        self.names = {key: (self.kind.attribute_map or {}).get(key, key)
                      for key in ("hidden_size", "num_attention_heads", "head_dim", "max_position_embeddings")}  # fmt: skip
        heads = draw.choice([2, 4])
        if preset == "neomme" or preset in VISION:
            self.head_dim = draw.choice([16, 32, 64, 96] if preset != "minimax_m3_vision" else [16, 32, 66, 80])
        self.arguments: dict = {self.names["hidden_size"]: heads * self.head_dim, self.names["num_attention_heads"]: heads,
                                self.names["max_position_embeddings"]: self.longest, "num_key_value_heads": heads}  # fmt: skip
        rope = getattr(default, "rope_parameters", None) or {}
        self.layers = LAYERS.get(model_type) or [key for key, value in rope.items() if isinstance(value, dict)]
        self._head_dim(default)
        self._rope(draw, default)

    def _head_dim(self, default: PreTrainedConfig) -> None:
        if self.kind.model_type in FIXED:
            self.head_dim = getattr(default, "head_dim", None) or default.hidden_size // default.num_attention_heads
            self.arguments, self.longest = {}, getattr(default, "max_position_embeddings", 128)
            return
        if self.kind.model_type == "falcon" or self.preset in VISION - {"gemma4_vision"}:
            return
        if "qk_rope_head_dim" in vars(default) and self.preset in ("deepseek_v2", "deepseek_v3", "mistral_large4", "llama"):
            self.arguments["qk_rope_head_dim"] = self.head_dim
            if self.kind.model_type == "longcat_flash":  # which reads this one
                self.arguments["head_dim"] = self.head_dim
        elif hasattr(self.kind, "head_dim") or hasattr(default, "head_dim"):
            self.arguments[self.names["head_dim"]] = self.head_dim

    def _one(self, draw: Draw, kinds: list[str]) -> dict:
        first_part = self.preset in ("gpt_neox", "glm", "qwen3_5", "glm4v", "glm4v_moe", "laguna", "mimo_v2_flash", "deepseek_v4")
        kind = draw.choice(kinds)
        share = draw.choice([1.0, 0.5, 0.25, 0.9]) if first_part else 1.0
        rotating = int(self.head_dim * share)
        if rotating < 10 or rotating % 4 and (kind in ("yarn", "longrope", "dynamic") or self.preset in ("qwen3_5", "glm4v", "glm4v_moe", "neomme")):
            share, rotating = 1.0, self.head_dim
        rope = rope_parameters(draw, kind, rotating // 2, self.longest)
        if first_part:
            rope["partial_rotary_factor"] = share
        if kind == "proportional":
            rope["partial_rotary_factor"] = draw.choice([0.25, 0.5, 0.3, 1.0])
            rotating = self.head_dim
        if self.preset in ("qwen2_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm4v_moe", "hunyuan_vl", "ernie4_5_vl", "cohere_compass"):
            rope["mrope_section"] = sections(draw, self.preset, rotating // 2)
        if self.preset in ("hunyuan_v1", "hunyuan_vl") and draw.coin():
            rope |= {"rope_type": "dynamic", "alpha": draw.choice([1000.0, 50.0]), "factor": 1.0}
        if kind == "longrope" and self.preset == "phimoe":
            rope |= {"short_mscale": 1.1, "long_mscale": 1.3}
        return rope

    def _rope(self, draw: Draw, default: PreTrainedConfig) -> None:
        if self.preset in ("gptj", "codegen"):
            self.arguments["rotary_dim"] = self.head_dim // 4 * 2
            return
        if self.preset in VISION:
            self.arguments["rope_parameters"] = {"rope_type": "axial", "rope_theta": draw.choice([100.0, 10000.0, 20011.7])}
            if self.kind.model_type == "qwen2_vl_vision":
                self.arguments["embed_dim"] = self.arguments["hidden_size"]
            return
        kinds = self._kinds
        if self.kind.model_type in ("ernie4_5_vl_moe_text", "recurrent_gemma", "esm", "cosmos3_edge_text"):
            kinds = ["default"]
        elif self.kind.model_type in ("phi3", "phi4_multimodal", "phimoe"):
            kinds = [kind for kind in kinds if kind in ("default", "longrope")]
        elif self.preset == "neomme":
            kinds = [kind for kind in kinds if kind in ("default", "linear", "llama3")]
        elif self.preset in ("hunyuan_v1", "hunyuan_vl", "dots3_note", "deepseek_v4"):
            kinds = [kind for kind in kinds if kind in ("default", "linear", "llama3", "yarn")]
        if self.kind.model_type == "esm":
            self.arguments |= {"rope_theta": draw.choice([10000.0, 5000.0]), "position_embedding_type": "rotary"}
        elif self.layers:
            self.arguments["rope_parameters"] = {layer: self._one(draw, kinds) for layer in self.layers}
            if self.preset != "deepseek_v4":  # whose two are not layer types
                self.arguments |= {"layer_types": list(self.layers), "num_hidden_layers": len(self.layers),
                                   "sliding_window": 8}  # fmt: skip
        else:
            self.arguments["rope_parameters"] = self._one(draw, kinds)

    def config(self) -> PreTrainedConfig:
        return self.kind(**json.loads(json.dumps(self.arguments)))

"""The attention of models in transformers, run as it is, with its queries, keys and values recorded where they meet: once
with the model's own cos and sin, once with those of the angle 0.
"""

import inspect
import json
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

import rotary_models as models
from harness import Draw

# What the projections of attentions are called.
PROJECTIONS = {"q_proj": "q", "query": "q", "to_q": "q", "k_proj": "k", "key": "k", "to_k": "k", "v_proj": "v", "value": "v",
               "to_v": "v", "o_proj": "o", "out_proj": "o", "dense": "o", "proj": "o", "to_out.0": "o"}  # fmt: skip
TOKENS, BATCH = 6, 2
GRID = {"height": 4, "width": 6}  # six blocks of 2 by 2
LATENT = ("deepseek_v2", "deepseek_v3", "mistral_large4", "dots3_note")  # whose heads end with the channels that rotate
OWN = ("clvp", "codegen", "dinov3", "llama4_vision", "vjepa2", "sam2_video", "sam3_vit", "efficientloftr")  # whose configurations are given as a whole

# By preset: a model type, its attention, and arguments of its configuration beside those of Settings.
ATTENTION = {
    "llama": ("llama", "LlamaAttention", {}),
    "gpt_neox": ("gpt_neox", "GPTNeoXAttention", {}),
    "nanochat": ("nanochat", "NanoChatAttention", {}),
    "olmo": ("olmo", "OlmoAttention", {}),
    "esm": ("esm", "EsmSelfAttention", {}),
    "gpt_oss": ("gpt_oss", "GptOssAttention", {}),
    "xcodec2": ("xcodec2", "Xcodec2Attention", {}),
    "gemma3": ("gemma3_text", "Gemma3Attention", {}),
    "gemma3n": ("gemma3n_text", "Gemma3nTextAttention", {"num_kv_shared_layers": 0}),
    "gemma4": ("gemma4_text", "Gemma4TextAttention", {}),
    "gemma4_partial": ("diffusion_gemma_text", "DiffusionGemmaEncoderTextAttention", {}),
    "hunyuan_v1": ("hunyuan_v1_dense", "HunYuanDenseV1Attention", {}),
    "molmo2": ("molmo2_text", "Molmo2Attention", {}),
    "phimoe": ("phimoe", "PhimoeAttention", {}),
    "mellum": ("mellum", "MellumAttention", {}),
    "modernbert": ("modernbert", "ModernBertAttention", {}),
    "olmo3": ("olmo3", "Olmo3Attention", {}),
    "laguna": ("laguna", "LagunaAttention", {}),
    "mimo_v2_flash": ("mimo_v2_flash", "MiMoV2FlashAttention", {}),
    "clvp": ("clvp_encoder", "ClvpSelfAttention", {"projection_dim": 256, "hidden_size": 192, "num_attention_heads": 4}),
    "blt": ("blt_local_encoder", "BltSelfAttention", {}),
    "cohere": ("cohere", "CohereAttention", {}),
    "privacy_filter": ("openai_privacy_filter", "OpenAIPrivacyFilterAttention", {}),
    "helium": ("helium", "HeliumAttention", {}),
    "pe_audio": ("pe_audio_encoder", "PeAudioEncoderAttention", {}),
    "glm": ("glm", "GlmAttention", {}),
    "ernie4_5": ("ernie4_5", "Ernie4_5Attention", {}),
    "deepseek_v3": ("deepseek_v3", "DeepseekV3Attention", {}),
    "mistral_large4": ("mistral_large4_text", "MistralLarge4TextAttention", {}),
    "dots3_note": ("dots3_note_text", "Dots3NoteTextAttention", {}),
    "qwen2_5_omni_dit": ("qwen2_5_omni_dit", "DiTAttention", {}),
    "deepseek_v2": ("deepseek_v2", "DeepseekV2Attention", {}),
    "llama4": ("llama4_text", "Llama4TextAttention", {}),
    "deepseek_v4": ("deepseek_v4", "DeepseekV4Attention", {"layer_types": ["sliding_attention"], "num_hidden_layers": 1}),
    "gptj": ("gptj", "GPTJAttention", {}),
    "codegen": ("codegen", "CodeGenAttention", {"n_embd": 128, "n_head": 4, "rotary_dim": 16}),
    "roformer": ("roformer", "RoFormerSelfAttention", {}),
    "qwen2_vl": ("qwen2_vl_text", "Qwen2VLAttention", {}),
    "qwen3_vl": ("qwen3_vl_text", "Qwen3VLTextAttention", {}),
    "cohere_compass": ("cohere_compass_text", "CohereCompassAttention", {}),
    "qwen3_5": ("qwen3_5_text", "Qwen3_5Attention", {}),
    "glm4v": ("glm4v_text", "Glm4vTextAttention", {}),
    "glm4v_moe": ("glm4v_moe_text", "Glm4vMoeTextAttention", {}),
    "hunyuan_vl": ("hunyuan_vl_text", "HunYuanVLDenseV1Attention", {}),
    "ernie4_5_vl": ("ernie4_5_vl_moe_text", "Ernie4_5_VLMoeTextAttention", {}),
    "neomme": ("neomme", "NeoMMEAttention", {}),
    "qwen2_vl_vision": ("qwen2_vl_vision", "VisionAttention", {}),
    "muse_vision": ("muse_glimmer_vision", "MuseGlimmerVisionAttention", {}),
    "step3p7_vision": ("step3p5_vision", "Step3p7VisionAttention", {}),
    "kimi_k25_vision": ("kimi_k25_vision", "Kimi_K25VisionAttention", {}),
    "inkling2_vision": ("inkling2_vision", "Inkling2VisionAttention", {}),
    "pixtral": ("pixtral", "PixtralAttention", {}),
    "gemma4_vision": ("gemma4_vision", "Gemma4VisionAttention", {}),
    "minimax_m3_vision": ("minimax_m3_vl_vision", "MiniMaxM3VLVisionAttention", {}),
    "llama4_vision": ("llama4_vision_model", "Llama4VisionAttention",
                      {"hidden_size": 64, "num_attention_heads": 2, "image_size": 56, "patch_size": 14}),
    "dinov3": ("dinov3_vit", "DINOv3ViTAttention", {"hidden_size": 64, "num_attention_heads": 2}),
    "sam2_video": ("sam2_video", "Sam2VideoRoPEAttention",
                   {"memory_attention_hidden_size": 64, "memory_attention_num_attention_heads": 2}),
    "sam3_vit": ("sam3_vit_model", "Sam3ViTRoPEAttention",
                 {"hidden_size": 64, "num_attention_heads": 2, "image_size": 56, "patch_size": 14, "window_size": 7}),
    "vjepa2": ("vjepa2", "VJEPA2RopeAttention", {"hidden_size": 64, "num_attention_heads": 2, "crop_size": 32}),
    "efficientloftr": ("efficientloftr", "EfficientLoFTRAttention",
                       {"hidden_size": 64, "num_attention_heads": 4, "out_features": [64, 64, 128, 64],
                        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 2.0}}),
}  # fmt: skip


# Vision models that compute the positions of their patches.
VISION_MODELS = {
    "qwen2_vl_vision": "Qwen2VisionTransformerPretrainedModel", "muse_vision": "MuseGlimmerVisionModel",
    "step3p7_vision": "Step3p7VisionModel", "kimi_k25_vision": "Kimi_K25VisionModel", "inkling2_vision": "Inkling2VisionModel",
    "pixtral": "PixtralVisionModel", "minimax_m3_vision": "MiniMaxM3VLVisionModel",
}  # fmt: skip


class Found(Exception):
    """Positions that a model has computed."""


class Patches(nn.Module):
    """Stands for a model's embedding of patches."""

    def __init__(self, shape: tuple[int, ...], patch_size: int):
        super().__init__()
        self.shape, self.patch_size, self.patch_embedding, self.weight = shape, patch_size, nn.Linear(1, 1), torch.zeros(1)

    def forward(self, *_args, **_kwargs) -> Tensor:
        return torch.zeros(self.shape)


def vision_positions(kind: type[nn.Module], config) -> Tensor:
    """The positions that a vision model gives to its rotary embedding for an image of GRID."""
    height, width = GRID["height"], GRID["width"]
    for name in ("num_hidden_layers", "depth"):
        if hasattr(config, name):
            setattr(config, name, 0)
    names = inspect.signature(kind.forward).parameters
    merge = config.spatial_merge_size if "image_grid_thw" in names else 1  # that counts merged tokens
    tokens = height * width + ("image_grid_thw" in names)  # and a class token
    hidden = getattr(config, "embed_dim", None) or config.hidden_size
    model = kind(config).eval()

    def found(_like, position_ids):
        raise Found(position_ids)

    for name, part in list(model.named_children()):
        if "Rotary" in type(part).__name__:
            part.forward = found
        elif "patch" in name or name == "embeddings":
            image = "image_sizes" in names
            setattr(model, name, Patches((1, hidden, height, width) if image else (tokens, hidden), config.patch_size))
    size = (height * config.patch_size, width * config.patch_size)
    pixels = torch.zeros(1, 3, *size) if "image_sizes" in names or "grid_thw" not in names else torch.zeros(height * width, 1)
    if "image_grid_thw" in names:
        pixels = torch.zeros(height * width // merge**2, 1)
    given = {"hidden_states": pixels, "pixel_values": pixels, "grid_thw": torch.tensor([[1, height, width]]),
             "image_grid_thw": torch.tensor([[1, height // merge, width // merge]]), "image_sizes": [size]}  # fmt: skip
    try:
        model(**{key: value for key, value in given.items() if key in names})
    except Found as positions:
        return positions.args[0]
    raise LookupError(f"{kind.__name__} has no positions")


@dataclass
class Heads:
    """Heads (B, H, L, D) of queries, keys and values."""

    q: Tensor
    k: Tensor
    v: Tensor


@contextmanager
def recorded(result: Tensor | None = None):
    """Records the heads that attention gets, in a list. `result` (B, L, H, D) is what it then returns; if there is none,
    the values.
    """
    heads: list[Heads] = []
    own_interface, own_matmul = type(ALL_ATTENTION_FUNCTIONS).get_interface, torch.matmul
    products: list[tuple[Tensor, Tensor]] = []

    def attend(_module, q, k, v, *_args, **_kwargs):
        heads.append(Heads(q, k, v))
        if result is not None:
            return result, None
        return v.repeat_interleave(q.shape[1] // v.shape[1], 1).transpose(1, 2), None

    def matmul(a: Tensor, b: Tensor) -> Tensor:
        products.append((a, b))
        return own_matmul(a, b)

    type(ALL_ATTENTION_FUNCTIONS).get_interface = lambda *_: attend
    type(ALL_ATTENTION_FUNCTIONS).__getitem__ = lambda *_: attend
    torch.matmul = matmul
    try:
        yield heads
    finally:
        type(ALL_ATTENTION_FUNCTIONS).get_interface = own_interface
        del type(ALL_ATTENTION_FUNCTIONS).__getitem__
        torch.matmul = own_matmul
    if not heads:  # the attention is written out: the scores, and what they weigh
        (q, k), (_, v) = [pair for pair in products if pair[0].ndim == 4][:2]
        heads.append(Heads(q, k.transpose(-1, -2), v))



def identity(table):
    """cos and sin, or what a model has instead of them, of the angle 0."""
    if isinstance(table, dict):
        return {key: identity(value) for key, value in table.items()}
    if isinstance(table, tuple):
        return torch.ones_like(table[0]), torch.zeros_like(table[1])
    return torch.ones_like(table) if table.is_complex() else torch.zeros_like(table)


@dataclass
class Recording:
    """What a model's attention does to its heads."""

    options: dict  # of a case: the configuration
    ids: Tensor | None  # the positions; none: 0, 1, ...
    before: Heads
    after: Heads
    moves_output: bool = False  # whether the attention rotates its result too
    grid: dict | None = None  # arguments of the module for grids
    table: tuple[Tensor, Tensor] | None = None  # cos and sin, where they are learned
    whole: dict[str, Tensor] | None = None  # input, weights and result of an attention that has nothing else


class Model:
    """The attention of a preset, with random weights."""

    def __init__(self, draw: Draw, preset: str, **arguments: object):
        self.preset, (self.model_type, name, more) = preset, ATTENTION[preset]
        more = more | arguments
        self.layer, kind = "", models.config_class(self.model_type)
        if preset in OWN:
            self.arguments = dict(more)
            self.config = kind(**json.loads(json.dumps(more)))
        else:
            settings = models.Settings(draw, self.model_type, preset, ["default", "linear"])
            settings.arguments |= more
            self.layer = settings.layers[0] if settings.layers else ""
            self.arguments, self.config = settings.arguments, settings.config()
        self.config._attn_implementation = "sdpa" if preset == "qwen2_5_omni_dit" else "eager"  # the only one that it has
        self._module = models.modeling(self.model_type)
        self._draw, attention = draw, getattr(self._module, name)
        names = inspect.signature(attention.__init__).parameters
        given = {"config": self.config, "layer_idx": 0} | {key: more.get(key) for key in ("hidden_size", "num_attention_heads")}
        if "num_heads" in names:
            given["num_heads"] = self.config.num_attention_heads
        self._attention = attention(**{key: value for key, value in given.items() if key in names}).eval()
        if preset == "hunyuan_vl":  # after the rotation, which changes the norm where a pair has two angles
            self._attention.query_layernorm = self._attention.key_layernorm = nn.Identity()
        for key, weight in self._attention.named_parameters():
            if "norm" not in key:
                weight.data = draw.normal(*weight.shape) / weight.shape[-1] ** 0.5
        self._names = inspect.signature(attention.forward).parameters

    def case_options(self) -> dict:
        text = self.config.to_json_string(use_diff=True)
        return {"config": text, "layer_type": self.layer}

    def table(self, ids: Tensor):
        """What the attention gets instead of positions, from the model's own class."""
        module, like, config = self._module, torch.zeros(1), self.config
        if self.preset == "roformer":
            rows = module.RoFormerSinusoidalPositionalEmbedding(512, config.hidden_size // config.num_attention_heads)
            rows.weight = nn.Parameter(rows.create_weight(), requires_grad=False)
            return rows(None, position_ids=ids)[None, None]
        if self.preset == "clvp":
            return module.ClvpRotaryPositionalEmbedding(config)(torch.zeros(1, 512, 1))
        if self.preset == "llama4_vision":
            return module.Llama4VisionRotaryEmbedding(config)(like)
        if self.preset == "dinov3":
            image = torch.zeros(1, 3, GRID["height"] * config.patch_size, GRID["width"] * config.patch_size)
            return module.DINOv3ViTRopePositionEmbedding(config).eval()(image)
        if self.preset in ("sam2_video", "sam3_vit"):
            kind = module.Sam2VideoVisionRotaryEmbedding if self.preset == "sam2_video" else module.Sam3ViTRotaryEmbedding
            return kind(config)(like, ids)
        if self.preset == "efficientloftr":
            size, stride = config.q_aggregation_kernel_size, config.q_aggregation_stride
            shape = (size + stride * (GRID["height"] - 1), size + stride * (GRID["width"] - 1))
            return tuple(t.flatten(1, 2) for t in module.EfficientLoFTRRotaryEmbedding(config)(torch.zeros(1, 1, *shape)))
        if self.preset in ("gptj", "codegen", "vjepa2"):  # which look it up themselves
            return None
        own = models.Embedding(self.model_type, config, self.layer, self.preset).table(ids, torch.float32)
        return {"main": own, "compress": own} if self.preset == "deepseek_v4" else own

    def _call(self, hidden: Tensor, ids: Tensor, turned: bool) -> Tensor:
        table = self.table(ids)
        if not turned and table is not None:
            table = identity(table)
        if self.preset == "roformer" and not turned:  # sin, then cos
            table = torch.cat((table.chunk(2, -1)[0], torch.ones_like(table.chunk(2, -1)[1])), -1)
        batch, tokens = (1, len(hidden)) if hidden.ndim == 2 else hidden.shape[:2]
        given = {"hidden_states": hidden, "query": hidden[:, None], "key": hidden[:, None], "value": hidden[:, None],
                 "position_embeddings": table, "freqs_ci": table, "sinusoidal_pos": table, "rotary_pos_emb": table,
                 "attention_mask": torch.zeros(batch, 1, tokens, tokens), "cu_seqlens": torch.tensor([0, tokens]),
                 "position_ids": ids, "shared_kv_states": {}}  # fmt: skip
        if self.preset in ("gptj", "codegen") and not turned:
            given["position_ids"] = torch.zeros_like(ids)
        if self.preset == "sam3_vit":
            given["hidden_states"] = hidden.view(batch, self.side, self.side, -1)
        if self.preset == "vjepa2":
            given["position_mask"] = None if turned else torch.zeros(batch, tokens, dtype=torch.long)
        with torch.no_grad():
            out = self._attention(**{key: value for key, value in given.items() if key in self._names})
        return out[0] if isinstance(out, tuple) else out

    def run(self, hidden: Tensor, ids: Tensor, turned: bool, result: Tensor | None = None) -> tuple[Heads, Tensor]:
        """The heads that meet, and the attention's result."""
        with recorded(result) as heads:
            out = self._call(hidden, ids, turned)
        return heads[0], out

    def whole(self, hidden: Tensor, ids: Tensor, heads: Heads) -> dict[str, Tensor] | None:
        """The attention's input, weights and result, if it has four projections and nothing else."""
        if any("Norm" in type(part).__name__ for part in self._attention.modules()):  # which may have no weights
            return None
        weights = {}
        for key, weight in self._attention.named_parameters():
            name, _, kind = key.rpartition(".")
            if name not in PROJECTIONS:
                return None
            weights[f"{PROJECTIONS[name]}.{kind}"] = weight.data
        count, width = heads.q.shape[1], heads.q.shape[-1]
        if hidden.shape[-1] != count * width or heads.v.shape[-1] != width or {f"{name}.weight" for name in "qkv"} - set(weights):
            return None
        weights.setdefault("o.weight", torch.eye(count * width))
        for name in "qkvo":
            weights.setdefault(f"{name}.bias", torch.zeros(len(weights[f"{name}.weight"])))
        scale = self.scale(width) * width**0.5  # of the scores, which MultiheadAttention divides by sqrt(width)
        weights |= {name: weights[name] * scale for name in ("q.weight", "q.bias")}
        batched = hidden if hidden.ndim == 3 else hidden[None]
        return weights | {"x": batched, "out": self._call(hidden, ids, turned=True).reshape(batched.shape)}

    def scale(self, width: int) -> float:
        if self.preset == "esm":  # whose queries are scaled before they rotate
            return width**-0.5
        own = [getattr(self._attention, name, None) for name in ("scaling", "scale")]
        return next((value for value in own if isinstance(value, float)), width**-0.5)

    def positions(self) -> Tensor:
        """The positions of the patches of GRID, with those of class tokens, from the model itself."""
        module, config, height, width = self._module, self.config, GRID["height"], GRID["width"]
        if self.preset in VISION_MODELS:
            return vision_positions(getattr(module, VISION_MODELS[self.preset]), config)
        if self.preset == "gemma4_vision":  # the processor's, which needs torchvision
            return torch.stack(torch.meshgrid(torch.arange(width), torch.arange(height), indexing="xy"), -1).view(1, -1, 2)
        if self.preset == "dinov3":
            return module.get_patches_center_coordinates(height, width, torch.float32, torch.device("cpu"))
        if self.preset == "sam3_vit":
            return module.Sam3ViTLayer.precompute_positions(config, window_size=0)
        if self.preset == "sam2_video":
            config.memory_attention_rope_feat_sizes = [width, height]
            return module.Sam2VideoMemoryAttention.precompute_positions(config)
        if self.preset == "vjepa2":
            return torch.stack(self._attention.get_position_ids(torch.zeros(1, 2 * (config.crop_size // config.patch_size) ** 2, 1)), -1)
        size = (self.side, self.side) if self.preset == "llama4_vision" else (height, width)
        from_one = torch.cartesian_prod(*(torch.arange(1, n + 1) for n in size))  # llama4_vision, efficientloftr
        return torch.cat((from_one, torch.zeros(1, 2, dtype=torch.long))) if self.preset == "llama4_vision" else from_one

    @property
    def side(self) -> int:
        """The number of patches on each side of a square image."""
        return self.config.image_size // self.config.patch_size

    def record(self, ids: Tensor, tokens: int, batch: int) -> Recording:
        """Random hidden states of `batch` sequences of `tokens`, at `ids`."""
        packed = "cu_seqlens" in self._names
        width = next(w.shape[-1] for w in self._attention.parameters() if w.ndim == 2)
        hidden = self._draw.normal(*((tokens,) if packed else (batch, tokens)), width)
        after, _ = self.run(hidden, ids, turned=True)
        before, _ = self.run(hidden, ids, turned=False)
        fixed = self._draw.normal(*after.v.repeat_interleave(after.q.shape[1] // after.v.shape[1], 1).transpose(1, 2).shape)
        outputs = [self.run(hidden, ids, turned, fixed)[1] for turned in (True, False)]
        written_out = self.preset in ("clvp", "gptj", "codegen", "roformer")  # which end with a projection at most
        moves = not written_out and not torch.equal(*outputs)
        recording = Recording(self.case_options(), ids, before, after, moves, whole=self.whole(hidden, ids, after))
        if self.preset in LATENT:
            rotating = self.config.qk_rope_head_dim
            for heads in (before, after):
                heads.q, heads.k = (x[..., -rotating:] for x in (heads.q, heads.k))
        if self.preset in (*LATENT[1:], "qwen2_5_omni_dit"):  # which reads pairs and writes halves, at the angle 0 too
            turning = 1 if self.preset == "qwen2_5_omni_dit" else before.q.shape[1]  # heads
            before.q, before.k = (torch.cat((adjacent(x[:, :turning]), x[:, turning:]), 1) for x in (before.q, before.k))
        return recording


def adjacent(x: Tensor) -> Tensor:
    """Halves as the adjacent pairs that they were read from."""
    return torch.stack(x.chunk(2, -1), -1).flatten(-2)

"""Every preset as a value of `Recipe`: name -> (recipe, parameters). A new system is one entry here.

`PARAMETERS` gives each parameter's default (the real package's own default if it has one) and the values that are
compared. `ALIASES` maps a name to one with the same recipe, bit for bit at every dimension that both accept.
"""

from dataclasses import replace

import torch

from engine import Frequency, Recipe, evaluate

# --- frequency rules -----------------------------------------------------------------------------

EXP0 = Frequency("exp_scalar", "even", "C")  # exp(2i * -(ln b / D)), scalar in double
EXP1 = Frequency("exp_scalar", "half", "n-1")  # exp(i * -(ln b / (n-1)))
RECIP = Frequency("pow_reciprocal", "even", "C")  # 1 / b ** (2i / D)
RECIP_N = Frequency("pow_reciprocal", "half", "n")  # 1 / b ** (i / n)
DIVISOR = Frequency("pow", "paired", "C", split=True)  # b ** (2 (j//2) / D) for all channels

INTERLEAVED, HALVES = "frequency function", "function frequency"
PER_AXIS_INTERLEAVED, PER_AXIS_HALVES = "axis frequency function", "axis function frequency"
HW, WH = ("height", "width"), ("width", "height")

# --- families ------------------------------------------------------------------------------------

TUTORIAL = Recipe(EXP0, order=INTERLEAVED)
RELATIVE = replace(TUTORIAL, positions="relative")
FAIRSEQ = Recipe(EXP1, odd="zero", zero_row="padding_idx", minimum=4)
PLAIN1 = Recipe(EXP1, minimum=4)
MARIAN = Recipe(DIVISOR, dtype="f64", phase="quotient", odd="more_sin", minimum=1)
XLM = replace(MARIAN, order=INTERLEAVED)
TIMESTEP0 = Recipe(
    Frequency("exp_divided_last", "half", "n", base="max_period"), positions="real", first="cos", odd="zero"
)
MAE = Recipe(
    Frequency("pow_reciprocal", "half", "C/2"),
    dtype="f64",
    order=PER_AXIS_HALVES,
    axes=WH,
    rows=HW,
    multiple=4,
    minimum=4,
)
DETR = Recipe(
    DIVISOR,
    phase="quotient",
    order=PER_AXIS_INTERLEAVED,
    axes=HW,
    rows=HW,
    axis_values="detr",
    multiple=4,
    minimum=4,
)
GRID_RECIP = Recipe(RECIP_N, order=PER_AXIS_HALVES, axes=WH, rows=HW, multiple=4, minimum=4)
TEMPERED = replace(RECIP_N, base="temperature")
SHIFTED = Frequency("pow_reciprocal", "half", "n-1", base="temperature")

RECIPES: dict[str, Recipe] = {
    # interleaved, exp, shift 0
    "annotated_transformer": TUTORIAL,
    "nemo_nmt": replace(TUTORIAL, post="div_sqrt"),
    "softs_inc32": Recipe(Frequency("exp_scalar32", "even", "C"), order=INTERLEAVED),
    "patchtst_sincos": replace(TUTORIAL, post="standardise"),
    "tape": replace(TUTORIAL, angle_scale="dim_over_length"),
    "zoedepth": Recipe(Frequency("exp_scalar32", "even", "C"), odd="widen"),
    # relative
    "parakeet_rel": Recipe(RECIP, order=INTERLEAVED, positions="relative", odd="widen"),
    "wenet_firered": replace(RELATIVE, frequency=Frequency("exp_scalar_of_log32", "even", "C")),
    "espnet_rel": RELATIVE,
    "speechbrain_rel_xl": replace(TUTORIAL, positions="relative_abs"),
    "transformer_xl": Recipe(RECIP, positions="down", odd="widen"),
    "xlnet": Recipe(RECIP, positions="xlnet", odd="widen"),
    # halves
    "nemo_tts": Recipe(RECIP, odd="widen"),
    "kimi_k25": Recipe(RECIP, zero_row="cls"),
    "bros": Recipe(RECIP, positions="real"),
    "pp_doclayout_v2_relation": Recipe(
        Frequency("pow_reciprocal", "even", "n", base="theta"), order=PER_AXIS_HALVES, axes=("scale x",)
    ),
    "fairseq": FAIRSEQ,
    "musicgen": replace(FAIRSEQ, zero_row="none", first="cos"),
    "opennmt_py_concat": PLAIN1,
    "whisper": replace(PLAIN1, frequency=replace(EXP1, base="max_timescale")),
    "texar": replace(FAIRSEQ, zero_row="none"),
    "timesfm": Recipe(Frequency("exp_scalar", "half", "max(n-1,1)", base="max_timescale"), odd="length_bug", minimum=2),
    "fun_asr_nano": Recipe(replace(EXP1, base="max_timescale"), origin=1, minimum=4),
    "canary": Recipe(replace(EXP1, base=lambda c: 10000 ** ((c - 2) / c)), post="div_sqrt", minimum=4),
    "gemma3n_audio": Recipe(Frequency("exp_scalar", "half", "max(n-1,1)"), positions="real", odd="narrow"),
    "fairseq2": Recipe(
        Frequency("exp_divided_last", "half", "n-1"), positions="after_pad", zero_row="first", minimum=4
    ),
    "funasr": Recipe(Frequency("exp_scalar32", "half", "n-1"), origin=1, minimum=4),
    # float64
    "hf_marian": MARIAN,
    "xlm": XLM,
    "flax_wmt": Recipe(EXP1, dtype="f64", odd="zero", minimum=4),
    "sam_lynn_evans": Recipe(
        Frequency("pow", "doubled", "C", split=True), dtype="f64", phase="quotient", order=INTERLEAVED
    ),
    "diffusers_1d_sincos": Recipe(Frequency("pow_reciprocal", "half", "C/2"), dtype="f64", positions="real"),
    "cct": replace(XLM, dtype="f64_angle"),
    # power, float32
    "ctrl": Recipe(Frequency("pow_reciprocal", "paired", "C", split=True), odd="more_sin", minimum=1),
    "d2l": Recipe(Frequency("pow", "even", "C"), phase="quotient", order=INTERLEAVED),
    "x_transformers": Recipe(Frequency("pow_negative", "half", "n", base="theta"), post="mul_rsqrt"),
    "keras_sine": Recipe(
        Frequency("pow_inverse_base", "paired", "C", base="max_wavelength", split=True),
        order=INTERLEAVED,
        odd="more_sin",
        positions="start_index",
        minimum=1,
    ),
    "simple_vit_1d": Recipe(SHIFTED, minimum=4),
    "gradium_phonon_duration": Recipe(replace(SHIFTED, base="max_period"), positions="real", first="cos", minimum=4),
    "sam2_1d": Recipe(Frequency("pow", "paired_half", "n"), phase="quotient", positions="real", odd="narrow"),
    "positional_encodings_1d": Recipe(RECIP, order=INTERLEAVED, axis_channels="ceil_even", odd="truncate", minimum=1),
    "positional_encodings_1d_v5_0": Recipe(RECIP, axis_channels="ceil_even", odd="truncate", minimum=1),
    # timesteps
    "diffusers_timesteps": Recipe(
        Frequency("exp_divided_last", "half", "n-shift", base="max_period"),
        positions="real",
        angle_scale="scale",
        odd="zero",
    ),
    "guided_diffusion": TIMESTEP0,
    "ddpm_lucidrains": Recipe(replace(EXP1, base="theta"), positions="real", odd="narrow", minimum=4),
    "qwen2_5_omni_timesteps": Recipe(EXP1, order=PER_AXIS_HALVES, axes=("scale x",), odd="narrow", minimum=4),
    "pi0_timesteps": Recipe(Frequency("periods"), positions="real", odd="narrow"),
    # 2-D
    "mae_2d": replace(MAE, zero_row="cls_token"),
    "vit_mae": replace(MAE, zero_row="cls"),
    "aimv2_2d": MAE,
    "diffusers_2d_sincos": replace(MAE, axis_values="diffusers"),
    "detr_2d": DETR,
    "deformable_detr_2d": replace(DETR, axis_values="detr_half"),
    "dab_detr_2d": replace(
        DETR,
        frequency=Frequency("pow_of_product", "pair_number", "C", base="temperature", split=True),
        axis_values="detr_always",
    ),
    "grounding_dino_2d": replace(
        DETR, frequency=replace(DIVISOR, base="temperature"), axis_values="detr_always"
    ),
    "conditional_detr_points": replace(DETR, axes=("2pi(1-x)", "2pi x"), rows=(), axis_values="plain"),
    "timm_2d": replace(GRID_RECIP, frequency=TEMPERED, order="function axis frequency", axes=HW),
    "rt_detr_2d": replace(GRID_RECIP, frequency=TEMPERED, dtype="f64", axes=HW),
    "rt_detr_2d_v4": replace(GRID_RECIP, frequency=TEMPERED, rows=WH),
    "moco_v3_2d": replace(GRID_RECIP, rows=WH, zero_row="cls"),
    "monai_2d": GRID_RECIP,
    "simple_vit_2d": replace(GRID_RECIP, frequency=SHIFTED, minimum=8),
    "loftr_2d": Recipe(
        Frequency("exp_floored_if_bug", "even", "C"),
        order="frequency axis function",
        axes=WH,
        rows=HW,
        axis_values="one_based",
        multiple=4,
        minimum=4,
    ),
    "positional_encodings_2d": Recipe(
        RECIP,
        order=PER_AXIS_INTERLEAVED,
        axes=HW,
        rows=HW,
        axis_channels="ceil_even",
        odd="truncate",
        minimum=1,
    ),
    # 3-D
    "diffusers_3d_sincos": replace(
        MAE,
        axes=("depth", "width", "height"),
        rows=("depth", "height", "width"),
        axis_channels="quarter_rest",
        multiple=16,
        minimum=16,
    ),
    "positional_encodings_3d": Recipe(
        RECIP,
        order=PER_AXIS_INTERLEAVED,
        axes=("depth", "height", "width"),
        rows=("depth", "height", "width"),
        axis_channels="ceil_even",
        odd="truncate",
        minimum=1,
    ),
    "simple_vit_3d": Recipe(
        replace(SHIFTED, base=10000.0),
        order=PER_AXIS_HALVES,
        axes=("width", "height", "depth"),
        rows=("depth", "height", "width"),
        axis_channels="floor_even",
        odd="zero",
        minimum=12,
    ),
    # coordinates
    "nerf": Recipe(
        Frequency("two_to_linspace"),
        order="frequency function axis",
        axes=("x", "x/2", "-x"),
        raw=True,
        odd="-",
        minimum=1,
    ),
    "perceiver_fourier": Recipe(
        Frequency("linspace"), positions="real", angle_scale="pi", raw=True, odd="-", minimum=1
    ),
    # TensorFlow: the order of operations only; its own exp, sin and cos kernels give other last bits
    "tensor2tensor": Recipe(
        Frequency("exp_scalar32", "half", "max(n-1,1)"), positions="start_index", odd="zero", minimum=2
    ),
    "opennmt_tf": Recipe(EXP1, origin=1, minimum=4),
}

ALIASES: dict[str, str] = {
    **dict.fromkeys(
        [
            "pytorch_tutorial",
            "labml",
            "espnet",
            "opennmt_py",
            "speechbrain",
            "joeynmt",
            "bert_pytorch",
            "informer",
            "autoformer",
            "wenet",
            "nemo_asr",
            "fairseq_conformer",
            "diffusers_sinusoidal",
            "speecht5_scaled",
        ],
        "annotated_transformer",
    ),
    **dict.fromkeys(
        [
            "nemo_asr_rel",
            "wav2vec2_conformer_rel",
            "seamless_m4t_rel",
            "fastspeech2_conformer_rel",
            "fairseq_conformer_rel",
        ],
        "espnet_rel",
    ),
    **dict.fromkeys(
        ["m2m100", "xglm", "nllb_moe", "speech_to_text", "seamless_m4t", "trocr", "speecht5", "fsmt"], "fairseq"
    ),
    "hf_whisper": "whisper",
    "pegasus_x": "opennmt_py_concat",
    **dict.fromkeys(
        ["hf_pegasus", "hf_roformer", "hf_informer", "hf_autoformer", "hf_time_series_transformer"], "hf_marian"
    ),
    **dict.fromkeys(["flaubert", "distilbert", "attention_is_all_you_need_pytorch", "videomae"], "xlm"),
    "dit": "guided_diffusion",
    "monai_timesteps": "guided_diffusion",
    **dict.fromkeys(["hf_detr_2d", "maskformer_2d", "mask2former_2d", "mmdet_2d", "sam2_2d"], "detr_2d"),
}

# --- parameters: default, compared values --------------------------------------------------------

_REAL = {"start": (0.0, [0.0, 0.5, 3.25, -4.0, 900.0]), "step": (1.0, [1.0, 0.25, 0.125, 7.5])}
_H = {"height": (None, [1, 3, 7, 14, 16, 33])}
_HW = {**_H, "width": (None, [1, 4, 5, 14, 16, 31])}
_HWD = {**_HW, "depth": (None, [1, 2, 5])}
_TEMPERATURE = {"temperature": (10000, [10000, 100])}
_PERIOD = {"max_period": (10000, [10000, 1000])}

PARAMETERS: dict[str, dict[str, tuple]] = {
    "xlnet": {"attn_type": ("bi", ["bi", "uni"])},
    "fairseq": {"padding_idx": (-1, [-1, 0, 1, 2])},
    "whisper": {"max_timescale": (10000, [10000, 1000, 500000])},
    "timesfm": {"max_timescale": (10000, [10000, 1000])},
    "fun_asr_nano": {"max_timescale": (10000, [10000, 1000])},
    "gemma3n_audio": {"start": (12.0, [12.0, 5.0, 200.0]), "step": (-1.0, [-1.0])},
    "bros": _REAL,
    "pp_doclayout_v2_relation": {
        "start": (0.0, [0.0, -3.5]),
        "step": (2.0**-6, [2.0**-6, 0.25]),
        "theta": (10000, [10000, 100]),
        "scale": (100, [100, 1, 33]),
    },
    "gradium_phonon_duration": {**_REAL, **_PERIOD},
    "qwen2_5_omni_timesteps": {
        "start": (0.0, [0.0, 0.3125]),
        "step": (2.0**-10, [2.0**-10, 2.0**-7]),
        "scale": (1000, [1000, 1, 37]),
    },
    "pi0_timesteps": {
        "start": (0.0, [0.0, 0.3125]),
        "step": (2.0**-10, [2.0**-10, 2.0**-7]),
        "min_period": (4e-3, [4e-3, 0.01]),
        "max_period": (4.0, [4.0, 3.0]),
    },
    "fairseq2": {"legacy_pad_idx": (-1, [-1, 0, 1])},
    "diffusers_1d_sincos": {**_REAL, "flip_sin_to_cos": (0, [0, 1])},
    "x_transformers": {"theta": (10000, [10000, 1000])},
    "keras_sine": {"max_wavelength": (10000, [10000, 1000]), "start_index": (0, [0, 5])},
    "simple_vit_1d": _TEMPERATURE,
    "sam2_1d": _REAL,
    "diffusers_timesteps": {
        **_REAL,
        "flip_sin_to_cos": (0, [0, 1]),
        "downscale_freq_shift": (1, [0, 1]),
        "scale": (1, [1, 1000, 0.5]),
        **_PERIOD,
    },
    "guided_diffusion": {**_REAL, **_PERIOD},
    "ddpm_lucidrains": {**_REAL, "theta": (10000, [10000, 1000])},
    "mae_2d": {**_H, "cls_token": (0, [0, 1])},
    "vit_mae": {"height": (None, [1, 3, 7, 14, 16])},
    "diffusers_2d_sincos": {
        **_HW,
        "base_size": (16, [16, 7]),
        "interpolation_scale": (1.0, [1.0, 2.0]),
    },
    "detr_2d": {**_HW, "normalize": (0, [0, 1])},
    "deformable_detr_2d": _HW,
    "aimv2_2d": _HW,
    "grounding_dino_2d": {**_HW, "temperature": (20, [20, 10000])},
    "dab_detr_2d": {**_HW, "temperature": (20, [20, 10000])},
    "conditional_detr_points": {"start": (0.0, [0.0, 0.25]), "step": (2.0**-10, [2.0**-10, 2.0**-8])},
    "timm_2d": {**_HW, "interleave_sin_cos": (0, [0, 1]), "reverse_coord": (0, [0, 1]), **_TEMPERATURE},
    "rt_detr_2d": {**_HW, **_TEMPERATURE},
    "rt_detr_2d_v4": {**_HW, **_TEMPERATURE},
    "moco_v3_2d": _HW,
    "monai_2d": _HW,
    "simple_vit_2d": {**_HW, **_TEMPERATURE},
    "loftr_2d": {**_HW, "temp_bug_fix": (1, [0, 1])},
    "positional_encodings_2d": _HW,
    "diffusers_3d_sincos": _HWD,
    "positional_encodings_3d": _HWD,
    "simple_vit_3d": _HWD,
    "nerf": {"multires": (10, [4, 10]), "step": (2.0**-7, [2.0**-7]), "start": (-1.0, [-1.0, 0.0])},
    "perceiver_fourier": {
        "num_bands": (64, [6, 64]),
        "max_resolution": (224, [50, 224]),
        "start": (-1.0, [-1.0]),
        "step": (2.0**-7, [2.0**-7]),
    },
    "tensor2tensor": {"start_index": (0, [0, 3])},
}

NAMES: list[str] = sorted([*RECIPES, *ALIASES])


def recipe(name: str) -> Recipe:
    return RECIPES[ALIASES.get(name, name)]


def parameters(name: str) -> dict[str, tuple]:
    return PARAMETERS.get(ALIASES.get(name, name), {})


def defaults(name: str) -> dict:
    return {k: default for k, (default, _) in parameters(name).items() if default is not None}


def table(name: str, length: int, dim: int, **params) -> torch.Tensor:
    known = parameters(name)
    unknown = set(params) - set(known)
    if unknown:
        raise ValueError(f"{name} has no parameter {sorted(unknown)}")
    full = {**defaults(name), **params}
    if "height" in known and "width" not in known:  # square grids only
        full["width"] = full["height"]
    return evaluate(recipe(name), length, dim, full)

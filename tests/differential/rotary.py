"""Rotary embeddings of random configurations, with random positions, against transformers' own classes."""

import json

import torch

import rotary_models as models
import rotary_packages as packages
import rotary_systems as systems
from harness import Case, Draw, Failure, Programs, run
from written import read, written

CASES = 40
# Errors of transformers' own classes for configurations that they reject: such a case is skipped.
REFUSALS = (AttributeError, KeyError, RuntimeError, ValueError)


def position_ids(draw: Draw, planes: int, batch: int, length: int, longest: int) -> torch.Tensor:
    """From an offset, with gaps, or both; a plane for each axis now and then."""
    shape = (planes, batch, length) if planes > 1 and draw.coin(0.7) else (batch, length)
    if draw.coin(0.3):
        start = draw.choice([0, 0, 7, longest - 1, longest, 3 * longest, 100_000])
        return torch.arange(start, start + length).expand(shape).contiguous()
    most = draw.choice([longest // 2, longest, 2 * longest, 20 * longest])
    return draw.integers(most, *shape).sort(-1).values


def planes_of(preset: str, config) -> int:
    if preset == "hunyuan_vl":
        return len(config.rope_parameters["mrope_section"])
    several = ("qwen2_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm4v_moe", "ernie4_5_vl", "cohere_compass")
    return 3 if preset in several else 2 if preset == "neomme" else 1


def case(draw: Draw, model_type: str, preset: str) -> Case | None:
    if preset in systems.SYSTEMS:
        return systems.SYSTEMS[preset](draw, model_type)
    settings = models.Settings(draw, model_type, preset)
    # without arguments, Qwen3-Omni's heads have 73 channels, which its own layers refuse
    if draw.coin(0.15) and preset not in ("hunyuan_vl", "cohere_compass") and model_type != "qwen3_omni_moe_text":
        settings.arguments = {}  # everything as the class has it
    if preset in models.VISION and hasattr(settings.kind, "spatial_merge_size") and draw.coin():
        names = ["spatial_merge_size"] + ["adapter_merge_size"] * (model_type == "dots3_note_vision_encoder")  # it wants them equal
        settings.arguments |= dict.fromkeys(names, draw.choice([1, 2, 3]))
    layer = draw.choice(settings.layers) if settings.layers else ""
    is_table = preset in ("gptj", "codegen")
    try:
        config = settings.config()
        # as transformers saves it, or what somebody wrote by hand
        text = json.loads(config.to_json_string(use_diff=True)) if draw.coin(0.6) else {"model_type": model_type} | settings.arguments
        text = written(draw, settings.kind, text)
        config = read(settings.kind, text)
        own = models.TableEmbedding(model_type, config) if is_table else models.Embedding(model_type, config, layer, preset)
    except REFUSALS:
        return None
    grid = None
    dtype = draw.choice([torch.float32, torch.bfloat16, torch.float16])
    batch, heads, length = draw.randint(1, 3), draw.choice([1, 4]), draw.randint(1, 20)
    if preset in models.VISION:
        shape = (batch, length, 2) if preset == "gemma4_vision" else (length, 3 if preset == "minimax_m3_vision" else 2)
        ids = draw.integers(draw.choice([8, 100, 3000]), *shape)
        grid = systems.grid_positions(draw, model_type, preset, config) if draw.coin() else None
        if grid:
            ids, length = grid[1], len(grid[1])
    else:
        ids = position_ids(draw, planes_of(preset, config), batch, length, settings.longest)
    if is_table:
        ids = ids % config.n_positions
    try:
        table = own.table(ids, dtype)
    except REFUSALS:
        return None
    expected = models.parts(table)
    width = max(settings.head_dim, expected["cos"].shape[-1]) if preset != "dots3_note" else expected["cos"].shape[-1]
    shape = (batch, length, heads, width) if own.heads_after_length else (batch, heads, length, width)
    if preset in models.VISION:
        shape = {"gemma4_vision": (batch, length, heads, width), "pixtral": shape}.get(preset, (length, heads, width))
    if isinstance(table, torch.Tensor):
        shape = (*shape[:3], 2 * table.shape[-1])
    q, k = draw.normal(*shape).to(dtype), draw.normal(*shape).to(dtype)
    try:
        rotated = own.rotate(q, k, table)
    except REFUSALS:
        return None
    expected["q"], expected["k"] = (t.contiguous() for t in rotated)
    options = {"op": "rotary", "config": json.dumps(text), "layer_type": layer}
    if grid:
        return Case(options | grid[0], {"q": q, "k": k}, expected, "bits")
    return Case(options, {"position_ids": ids, "q": q, "k": k}, expected, "bits")


def model_types(programs: Programs) -> dict[str, str]:
    """The preset of each model type that posenc knows and transformers has."""
    presets = json.loads(programs.posenc("presets", "--rotary", "--json").stdout)
    return {name: entry["name"] for entry in presets for name in entry["model_types"]}


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    known = model_types(programs) | systems.WITHOUT_MODEL_TYPE
    drawn = [case(draw, name, known[name]) for name in draw.sample(sorted(known), CASES)]
    cases = [one for one in drawn if one]
    if len(cases) < CASES // 2:
        raise RuntimeError(f"transformers takes only {len(cases)} of {CASES} configurations: they are drawn wrongly")
    return run(programs, cases + packages.cases(draw))

"""A table for each axis of a grid: SAM, ViTDet."""

import torch
from buckets import configuration, modeling
from relative_registry import Case, Draw, Given, parameters, relative, softmax_inputs

KINDS = {
    "sam": "SamVisionAttention", "got_ocr2": "GotOcr2VisionAttention", "sam_hq": "SamHQVisionAttention",
    "slanext": "SLANeXtVisionAttention", "pp_formulanet": "PPFormulaNetVisionAttention",
    "deepseek_ocr2": "DeepseekOcr2SamVisionAttention", "unlimited_ocr": "UnlimitedOcrSamVisionAttention",
    "seggpt": "SegGptAttention", "vitdet": "VitDetAttention",
}  # fmt: skip


@relative(*KINDS)
def sam(draw: Draw, name: str) -> Case:
    grid, table = ([draw.integer(1, 8), draw.integer(1, 8)] for _ in range(2))
    if draw.coin():
        table = grid
    batch, heads, width = draw.integer(1, 3), draw.integer(1, 4), draw.choice([4, 7, 32])
    tokens = grid[0] * grid[1]
    given = draw.query_key(batch, heads, tokens, tokens, width)
    config = configuration(
        name, hidden_size=heads * width, num_attention_heads=heads, attention_dropout=0.0, qkv_bias=True, use_rel_pos=True,
        image_size=32, patch_size=4, use_relative_position_embeddings=True, dropout_prob=0.0,
    )  # fmt: skip
    make = getattr(modeling(name), KINDS[name])
    more = {"vitdet": {"input_size": (8, 8)}, "seggpt": {}}.get(name, {"window_size": 8})
    module = make(config, **more)
    module.rel_pos_h = torch.nn.Parameter(torch.zeros(2 * table[0] - 1, width))
    module.rel_pos_w = torch.nn.Parameter(torch.zeros(2 * table[1] - 1, width))
    module = draw.module(module)
    weights = parameters(module, "rel_pos_")
    qkv = torch.stack([given["q"], given["k"], given["k"]])  # (3, B, H, L, D) -> (B, L, 3 * H * D)
    module.qkv = Given(qkv.permute(1, 3, 0, 2, 4).reshape(batch, *grid, -1))
    with softmax_inputs() as seen:
        module(draw.normal(batch, *grid, heads * width))
    scores = seen[0].view(batch, heads, tokens, tokens)
    sizes = {"batch": batch, "heads": heads, "head_dim": width, "queries": tokens, "keys": tokens}
    return Case({"grid": grid, "table_grid": table} | sizes, given | weights, {"scores": scores})

"""Every rotary preset through every part of posenc that takes one, beside what the model itself does to its heads.

    rotary_takers.py --posenc POSENC --driver POSENC_DIFFERENTIAL

The model is the attention of transformers with random weights (rotary_attention.py); where a system is no attention, its
own functions (rotary_systems.py); for other packages, what they computed (tests/fixtures/rotary). A part that cannot do
what a preset says must refuse it by name.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import layer_norm, scaled_dot_product_attention

import rotary_models as models
import rotary_systems as systems
from harness import Case, Draw, Programs, judge
from rotary_attention import ATTENTION, BATCH, GRID, TOKENS, VISION_MODELS, Heads, Model, Recording

FIXTURES = Path(__file__).parent.parent / "fixtures" / "rotary"
SYSTEMS = {"wav2vec2_conformer": "wav2vec2-conformer", "musicflamingo": "musicflamingo", "esmfold2": "esmfold2",
           "lightglue": "lightglue"}  # fmt: skip
PLANES = {"neomme": 2} | dict.fromkeys(("qwen2_vl", "qwen3_vl", "qwen3_5", "glm4v", "glm4v_moe", "ernie4_5_vl", "cohere_compass"), 3)

ATTENTION_TAKERS = ("whole", "forward", "forward_apart", "step", "encoder_layer")
ROTATION_TAKERS = ("function", "in_place", "module")
TAKERS = (*ATTENTION_TAKERS, *ROTATION_TAKERS, "grid", "given")  # given: cos and sin of the model

# What an attention refuses, and a text of the error.
NO_ATTENTION = {
    "xcodec2": "the number of the head (xcodec2)", "wav2vec2_conformer": "AppliedTo::HiddenStates",
    "musicflamingo": "AppliedTo::HiddenStates", "efficientloftr": "AppliedTo::AllHeads", "ltx": "AppliedTo::AllHeads",
    "deepseek_v4": "AppliedTo::HeadsAndOutput", "ltx2": "AppliedTo::AllHeads", "ltx2_split": "AppliedTo::AllHeads",
}  # fmt: skip
GRIDS = (*VISION_MODELS, "gemma4_vision", "llama4_vision", "dinov3", "sam2_video", "sam3_vit", "vjepa2", "efficientloftr")
LEARNED = ("lightglue", "mochi", "timm_mixed")


# Whose order of axes is (B, L, H, D).
AFTER_LENGTH = ("wav2vec2_conformer", "torchtune", "meta_llama", "stable_audio3", "flux", "wan", "hunyuan_video", "lumina2",
                "z_image", "qwen_image", "ltx", "mochi", "lumina_next", "ltx2", "ltx2_split", "ltx2_vae", "hidream_image", "kandinsky5",
                "kandinsky6", "ernie_image", "minimax_h3_video")  # fmt: skip
# Whose tokens have a position on each axis.
AXIAL = (*GRIDS, "musicflamingo", "esmfold2", "flux", "wan", "hunyuan_video", "lumina2", "z_image", "qwen_image", "cogview4",
         "cosmos", "ltx", "timm_cat", "timm_rope", "timm_dinov3", "timm_mrope", "lumina_next", "ltx2", "ltx2_split", "ltx2_vae", "hidream_image",
         "kandinsky5", "kandinsky6", "ernie_image", "allegro", "minimax_h3_video")  # fmt: skip


def of_attention(draw: Draw, preset: str, **arguments: object) -> list[Recording]:
    """A model's attention at the positions 0, 1, ..., and at others, or for a grid of patches."""
    model = Model(draw, preset, **arguments)
    if preset in GRIDS:
        ids = model.positions()
        recording = model.record(ids, ids.shape[-2], 1)
        recording.grid = {"height": model.side, "width": model.side} if preset in ("llama4_vision", "sam3_vit") else dict(GRID)
        if preset == "vjepa2":
            recording.grid = {"frames": 2, "height": 2, "width": 2}
        if preset == "inkling2_vision":
            recording.grid["prefix_tokens"] = 1
        return [recording]
    if preset == "xcodec2":  # whose positions are the numbers of the heads
        recording = model.record(torch.arange(model.config.num_attention_heads)[None], TOKENS, BATCH)
        recording.ids = None
        return [recording]
    first = torch.arange(TOKENS).expand(BATCH, TOKENS)
    planes = PLANES.get(preset, len(model.config.rope_parameters["mrope_section"]) if preset == "hunyuan_vl" else 1)
    shape = (planes, BATCH, TOKENS) if planes > 1 else (BATCH, TOKENS)
    if preset == "roformer":  # which has one row for all
        shape = (TOKENS,)
        first = first[0]
    others = draw.integers(60, *shape).sort(-1).values
    start = model.record(first.expand(shape), TOKENS, BATCH)
    start.ids = None
    return [start, model.record(others, TOKENS, BATCH)]


def recording_of(draw: Draw, preset: str, options: dict, ids: Tensor | None, heads: list[Tensor]) -> Recording:
    """q, k, and both rotated, as a system has them."""
    q, k, turned_q, turned_k = (x.transpose(1, 2) if preset in AFTER_LENGTH else x for x in heads)
    most = q.shape[1] * q.shape[3] // q.shape[0]  # tokens that the test's projections have room for
    if preset in AXIAL and q.shape[2] > most:
        q, k, turned_q, turned_k, ids = *(x[:, :, :most] for x in (q, k, turned_q, turned_k)), ids[..., :most, :]
    v = draw.normal(*k.shape)
    return Recording(options, ids, Heads(q, k, v), Heads(turned_q, turned_k, v))


def of_system(draw: Draw, preset: str) -> list[Recording]:
    """A system's own functions, where there is no attention of its own."""
    while (case := systems.SYSTEMS[preset](draw, SYSTEMS[preset])).tensors["q"].dtype != torch.float32:
        pass
    heads = [case.tensors["q"], case.tensors["k"], case.expected["q"], case.expected["k"]]
    recording = recording_of(draw, preset, case.options, case.tensors.get("position_ids"), heads)
    if preset in LEARNED:
        recording.table = case.tensors["cos"], case.tensors["sin"]
    return [recording]


def of_package(draw: Draw, preset: str) -> list[Recording]:
    """What a package has computed."""
    path = FIXTURES / f"{preset}.safetensors"
    tensors = load_file(path)
    with safe_open(path, "pt") as file:
        options = {"preset": preset, "params": json.loads(file.metadata()["cases"])[0]}
    ids = tensors.get("0.position_ids")
    if preset == "xpos":
        options["xpos_middle"] = (int(ids.max()) + 1) // 2
    recording = recording_of(draw, preset, options, ids, [tensors[f"0.{name}"] for name in ("q", "k", "rotated_q", "rotated_k")])
    if preset in LEARNED:
        recording.table = tensors["0.cos"], tensors["0.sin"]
    return [recording]


def recordings(draw: Draw, preset: str) -> list[Recording]:
    if preset == "roformer":
        return [one for rotary_value in (False, True) for one in of_attention(draw, preset, rotary_value=rotary_value)]
    if preset in ATTENTION:
        return of_attention(draw, preset)
    return of_system(draw, preset) if preset in SYSTEMS else of_package(draw, preset)


def refusal(preset: str, taker: str, recording: Recording) -> str:
    """A text of the error that a part must give; "": it must compute what the model does."""
    if taker == "given":
        return ""
    if preset in LEARNED:
        return "planes of an axial kind" if taker == "grid" and preset != "lightglue" else "Frequency::Learned"
    if taker in ATTENTION_TAKERS and preset in NO_ATTENTION:
        return NO_ATTENTION[preset]
    if taker == "in_place" and preset in ("clvp", "codegen"):
        return "there is no rotation in place"
    if taker == "encoder_layer" and preset in AXIAL:
        return "[rotary] position_ids must be (N, "
    if taker == "grid" and preset not in GRIDS:
        return "[RotaryPositionEmbedding2d] rotary must have planes of an axial kind"
    return ""


def is_asked(preset: str, taker: str, recording: Recording) -> bool:
    """Whether a call says what was recorded: layers have the positions 0, 1, ..., and a grid its patches."""
    if taker in ("given", "whole"):
        return (recording.table if taker == "given" else recording.whole) is not None
    if refusal(preset, taker, recording) and not (taker == "grid" and preset in AXIAL and preset not in SYSTEMS):
        return True
    if taker == "encoder_layer":
        return recording.ids is None
    return taker != "grid" or recording.grid is not None


def left_out_by_design(presets: list[str]) -> set[tuple[str, str]]:
    """Packages have recorded neither the positions 0, 1, ... that a layer has, nor grids; cos and sin are given where they
    are learned; few attentions have nothing but their projections.
    """
    packages = [preset for preset in presets if preset not in ATTENTION and preset not in SYSTEMS]
    return ({(preset, "given") for preset in presets if preset not in LEARNED}
            | {(preset, "whole") for preset in presets}
            | {(preset, "encoder_layer") for preset in packages if preset not in AXIAL}
            | {(preset, "grid") for preset in packages if preset in AXIAL})  # fmt: skip


def attended(heads: Heads, begin: int = 0) -> Tensor:
    """PyTorch's causal attention of the tokens from `begin` on, (B, L, E)."""
    q, length = heads.q[:, :, begin:], heads.k.shape[2]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (heads.k, heads.v))
    mask = torch.ones(length, length, dtype=torch.bool).tril()[begin:]
    return scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2)


def expected(taker: str, recording: Recording) -> dict[str, Tensor]:
    heads = recording.after
    if taker == "whole":
        return {"out": recording.whole["out"]}
    if taker in (*ROTATION_TAKERS, "grid", "given"):
        moved = {} if torch.equal(heads.v, recording.before.v) or recording.moves_output else {"v": heads.v}
        return {"q": heads.q, "k": heads.k} | moved
    if taker == "forward_apart":
        return {"out": attended(heads, heads.q.shape[2] // 2)}
    out = attended(heads)
    if taker != "encoder_layer":
        return {"out": out}
    batch, tokens, width = out.shape
    x = torch.eye(batch * tokens, width).view(batch, tokens, width)  # as the driver has them
    return {"out": layer_norm(layer_norm(x + out, (width,)), (width,))}


def case(draw: Draw, preset: str, taker: str, recording: Recording) -> Case:
    before, after = recording.before, recording.after
    if taker in ATTENTION_TAKERS:
        if before.v.shape[-1] != before.k.shape[-1]:  # values of another width, which do not rotate
            assert torch.equal(before.v, after.v), preset
            before.v = after.v = draw.normal(*before.k.shape)
        if preset in ("ltx", "ltx2", "ltx2_split"):  # its one head is that of the rotation
            before = Heads(*(x.transpose(1, 2).unflatten(-1, (2, -1)).squeeze(2).transpose(1, 2) for x in (before.q, before.k, before.v)))
    why = refusal(preset, taker, recording)
    tensors = {name: getattr(before, name).contiguous() for name in "qkv"}
    if taker == "whole":
        tensors |= {name: tensor.contiguous() for name, tensor in recording.whole.items() if name != "out"}
    if taker == "given":
        tensors |= {"cos": recording.table[0], "sin": recording.table[1]}
    if recording.ids is not None:
        tensors["position_ids"] = recording.ids.contiguous()
    options = recording.options | (recording.grid or {}) | {"op": "rotary_taker", "taker": taker, "steps": [1, 2]}
    return Case(options, tensors, {} if why else {k: v.contiguous() for k, v in expected(taker, recording).items()}, "sums", refused=why)


def casts(draw: Draw) -> Case:
    """A module in Python that is converted between its calls: the frequencies of a longer sequence are converted too."""
    config = models.config_class("llama")(hidden_size=64, num_attention_heads=2, max_position_embeddings=32,
                                          rope_parameters={"rope_type": "dynamic", "factor": 4.0, "rope_theta": 1e4})  # fmt: skip
    own, calls, results = models.rotary_class("llama")(config), [], {}
    for _ in range(30):
        if draw.coin(0.3):
            name = draw.choice(["bfloat16", "float32", "float16"])
            own.to(getattr(torch, name))
            calls.append({"dtype": name})
            continue
        rows = draw.choice([20, 31, 32, 33, 60, 100, 101, 130])
        cos, sin = own(torch.zeros(1), torch.arange(rows)[None])
        number = len(results) // 2
        results |= {f"cos{number}": cos[0], f"sin{number}": sin[0]}
        calls.append({"rows": rows})
    return Case({"op": "rotary_calls", "config": config.to_json_string(use_diff=True), "calls": calls}, {}, results, "bits")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--preset", nargs="+", default=None, help="these alone")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="posenc-takers-") as folder:
        programs = Programs(given.posenc, given.driver, Path(folder))
        presets = [entry["name"] for entry in json.loads(programs.posenc("presets", "--rotary", "--json").stdout)]
        draw, asked, cases = Draw("rotary takers"), Counter(), []
        for preset in given.preset or presets:
            found = recordings(draw, preset)
            for recording in found:
                assert recording.moves_output == (preset == "deepseek_v4"), f"{preset} rotates its result"
                for taker in TAKERS:
                    if is_asked(preset, taker, recording):
                        cases.append(case(draw, preset, taker, recording))
                        cases[-1].options["name"] = f"{preset} {taker}"
                        asked[preset, taker] += 1
        cases += [casts(draw) for _ in range(20)]
        failures = judge(cases, programs.compute(cases))
    for failure in failures:
        print(f"{failure.what[:160]} ... {failure.what[-120:]}\n    {failure.why}")
    refused = sum(bool(case.refused) for case in cases)
    print(f"{len(given.preset or presets)} presets, {len(cases) - refused} cases compared, {refused} refused, {len(failures)} failed")
    left_out = {(preset, taker) for preset in given.preset or presets for taker in TAKERS if not asked[preset, taker]}
    unexpected = sorted(pair for pair in left_out if pair not in left_out_by_design(presets))
    for preset, taker in unexpected:
        print(f"{preset}: nothing says what {taker} must do")
    return 1 if failures or unexpected else 0


if __name__ == "__main__":
    sys.exit(main())

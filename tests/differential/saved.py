"""Encoders and decoders that are loaded, changed and saved by save_pretrained(), and opened by transformers' from_pretrained().

The saved folder has to give transformers the model whose outputs the library has computed: nothing missing, nothing
unexpected, the names of the folder that was loaded. With `rest_of`, the head, the decoder or the second encoder of that
folder has to be in it unchanged.
"""

import json
import logging
from pathlib import Path

import torch
from safetensors import safe_open

import decoder_configs
import decoders
from encoders import ILL_CONDITIONED, KINDS, call, encoder_of, inputs_of, mask_of, off_by, one_thread, rewritten, settings, take_length, truth_of
from encoders import saved as saved_by_transformers
from harness import Case, Draw, Failure, Programs

MODELS, DECODERS = 6, 3
# Types of encoders that are a part of their class, and what it has besides.
INCOMPLETE = ("chinese_clip", "esm", "flaubert", "luke", "wav2vec2-conformer", "xlm")
BESIDE = ("embed_positions", "pooler", "decoder", "contact_head", "lang_embeddings", "qa_outputs", "qa_classifier", "entity_embeddings", "_query", "feature_", "pos_conv_embed", "masked_spec_embed", "lm_head", "shared")


def tensors_in(folder: Path) -> dict[str, torch.Tensor]:
    tensors = {}
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            tensors |= {key: file.get_tensor(key) for key in file.keys()}
    for path in folder.glob("*.bin"):
        tensors |= torch.load(path, weights_only=True)
    return tensors


def drawn_model(draw: Draw, kind_name: str, head: str):
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = draw.choice([32, 40])
    if head == "DPRReader":  # which runs with no other width
        chosen["projection_dim"] = draw.choice([0, chosen["hidden_size"]])
    if kind_name == "layoutlmv3":  # whose embeddings of images are not loaded
        chosen["visual_embed"] = False
    if kind_name == "t5gemma":
        chosen["is_encoder_decoder"] = head != kind.model
    config = getattr(transformers, kind.config)(**chosen)
    model = getattr(transformers, head)(config).eval()
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name or kind_name != "roformer":  # sinusoids
            parameter.copy_(draw.normal(*parameter.shape) * 0.3)
    return model


def case_of(draw: Draw, programs: Programs, kind_name: str, number: int) -> tuple[Case, str, str]:
    import transformers

    kind = KINDS[kind_name]
    head = draw.choice(kind.heads) if kind.heads and draw.coin() else kind.model
    model = drawn_model(draw, kind_name, head)
    folder = programs.folder / f"{kind_name}-{number}"
    how = saved_by_transformers(draw, folder, model, None)
    rewritten(draw, folder, getattr(transformers, kind.config), kind.dialect)
    base = encoder_of(model, kind.dialect)
    has_types = any("token_type_embeddings" in name for name in base.state_dict())
    given = inputs_of(draw, kind.dialect, model.config, has_types)
    # New weights of SqueezeBERT and ConvBERT are not those of layers in groups; those of Swin v2, whose norms are of what blocks
    # add, are so ill-conditioned that transformers itself is off by 4e-5 from float64.
    mode = draw.choice(["alone", "rest"] if kind_name in ("convbert", "squeezebert", "swinv2") else ["alone", "rest", "fresh"])
    options = {"op": "save_pretrained", "how": mode, "folder": str(folder), "out": str(folder) + "-saved", "seed": draw.getrandbits(31),
               "max_shard_bytes": draw.choice([4000, 10**9]),
               "allow_missing": mode != "rest" and (head != kind.model or kind.dialect in ("bart", "t5") or kind_name in INCOMPLETE)}  # fmt: skip
    return Case(options, given, {}), head, f"{head} ({how}, {mode})"


def lacks(key: str, value: torch.Tensor, out: dict[str, torch.Tensor], original: dict[str, torch.Tensor], layers: int) -> bool:
    """Whether a tensor of the loaded folder should have been saved: not a tied decoder, a buffer or a layer too many."""
    is_number_of_layer = any(part.isdecimal() and int(part) >= layers for part in key.split("."))
    is_tied = any(name != key and ("embed" in name or "wte" in name or "shared" in name) and other.shape == value.shape and torch.equal(other, value)
                  for name, other in original.items())  # fmt: skip
    is_saved = key in out or renamed(key) in out
    return not (is_saved or is_number_of_layer or is_tied or key.endswith("position_ids"))


def judged(case: Case, got, head: str, kind_name: str) -> str:
    import transformers

    if isinstance(got, str):
        return got
    kind, mode, out = KINDS[kind_name], case.options["how"], Path(case.options["out"])
    config = json.loads((out / "config.json").read_text())
    whole = mode == "rest"
    name = head if whole else config["architectures"][0]
    if config["dtype"] != "float32" or "torch_dtype" in config:
        return f"dtype {config.get('dtype')}"
    attention = "sdpa" if kind_name == "falcon" else "eager"  # which would add its ALiBi twice
    model, info = getattr(transformers, name).from_pretrained(out, output_loading_info=True, attn_implementation=attention)
    # Without a head, classes have a pooler that the file of a head lacks, and BART has a decoder.
    # RoFormer's table of positions is computed where a file has none.
    may_lack = BESIDE if case.options["allow_missing"] else ("embed_positions",)
    missing = [key for key in info["missing_keys"] if not any(part in key for part in may_lack)]
    # The class without a head has no pooler, whose norm the encoder below a head has.
    unexpected = [key for key in info["unexpected_keys"] if kind_name != "data2vec-vision" or "pooler.layernorm" not in key]
    if missing or unexpected or info["mismatched_keys"]:
        return f"missing {missing}, unexpected {unexpected}, of another size {info['mismatched_keys']}"
    if any(file.metadata() != {"format": "pt"} for file in map(lambda path: safe_open(path, "pt"), out.glob("*.safetensors"))):
        return "other metadata"
    original, tensors = tensors_in(Path(case.options["folder"])), tensors_in(out)
    if any(value.dtype != torch.float32 for value in tensors.values() if value.is_floating_point()):
        return "not float32"
    if whole:
        layers = read_layers(config, kind)
        gone = [key for key, value in original.items() if lacks(key, value, tensors, original, layers)]
        if gone:
            return f"left out {gone}"
    # A part of a pair with a projection is saved alone, under names without a prefix.
    if mode != "fresh" and kind.dialect != "pair" and not (mode == "alone" and head.endswith("WithProjection")):
        strange = [key for key in tensors if renamed(key) not in {renamed(name) for name in original} and "shared" not in key]
        if strange:
            return f"names {strange[:3]} that {sorted(original)[:3]} has not"
    base = model.eval() if kind.dialect == "pair" and not whole else encoder_of(model.eval(), kind.dialect)
    if "input_ids" in case.tensors:
        take_length(base.config, case.tensors["input_ids"].shape[1])
    expected = call(base, kind.dialect, case.tensors)
    mask = mask_of(case.tensors, case.options["folder"])
    pairs = {"last_hidden_state": expected.last_hidden_state, "pooled": getattr(expected, "pooler_output", None)}
    for key, b in pairs.items():
        if b is None or key not in got or (key == "pooled" and mask is not None and not mask[:, 0].all()):
            continue
        a, truth = got[key], truth_of(base, case.tensors) if kind_name in ILL_CONDITIONED else None
        if key == "last_hidden_state" and mask is not None:
            a, b, truth = a[mask != 0], b[mask != 0], None if truth is None else truth[mask != 0]
        if why := off_by(a, b, truth):
            return f"{key}: {why}"
    return ""


def renamed(key: str) -> str:
    key = key.replace("encoder.layer.*.attention.self.rotary", "rotary")  # ESM's frequencies, as 5.23 writes and has them
    return key.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def read_layers(config: dict, kind) -> int:
    import transformers

    read = getattr(transformers, kind.config).from_dict(dict(config))
    return next((getattr(read, part) for part in ("text_config", "vision_config", "encoder") if hasattr(read, part)), read).num_hidden_layers


def decoder_case(draw: Draw, programs: Programs, kind: str) -> Case:
    folder = programs.folder / f"decoder-{kind}"
    model = decoders.model_of(draw, folder, kind)
    options = {"op": "save_decoder", "folder": str(folder), "out": f"{folder}-saved", "max_shard_bytes": draw.choice([4000, 10**9])}
    return Case(options, decoders.rows_of(draw, model.config.vocab_size, decoder_configs.LEAST_POSITIONS), {})


def judged_decoder(case: Case, got, kind: str) -> str:
    if isinstance(got, str):
        return got
    if not torch.equal(got["logits"], got["logits_again"]):
        return "the logits of the folder when it is loaded again are others"
    out, theirs = Path(case.options["out"]), Path(case.options["folder"]) / "theirs"
    config, cls = json.loads((out / "config.json").read_text()), decoder_configs.model_class(kind)
    if config["architectures"] != [cls.__name__] or config["dtype"] != "float32" or "torch_dtype" in config:
        return f"architectures {config['architectures']}, dtype {config.get('dtype')}"
    model, info = cls.from_pretrained(out, output_loading_info=True)
    if any(info.values()):
        return f"{info}"
    model.save_pretrained(theirs)
    ours, names = set(tensors_in(out)), set(tensors_in(theirs))
    if ours != names:
        return f"names {sorted(ours - names)} that transformers does not save, and lacks {sorted(names - ours)}"
    return decoders.off_by(model.eval(), case.tensors, got, ("logits",))


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL), torch.no_grad():
        kinds = draw.sample(sorted(KINDS), MODELS)
        made = [case_of(draw, programs, kind, number) for number, kind in enumerate(kinds)]
        results = programs.compute([case for case, *_ in made])
        whys = [(what, judged(case, got, head, kind)) for (case, head, what), got, kind in zip(made, results, kinds)]
        kinds = draw.sample(decoder_configs.KINDS, DECODERS)
        cases = [decoder_case(draw, programs, kind) for kind in kinds]
        whys += [(f"decoder {kind}", judged_decoder(case, got, kind)) for case, got, kind in zip(cases, programs.compute(cases, "decoders"), kinds)]
    return len(whys), [Failure(what, why) for what, why in whys if why]

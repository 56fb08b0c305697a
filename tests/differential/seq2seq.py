"""Encoder-decoders in folders with random settings and weights, written by transformers and as older releases did.

Logits plain, frozen and step by step, gradients, and tokens of greedy searches, which must be those of the largest logits.
"""

import json
import re
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor

import seq2seq_t5 as t5
from harness import Case, Draw, Failure, Programs
from written import written

CASES, NEAR, GAP = 4, 1e-5, 1e-4
ROUGH = 0.12  # of the largest logit, in 8 bits: 0.02 to 0.04 as a rule
ROUGH_IF_NARROW, NARROW = 0.4, 16  # with fewer channels, of which a norm enlarges the rounding
KINDS = {
    "bart": ("BartConfig", "BartForConditionalGeneration"),
    "blenderbot": ("BlenderbotConfig", "BlenderbotForConditionalGeneration"),
    "blenderbot-small": ("BlenderbotSmallConfig", "BlenderbotSmallForConditionalGeneration"),
    "fsmt": ("FSMTConfig", "FSMTForConditionalGeneration"),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration"),
    "marian": ("MarianConfig", "MarianMTModel"),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration"),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration"),
    "plbart": ("PLBartConfig", "PLBartForConditionalGeneration"),
    **t5.KINDS,
}
SHARED, HEAD = "model.shared.weight", "lm_head.weight"
ENCODER, DECODER = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
# Ours and theirs, of the modules whose names differ.
NAMES = [
    ("src_embedding.token_embedding", "model.encoder.embed_tokens"), ("tgt_embedding.token_embedding", "model.decoder.embed_tokens"),
    ("src_embedding.position_embedding", "model.encoder.embed_positions"), ("tgt_embedding.position_embedding", "model.decoder.embed_positions"),
    ("src_embedding.norm", "model.encoder.layernorm_embedding"), ("tgt_embedding.norm", "model.decoder.layernorm_embedding"),
    ("encoder.norm", "model.encoder.layer_norm"), ("decoder.norm", "model.decoder.layer_norm"),
    (r"encoder.layers.(\d+).norm1", r"model.encoder.layers.\1.self_attn_layer_norm"),
    (r"encoder.layers.(\d+).norm2", r"model.encoder.layers.\1.final_layer_norm"),
    (r"decoder.layers.(\d+).norm1", r"model.decoder.layers.\1.self_attn_layer_norm"),
    (r"decoder.layers.(\d+).norm2", r"model.decoder.layers.\1.encoder_attn_layer_norm"),
    (r"decoder.layers.(\d+).norm3", r"model.decoder.layers.\1.final_layer_norm"),
    (r"(encoder|decoder).layers.(\d+).self_attn", r"model.\1.layers.\2.self_attn"),
    (r"decoder.layers.(\d+).multihead_attn", r"model.decoder.layers.\1.encoder_attn"),
    (r"(encoder|decoder).layers.(\d+).linear1", r"model.\1.layers.\2.fc1"),
    (r"(encoder|decoder).layers.(\d+).linear2", r"model.\1.layers.\2.fc2"), (r"src_features.conv(\d)", r"model.encoder.conv\1"),
]  # fmt: skip


def config_of(draw: Draw, kind: str, positions: int | None):
    if kind in t5.KINDS:
        return getattr(transformers, KINDS[kind][0])(**t5.settings(draw))
    heads = [draw.choice([1, 2, 4]) for _ in range(2)]
    source = draw.randint(12, 60)
    pad = draw.randint(0, 5)
    settings = {
        "d_model": 4 * draw.randint(1, 10), "encoder_layers": draw.randint(1, 3), "decoder_layers": draw.randint(1, 3),
        "encoder_attention_heads": heads[0], "decoder_attention_heads": heads[1], "encoder_ffn_dim": draw.randint(1, 60),
        "decoder_ffn_dim": draw.randint(1, 60), "activation_function": draw.choice(["relu", "gelu", "swish", "gelu_new", "silu"]),
        "scale_embedding": draw.coin(), "max_position_embeddings": positions or draw.randint(6, 24), "pad_token_id": pad, "bos_token_id": 6,
        "eos_token_id": 7, "decoder_start_token_id": draw.choice([6, 7, 8]), "init_std": draw.choice([0.1, 0.3]), "dropout": 0.0,
        "attention_dropout": 0.0, "activation_dropout": 0.0, "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0,
        "tie_word_embeddings": draw.coin(0.7), "forced_eos_token_id": draw.choice([None, 7]),
    }  # fmt: skip
    if heads == [1, 1] and kind not in ("blenderbot", "blenderbot-small"):
        settings["d_model"] = draw.randint(4, 40)  # odd ones too
    if kind == "fsmt":
        target = source if settings["tie_word_embeddings"] else draw.randint(12, 60)
        settings |= {"langs": ["en", "de"], "src_vocab_size": source, "tgt_vocab_size": target}
    else:
        settings["vocab_size"] = source
    if kind == "marian":
        shares = draw.coin()
        settings |= {"share_encoder_decoder_embeddings": shares, "decoder_vocab_size": source if shares else draw.randint(12, 60)}
    return getattr(transformers, KINDS[kind][0])(**settings)


def randomise(draw: Draw, model) -> None:
    """Norms and biases start as ones and zeros, and so does the row of the padding."""
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if value.dim() == 1:
                value.add_(draw.normal(*value.shape) * 0.2)
            elif "embed_positions" not in name and ("embed_tokens" in name or "shared" in name):
                value.copy_(draw.normal(*value.shape) * 0.3)
            elif name == "final_logits_bias":
                value.copy_(draw.normal(*value.shape))


def tied_names(draw: Draw, tensors: dict[str, Tensor], config, kind: str) -> dict[str, Tensor]:
    """The matrices of the vocabulary under some of their names, some of them different."""
    own = t5 if kind in t5.KINDS else sys.modules[__name__]
    names = [name for name in (own.SHARED, own.ENCODER, own.DECODER, own.HEAD) if name in tensors]
    if kind == "fsmt" or not getattr(config, "share_encoder_decoder_embeddings", True):
        if config.tie_word_embeddings and kind == "marian" and draw.coin():
            tensors.pop(draw.choice([HEAD, DECODER]))
        return tensors
    if not config.tie_word_embeddings:
        tensors.pop(SHARED, None)
        return tensors
    kept = draw.sample(names, draw.randint(1, len(names)))
    tensors = {name: value for name, value in tensors.items() if name not in names or name in kept}
    if draw.coin(0.3):
        name = draw.choice(kept)
        tensors[name] = tensors[name] + 0.3 * draw.normal(*tensors[name].shape)
    return tensors


def old_names(draw: Draw, tensors: dict[str, Tensor], kind: str) -> dict[str, Tensor]:
    if kind in t5.KINDS:
        return t5.old_names(draw, tensors)
    if draw.coin(0.2) and HEAD not in tensors and kind != "fsmt":
        tensors = {name.removeprefix("model."): value for name, value in tensors.items()}
        tensors.pop("final_logits_bias", None)
        return tensors | ({"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])} if draw.coin(0.3) else {})
    if draw.coin(0.3):
        tensors.pop("final_logits_bias", None)
    if draw.coin(0.2):
        tensors |= {"model.encoder.version": torch.tensor([3.0]), "model.decoder.version": torch.tensor([3.0])}
    if kind in ("m2m_100", "fsmt") and draw.coin(0.3):
        tensors |= {f"model.{stack}.embed_positions.weights": draw.normal(4, 4) for stack in ("encoder", "decoder")}
    if kind in ("bart", "plbart", "mbart") and draw.coin(0.2):
        tensors |= {"classification_head.dense.weight": draw.normal(4, 4), "classification_head.dense.bias": draw.normal(4)}
    if kind in ("marian", "pegasus") and draw.coin(0.3):
        for stack in ("encoder", "decoder"):
            name = f"model.{stack}.embed_positions.weight"
            if name in tensors:
                tensors[name] = tensors[name].half().float()
    return tensors


def save(draw: Draw, folder: Path, tensors: dict[str, Tensor]) -> None:
    dtype = draw.choice([torch.float32] * 4 + [torch.float16, torch.bfloat16])
    if "model.decoder.output_projection.weight" in tensors:
        dtype = torch.float32  # FSMT recomputes a rounded table that it has outgrown; posenc keeps its rows
    tensors = {name: value.detach().clone().contiguous().to(dtype) for name, value in tensors.items()}
    as_bin, names = draw.coin(0.3), sorted(tensors)
    shards = [names] if draw.coin(0.8) else [names[::2], names[1::2]]
    base, ending = ("pytorch_model", "bin") if as_bin else ("model", "safetensors")
    where = {}
    for number, part in enumerate(shards):
        file = f"{base}.{ending}" if len(shards) == 1 else f"{base}-{number + 1:05d}-of-{len(shards):05d}.{ending}"
        chosen = {name: tensors[name] for name in part}
        torch.save(chosen, folder / file) if as_bin else save_file(chosen, folder / file, {"format": "pt"})
        where |= dict.fromkeys(part, file)
    if len(shards) > 1:
        index = {"metadata": {"total_size": 0}, "weight_map": where}
        (folder / f"{base}.{ending}.index.json").write_text(json.dumps(index))


def model_of(draw: Draw, folder: Path, kind: str, positions: int | None = None):
    """A folder, and the model that transformers loads from it."""
    config = config_of(draw, kind, positions)
    _, name = KINDS[kind]
    model = getattr(transformers, name)(config).eval()
    randomise(draw, model)
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.save_pretrained(folder)
    config.architectures = [name]
    settings = json.loads(config.to_json_string(use_diff=False))
    layers = t5.LAYERS if kind in t5.KINDS else ("encoder_layers", "decoder_layers")
    if kind in t5.KINDS:
        settings = t5.rewritten(draw, settings)
    if draw.coin(0.2):  # the first layers
        settings |= {key: draw.randint(1, settings[key]) for key in layers if key in settings}
    if draw.coin(0.15):
        settings["num_hidden_layers"] = draw.randint(1, settings[layers[0]])  # which wins
    text = written(draw, type(config), settings)
    (folder / "config.json").write_text(json.dumps(t5.kept(settings, text) if kind in t5.KINDS else text))
    tensors = {key: value.clone() for key, value in model.state_dict().items()}
    tensors = old_names(draw, tied_names(draw, tensors, config, kind), kind)
    save(draw, folder, tensors)
    return getattr(transformers, name).from_pretrained(folder, dtype=torch.float32).eval()


def lengths_of(draw: Draw, config, kind: str) -> tuple[int, int]:
    most = 24 if kind in t5.KINDS else config.max_position_embeddings
    if kind in ("m2m_100", "fsmt") and draw.coin(0.4):
        most += draw.randint(1, 12)  # the tables grow
    return draw.randint(2, most), draw.randint(2, most)


def masked_in_float32(t: Tensor) -> Tensor:
    """FSMT's own cannot fill a mask in float64."""
    return t.fill_(torch.finfo(torch.float32).min)


transformers.models.fsmt.modeling_fsmt.fill_with_neg_inf = masked_in_float32


def logits_of(model, src: Tensor, mask: Tensor, tgt: Tensor) -> Tensor:
    """Of all target tokens, pad or not."""
    return model(input_ids=src, attention_mask=mask.long(), decoder_input_ids=tgt, decoder_attention_mask=torch.ones_like(tgt),
                 use_cache=False).logits  # fmt: skip


def their_gradient(model, name: str) -> Tensor | None:
    """That of the tensor that we call `name`; None if it has none."""
    if model.config.model_type in t5.KINDS:
        return t5.gradient(model, name)
    module, leaf = name.rsplit(".", 1)
    if name == "final_layer.bias":
        return None  # a buffer there
    for ours, theirs in NAMES:
        found = re.match(ours.replace(".", r"\.").replace(r"\\.", ".") if "(" not in ours else ours, module)
        if not found:
            continue
        place = re.sub(ours, theirs, module, count=1)
        parameters = dict(model.named_parameters(remove_duplicate=False))
        if leaf.startswith("in_proj"):
            names = [f"{place}.{part}_proj.{leaf.removeprefix('in_proj_')}" for part in "qkv"]
            like = parameters[names[0]].grad  # Whisper's keys have no bias
            return torch.cat([parameters[one].grad if one in parameters else torch.zeros_like(like) for one in names])
        return parameters[f"{place}.{leaf}"].grad
    raise KeyError(name)


def vocabulary_gradients(model, ours: dict[str, Tensor]) -> list[tuple[str, Tensor, Tensor]]:
    """Ours and theirs of the matrices of the vocabulary. Either may have one matrix where the other has two equal ones."""
    slots = ["src_embedding.token_embedding.weight", "tgt_embedding.token_embedding.weight", "final_layer.weight"]
    decoder = model.get_decoder()
    theirs = [model.get_encoder().embed_tokens.weight, decoder.embed_tokens.weight,
              (getattr(decoder, "output_projection", None) or model.get_output_embeddings()).weight]  # fmt: skip
    group = [0, 1, 2]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        is_ours = slots[other] not in ours and (other - one == 1)  # tied to the one before it
        if is_ours or theirs[one] is theirs[other]:
            group = [group[one] if number == group[other] else number for number in group]
    found = []
    for number in sorted(set(group)):
        inside = [slot for slot in range(3) if group[slot] == number]
        unique = {id(theirs[slot]): theirs[slot] for slot in inside}
        found.append((slots[inside[0]], sum(ours[slots[slot]] for slot in inside if slots[slot] in ours),
                      sum(one.grad for one in unique.values())))  # fmt: skip
    return found


def wrong(name: str, got: Tensor, expected: Tensor, truth: Tensor | None = None, largest: float = 0.0) -> str:
    if got.shape != expected.shape:
        return f"{name}: {tuple(got.shape)} for {tuple(expected.shape)}"
    true = expected.double() if truth is None else truth
    rounding = 0.0 if truth is None else (expected.double() - true).abs().max().item()
    off, scale = (got.double() - true).abs().max().item(), max(true.abs().max().item(), largest)
    return f"{name}: off by {off:.3g} of {scale:.3g}" if off > NEAR * scale + 8 * rounding else ""


def check_tokens(name: str, wide, src: Tensor, mask: Tensor, begin: int, pad: int, tokens: Tensor) -> str:
    """Each token must have the largest logit, up to rounding."""
    tgt = torch.cat([torch.full((len(src), 1), begin), tokens[:, :-1]], 1)
    logits = logits_of(wide, src, mask, tgt)
    logits[:, :, pad] = -torch.inf
    best, own = logits.max(-1).values, logits.gather(2, tokens.unsqueeze(2)).squeeze(2)
    gap = (best - own).max().item()
    return f"{name}: {gap:.3g} below the best logit" if gap > GAP * best.abs().max().item() else ""


def case_of(draw: Draw, folder: Path, kind: str, model) -> tuple[Case, dict]:
    config = model.config
    source = config.src_vocab_size if kind == "fsmt" else config.vocab_size
    target = model.get_output_embeddings().weight.shape[0]
    pad, batch = config.pad_token_id, draw.randint(1, 4)
    width, length = lengths_of(draw, config, kind)

    def ids(vocab: int, columns: int, with_pad: bool) -> Tensor:
        found = draw.integers(vocab, batch, columns)
        return found if with_pad else torch.where(found == pad, (pad + 1) % vocab, found)

    src, mask = ids(source, width, draw.coin(0.3)), torch.ones(batch, width, dtype=torch.bool)
    left = draw.coin()
    for row in range(batch):
        count = draw.randint(0, width - 1)
        if count and draw.coin(0.7):
            span = slice(0, count) if left else slice(width - count, width)
            src[row, span], mask[row, span] = pad, False
    with_pad = draw.coin(0.2)
    tgt, begin = ids(target, length, with_pad), (pad + 1 + draw.randrange(target - 1)) % target
    cotangent = draw.normal(batch, length, target)
    options = {"op": "seq2seq", "folder": str(folder), "steps": not with_pad, "begin": begin,
               "new_tokens": draw.randint(1, length)}  # fmt: skip
    tensors = {"src": src, "mask": mask, "tgt": tgt, "cotangent": cotangent}
    return Case(options, tensors, {}), {"kind": kind, "tie": config.tie_word_embeddings}


def gradient_pairs(model, gradients: dict[str, Tensor]) -> list[tuple[str, Tensor, Tensor]]:
    """Ours and theirs, of the tensors that have one there."""
    pairs = vocabulary_gradients(model, gradients)
    for name, value in gradients.items():
        if "token_embedding" in name or name == "final_layer.weight":
            continue
        theirs = their_gradient(model, name)
        if theirs is not None:
            pairs.append((name, value, theirs))
    return [(name, one, other.clone()) for name, one, other in pairs]


def judge(case: Case, got: dict, model) -> list[str]:
    given = case.tensors
    src, mask, tgt = given["src"], given["mask"], given["tgt"]
    model.zero_grad()
    logits = logits_of(model, src, mask, tgt)
    (logits * given["cotangent"]).sum().backward()
    gradients = {key.removeprefix("grad."): value for key, value in got.items() if key.startswith("grad.")}
    pairs = gradient_pairs(model, gradients)
    found, largest = [], max(other.abs().max().item() for _, _, other in pairs)
    wide = model.double()
    wide.zero_grad()
    truth = logits_of(wide, src, mask, tgt)
    (truth * given["cotangent"].double()).sum().backward()
    exact, truth = [one for _, _, one in gradient_pairs(wide, gradients)], truth.detach()
    with torch.no_grad():
        for name in ("logits", "frozen", "steps"):
            if name in got:
                found.append(wrong(name, got[name], logits.detach(), truth))
        rough = (got["int8"].double() - truth).abs().max() / truth.abs().max()
        most = ROUGH if model.config.d_model >= NARROW else ROUGH_IF_NARROW
        found.append("" if rough < most else f"int8: off by {rough:.3g} of the largest")
        for name in ("tokens", "frozen_tokens"):
            found.append(check_tokens(name, wide, src, mask, case.options["begin"], model.config.pad_token_id, got[name]))
    for (name, one, other), true in zip(pairs, exact):
        found.append(wrong(f"gradient of {name}", one, other, true, largest=0.1 * largest))
    return [one for one in found if one]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    cases, models = [], []
    for kind in KINDS:
        folder = programs.folder / kind
        model = model_of(draw, folder, kind)
        for _ in range(CASES):
            case, about = case_of(draw, folder, kind, model)
            case.options |= about
            cases.append(case)
            models.append((folder, kind, model))
    failures = []
    for case, got, (folder, kind, _) in zip(cases, programs.compute(cases), models):
        if isinstance(got, str):
            failures.append(Failure(json.dumps(case.options), got))
            continue
        model = getattr(transformers, KINDS[kind][1]).from_pretrained(folder, dtype=torch.float32).eval()
        why = judge(case, got, model)
        if why:
            failures.append(Failure(json.dumps(case.options), "; ".join(why[:4])))
    return len(cases), failures

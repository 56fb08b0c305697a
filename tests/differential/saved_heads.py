"""Classifiers that are loaded, changed or trained, and saved by save_pretrained(), and opened by transformers' from_pretrained().

The saved folder has to give transformers the model whose logits the library has computed, with nothing missing.
"""

import json
import logging
from pathlib import Path

import torch
from encoders import ATTENTIONS, KINDS, mask_of, one_thread, saved, take_length
from harness import Case, Draw, Failure, Programs
from heads import PADS_RIGHT, compare, drawn_config, heads, inputs_of, is_on_decoder, logits_of, with_defined_rows, with_ends
from saved import INCOMPLETE

MODELS, LABELS = 6, ["no", "yes", "maybe"]


def case_of(draw: Draw, programs: Programs, kind_name: str, head: str, number: int) -> tuple[Case, str, str]:
    import transformers

    cls = getattr(transformers, head)
    model = cls(drawn_config(draw, kind_name, head)).eval()
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name or kind_name != "roformer":  # sinusoids
            parameter.copy_(draw.normal(*parameter.shape) * 0.3)
    folder = programs.folder / f"{head}-{number}"
    how = saved(draw, folder, model, None)
    has_types = any("token_type_embeddings" in name for name in model.state_dict())
    given = inputs_of(draw, KINDS[kind_name].dialect, model.config, has_types)
    if KINDS[kind_name].dialect in PADS_RIGHT:
        with_defined_rows(given, model.config.pad_token_id)
    if is_on_decoder(KINDS[kind_name].dialect, head):
        with_ends(draw, given, model.config.eos_token_id, model.config.vocab_size)
    # Some classes have parts beside the encoder and its head, which are copied then.
    keeps_rest = kind_name in INCOMPLETE or getattr(model.config, "visual_embed", False) or draw.coin()
    options = {"folder": str(folder), "out": f"{folder}-saved", "keeps_rest": keeps_rest}
    # Training changes the zeros between the groups of a layer.
    if head.endswith("ForSequenceClassification") and kind_name not in ("convbert", "squeezebert") and draw.coin():
        given["targets"] = draw.integers(len(LABELS), len(given["input_ids"]))
        options |= {"op": "train_classifier", "seed": draw.getrandbits(31), "labels": LABELS}
    else:
        options |= {"op": "save_classifier", "max_shard_bytes": draw.choice([4000, 10**9])}
    return Case(options, given, {}), head, f"{head} ({how}) {options}"


def judged(case: Case, got, head: str, kind_name: str) -> str:
    import transformers

    if isinstance(got, str):
        return got
    folder, out = Path(case.options["folder"]), Path(case.options["out"])
    before, config = (json.loads((place / "config.json").read_text()) for place in (folder, out))
    # A head for pretraining is two, of which the library has one.
    expected = head if case.options["keeps_rest"] else head.replace("ForPreTraining", "ForMaskedLM")
    if config["architectures"] != [expected]:
        return f"architectures {config['architectures']}"
    if any(ending in head for ending in ("Sequence", "Token", "Image")):
        labels = LABELS if "labels" in case.options else [f"{before.get('id2label', {}).get(str(i), f'LABEL_{i}')} changed" for i in range(len(config["id2label"]))]
        if [config["id2label"][str(i)] for i in range(len(labels))] != labels or list(config["label2id"]) != sorted(labels):
            return f"labels {config['id2label']}, {config['label2id']}"
    cls = getattr(transformers, expected)
    model, info = cls.from_pretrained(out, output_loading_info=True, attn_implementation=ATTENTIONS.get(kind_name))
    unexpected = [key for key in info["unexpected_keys"] if "pooler" not in key or expected == head]
    missing = [key for key in info["missing_keys"] if "embed_positions" not in key]  # RoFormer's table is computed
    if missing or unexpected or info["mismatched_keys"]:
        return f"missing {missing}, unexpected {unexpected}, of another size {info['mismatched_keys']}"
    given = {name: value for name, value in case.tensors.items() if name != "targets"}
    if "input_ids" in given:
        take_length(model.config, given["input_ids"].shape[-1])
    return compare(got["logits"], logits_of(model.eval(), expected, KINDS[kind_name].dialect, given), mask_of(given, str(out)))


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL), torch.no_grad():
        # An encoder of images that is a part of a pair is refused, and so are StableLM's norms of heads.
        chosen = draw.sample([(kind, head) for kind, head in heads() if KINDS[kind].dialect != "pair" and kind != "stablelm"], MODELS)
        made = [case_of(draw, programs, kind, head, number) for number, (kind, head) in enumerate(chosen)]
        results = programs.compute([case for case, *_ in made])
        whys = [(what, judged(case, got, head, kind)) for (case, head, what), got, (kind, _) in zip(made, results, chosen)]
    return len(made), [Failure(what, why) for what, why in whys if why]

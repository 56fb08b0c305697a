"""Heads of encoders with random settings, as transformers saves them: the library, plain and frozen, and `posenc encode --head`.

The logits may differ by 1e-5, relative to their largest number where that is more than 1, on tokens that are not padding.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from encoders import ACTIVATIONS, ATTENTIONS, KINDS, ROTATING, SPREADS, inputs_of, mask_of, more_for, off_by, saved, settings
from harness import Case, Draw, Failure, Programs
from saved import renamed

MODELS = 6
ENDINGS = ["ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM", "ForPreTraining", "WithLMHeadModel",
           "ForImageClassification", "ForQuestionAnsweringSimple", "ForMultipleChoice"]  # fmt: skip
WITHOUT = {"splinter", "electra/ForPreTraining", "flaubert/ForQuestionAnswering", "xlm/ForQuestionAnswering",
           "xlnet/ForQuestionAnswering"}  # fmt: skip  # heads that posenc refuses by name
PADS_RIGHT = (*ROTATING, "alibi", "decoder", "t5gemma")  # dialects, where a row of padding may see no token
WITH_CHOICES = ("deberta-v2", "xlnet")
IMAGES = ("vision", "dino", "swin", "pair")
IN_GROUPS = ("convbert", "squeezebert")  # the gradients of whose layers are not those of layers in groups
OTHER_BIASES = ("cls.predictions.bias", "lm_head.bias", "predictions.bias", "vocab_projector.bias", "generator_lm_head.bias")
SLOPE = 10.0  # gradients are sums of products of many numbers


def heads() -> list[tuple[str, str]]:
    """The model types with their classes of heads that posenc has."""
    import transformers

    found = []
    for kind_name, kind in KINDS.items():
        if kind.dialect in ("clip", "features", "sam") or kind_name in WITHOUT:
            continue
        if kind.dialect == "dpr":
            found.append((kind_name, "DPRReader"))
            continue
        stem = "Gemma3Text" if kind_name == "gemma3_text" else kind.model.removesuffix("Model").removesuffix("LMHead").removesuffix("Encoder")
        found += [(kind_name, stem + ending) for ending in ENDINGS
                  if hasattr(transformers, stem + ending) and f"{kind_name}/{ending}" not in WITHOUT
                  and (ending != "ForMultipleChoice" or kind_name in WITH_CHOICES)]  # fmt: skip
    return found


def drawn_config(draw: Draw, kind_name: str, head: str):
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    labels = 2 if "ForQuestionAnswering" in head else draw.choice([1, 2, 3, 4, 5, 11])
    chosen["num_labels"] = labels
    if draw.coin():
        chosen["id2label"] = {i: f"label {labels - i}" for i in range(labels)}
    if kind.dialect in ("bart", "t5"):  # of labels that are not named, BART has three whatever a file says
        chosen |= {"decoder_start_token_id": draw.randint(0, chosen["vocab_size"] - 1), "id2label": {i: f"label {i}" for i in range(labels)}}
    if kind_name == "dpr":  # whose reader has no rows of another width
        chosen["projection_dim"] = draw.choice([0, chosen["hidden_size"]])
    if kind_name == "t5gemma":  # a head on the encoder alone
        chosen["is_encoder_decoder"] = False
    if kind_name == "ultrabert":
        chosen["classifier_pooling"] = draw.choice(["cls", "mean"])
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = 32
    if kind_name == "modernbert":
        chosen |= {"classifier_pooling": draw.choice(["cls", "mean"]), "classifier_bias": draw.coin(), "decoder_bias": draw.coin(),
                   "classifier_activation": draw.choice([*ACTIVATIONS, "tanh"])}  # fmt: skip
    if kind_name == "eurobert":
        chosen["classifier_pooling"] = draw.choice(["bos", "mean", "late"])
    if kind_name == "rembert":
        chosen["output_embedding_size"] = draw.choice([8, 12])
    if draw.coin(0.3):
        chosen["tie_word_embeddings"] = False
    if kind.dialect == "xlm":
        chosen |= {"summary_type": draw.choice(["first", "last", "mean", "cls_index"]),
                   "summary_activation": draw.choice([None, "tanh", "relu"])}  # fmt: skip
    if kind.dialect == "xlnet":
        chosen |= {"summary_type": draw.choice(["first", "last", "mean", "cls_index"]), "summary_activation": draw.choice(["tanh", "relu", "gelu"])}
    if draw.coin(0.3) and labels > 1:
        chosen["problem_type"] = draw.choice(["multi_label_classification", "single_label_classification", "regression"])
    return getattr(transformers, kind.config)(**chosen)


def untied(draw: Draw, folder: Path) -> None:
    """Old files hold a decoder's weight; one that differs from the table is used as it is."""
    files = list(folder.glob("model.safetensors"))
    if not files:
        return
    tensors = load_file(files[0])
    names = {"cls.predictions.bias": "cls.predictions.decoder", "lm_head.bias": "lm_head.decoder", "predictions.bias": "predictions.decoder",
             "vocab_projector.bias": "vocab_projector", "generator_lm_head.bias": "generator_lm_head"}  # fmt: skip
    for bias, decoder in names.items():
        table = next((value for key, value in tensors.items() if key.endswith("embeddings.word_embeddings.weight")), None)
        if table is not None and bias in tensors and f"{decoder}.weight" not in tensors:
            tensors[f"{decoder}.weight"] = table.clone() if draw.coin() else draw.normal(*table.shape)
            save_file(tensors, files[0], {"format": "pt"})


def without_prefix(folder: Path, prefix: str) -> None:
    """Some files have the model's tensors without the module that holds them in a class with a head."""
    for file in (*folder.glob("*.safetensors"), *folder.glob("*.bin")):
        is_old = file.suffix == ".bin"
        tensors = {name.removeprefix(f"{prefix}."): value for name, value in (torch.load(file) if is_old else load_file(file)).items()}
        torch.save(tensors, file) if is_old else save_file(tensors, file, {"format": "pt"})


def with_defined_rows(given: dict, pad: int | None) -> None:
    """Padding on the right, and none that is pooled: in a causal model, or with a window, its rows may see no token."""
    if pad is None:
        given.pop("attention_mask", None)
        given.update({key: value[:1] for key, value in given.items()})
    elif "attention_mask" in given:
        given["attention_mask"] = given["attention_mask"].sort(-1, descending=True).values
        given["input_ids"][given["attention_mask"] == 0] = pad


def with_ends(draw: Draw, given: dict, end: int, vocab: int) -> None:
    """As many ends in each sequence, of which the last is pooled."""
    ids = given["input_ids"]
    ids[ids == end] = (end + 1) % vocab
    count = draw.randint(1, min(3, ids.shape[1]))
    for row in ids:
        row[torch.tensor(draw.sample(range(len(row)), count))] = end


def is_on_decoder(dialect: str, head: str) -> bool:
    return dialect == "bart" or (dialect == "t5" and not head.endswith("ForTokenClassification"))


def logits_of(model, head: str, dialect: str, given: dict) -> torch.Tensor:
    """What the library returns as logits. Sequences are the choices of one question."""
    if head.endswith("ForMultipleChoice"):
        return model(**{name: value.unsqueeze(0) for name, value in given.items()}).logits.view(-1, 1)
    out = model(**given, **more_for(dialect, model.config, given))
    return torch.stack([out.start_logits, out.end_logits], -1) if "QuestionAnswering" in head or head == "DPRReader" else \
        out.prediction_logits if head.endswith("ForPreTraining") else out.logits  # fmt: skip


def one(draw: Draw, programs: Programs, kind_name: str, head: str, number: int) -> tuple[list[Case], str]:
    import transformers

    cls = getattr(transformers, head)
    config = drawn_config(draw, kind_name, head)
    model = cls(config).eval()
    spread = draw.choice(SPREADS.get(kind_name, [0.05, 0.3]))
    for parameter in (own for name, own in model.named_parameters() if "embed_positions" not in name or kind_name != "roformer"):
        parameter.copy_(draw.normal(*parameter.shape) * spread + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    folder = programs.folder / f"{head}-{number}"
    how = saved(draw, folder, model, None)
    if draw.coin(0.4):
        untied(draw, folder)
    if how != "shards" and kind_name != "dpr" and draw.coin(0.15):  # whose class has its head there too
        without_prefix(folder, model.base_model_prefix)
        how += " without a prefix"
    model = cls.from_pretrained(folder, attn_implementation=ATTENTIONS.get(kind_name)).eval()
    has_types = any("token_type_embeddings" in name for name in model.state_dict())
    dialect, of_inputs = KINDS[kind_name].dialect, model.config
    if dialect == "pair":
        dialect, of_inputs = "vision", of_inputs.vision_config
    given = inputs_of(draw, dialect, of_inputs, has_types)
    if KINDS[kind_name].dialect in PADS_RIGHT:
        with_defined_rows(given, model.config.pad_token_id)
    if is_on_decoder(dialect, head):
        with_ends(draw, given, model.config.eos_token_id, model.config.vocab_size)
    logits = logits_of(model, head, dialect, given)
    cases = [Case({"op": "classify", "folder": str(folder), "frozen": frozen}, given, {"logits": logits}) for frozen in (False, True)]
    return cases, f"{head} ({how}) {(folder / 'config.json').read_text()}"


def compare(got: torch.Tensor, expected: torch.Tensor, mask: torch.Tensor | None) -> str:
    if got.shape != expected.shape:
        return f"{tuple(got.shape)} for {tuple(expected.shape)}"
    if expected.dim() == 3 and mask is not None:
        got, expected = got[mask != 0], expected[mask != 0]
    return off_by(got, expected)


def by_command_line(programs: Programs, folder: str, given: dict) -> dict | str:
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    save_file({key: value.contiguous() for key, value in given.items()}, file)
    done = programs.posenc("encode", folder, "--in", file, "--out", out, "--head")
    return done.stderr.strip() if done.returncode else load_file(out)


def reader(draw: Draw, programs: Programs) -> list[Failure]:
    """The second head of DPR's reader, which only the command computes."""
    import transformers

    cases, what = one(draw, programs, "dpr", "DPRReader", 99)
    folder, given = cases[0].options["folder"], cases[0].tensors
    expected = transformers.DPRReader.from_pretrained(folder).eval()(**given).relevance_logits
    got = by_command_line(programs, folder, given)
    why = got if isinstance(got, str) else compare(got["relevance_logits"], expected, None)
    return [Failure(f"relevance of {what}", why)] if why else []


def gradients(draw: Draw, programs: Programs, folder: str, head: str, kind_name: str, given: dict, shape: torch.Size) -> str:
    """The gradients of all parameters, which both save as the weights of the model."""
    import transformers

    ours, theirs = (programs.folder / name for name in ("gradients", "expected-gradients"))
    cotangent = draw.normal(*shape)
    mask = mask_of(given, folder)
    if mask is not None and len(shape) == 3:  # nothing is read of the rows of padding
        cotangent *= mask.unsqueeze(-1)
    model = getattr(transformers, head).from_pretrained(folder, attn_implementation=ATTENTIONS.get(kind_name)).eval()
    with torch.enable_grad():
        (logits_of(model, head, KINDS[kind_name].dialect, given) * cotangent).sum().backward()
    for parameter in model.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    model.save_pretrained(theirs)
    case = Case({"op": "differentiate_classifier", "folder": folder, "out": str(ours)}, given | {"cotangent": cotangent}, {})
    if isinstance(got := programs.compute([case], "gradients")[0], str):
        return got
    own, expected = ({renamed(name): tensor for name, tensor in load_file(place / "model.safetensors").items()} for place in (ours, theirs))
    for name, gradient in expected.items():
        if not gradient.any() and name in OTHER_BIASES:  # of a decoder that is not tied
            continue
        if name not in own and gradient.any() and "rotary_embeddings" not in name:
            return f"no gradient of {name}"
        if name in own and (why := off_by(own[name] / SLOPE, gradient / SLOPE)):
            return f"gradient of {name}: {why}"
    return ""


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with torch.no_grad():
        chosen = draw.sample(heads(), MODELS)
        made = [one(draw, programs, kind, head, number) for number, (kind, head) in enumerate(chosen)]
        failures = reader(draw, programs)
    results = iter(programs.compute([case for cases, _ in made for case in cases]))
    count = 1
    kind, head = chosen[-1]
    if KINDS[kind].dialect not in IMAGES and kind not in IN_GROUPS:
        cases, what = made[-1]
        count += 1
        if why := gradients(draw, programs, cases[0].options["folder"], head, kind, cases[0].tensors, cases[0].expected["logits"].shape):
            failures.append(Failure(f"{what}, gradients", why))
    for number, (cases, what) in enumerate(made):
        given, expected = cases[0].tensors, cases[0].expected
        got = [next(results) for _ in cases]
        names = ["plain", "frozen"]
        if number == 0:
            got.append(by_command_line(programs, cases[0].options["folder"], given))
            names.append("posenc encode")
        for name, result in zip(names, got):
            count += 1
            why = result if isinstance(result, str) else compare(result["logits"], expected["logits"], mask_of(given, cases[0].options["folder"]))
            if why:
                failures.append(Failure(f"{what}, {name}", why))
    return count, failures

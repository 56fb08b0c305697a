"""Adapters of PEFT with random settings on random models, by the command line beside PEFT itself: `posenc encode --adapter`, whose
outputs may differ by 1e-5 of their largest number, and `posenc merge`, whose tensors may differ by 1e-6 from merge_and_unload()'s.

B is random and not zero, so that nothing is right by doing nothing.
"""

import copy
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers.pytorch_utils import Conv1D

import decoder_configs
import decoders
import seq2seq
import whisper_logits
from encoders import KINDS, ROTATING, encoder_of, inputs_of, more_for, off_by, saved, settings
from harness import Case, Draw, Failure, Programs
from heads import logits_of, with_defined_rows

MODELS, TRAINED, NEAR, MERGED = 6, 4, 1e-5, 1e-6
OWN_ERRORS = 8  # how many times PEFT's own error of float32 a result may differ from that of float64
CHOSEN = ["bert", "roberta", "electra", "deberta-v2", "modernbert", "eurobert", "qwen3", "llama", "distilbert", "mpnet", "albert", "t5", "bart", "nomic_bert",
          "gte", "xlm-roberta", "esm", "gemma3_text", "camembert", "megatron-bert", "deberta", "layoutlmv3"]  # fmt: skip
HEADS = {"ForSequenceClassification": "SEQ_CLS", "ForTokenClassification": "TOKEN_CLS", "ForQuestionAnswering": "QUESTION_ANS", "ForMaskedLM": None}
WITH_DEFAULTS = ("deberta", "bert", "roberta", "electra", "deberta-v2", "qwen3", "llama", "t5", "bart", "xlm-roberta", "gemma3_text")
NEVER_CALLED = ("shared", "rel_embeddings", "rel_pos_bias", "rel_pos_x_bias", "rel_pos_y_bias")
REFUSED = ("No modules were targeted", "not found in the base model", "modules_to_save cannot be applied to modules", "lora_bias=True is not supported")  # by PEFT
OLD_KEYS = ("peft_type", "r", "lora_alpha", "target_modules", "bias", "modules_to_save", "task_type", "base_model_name_or_path")


def linear_names(model) -> dict[str, torch.nn.Module]:
    return {name: module for name, module in model.named_modules() if isinstance(module, (torch.nn.Linear, Conv1D))}


def is_of_layer(name: str) -> bool:
    return any(part.isdigit() for part in name.split("."))


def random_config(draw: Draw, model, kind_name: str, head: str) -> dict:
    """Settings of LoraConfig."""
    linears = [name for name in linear_names(model) if is_of_layer(name)]
    ends = sorted({name.rsplit(".", 1)[-1] for name in linears})
    chosen = draw.sample(ends, draw.randint(1, min(3, len(ends))))
    given = {"r": draw.randint(1, 5), "lora_alpha": draw.randint(1, 20), "use_rslora": draw.coin(0.3), "target_modules": chosen,
             "bias": draw.choice(["none", "none", "all", "lora_only"])}  # fmt: skip
    how = draw.randint(0, 9)
    if how == 0:
        given["target_modules"] = "all-linear"
    elif how == 1:
        given["target_modules"] = r".*\.(%s)" % "|".join(chosen)
    elif how == 2 and kind_name in WITH_DEFAULTS:
        del given["target_modules"]
    elif how == 3:
        given["target_modules"] = draw.sample(linears, draw.randint(1, len(linears)))
    elif how == 4 and draw.coin():
        tables = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Embedding)})
        given["target_modules"] = [*chosen, draw.choice(tables)]
    if isinstance(given.get("target_modules"), list) and how in (5, 6) and len(linears) > 1:
        given["exclude_modules"] = [draw.choice(linears)] if draw.coin() else draw.choice(linears).replace(".", r"\.")
    if draw.coin(0.4):
        given["rank_pattern"] = {draw.choice([draw.choice(ends), draw.choice(linears), r".*\.0\..*"]): draw.randint(1, 6) for _ in range(2)}
    if draw.coin(0.4):
        given["alpha_pattern"] = {draw.choice([draw.choice(ends), draw.choice(linears), r".*\.0\..*"]): draw.randint(1, 30) for _ in range(2)}
    given["use_dora"] = draw.coin(0.25)
    if HEADS.get(head):
        given["task_type"] = HEADS[head]
    with_bias = [module.bias is not None for module in linear_names(model).values()]
    if not given["use_dora"] and draw.coin(0.2) and all(with_bias):
        given["lora_bias"] = True
    if draw.coin(0.15) and how > 3 and is_listed(given) and "exclude_modules" not in given:
        given["layers_to_transform"] = draw.choice([0, [0]])
        if draw.coin():
            given["layers_pattern"] = draw.choice(["layer", "layers", ["block", "layer"], "(layers?|block)", "l.yers?"])
    if draw.coin(0.15):
        parts = sorted({name.rsplit(".", 1)[-1] for name, module in model.named_modules() if name and not list(module.children()) and list(module.parameters())})
        given["modules_to_save"] = draw.sample([name for name in parts if not name.isdigit()], 1)
    return given


def is_listed(given: dict) -> bool:
    return isinstance(given.get("target_modules"), list)


def adapted(draw: Draw, model, given: dict, folder: Path):
    """Writes an adapter with random tensors; returns PEFT's model with it, and None for settings that PEFT itself refuses."""
    import peft

    try:
        tuned = peft.get_peft_model(model, peft.LoraConfig(**given))
    except (ValueError, TypeError) as error:
        if not any(said in str(error) for said in REFUSED):
            raise
        return None
    for name, parameter in tuned.named_parameters():
        if parameter.requires_grad or "lora_" in name:
            spread = 0.3 if "magnitude" not in name else 0.05
            parameter.data = draw.normal(*parameter.shape) * spread + (parameter.data if "magnitude" in name else 0.0)
    tuned.save_pretrained(folder)
    return tuned


def rewritten(draw: Draw, folder: Path, given: dict) -> str:
    """The adapter as other releases write it."""
    file, config = folder / "adapter_model.safetensors", folder / "adapter_config.json"
    how = draw.choice(["safetensors", "safetensors", "bin", "half"])
    tensors = load_file(file)
    if how == "bin":
        file.unlink()
        torch.save(tensors, folder / "adapter_model.bin")
    if how == "half":
        save_file({name: value.half() for name, value in tensors.items()}, file, {"format": "pt"})
    stored = json.loads(config.read_text())
    others = ("rank_pattern", "alpha_pattern", "use_dora", "use_rslora", "lora_bias", "exclude_modules")
    plain = "layers_to_transform" not in given and not any(given.get(key) for key in others)
    if plain and draw.coin():
        stored = {key: value for key, value in stored.items() if key in OLD_KEYS and value is not None}
        how += ", old keys"
    if given.get("target_modules", "") in ("", "all-linear") and draw.coin() and "target_modules" in stored:
        stored["target_modules"] = given.get("target_modules")
        how += ", as given"
    if draw.coin(0.2):
        stored["fan_in_fan_out"] = True  # which PEFT has by the class of a layer
    config.write_text(json.dumps(stored))
    return how


def opened(cls, base: Path, adapters: list[tuple[Path, float]]):
    """PEFT's model with all of the adapters, each with its weight."""
    import peft

    model = cls.from_pretrained(base, dtype=torch.float32).eval()
    names = [f"a{number}" for number in range(len(adapters))]
    for name, (folder, scale) in zip(names, adapters):
        if name == "a0":
            model = peft.PeftModel.from_pretrained(model, folder, adapter_name=name)
        else:
            model.load_adapter(folder, adapter_name=name)
        for module in model.modules():
            if isinstance(module, peft.tuners.lora.LoraLayer) and name in module.scaling:
                module.scaling[name] *= scale
    model.base_model.set_adapter(names)
    return model.eval()


def encoded(programs: Programs, folder: Path, given: dict, *more: object) -> dict | str:
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    out.unlink(missing_ok=True)
    save_file({key: value.contiguous() for key, value in given.items()}, file)
    done = programs.posenc("encode", folder, "--in", file, "--out", out, *more)
    return done.stderr.strip() if done.returncode else load_file(out)


def compare(got: torch.Tensor, expected: torch.Tensor, mask: torch.Tensor | None, exact: Callable[[], torch.Tensor] | None = None) -> str:
    """`exact` is PEFT's in float64: what float32 does not determine may differ by more, as PEFT's own error says."""
    if got.shape != expected.shape:
        return f"{tuple(got.shape)} for {tuple(expected.shape)}"
    truth = exact() if exact and off_by(got, expected) else expected
    if expected.dim() == 3 and mask is not None:
        got, expected, truth = got[mask != 0], expected[mask != 0], truth[mask != 0]
    why = off_by(got, expected)
    if not why or exact is None or "other" in why:
        return why
    allowed = NEAR * max(1.0, expected.abs().max().item()) + OWN_ERRORS * (expected - truth).abs().max().item()
    return f"{why}, of which PEFT's own error allows {allowed:.3g}" if (got - truth).abs().max().item() > allowed else ""


def tied_outputs(model) -> set[str]:
    """The weights that are a table which an adapter changes: PEFT's forward has the table's before, and its merge that after."""
    import peft

    tables = {id(module.base_layer.weight) for module in model.modules() if isinstance(module, peft.tuners.lora.Embedding)}
    own = model.base_model.model.named_parameters(remove_duplicate=False)
    return {name for name, parameter in own if id(parameter) in tables and ".base_layer." not in name}


def is_ignored(model) -> bool:
    """Whether there is an adapter at a module that is not called, since others read its weight: PEFT adds to what a module returns."""
    import peft

    return any(name.rsplit(".", 1)[-1] in NEVER_CALLED and isinstance(module, peft.tuners.lora.LoraLayer) for name, module in model.named_modules())


def merged_differ(programs: Programs, cls, base: Path, model, arguments: list, forward: Callable | None = None) -> str:
    out = programs.folder / f"merged-{base.name}"
    done = programs.posenc("merge", base, out, *arguments)
    if done.returncode:
        return f"merge: {done.stderr.strip()}"
    tied, outputs = tied_outputs(model), forward(model.base_model.model) if forward else {}
    exact = copy.deepcopy(model).double()
    if forward:
        truths = forward(exact.base_model.model)
    expected, truth = model.merge_and_unload().state_dict(), exact.merge_and_unload().state_dict()
    ours, info = cls.from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    whole, before = cls.from_pretrained(base, dtype=torch.float32, output_loading_info=True)
    if any(set(names) - set(before[key]) for key, names in info.items() if key != "unexpected_keys"):
        return f"merged: {info}"
    drawn, tensors = set(before["missing_keys"]), ours.state_dict()  # transformers draws those at random
    originals = whole.state_dict()
    drawn |= {name for name, value in expected.items() if value.shape != originals[name].shape}  # FSMT's sinusoid grows with its input
    expected |= {name: originals[name] for name in tied}
    truth |= {name: expected[name] for name in tied}
    for name in expected.keys() - drawn:
        value, got = expected[name], tensors[name]
        worst = (got - truth[name]).abs().max().item() if got.shape == value.shape else float("inf")
        if worst > MERGED * max(value.abs().max().item(), 1) + OWN_ERRORS * (value - truth[name]).abs().max().item():
            return f"merged {name} is off by {worst}"
    for name, value in outputs.items() if not drawn else ():
        if why := compare(forward(ours.eval())[name], value, None, lambda: truths[name]):
            return f"{name} of the merged model: {why}"
    if list(out.glob("adapter_*")):
        return "the adapter is in the merged folder"
    return ""


def one(draw: Draw, programs: Programs, kind_name: str, number: int) -> tuple[int, list[Failure]]:
    import peft
    import transformers

    kind = KINDS[kind_name]
    bare = getattr(transformers, kind.model)
    stem = "Gemma3Text" if kind_name == "gemma3_text" else kind.model.removesuffix("Model").removesuffix("Encoder")
    heads = [ending for ending in HEADS if hasattr(transformers, stem + ending) and kind.dialect not in ("t5", "bart")]
    head = draw.choice(["", *heads])
    cls = getattr(transformers, stem + head) if head else bare
    chosen = settings(draw, kind_name, kind.dialect) | {"num_labels": 2 if head == "ForQuestionAnswering" else draw.choice([2, 3])}
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = 32
    model = cls(getattr(transformers, kind.config)(**chosen)).eval()
    for name, parameter in model.named_parameters():
        parameter.data = draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0)
    base = programs.folder / f"base-{number}"
    how = saved(draw, base, model.half() if draw.coin(0.15) else model, None)
    count = draw.choice([1, 1, 1, 2])
    adapters, arguments, texts = [], [], []
    for index in range(count):
        given = random_config(draw, model, kind_name, head)
        if index or count > 1:
            given |= {"use_dora": False, "bias": "none", "modules_to_save": None}
            given.pop("task_type", None)
        folder = programs.folder / f"adapter-{number}-{index}"
        fresh = cls.from_pretrained(base, dtype=torch.float32)
        if adapted(draw, fresh, given, folder) is None:
            return 0, []
        scale = 1.0 if given["use_dora"] else draw.choice([1.0, 0.5, -2.0])
        texts.append(f"{given} {rewritten(draw, folder, given)} x {scale}")
        adapters.append((folder, scale))
        arguments += ["--adapter", folder, "--scale", scale]
    failures = []
    what = f"{cls.__name__} ({how}) {texts} {(base / 'config.json').read_text()}"
    try:
        tuned = opened(cls, base, adapters)
    except (RuntimeError, KeyError) as error:  # PEFT sorts the keys of patterns when it saves them, and fails on modules inside of saved ones
        if "size mismatch" not in str(error) and not isinstance(error, KeyError):
            raise
        return 0, []
    inside = tuned.base_model.model
    has_types = any("token_type_embeddings" in name for name in inside.state_dict())
    inputs = inputs_of(draw, kind.dialect, inside.config, has_types)
    if kind.dialect in (*ROTATING, "alibi"):
        with_defined_rows(inputs, inside.config.pad_token_id)
    has_head, mask = bool(head), inputs.get("attention_mask")

    def forward(model) -> dict[str, torch.Tensor]:
        outputs = {"last_hidden_state": encoder_of(model, kind.dialect)(**inputs).last_hidden_state}
        return outputs | ({"logits": logits_of(model, head, kind.dialect, inputs)} if has_head else {})

    expected, truths = forward(inside), {}

    def exact(name: str) -> Callable[[], torch.Tensor]:
        return lambda: (truths or truths.update(forward(copy.deepcopy(inside).double())) or truths)[name]

    got = encoded(programs, base, inputs, *arguments, *(["--head"] if has_head else []))
    if is_ignored(tuned):
        return 1, [] if isinstance(got, str) and "must be of a module that runs" in got else [Failure(what, f"PEFT ignores an adapter: {got}")]
    for name, value in expected.items():
        why = got if isinstance(got, str) else compare(got[name], value, mask, exact(name))
        if why:
            failures.append(Failure(f"{what}, {name}", why))
            break
    if has_head:  # the encoder alone, of which the head's part of the adapter is none
        got = encoded(programs, base, inputs, *arguments)
        why = got if isinstance(got, str) else compare(got["last_hidden_state"], expected["last_hidden_state"], mask, exact("last_hidden_state"))
        if why:
            failures.append(Failure(f"{what}, the encoder alone", why))
    if count == 1 and adapters[0][1] == 1.0:
        failures += [Failure(f"{what}, read again", why) for why in [read_again(programs, cls, base, adapters[0][0], inputs, kind, expected, exact)] if why]
        failures += [Failure(f"{what}, inside", why) for why in [by_folder(draw, programs, base, adapters[0][0], inputs, expected, exact)] if why]
    why = merged_differ(programs, cls, base, tuned, arguments, forward)
    if why:
        failures.append(Failure(what, why))
    return 3, failures


def read_again(programs: Programs, cls, base: Path, folder: Path, inputs: dict, kind, expected: dict, exact: Callable) -> str:
    """`posenc adapter` writes what PEFT opens without a word."""
    import peft

    out = programs.folder / f"{folder.name}-again"
    done = programs.posenc("adapter", base, "--adapter", folder, "--out", out)
    if done.returncode:
        return done.stderr.strip()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        again = peft.PeftModel.from_pretrained(cls.from_pretrained(base, dtype=torch.float32), out).eval()
    said = [str(one.message) for one in said if "missing" in str(one.message) or "unexpected" in str(one.message)]
    if said:
        return said[0][:400]
    return compare(encoder_of(again.base_model.model, kind.dialect)(**inputs).last_hidden_state, expected["last_hidden_state"], None, exact("last_hidden_state"))


def by_folder(draw: Draw, programs: Programs, base: Path, adapter: Path, inputs: dict, expected: dict, exact: Callable) -> str:
    """The adapter's folder in place of a model's: with --base, by its own words, or inside its model."""
    how = draw.choice(["base", "named", "inside"])
    folder = programs.folder / f"{adapter.name}-{how}"
    shutil.copytree(base if how == "inside" else adapter, folder)
    if how == "inside":
        for path in adapter.glob("adapter_*"):
            shutil.copy(path, folder / path.name)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(base) if how == "named" else "no/model"}))
    got = encoded(programs, folder, inputs, *(["--base", base] if how == "base" else []))
    return f"{how}: {got}" if isinstance(got, str) else compare(got["last_hidden_state"], expected["last_hidden_state"], inputs.get("attention_mask"), exact("last_hidden_state"))


def crossed(draw: Draw, programs: Programs) -> list[Failure]:
    """An adapter of the bare class on the folder of one with a head, whose names have a prefix, and the other way round."""
    import peft
    import transformers

    kind_name = draw.choice(["bert", "roberta", "electra", "deberta-v2", "modernbert", "distilbert", "albert", "xlm-roberta", "esm", "qwen3"])
    kind, to_bare = KINDS[kind_name], draw.coin()
    headed, base = drawn_base(draw, programs, kind_name, "ForTokenClassification", "crossed")
    bare = getattr(transformers, kind.model)
    if to_bare:
        headed.from_pretrained(base).base_model.save_pretrained(base)
    cls = headed if to_bare else bare
    model = cls.from_pretrained(base, dtype=torch.float32)
    given = random_config(draw, model, kind_name, "") | {"rank_pattern": {}, "alpha_pattern": {}}  # whose keys PEFT sorts when it saves them
    folder = programs.folder / "crossed-adapter"
    tuned = adapted(draw, model, given, folder)
    if tuned is None:
        return []
    tuned = peft.PeftModel.from_pretrained(cls.from_pretrained(base, dtype=torch.float32), folder).eval()
    inputs = inputs_of(draw, kind.dialect, model.config, any("token_type_embeddings" in name for name in model.state_dict()))
    if kind.dialect in ROTATING:
        with_defined_rows(inputs, model.config.pad_token_id)
    expected = encoder_of(tuned.base_model.model, kind.dialect)(**inputs).last_hidden_state
    got, what = encoded(programs, base, inputs, "--adapter", folder), f"{cls.__name__} on {'a bare' if to_bare else 'a headed'} folder {given} {(base / 'config.json').read_text()}"
    if is_ignored(tuned):
        return [] if isinstance(got, str) and "must be of a module that runs" in got else [Failure(what, f"PEFT ignores an adapter: {got}")]
    why = got if isinstance(got, str) else compare(got["last_hidden_state"], expected, inputs.get("attention_mask"))
    failures = [Failure(what, why)] if why else []
    out = programs.folder / "crossed-merged"
    done = programs.posenc("merge", base, out, "--adapter", folder)
    if not why and not done.returncode:
        got = encoded(programs, out, inputs)
        why = got if isinstance(got, str) else compare(got["last_hidden_state"], expected, inputs.get("attention_mask"))
    return failures + ([Failure(f"{what}, merged", done.stderr or why)] if done.returncode or why else [])


def drawn_base(draw: Draw, programs: Programs, kind_name: str, head: str, name: str):
    """A model with random weights in a folder; returns its class too."""
    import transformers

    kind = KINDS[kind_name]
    stem = "Gemma3Text" if kind_name == "gemma3_text" else kind.model.removesuffix("Model").removesuffix("Encoder")
    cls = getattr(transformers, stem + head) if head else getattr(transformers, kind.model)
    model = cls(getattr(transformers, kind.config)(**settings(draw, kind_name, kind.dialect), num_labels=3)).eval()
    for parameter in model.parameters():
        parameter.data = draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0)
    base = programs.folder / name
    model.save_pretrained(base)
    return cls, base


def trained(draw: Draw, programs: Programs, number: int) -> tuple[Case, dict, str, Path, type]:
    """A step of SGD on the adapter alone: outputs, gradients, and outputs after the step."""
    import peft

    kind_name = draw.choice([name for name in CHOSEN if name not in ("mpnet", "esm", "albert", "bart", "layoutlmv3")])
    head = draw.choice(["", "ForSequenceClassification"]) if KINDS[kind_name].dialect not in ("t5", "bart") and kind_name != "nomic_bert" else ""
    cls, base = drawn_base(draw, programs, kind_name, head, f"train-{number}")
    model = cls.from_pretrained(base, dtype=torch.float32).eval()
    ends = sorted({name.rsplit(".", 1)[-1] for name in linear_names(model) if is_of_layer(name)} - {"in_proj"})  # DeBERTa's, by heads
    given = {"r": draw.randint(1, 4), "lora_alpha": draw.randint(1, 9), "target_modules": draw.sample(ends, draw.randint(1, min(3, len(ends)))),
             "use_dora": draw.coin(0.3), "use_rslora": draw.coin(0.3), "bias": draw.choice(["none", "none", "all"])}  # fmt: skip
    if head and draw.coin():
        given["task_type"] = "SEQ_CLS"
    folder = programs.folder / f"train-{number}-adapter"
    tuned = adapted(draw, model, given, folder).eval()
    inputs = inputs_of(draw, KINDS[kind_name].dialect, model.config, any("token_type_embeddings" in name for name in model.state_dict()))
    if head or KINDS[kind_name].dialect in ROTATING:
        with_defined_rows(inputs, model.config.pad_token_id)

    def forward() -> torch.Tensor:
        return tuned.base_model.model(**inputs).logits if head else encoder_of(tuned.base_model.model, KINDS[kind_name].dialect)(**inputs).last_hidden_state

    with torch.enable_grad():
        out = forward()
        cotangent = draw.normal(*out.shape)
        if not head and "attention_mask" in inputs:
            cotangent *= (inputs["attention_mask"] != 0).unsqueeze(-1)
        (out * cotangent).sum().backward()
    expected = {"out": out.detach()}
    for name, parameter in tuned.named_parameters():
        if parameter.grad is not None and parameter.requires_grad:
            own = name.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "").replace(".base_layer", "")
            expected["grad." + own.removesuffix("_vector.weight") + ("_vector" if own.endswith("_vector.weight") else "")] = parameter.grad.clone()
    torch.optim.SGD([parameter for parameter in tuned.parameters() if parameter.requires_grad], lr=0.05).step()
    expected["after"] = forward().detach()
    case = Case({"op": "lora_train", "folder": str(base), "adapter": str(folder), "head": bool(head), "out": f"{folder}-out"}, {**inputs, "cotangent": cotangent}, {})
    return case, expected, f"{cls.__name__} trained {given} {(base / 'config.json').read_text()}", base, cls


def judged(case: Case, got, expected: dict, what: str, base: Path, cls) -> list[Failure]:
    import peft

    has_zeros = cls.__name__.startswith("Deberta") and "V2" not in cls.__name__ and "'bias': 'all'" in what  # keys without a bias
    if isinstance(got, str) or has_zeros:
        return [] if has_zeros and "all must be trained or none" in str(got) else [Failure(what, str(got))]
    whys, mask = [], case.tensors.get("attention_mask")
    if got["touched"]:
        whys.append(f"{int(got['touched'])} tensors of the base have changed, or have gradients")
    missing = [name for name in expected if name not in got and "lora_" in name]
    whys += [f"{name} is missing" for name in missing[:2]]
    for name, value in expected.items():
        if name not in got or got[name].shape != value.shape and name.startswith("grad"):
            continue  # rows of a packed bias
        why = compare(got[name], value, mask if not name.startswith("grad") else None) if not name.startswith("grad") else \
            (f"off by {(got[name] - value).abs().max()}" if (got[name] - value).abs().max() > NEAR * max(value.abs().max().item(), 1) * 10 else "")  # fmt: skip
        # What follows a step is as far off as the gradients.
        if why and not (name == "after" and (got[name] - value)[... if mask is None else mask != 0].abs().max() <= 10 * NEAR * max(value.abs().max().item(), 1)):
            whys.append(f"{name}: {why}")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        again = peft.PeftModel.from_pretrained(cls.from_pretrained(base, dtype=torch.float32), case.options["out"]).eval()
    whys += [str(one.message)[:300] for one in said if "missing" in str(one.message) or "nexpected" in str(one.message)]
    inputs = {name: value for name, value in case.tensors.items() if name != "cotangent"}
    out = again.base_model.model(**inputs).logits if case.options["head"] else encoder_of(again.base_model.model, "t5" if "T5" in cls.__name__ else "bart" if cls.__name__.startswith("Bart") else "")(**inputs).last_hidden_state
    why = compare(got["after"], out, mask)
    whys += [f"saved: {why}"] if why else []
    return [Failure(what, "; ".join(whys[:4]))] if whys else []


def causal(draw: Draw, programs: Programs) -> tuple[Case, Callable, str]:
    """An adapter of a language model, trained for some steps of AdamW; what checks the result."""
    import peft

    kind_name = draw.choice(["llama", "qwen3", "gpt2"])
    if kind_name == "gpt2":
        base = programs.folder / "causal"
        cls = type(decoders.model_of(draw, base, kind_name))
    else:
        cls, base = drawn_base(draw, programs, kind_name, "ForCausalLM", "causal")
    own = json.loads((base / "config.json").read_text())
    (base / "config.json").write_text(json.dumps(own | {"is_causal": True, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}))
    all_ends = ["c_attn", "c_proj", "c_fc"] if kind_name == "gpt2" else ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    ends = draw.sample(all_ends, 2)
    given = {"r": draw.randint(1, 4), "lora_alpha": draw.randint(1, 9), "target_modules": ends, "use_dora": draw.coin(0.3), "use_rslora": draw.coin(0.3), "task_type": "CAUSAL_LM"}
    folder = programs.folder / "causal-adapter"
    tuned = adapted(draw, cls.from_pretrained(base, dtype=torch.float32), given, folder).train()
    lengths = [draw.randint(2, 9) for _ in range(draw.randint(1, 4))]
    ids, mask = torch.zeros(len(lengths), max(lengths), dtype=torch.long), torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length], mask[row, :length] = draw.integers(tuned.config.vocab_size, length), 1
    case = Case({"op": "lora_causal", "folder": str(base), "adapter": str(folder), "out": f"{folder}-out", "lr": 0.01, "steps": draw.randint(1, 6)}, {"ids": ids, "mask": mask}, {})
    optimizer, losses = torch.optim.AdamW([one for one in tuned.parameters() if one.requires_grad], lr=0.01), []
    with torch.enable_grad():
        for _ in range(case.options["steps"]):
            loss = tuned(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    expected = tuned.eval()(input_ids=ids, attention_mask=mask).logits

    def why(got) -> str:
        if isinstance(got, str):
            return got
        if off := (got["losses"] - torch.tensor(losses)).abs().max().item():
            if off > 10 * NEAR * max(losses):
                return f"losses {got['losses'].tolist()} for {losses}"
        again = peft.PeftModel.from_pretrained(cls.from_pretrained(base, dtype=torch.float32), case.options["out"]).eval()
        wrong = (again(input_ids=ids, attention_mask=mask).logits - expected)[mask != 0].abs().max().item()
        return f"logits off by {wrong} of {expected.abs().max().item()}" if wrong > 1000 * NEAR * expected.abs().max().item() else ""

    return case, why, f"{cls.__name__} {given} {case.options['steps']} steps {(base / 'config.json').read_text()}"


def switched(draw: Draw, programs: Programs) -> tuple[Case, str]:
    """Two adapters on one model, in place."""
    kind_name = draw.choice(CHOSEN[:11])
    while kind_name in ("mpnet", "albert"):
        kind_name = draw.choice(CHOSEN[:11])
    cls, base = drawn_base(draw, programs, kind_name, "", "switched")
    adapters = {}
    for index in range(2):
        model = cls.from_pretrained(base, dtype=torch.float32)
        ends = sorted({name.rsplit(".", 1)[-1] for name in linear_names(model) if is_of_layer(name)})
        folder = programs.folder / f"switched-{index}"
        adapted(draw, model, {"r": draw.randint(1, 4), "lora_alpha": draw.randint(1, 9), "target_modules": draw.sample(ends, min(2, len(ends)))}, folder)
        adapters[f"a{index}"] = {"folder": str(folder), "scale": draw.choice([1.0, 0.5])}
    inputs = inputs_of(draw, KINDS[kind_name].dialect, model.config, False)
    return Case({"op": "lora_switch", "folder": str(base), "adapters": adapters}, inputs, {}), f"{cls.__name__} switched {adapters}"


def encoder_decoder(draw: Draw, programs: Programs) -> tuple[Case, torch.Tensor, str]:
    """An adapter of an encoder-decoder: its logits, and what `posenc merge` makes of it."""
    kind = draw.choice([*sorted(seq2seq.KINDS), "whisper"])
    base, folder = programs.folder / f"pair-{kind}", programs.folder / "pair-adapter"
    if hears := kind == "whisper":
        model = whisper_logits.folder_of(draw, base)
        case = whisper_logits.case_of(draw, base, model.config)
    else:
        model = seq2seq.model_of(draw, base, kind)
        case, _ = seq2seq.case_of(draw, base, kind, model)
    ends = sorted({name.rsplit(".", 1)[-1] for name in linear_names(model) if is_of_layer(name)})
    given = {"r": draw.randint(1, 4), "lora_alpha": draw.randint(1, 9), "target_modules": draw.sample(ends, draw.randint(1, min(3, len(ends)))),
             "use_dora": draw.coin(0.2), "use_rslora": draw.coin(0.3), "task_type": "SEQ_2_SEQ_LM"}  # fmt: skip
    tuned = adapted(draw, model, given, folder).eval()
    given_to = tuned.base_model.model, case.tensors
    logits = whisper_logits.outputs_of(*given_to)[0] if hears else seq2seq.logits_of(given_to[0], *(given_to[1][name] for name in ("src", "mask", "tgt")))
    case.options = {"op": "lora_seq2seq", "folder": str(base), "adapter": str(folder)}
    why = merged_differ(programs, type(model), base, tuned, ["--adapter", folder])
    if not why and any(name.rsplit(".", 1)[-1] == "shared" for name, _ in model.named_modules()):
        shared = programs.folder / "shared-adapter"
        adapted(draw, type(model).from_pretrained(base), given | {"target_modules": ["shared"]}, shared)
        done = programs.posenc("merge", base, programs.folder / "shared-merged", "--adapter", shared)
        why = "" if "must be of a module that runs" in done.stderr else f"an adapter of the shared table: {done.stdout}{done.stderr}"
    return case, logits, f"{type(model).__name__} {given} {(base / 'config.json').read_text()}", why


def decoder(draw: Draw, programs: Programs) -> tuple[Case, torch.nn.Module, str, str]:
    """An adapter of a decoder-only language model, also of its output layer, and what `posenc merge` makes of it."""
    import peft

    kind = draw.choice(["gpt2", *decoder_configs.KINDS])
    base, folder = programs.folder / f"decoder-{kind}", programs.folder / "decoder-adapter"
    model = decoders.model_of(draw, base, kind)
    if draw.coin(0.3):  # a class without the output layer, which an adapter of a language model is for nevertheless
        settings_of_base = json.loads((base / "config.json").read_text())
        (base / "config.json").write_text(json.dumps(settings_of_base | {"architectures": [type(model.base_model).__name__]}))
    ends = sorted({name.rsplit(".", 1)[-1] for name in linear_names(model) if is_of_layer(name)})
    given = {"r": draw.randint(1, 4), "lora_alpha": draw.randint(1, 9), "target_modules": draw.sample(ends, draw.randint(1, len(ends))),
             "use_dora": draw.coin(0.2), "use_rslora": draw.coin(0.3), "bias": draw.choice(["none", "none", "all"]), "task_type": "CAUSAL_LM"}  # fmt: skip
    if not model.config.tie_word_embeddings and draw.coin(0.4):
        given = draw.choice([given | {"modules_to_save": ["lm_head"]}, given | {"target_modules": [*given["target_modules"], "lm_head"]}])
    if model.has_table and draw.coin(0.3):
        given["target_modules"] = [*given["target_modules"], next(name.rsplit(".", 1)[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Embedding))]
    adapted(draw, copy.deepcopy(model), given, folder)
    tuned = peft.PeftModel.from_pretrained(model, folder).eval()
    case = Case({"op": "decode", "folder": str(base), "adapter": str(folder), "encodes": False, "num_beams": 1, "new_tokens": 1},
                decoders.rows_of(draw, model.config.vocab_size, 12), {})  # fmt: skip
    has_all = not tuned.config.tie_word_embeddings or model.has_table  # or merge writes the table by another name
    why = merged_differ(programs, type(model), base, copy.deepcopy(tuned), ["--adapter", folder]) if has_all else ""
    return case, tuned, f"{type(model).__name__} {given} {(base / 'config.json').read_text()}", why


def sentences(draw: Draw, programs: Programs) -> list[Failure]:
    """A folder of sentence-transformers that was saved with an adapter, which has no config.json."""
    import peft
    import sentence_transformers
    from sentence_transformers.base.modules.transformer import Transformer
    from sentence_transformers.sentence_transformer.modules.pooling import Pooling
    from sentence_texts import TOKENIZERS, drawn_model
    from tokenizer_folders import texts, tokenizer

    kind_name = draw.choice(["bert", "electra", "qwen3", "xlm-roberta"])
    words = tokenizer(draw, TOKENIZERS[kind_name])
    base, folder, lines, out = (programs.folder / name for name in ("st-base", "st", "st.txt", "st.safetensors"))
    drawn_model(draw, kind_name, KINDS[kind_name].model, words).save_pretrained(base)
    words.save_pretrained(base)
    first = Transformer(str(base), max_seq_length=30)
    width = first.auto_model.config.hidden_size
    model = sentence_transformers.SentenceTransformer(modules=[first, Pooling(width, "mean")], device="cpu")
    ends = ["q_proj", "up_proj"] if kind_name == "qwen3" else ["query", "value"]
    model.add_adapter(peft.LoraConfig(r=draw.randint(1, 4), lora_alpha=draw.randint(1, 9), target_modules=ends))
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = draw.normal(*parameter.shape) * 0.3
    model.eval().save(str(folder))
    if (folder / "config.json").exists():
        return [Failure("sentence-transformers", "the folder has a config.json")]
    own = [text for text in texts(draw, 4, 20) if "\n" not in text and "\r" not in text and text.strip()]
    own = own or ["hello"]
    lines.write_text("".join(f"{text}\n" for text in own), encoding="utf-8", newline="")
    failures = []
    expected = torch.stack([model.encode([text], convert_to_tensor=True)[0] for text in own])
    for more in ([], ["--base", base]):
        done = programs.posenc("encode", folder, "--text", lines, "--out", out, *more)
        why = done.stderr.strip() if done.returncode else off_by(load_file(out)["embeddings"], expected)
        failures += [Failure(f"{kind_name} of sentence-transformers {more}", why)] if why else []
    merged = programs.folder / "st-merged"
    done = programs.posenc("merge", folder, merged)
    why = done.stderr.strip() if done.returncode else off_by(sentence_transformers.SentenceTransformer(str(merged), device="cpu").encode(own, convert_to_tensor=True, batch_size=1), expected)
    return failures + ([Failure(f"{kind_name} of sentence-transformers, merged", why)] if why else [])


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    count, failures = 0, []
    with torch.no_grad():
        for number, kind_name in enumerate(draw.sample(CHOSEN, MODELS)):
            own, failed = one(draw, programs, kind_name, number)
            count += own
            failures += failed
        steps = [trained(draw, programs, number) for number in range(TRAINED)]
        case, what = switched(draw, programs)
        pair, logits, pair_what, why = encoder_decoder(draw, programs)
        failures += [Failure(pair_what, why)] if why else []
        failures += sentences(draw, programs) + crossed(draw, programs)
        decoding, tuned, decoder_what, why = decoder(draw, programs)
        failures += [Failure(decoder_what, why)] if why else []
        language, why_of, language_what = causal(draw, programs)
        *results, decoded, of_language, of_pair, got = programs.compute([*(step[0] for step in steps), decoding, language, pair, case])
        for part in ("", "frozen."):
            ours = decoded if isinstance(decoded, str) else {name.removeprefix(part): value for name, value in decoded.items()}
            why = ours if isinstance(ours, str) else decoders.off_by(tuned.base_model.model, decoding.tensors, ours, ("logits",))
            failures += [Failure(f"{decoder_what} {part}", why)] if why else []
        failures += [Failure(language_what, why)] if (why := why_of(of_language)) else []
        whys = [of_pair] if isinstance(of_pair, str) else [f"{name}: {why}" for name, value in of_pair.items() if (why := off_by(value, logits))]
        failures += [Failure(pair_what, "; ".join(whys))] if whys else []
        for step, result in zip(steps, results):
            failures += judged(step[0], result, *step[1:])
        whys = [got] if isinstance(got, str) else [f"{name} {int(value)}" for name, value in got.items() if name.startswith("differ") and value]
        if not isinstance(got, str):
            whys += [f"active is off by {(got['active.0'] - got['loaded']).abs().max()}"] if not torch.equal(got["active.0"], got["loaded"]) else []
            whys += ["another time it is other"] if not torch.equal(got["active.0"], got["active.1"]) else []
        failures += [Failure(what, why) for why in whys]
    return count + TRAINED + 10, failures

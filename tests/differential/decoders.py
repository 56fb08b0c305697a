"""Decoder-only language models in folders with random settings and weights, written by transformers and as other releases and
tools wrote them: `posenc generate --logits` and `posenc encode`, frozen and plain, searches with random settings, and `posenc freeze`.

A row's result has to be that of transformers for the row alone, without its padding, which is on either side. Logits and hidden
states may differ by 1e-5 of the largest and eight times by what transformers itself is off from float64.
"""

import copy
import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

import decoder_configs as configs
import generation
from generation import Subject
from harness import Draw, Failure, Programs
from seq2seq import NEAR, save
from written import read, written

MODELS, SEARCHES, SETTINGS = 5, 2, 4
VALUES = [None, True, False, -1, 0, 1, 2, 1.5, -0.5, 2**31, 2**63, -(2**63), 10**30, 1e308, "", "a", "never", "a\nb", [], [0], [-1], [2**40], [1.5], [None], [True], [[]],
          [[0]], [[0], []], [[0, "a"]], [[[0], 1.0]], [[[0], "a"]], [[[], 1.0]], [[0, 1.0]], {}, {"a": 1}]  # fmt: skip
ENCODED = ("last_hidden_state",)


def randomise(draw: Draw, model) -> None:
    spread = draw.choice([0.05, 0.2, 0.4])
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(draw.normal(*value.shape) * spread + (1.0 if value.dim() == 1 and draw.coin() else 0.0))


def old_rotation(draw: Draw, kind: str, settings: dict) -> dict:
    """The rotary embedding as files of transformers 4 state it."""
    rope = copy.deepcopy(settings.get("rope_parameters"))
    if not rope or draw.coin():
        return settings
    old = {name: value for name, value in settings.items() if name != "rope_parameters"}
    if kind in ("gemma3_text", "olmo3"):
        local = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
        old |= {"rope_local_base_freq": local} if kind == "gemma3_text" else {}
    theta, part = rope.pop("rope_theta"), rope.pop("partial_rotary_factor", None)
    if kind == "gpt_neox":
        old |= {"rotary_emb_base": theta, "rotary_pct": 0.25 if part is None else part, **({"rope_theta": 77.0} if draw.coin() else {})}
    else:
        old |= {"rope_theta": theta} | ({} if part is None else {"partial_rotary_factor": part})
    if kind == "phi3" and rope["rope_type"] == "longrope":
        old["original_max_position_embeddings"] = rope.pop("original_max_position_embeddings")
        rope["rope_type"] = draw.choice(["longrope", "su", "yarn"])
    if rope["rope_type"] == "default" and len(rope) == 1:
        return old | draw.choice([{}, {"rope_scaling": None}])
    return old | {"rope_scaling": {draw.choice(["type", "rope_type"]): rope.pop("rope_type"), **rope}}


def with_rivals(draw: Draw, kind: str, settings: dict) -> dict:
    """An alias and the name that it stands for, with different values: the alias wins."""
    rivals = [(own, alias) for own, alias in configs.config_class(kind).attribute_map.items() if alias in settings and draw.coin(0.2)]
    return {own: settings[alias] * 2 for own, alias in rivals} | settings


def text_of(draw: Draw, kind: str, settings: dict) -> dict:
    """A config.json from which transformers reads something that it can load."""
    kind_class = configs.config_class(kind)
    first = read(kind_class, settings).to_dict()
    settings = written(draw, kind_class, settings, same=True)
    for change in (old_rotation, with_rivals):
        changed = change(draw, kind, settings)
        try:
            same = read(kind_class, changed).to_dict()
        except Exception:  # of transformers
            continue
        if change is old_rotation or {name: same[name] for name in first} == first:
            settings = changed
    return settings


def leftovers(draw: Draw, kind: str, layer: str) -> dict[str, Tensor]:
    """What old releases saved in a layer besides."""
    mask = torch.ones(1, 1, 5, 5).tril().to(draw.choice([torch.bool, torch.uint8]))
    place = {"gpt2": "attn.", "gptj": "attn.", "gpt_neo": "attn.attention.", "gpt_neox": "attention."}.get(kind)
    found = {} if place is None else {f"{place}bias": mask, f"{place}masked_bias": torch.tensor(-1e9)}
    if kind == "codegen":
        found["attn.causal_mask"] = mask
    if kind in ("codegen", "gptj"):
        found["attn.embed_positions"] = draw.normal(8, 4)
    if kind == "gpt_neox":
        found["attention.rotary_emb.inv_freq"] = draw.normal(2)
    if layer.startswith("model.layers."):
        found["self_attn.rotary_emb.inv_freq"] = draw.normal(2)
    return {f"{layer}.{name}": value for name, value in found.items()}


TABLES = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")


def file_tensors(draw: Draw, kind: str, model) -> dict[str, Tensor]:
    """The model's tensors as a file may have them: the head, prefixes, leftovers."""
    tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
    tied = model.config.tie_word_embeddings
    table = next(name for name, value in tensors.items() if value is not None and name.endswith(TABLES))
    how = draw.choice(["as it is", "alone", "both", "other"]) if tied else "as it is"
    head = "lm_head.weight" if "lm_head.weight" in tensors else "embed_out.weight"
    if how == "alone":
        tensors.pop(draw.choice([table, head]), None)
    if how == "other":
        tensors[head] = tensors[table] + 0.3 * draw.normal(*tensors[table].shape)
    if how == "as it is" and tied:
        tensors.pop(head, None)
    if kind == "gpt_neox" and "lm_head.weight" in tensors and draw.coin():
        tensors["embed_out.weight"] = tensors.pop("lm_head.weight")
    layers = sorted({".".join(name.split(".")[: i + 1]) for name in tensors for i, part in enumerate(name.split(".")) if part.isdecimal()}, key=len)
    if draw.coin(0.3):
        for layer in [one for one in layers if one.count(".") == layers[0].count(".")]:
            tensors |= leftovers(draw, kind, layer)
    prefix = f"{model.base_model_prefix}."
    if draw.coin(0.2):
        tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
    return tensors


def model_of(draw: Draw, folder: Path, kind: str):
    """A folder, and the model that transformers loads from it in float32."""
    settings, config = configs.drawn_config(draw, kind)
    cls = configs.model_class(kind)
    model = cls(config).eval()
    randomise(draw, model)
    folder.mkdir(parents=True, exist_ok=True)
    text = text_of(draw, kind, settings)
    text["architectures"] = [cls.__name__]
    (folder / "config.json").write_text(json.dumps(text))
    tensors = file_tensors(draw, kind, model)
    save(draw, folder, tensors)
    loaded, info = cls.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    missing = set(info["missing_keys"]) - {"lm_head.weight"}
    if missing or info["mismatched_keys"]:
        raise ValueError(f"{kind}: the folder lacks {missing or info['mismatched_keys']}: {folder}")
    loaded.has_table = any(name.endswith(TABLES) for name in tensors)
    return loaded.eval()


def rows_of(draw: Draw, vocab: int, most: int) -> dict[str, Tensor]:
    """Ids of rows of unequal lengths, each padded on one side with anything."""
    rows = draw.randint(1, 4)
    lengths = [draw.randint(1, most) for _ in range(rows)]
    sides = [draw.coin()] * rows if draw.coin(0.8) else [draw.coin() for _ in range(rows)]
    filler = draw.choice([0, 1, vocab - 1, vocab + 7, -100])
    width = max(lengths)
    ids, mask = torch.full((rows, width), filler), torch.zeros(rows, width, dtype=torch.long)
    for row, (length, is_left) in enumerate(zip(lengths, sides)):
        place = slice(width - length, None) if is_left else slice(0, length)
        ids[row, place] = draw.integers(vocab, length)
        mask[row, place] = 1
    if mask.all() and draw.coin():
        return {"input_ids": ids}
    return {"input_ids": ids, "attention_mask": mask}


def mask_of(given: dict[str, Tensor]) -> Tensor:
    return given.get("attention_mask", torch.ones_like(given["input_ids"])).bool()


def forget_lengths(model) -> None:
    """Dynamic NTK keeps the frequencies of the longest row so far, until one is as short as the model is trained for."""
    for module in model.modules():
        if hasattr(module, "original_max_seq_len"):
            for name in [name for name in vars(module) if name.endswith("max_seq_len_cached")]:
                setattr(module, name, module.original_max_seq_len)
            for name in [name for name in vars(module)["_buffers"] if name.endswith("original_inv_freq")]:
                module._buffers[name.replace("original_", "")] = module._buffers[name].clone()


def outputs_of(model, ids: Tensor) -> dict[str, Tensor]:
    """Of one row without padding."""
    forget_lengths(model)
    hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state
    return {"logits": model(input_ids=ids, use_cache=False).logits[0], "last_hidden_state": hidden[0]}


def off_by(model, given: dict[str, Tensor], got: dict[str, Tensor], names: tuple[str, ...]) -> str:
    """Why a result is not that of transformers for each row alone, or ""."""
    mask, wide = mask_of(given), None
    for row, ids in enumerate(given["input_ids"]):
        ids = ids[mask[row]][None]
        expected = outputs_of(model, ids)
        for name in names:
            if name not in got:
                return f"{name} is missing"
            if not got[name].isfinite().all():
                return f"{name} is not finite"
            one, theirs = got[name][row][mask[row]].double(), expected[name].double()
            if one.shape != theirs.shape:
                return f"{name}: {tuple(got[name].shape)}, of a row {tuple(theirs.shape)}"
            off, largest = (one - theirs).abs().max().item(), theirs.abs().max().item()
            if off <= NEAR * largest:
                continue
            wide = copy.deepcopy(model).double() if wide is None else wide
            true = outputs_of(wide, ids)[name]
            rounding = (theirs - true).abs().max().item()
            off = min(off, (one - true).abs().max().item())
            if not off <= NEAR * largest + 8 * rounding:
                return f"{name} of row {row}: off by {off:.3g} of {largest:.3g}, where transformers is by {rounding:.3g} from float64"
    return ""


def check_logits(draw: Draw, programs: Programs, kind: str, model, most: int) -> list[Failure]:
    given = rows_of(draw, model.config.vocab_size, most)
    failures = []
    for more in (["--logits"], ["--logits", "--plain"]):
        got = generation.searched(programs, given, {}, more)
        why = got if isinstance(got, str) else off_by(model, given, got, ("logits", "last_hidden_state"))
        failures += [Failure(f"{kind} {' '.join(more)} {config_in(programs)}", why)] if why else []
    if not model.has_table:  # in a file of the output layer alone, which the class without it draws at random
        return failures
    got = encoded(programs, given)
    why = got if isinstance(got, str) else off_by(model, given, got, ENCODED)
    return failures + ([Failure(f"{kind} encode {config_in(programs)}", why)] if why else [])


def config_in(programs: Programs) -> str:
    return (programs.folder / "model" / "config.json").read_text()


def encoded(programs: Programs, given: dict[str, Tensor]) -> dict[str, Tensor] | str:
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    save_file(given, file)
    done = programs.posenc("encode", programs.folder / "model", "--in", file, "--out", out)
    return done.stderr.strip() if done.returncode else load_file(out)


def check_frozen(draw: Draw, programs: Programs, kind: str, model) -> Failure | None:
    """What `posenc freeze` writes has the bits of the folder that it was made of."""
    how = draw.choice([[], ["--int8"], ["--int8", "--int8-block", "64"], ["--bfloat16"], ["--compute-bfloat16"]])
    folder, frozen = programs.folder / "model", programs.folder / "frozen"
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    save_file(rows_of(draw, model.config.vocab_size, configs.LEAST_POSITIONS - 4), file)
    done = programs.posenc("freeze", folder, frozen, *how)
    why = done.stderr.strip() if done.returncode else ""
    for command in [["generate", "--logits"], ["encode"]] if model.has_table else [["generate", "--logits"]]:
        found = []
        for place, options in ((folder, how), (frozen, draw.choice([[], how]))):
            done = programs.posenc(*command, place, "--in", file, "--out", out, *options)
            found.append(done.stderr.strip() if done.returncode else out.read_bytes())
        if not why and found[0] != found[1]:
            why = f"{command[0]} of the frozen folder: {found[1] if isinstance(found[1], str) else 'other bits'}"
    return Failure(f"{kind} freeze {' '.join(how)} {config_in(programs)}", why) if why else None


def theirs(model, given: dict[str, Tensor], settings: dict) -> tuple[list[list[int]], list[float]]:
    """Rows and scores of transformers, each prompt alone."""
    model, kept = generation.without_nulls(model, settings)
    rows, scores = [], []
    for ids, mask in zip(given["input_ids"], mask_of(given)):
        own = ids[mask][None]
        out = model.generate(input_ids=own, attention_mask=torch.ones_like(own), **kept, return_dict_in_generate=True, output_scores=True)
        rows += [ids.tolist() + one[own.shape[1] :] for one in out.sequences.tolist()]
        found = getattr(out, "sequences_scores", None)
        scores += [] if found is None else found.tolist()
    return rows, scores


def search_settings(draw: Draw, vocab: int, pad: int, end: int, longest: int) -> dict:
    """Those of generation.py, with lengths that count the prompt."""
    found = generation.settings_of(draw, vocab, pad, end)
    found = {name: value for name, value in found.items() if not name.startswith("encoder_")}
    for name in ("max_length", "min_length"):
        if name in found:
            found[name] += longest
    return found


def check_search(draw: Draw, programs: Programs, subject: Subject, samples: bool, longest: int) -> Failure | None:
    vocab = subject.target
    given = rows_of(draw, vocab, longest)
    columns = int(mask_of(given).sum(1).max())
    end = draw.choice([7, draw.randrange(vocab)])
    settings = generation.sampling_of(draw, vocab) if samples else search_settings(draw, vocab, subject.pad, end, columns)
    if samples:
        own = given["input_ids"][:1][mask_of(given)[:1]][None]
        given = {"input_ids": own, "attention_mask": torch.ones_like(own)}  # or transformers would hide padding ids in it
    if generation.is_void(subject.settings | settings):
        return None
    more = ["--plain"] if draw.coin(0.3) else []
    got = generation.searched(programs, given, settings, more)
    try:
        if isinstance(got, str):
            theirs(subject.model, given, settings)
            why = got
        elif samples:
            why = generation.check_samples(subject, given, settings, got["sequences"])
        else:
            why = generation.compare(subject, given, settings, got, generation.fills_of(subject, settings), theirs)
    except (ValueError, RuntimeError, IndexError) as error:  # of transformers itself
        why = "" if isinstance(got, str) else f"transformers refuses it: {error}"
    what = f"{subject.kind} {json.dumps(settings)} {' '.join(more)}; of the folder: {json.dumps(subject.settings)}; {config_in(programs)}"
    return Failure(what, why) if why else None


def with_settings(draw: Draw, folder: Path, kind: str, model, longest: int) -> Subject:
    """The model with settings of generate() in generation_config.json or in config.json, or none."""
    vocab, pad = model.config.vocab_size, draw.choice([0, 2, None])
    settings: dict = {"eos_token_id": draw.choice([7, [7, 3]]), "pad_token_id": pad}
    if draw.coin():
        drawn = search_settings(draw, vocab, pad or 0, 7, longest)
        drawn = {name: drawn[name] for name in draw.sample(sorted(drawn), draw.randint(0, len(drawn))) if drawn[name] is not None}
        settings |= {name: value for name, value in drawn.items() if name not in ("num_return_sequences", "num_beams")}
    if generation.is_void(settings):
        settings.pop("suppress_tokens", None)
    settings = {name: value for name, value in settings.items() if value is not None}
    if draw.coin(0.7):
        (folder / "generation_config.json").write_text(json.dumps(settings))
    else:
        config = folder / "config.json"
        settings.pop("pad_token_id", None)  # which would be another row of the table
        config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    model = type(model).from_pretrained(folder, dtype=torch.float32).eval()
    own = model.generation_config.pad_token_id
    return Subject(kind, model, vocab, vocab, 7 if own is None else own, settings, {})


def check_refusal(draw: Draw, programs: Programs, model) -> Failure | None:
    """A file with a tensor too few, too many or of another shape: an error that names it, and no output."""
    own = programs.within("wrong")
    folder = own.folder / "model"
    folder.mkdir()
    (folder / "config.json").write_text(config_in(programs))
    tensors = {name: value.clone() for name, value in model.state_dict().items() if not name.startswith("lm_head")}
    tensors |= {"lm_head.weight": model.lm_head.weight.detach().clone()}
    tensors |= {"lm_head.bias": model.lm_head.bias.detach().clone()} if model.lm_head.bias is not None else {}
    name = draw.choice(sorted(name for name in tensors if "embed" not in name and not name.endswith(("wte.weight", "lm_head.weight"))))
    how = draw.choice(["missing", "more", "other"])
    if how == "more":
        name = draw.choice([f"{name}_extra", f"{name.rsplit('.', 1)[0]}.gate"])
        tensors[name] = torch.zeros(3)
    elif how == "missing":
        del tensors[name]
    else:
        tensors[name] = torch.cat([tensors[name], tensors[name][:1]])
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / "model.safetensors")
    got = generation.searched(own, {"input_ids": torch.ones(1, 2, dtype=torch.long)}, {}, ["--logits"])
    leaf = ".".join(name.split(".")[-2:]) if how != "other" else name.rsplit(".", 2)[-2]
    if not isinstance(got, str):
        why = "was not refused"
    elif leaf not in got or "posenc generate: " not in got:
        why = f"no {leaf} in: {got}"
    else:
        why = "wrote an output" if (own.folder / "out.safetensors").exists() else ""
    return Failure(f"{model.config.model_type} {how} {name} {config_in(programs)}", why) if why else None


def check_setting(draw: Draw, programs: Programs) -> Failure | None:
    """A setting of generate() with a value of any type: it is taken, or it is an error of one line that names it."""
    name = draw.choice(sorted(set(transformers.GenerationConfig().to_dict()) - {"transformers_version"}))
    value = draw.choice([value for value in VALUES if name not in ("max_length", "max_new_tokens") or value != 2**31])
    length = [] if name in ("max_length", "max_new_tokens") else ["--set", "max_new_tokens=2"]
    file, out = programs.folder / "in.safetensors", programs.folder / "out.safetensors"
    save_file({"input_ids": torch.tensor([[1, 2], [3, 4]])}, file)
    out.unlink(missing_ok=True)
    plain = ["--plain"] if draw.coin(0.2) else []
    done = programs.posenc("generate", programs.folder / "model", "--in", file, "--out", out, "--set", f"{name}={json.dumps(value)}", *length, *plain)
    said = done.stderr.splitlines()
    is_refused = done.returncode == 1 and len(said) == 1 and name in said[0] and not out.exists()
    if is_refused or (done.returncode == 0 and out.exists()):
        return None
    return Failure(f"--set {name}={json.dumps(value)} {plain} {config_in(programs)}", f"{done.returncode}: {done.stderr}")


def one(draw: Draw, programs: Programs, kind: str) -> tuple[int, list[Failure]]:
    folder = programs.folder / "model"
    model = model_of(draw, folder, kind)
    failures = check_logits(draw, programs, kind, model, configs.LEAST_POSITIONS - 4)
    settings = [check_setting(draw, programs) for _ in range(SETTINGS)]
    frozen = check_frozen(draw, programs, kind, model)
    subject = with_settings(draw, folder, kind, model, 8)
    found = [*settings, frozen] + [check_search(draw, programs, subject, number == SEARCHES, 8) for number in range(SEARCHES + 1)]
    found.append(check_refusal(draw, programs, model))
    return 3 + len(found), failures + [failure for failure in found if failure]


COVERED: list[str] = []  # what loaded_kinds() has found


def loaded_kinds(programs: Programs) -> list[str]:
    """Those of the types here that posenc loads; all that it loads have to be here."""
    if COVERED:
        return COVERED
    listed = {entry["model_type"] for entry in json.loads(programs.posenc("presets", "--decoders", "--json").stdout)}
    if unknown := listed - set(configs.KINDS):
        raise ValueError(f"types without settings in decoder_configs.py: {sorted(unknown)}")
    if missing := set(configs.KINDS) - listed:
        print(f"decoders: not covered, as posenc does not load them: {', '.join(sorted(missing))}", flush=True)
    COVERED.extend(kind for kind in configs.KINDS if kind in listed)
    return COVERED


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    count, failures = 0, []
    with torch.no_grad():
        kinds = loaded_kinds(programs)
        for kind in draw.sample(kinds, min(MODELS, len(kinds))):
            cases, wrong = one(draw, programs.within(kind), kind)
            count += cases
            failures += wrong
    return count, failures

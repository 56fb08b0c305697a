"""Whisper in folders with random settings and weights, written by transformers, as older releases did and as fine-tunes are.

Logits and the encoder's output of the module, frozen, in 8 bits, step by step and of `posenc transcribe --logits`; gradients; and the folder
that save_pretrained() writes, opened by transformers.
"""

import json
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from harness import Case, Draw, Failure, Programs
from saved import tensors_in
from seq2seq import ROUGH, ROUGH_IF_NARROW, randomise, save, their_gradient, wrong
from written import written

FOLDERS, CASES = 4, 2
DECODER, HEAD, POSITIONS = "model.decoder.embed_tokens.weight", "proj_out.weight", "model.encoder.embed_positions.weight"
INPUTS = ("preprocessor_config.json", "tokenizer.json", "normalizer.json", "added_tokens.json", "vocab.json", "merges.txt")
GENERATION = {
    "is_multilingual": True, "lang_to_id": {"<|en|>": 5, "<|de|>": 6}, "task_to_id": {"transcribe": 7, "translate": 8},
    "no_timestamps_token_id": 9, "prev_sot_token_id": 10, "alignment_heads": [[0, 0]], "max_initial_timestamp_index": 50,
    "return_timestamps": False, "forced_decoder_ids": [[1, None], [2, 7]], "median_filter_width": 7, "max_length": 12,
    "suppress_tokens": [1, 2], "begin_suppress_tokens": [3, 0],
}  # fmt: skip


def config_of(draw: Draw):
    heads = [draw.choice([1, 2, 3, 4]) for _ in range(2)]
    pad = draw.choice([None, 0, 3])
    settings = {
        "vocab_size": draw.randint(12, 60), "num_mel_bins": draw.randint(1, 12), "d_model": 12 * draw.randint(1, 4),
        "encoder_layers": draw.randint(1, 3), "decoder_layers": draw.randint(1, 3), "encoder_attention_heads": heads[0],
        "decoder_attention_heads": heads[1], "encoder_ffn_dim": draw.randint(1, 60), "decoder_ffn_dim": draw.randint(1, 60),
        "activation_function": draw.choice(["gelu", "gelu", "relu", "silu", "gelu_new"]), "scale_embedding": draw.coin(0.3),
        "max_source_positions": draw.choice([1, 2, 7, 50, 100]), "max_target_positions": draw.randint(4, 24), "pad_token_id": pad,
        "bos_token_id": 4, "eos_token_id": draw.choice([4, [4, 5], None]), "decoder_start_token_id": 5, "init_std": draw.choice([0.1, 0.3]),
        "dropout": draw.choice([0.0, 0.1]), "attention_dropout": draw.choice([0.0, 0.1]), "activation_dropout": 0.0,
        "tie_word_embeddings": draw.coin(0.7), "begin_suppress_tokens": draw.choice([None, [3, 4]]),
        "median_filter_width": draw.choice([3, 7]), "apply_spec_augment": draw.coin(0.1), "use_weighted_layer_sum": draw.coin(0.1),
    }  # fmt: skip
    if heads == [1, 1]:
        settings["d_model"] = 2 * draw.randint(2, 24)
    return transformers.WhisperConfig(**settings)


def file_tensors(draw: Draw, model, tied: bool) -> dict[str, Tensor]:
    """The tensors under the names of some release, with the tables that it saves."""
    tensors = {key: value.clone() for key, value in model.state_dict().items()}
    if tied:
        kind = draw.choice(["absent", "equal", "own", "decoder absent"])
        if kind == "absent":
            del tensors[HEAD]
        elif kind == "own":
            tensors[HEAD] = tensors[HEAD] + 0.3 * draw.normal(*tensors[HEAD].shape)
        elif kind == "decoder absent":
            del tensors[DECODER]
    else:
        tensors[HEAD] = 0.3 * draw.normal(*tensors[HEAD].shape)
    kind = draw.choice(["computed", "rounded", "other", "absent"])
    if kind == "rounded":
        tensors[POSITIONS] = tensors[POSITIONS].half().float()
    elif kind == "other":
        tensors[POSITIONS] = draw.normal(*tensors[POSITIONS].shape)
    elif kind == "absent":
        del tensors[POSITIONS]
    if HEAD not in tensors and draw.coin(0.4):
        tensors = {name.removeprefix("model."): value for name, value in tensors.items()}
    return tensors


def folder_of(draw: Draw, folder: Path):
    """A folder, and the model that transformers loads from it."""
    config = config_of(draw)
    model = transformers.WhisperForConditionalGeneration(config).eval()
    randomise(draw, model)
    folder.mkdir(parents=True)
    if draw.coin(0.7):
        (folder / "generation_config.json").write_text(json.dumps(GENERATION | {"decoder_start_token_id": 5, "eos_token_id": 4}))
    for name in draw.sample(INPUTS, draw.randint(0, 3)):
        (folder / name).write_bytes(draw.randbytes(20))
    config.architectures = ["WhisperForConditionalGeneration"]
    settings = json.loads(config.to_json_string(use_diff=False))
    tensors = file_tensors(draw, model, config.tie_word_embeddings)
    if draw.coin(0.2):  # the first layers
        settings |= {key: draw.randint(1, settings[key]) for key in ("encoder_layers", "decoder_layers")}
    if draw.coin(0.15):
        settings["num_hidden_layers"] = draw.randint(1, settings["encoder_layers"])  # which wins
    (folder / "config.json").write_text(json.dumps(written(draw, type(config), settings)))
    save(draw, folder, tensors)
    return loaded(folder)


def loaded(folder: Path):
    """With the encoder's positions as the class has them, frozen: from_pretrained() of 5.23 makes parameters that are trained."""
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    model.model.encoder.embed_positions.requires_grad_(False)
    return model


def outputs_of(model, given: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    out = model(input_features=given["src"].to(model.dtype), decoder_input_ids=given["tgt"], use_cache=False)
    return out.logits, out.encoder_last_hidden_state


def case_of(draw: Draw, folder: Path, config) -> Case:
    batch, length = draw.randint(1, 3), draw.randint(1, config.max_target_positions)
    tensors = {"src": draw.normal(batch, config.num_mel_bins, 2 * config.max_source_positions),
               "tgt": draw.integers(config.vocab_size, batch, length),
               "cotangent": draw.normal(batch, length, config.vocab_size)}  # fmt: skip
    return Case({"op": "whisper_logits", "folder": str(folder), "out": f"{folder}-{draw.getrandbits(40)}"}, tensors, {})


def gradient_pairs(model, gradients: dict[str, Tensor]) -> list[tuple[str, Tensor, Tensor]]:
    """Ours and theirs; the matrices of the vocabulary may be one on either side where their values are equal."""
    tables = {"tgt_embedding.token_embedding.weight": model.model.decoder.embed_tokens.weight, "final_layer.weight": model.proj_out.weight}
    unique = {id(value): value for value in tables.values()}
    pairs = []
    if len(unique) == len([name for name in tables if name in gradients]):
        pairs += [(name, gradients[name], tables[name].grad.clone()) for name in tables if name in gradients]
    else:
        pairs.append(("the vocabulary", sum(gradients[name] for name in tables if name in gradients), sum(one.grad for one in unique.values())))
    for name, value in gradients.items():
        if name not in tables:
            pairs.append((name, value, their_gradient(model, name).clone()))
    return pairs


def commanded(programs: Programs, folder: Path, given: dict[str, Tensor], *options: str) -> dict[str, Tensor] | str:
    """What `posenc transcribe --logits` writes."""
    file, out = folder.parent / "in.safetensors", folder.parent / "out.safetensors"
    save_file({"input_features": given["src"].contiguous(), "decoder_input_ids": given["tgt"].contiguous()}, file)
    done = programs.posenc("transcribe", folder, "--logits", "--in", file, "--out", out, *options)
    return done.stderr if done.returncode else load_file(out)


def judge_saved(case: Case, got: dict, exact: Tensor) -> str:
    """Whether transformers opens the saved folder with nothing missing, to the same logits."""
    folder, out, given = Path(case.options["folder"]), Path(case.options["out"]), case.tensors
    config = json.loads((out / "config.json").read_text())
    if config["architectures"] != ["WhisperForConditionalGeneration"] or config["dtype"] != "float32":
        return f"architectures {config['architectures']}, dtype {config.get('dtype')}"
    model, info = transformers.WhisperForConditionalGeneration.from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    if any(info.values()):
        return f"{info}"
    model.save_pretrained(folder / "theirs")
    ours, theirs = set(tensors_in(out)), set(tensors_in(folder / "theirs"))
    if ours != theirs:
        return f"names {sorted(ours - theirs)} that transformers does not save, and lacks {sorted(theirs - ours)}"
    before, after = ({path.name: path.read_bytes() for path in place.iterdir() if path.name in INPUTS} for place in (folder, out))
    if before != after:
        return f"other files of a processor than {sorted(before)}"
    name = "generation_config.json"
    if (folder / name).exists() and (folder / name).read_bytes() != (out / name).read_bytes():
        return f"another {name}"
    with torch.no_grad():
        logits, _ = outputs_of(model.eval(), given)
    return wrong("logits of the saved folder", got["trained"], logits, exact)


def judge(programs: Programs, case: Case, got: dict) -> list[str]:
    given, folder = case.tensors, Path(case.options["folder"])
    model = loaded(folder)
    logits, memory = outputs_of(model, given)
    (logits * given["cotangent"]).sum().backward()
    gradients = {key.removeprefix("grad."): value for key, value in got.items() if key.startswith("grad.")}
    pairs = gradient_pairs(model, gradients)
    wide = model.double()
    wide.zero_grad()
    truth, true_memory = outputs_of(wide, given)
    (truth * given["cotangent"].double()).sum().backward()
    exact, found = [one for _, _, one in gradient_pairs(wide, gradients)], []
    largest = max(other.abs().max().item() for _, _, other in pairs)
    for (name, one, other), true in zip(pairs, exact):
        found.append(wrong(f"gradient of {name}", one, other, true, largest=0.1 * largest))
    own = {key for key, value in model.named_parameters() if value.grad is not None}
    expected = sum(3 if name.endswith("in_proj_weight") else 2 if name.endswith("in_proj_bias") else 1 for name, _, _ in pairs)
    if len(own) != expected:
        found.append(f"gradients of {len(own)} tensors, of which {expected} are compared")
    with torch.no_grad():
        for value in wide.parameters():  # a step, as the driver takes it
            if value.grad is not None:
                value.sub_(0.001 * value.grad)
        stepped, _ = outputs_of(wide, given)
        for name in ("logits", "frozen", "steps", "loaded", "plain"):
            found.append(wrong(name, got[name], logits.detach(), truth.detach()))
        for name in ("memory", "frozen_memory", "loaded_memory", "plain_memory"):
            found.append(wrong(name, got[name], memory.detach(), true_memory.detach()))
        def scores(of):  # whose mean is the negative of the loss that transformers computes
            return of.detach().log_softmax(-1)[:, :-1].gather(2, given["tgt"][:, 1:, None]).squeeze(2)
        for name in ("scores", "frozen_scores") if given["tgt"].shape[1] > 1 else ():
            found.append(wrong(name, got[name], scores(logits), scores(truth)))
        found.append(wrong("half weights", got["bfloat16"], got["bfloat16_plain"]))
        rough = (got["int8"].double() - truth).abs().max() / truth.abs().max()
        found.append("" if rough < (ROUGH if model.config.d_model >= 16 else ROUGH_IF_NARROW) else f"int8: off by {rough:.3g} of the largest")
    found.append(judge_saved(case, got, stepped))
    return [one for one in found if one]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    cases = []
    for number in range(FOLDERS):
        folder = programs.folder / f"whisper-{number}" / "model"
        config = folder_of(draw, folder).config
        cases += [case_of(draw, folder, config) for _ in range(CASES)]
    failures = []
    for case, got in zip(cases, programs.compute(cases)):
        folder = Path(case.options["folder"])
        if not isinstance(got, str):
            for name, options in (("loaded", []), ("plain", ["--plain"])):
                out = commanded(programs, folder, case.tensors, *options)
                got = out if isinstance(out, str) else got | {name: out["logits"], f"{name}_memory": out["encoder_last_hidden_state"]}
                if isinstance(got, str):
                    break
        why = [got] if isinstance(got, str) else judge(programs, case, got)
        if why:
            failures.append(Failure(json.dumps(case.options), "; ".join(why[:4])))
    return len(cases), failures

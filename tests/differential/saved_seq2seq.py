"""Encoder-decoders that are loaded, trained for a step and saved by save_pretrained(), and opened by transformers' from_pretrained().

The saved folder has to give transformers the model whose logits and tokens the library has computed, with nothing missing and nothing
unexpected, under the names that transformers itself saves, and the library the same bits. Files of a tokenizer are copied as they are.
"""

import json
from pathlib import Path

import torch
import transformers
from torch import Tensor

import seq2seq
import seq2seq_t5 as t5
from harness import Case, Draw, Failure, Programs
from saved import tensors_in

NEAR = 1e-5  # of the largest logit, and of a sequence's log probability
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "source.spm", "spiece.model", "vocab.json", "special_tokens_map.json")


def case_of(draw: Draw, programs: Programs, kind: str) -> Case:
    folder = programs.folder / f"saved-{kind}"
    model = seq2seq.model_of(draw, folder, kind)
    for name in draw.sample(TOKENIZER, draw.randint(0, 3)):
        (folder / name).write_bytes(draw.randbytes(20))
    if draw.coin(0.2):
        (folder / "generation_config.json").unlink()
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"decoder_start_token_id": model.config.decoder_start_token_id}))
    case, _ = seq2seq.case_of(draw, folder, kind, model)
    case.tensors["targets"] = draw.integers(model.get_output_embeddings().weight.shape[0], *case.tensors["tgt"].shape)
    case.options = {"op": "save_seq2seq", "folder": str(folder), "out": f"{folder}-saved", "trains": draw.coin(), "by_hand": draw.coin(0.4),
                    "max_shard_bytes": draw.choice([2000, 10**9])}  # fmt: skip
    if draw.coin(0.7) or case.options["by_hand"]:
        most = model.config.max_position_embeddings - 1 if kind not in t5.KINDS else 8
        case.options |= {"num_beams": draw.choice([1, 1, 3]), "max_new_tokens": draw.randint(1, most)}
    return case


def log_probability(model, given: dict[str, Tensor], row: int, begin: int, tokens: list[int]) -> float:
    """By teacher forcing; of a pad token it is not that of the search."""
    tgt = torch.tensor([[begin, *tokens[:-1]]])
    logits = seq2seq.logits_of(model, given["src"][row : row + 1], given["mask"][row : row + 1], tgt)[0]
    return logits.log_softmax(-1)[range(len(tokens)), tokens].sum().item() / len(tokens)


def searched(model, case: Case, got: Tensor) -> str:
    """Whether transformers finds the same tokens with the settings of the saved folder, or others that are as probable."""
    given, kind = case.tensors, model.config.model_type
    if "num_beams" not in case.options:
        return ""
    deep = kind in t5.KINDS and model.config.num_decoder_layers > model.config.num_layers  # which fails with a cache in 5.23
    found = model.generate(input_ids=given["src"], attention_mask=given["mask"].long(), **({"use_cache": False} if deep else {}))
    ends = model.generation_config.eos_token_id
    ends = [ends] if isinstance(ends, int) else ends or []
    begin = found[0, 0].item()
    for row, (ours, theirs) in enumerate(zip(got.tolist(), found[:, 1:].tolist())):
        ours = [token for token in ours if token >= 0]
        place = next((i for i, token in enumerate(theirs) if token in ends), len(theirs) - 1)
        theirs = theirs[: place + 1]
        if ours == theirs:
            continue
        ours, theirs = (log_probability(model, given, row, begin, one) for one in (ours, theirs))
        if abs(ours - theirs) > 1e-4:
            return f"tokens {got[row].tolist()} for {found[row].tolist()}: {ours} and {theirs}"
    return ""


def judged(case: Case, got, name: str) -> str:
    if isinstance(got, str):
        return got
    folder, out, given = Path(case.options["folder"]), Path(case.options["out"]), case.tensors
    for pair in ("logits", "tokens"):
        if not torch.equal(got[pair], got[pair + "_again"]):
            return f"{pair} of the folder when it is loaded again are others"
    config = json.loads((out / "config.json").read_text())
    if config["architectures"] != [name] or config["dtype"] != "float32" or "torch_dtype" in config:
        return f"architectures {config['architectures']}, dtype {config.get('dtype')}"
    model, info = getattr(transformers, name).from_pretrained(out, dtype=torch.float32, output_loading_info=True)
    if any(info.values()):
        return f"{info}"
    unread = {key for key in tensors_in(out) if "embed_positions" in key} if model.config.model_type == "marian" else set()
    model.save_pretrained(folder / "theirs")
    ours, theirs = set(tensors_in(out)) - unread, set(tensors_in(folder / "theirs")) - unread
    if ours != theirs:
        return f"names {sorted(ours - theirs)} that transformers does not save, and lacks {sorted(theirs - ours)}"
    copied = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in TOKENIZER and not case.options["by_hand"]}
    if {path.name: path.read_bytes() for path in out.iterdir() if path.name in TOKENIZER} != copied:
        return f"other files of a tokenizer than {sorted(copied)}"
    before, after = folder / "generation_config.json", out / "generation_config.json"
    if "num_beams" not in case.options and before.exists() and before.read_bytes() != after.read_bytes():
        return "another generation_config.json"
    model.eval()
    logits = seq2seq.logits_of(model, given["src"], given["mask"], given["tgt"])
    off, largest = (got["logits"] - logits).abs().max().item(), logits.abs().max().item()
    if off > NEAR * max(largest, 1):
        wide = seq2seq.logits_of(model.double(), given["src"], given["mask"], given["tgt"])
        rounding = (logits.double() - wide).abs().max().item()
        if (got["logits"].double() - wide).abs().max().item() > NEAR * largest + 8 * rounding:
            return f"logits off by {off} of {largest}"
        model = model.float()
    return searched(model, case, got["tokens"])


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    with torch.no_grad():
        cases = [case_of(draw, programs, kind) for kind in seq2seq.KINDS]
        whys = [judged(case, got, seq2seq.KINDS[kind][1]) for case, got, kind in zip(cases, programs.compute(cases), seq2seq.KINDS)]
    return len(cases), [Failure(json.dumps(case.options), why) for case, why in zip(cases, whys) if why]

"""Sources that are encoded once, of random folders of encoder-decoders and of Whisper, beside transformers, plain and frozen.

The logits after targets of unequal lengths, the cross attention of layers and heads, and searches of Whisper with prefixes of unequal
lengths, suppressed tokens and the rules of timestamps: each row is that of a call of its own. A search that differs is right if
transformers itself finds it with weights that differ by rounding.
"""

import json

import torch
import transformers
from torch import Tensor

import seq2seq
import whisper_logits
from harness import Case, Draw, Failure, Programs

CASES, NUDGES, NOISE = 2, 12, 1e-6
TOLERANCE = 5e-5


def targets_of(draw: Draw, rows: int, vocab: int, most: int) -> list[list[int]]:
    return [[draw.randrange(vocab) for _ in range(draw.randint(1, most))] for _ in range(rows)]


def heads_of(draw: Draw, model) -> list[list[int]]:
    config = model.config
    layers = len(model.get_decoder().layers if hasattr(model.get_decoder(), "layers") else model.get_decoder().block)
    heads = getattr(config, "decoder_attention_heads", None) or config.num_heads
    return [[draw.randrange(layers), draw.randrange(heads)] for _ in range(draw.randint(1, 4))]


def search_of(draw: Draw, rows: int, vocab: int, positions: int) -> dict:
    """Settings of a search; some ids are timestamps."""
    most = draw.randint(1, max(1, positions - 2))
    prefixes = [[5] + [draw.randrange(vocab) for _ in range(draw.randint(0, positions - most - 1))] for _ in range(rows)]
    first = draw.randint(6, vocab - 4)
    rules = {"timestamps": [first, 4, draw.randint(0, 9)]} if draw.coin(0.8) else {}
    return {"ends": [4], "prefixes": prefixes, "beams": draw.choice([1, 1, 2, 3]), "new_tokens": most,
            "suppress": [draw.randrange(5, vocab) for _ in range(draw.randint(0, 3))],
            "begin_suppress": [4] if draw.coin() else []} | rules  # fmt: skip


def case_of(draw: Draw, folder, kind: str, model) -> Case:
    rows, config = draw.randint(1, 4), model.config
    if kind == "whisper":
        vocab, positions = config.vocab_size, config.max_target_positions
        tensors = {"src": draw.normal(rows, config.num_mel_bins, 2 * config.max_source_positions)}
        search = {"search": search_of(draw, rows, vocab, positions)}
    else:
        source = config.src_vocab_size if kind == "fsmt" else config.vocab_size
        vocab, (width, positions) = model.get_output_embeddings().weight.shape[0], seq2seq.lengths_of(draw, config, kind)
        src, mask = draw.integers(source, rows, width), torch.ones(rows, width, dtype=torch.bool)
        src = torch.where(src == config.pad_token_id, (config.pad_token_id + 1) % source, src)
        for row in range(rows):
            count = draw.randint(0, width - 1)
            src[row, width - count :], mask[row, width - count :] = config.pad_token_id, False
        tensors, search = {"src": src, "mask": mask}, {}
    targets = targets_of(draw, rows, vocab, positions)
    return Case({"op": "encoded", "folder": str(folder), "kind": kind, "targets": targets, "heads": heads_of(draw, model)} | search, tensors, {})


def inputs_of(case: Case, row: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """Of one source."""
    src = case.tensors["src"][row : row + 1]
    if src.is_floating_point():
        return {"input_features": src.to(dtype)}
    return {"input_ids": src, "attention_mask": case.tensors["mask"][row : row + 1].long()}


def forced(model, case: Case, row: int) -> tuple[Tensor, Tensor]:
    """The logits after the row's target, and the attention of the chosen heads."""
    target = torch.tensor([case.options["targets"][row]])
    out = model(**inputs_of(case, row, model.dtype), decoder_input_ids=target, use_cache=False, output_attentions=True,
                **({} if case.options["kind"] == "whisper" else {"decoder_attention_mask": torch.ones_like(target)}))  # fmt: skip
    return out.logits[0, -1], torch.stack([out.cross_attentions[layer][0, head] for layer, head in case.options["heads"]])


def found_by(model, case: Case, row: int) -> tuple[list[int], float, float]:
    """The tokens of the row's search, its score, and its mean log probability."""
    search = case.options["search"]
    prefix = torch.tensor([search["prefixes"][row]])
    processors = transformers.LogitsProcessorList()
    if search["begin_suppress"]:
        processors.append(transformers.SuppressTokensAtBeginLogitsProcessor(search["begin_suppress"], prefix.shape[1]))
    processors.append(transformers.SuppressTokensLogitsProcessor(search["suppress"]))
    if "timestamps" in search:
        rules = transformers.GenerationConfig(eos_token_id=search["timestamps"][1])
        rules.no_timestamps_token_id, rules.max_initial_timestamp_index = search["timestamps"][0], search["timestamps"][2]
        processors.append(transformers.WhisperTimeStampLogitsProcessor(rules, begin_index=prefix.shape[1]))
    config = transformers.GenerationConfig(decoder_start_token_id=5, eos_token_id=search["ends"], pad_token_id=0, num_beams=search["beams"],
                                           max_new_tokens=search["new_tokens"], return_dict_in_generate=True, output_scores=True)  # fmt: skip
    model.generation_config = transformers.GenerationConfig()  # whose settings it would add to these
    out = transformers.GenerationMixin.generate(model, inputs=case.tensors["src"][row : row + 1].to(model.dtype), generation_config=config,
                                                decoder_input_ids=prefix, logits_processor=processors)  # fmt: skip
    tokens = out.sequences[0, prefix.shape[1] :].tolist()
    tokens = tokens[: next((i + 1 for i, token in enumerate(tokens) if token in search["ends"]), len(tokens))]
    rows = out.beam_indices[0].tolist() if "beam_indices" in out else [0] * len(out.scores)
    scores = [step[index] for step, index in zip(out.scores, rows)][: len(tokens)]
    mean = model._retrieve_avg_logprobs(scores, torch.tensor(tokens), 0.0)
    return tokens, float(out.sequences_scores[0]) if search["beams"] > 1 else float("nan"), float(mean)


def differs(got: dict, name: str, expected: tuple[list[int], float, float]) -> str:
    tokens, score, mean = expected
    ours, (own_score, own_mean) = got[f"{name}.tokens"].tolist(), got[f"{name}.scores"].tolist()
    near = all(b != b or a == b or abs(a - b) <= TOLERANCE * max(1.0, abs(b)) for a, b in ((own_score, score), (own_mean, mean)))
    return "" if ours == tokens and near else f"{name}: {ours} {own_score} {own_mean}, transformers {tokens} {score} {mean}"


def judge_search(load, case: Case, got: dict) -> list[str]:
    found = []
    for row in range(len(case.options["targets"])):
        expected = found_by(load(), case, row)
        for name in (f"{model}.{which}.{row}" for model in ("plain", "frozen") for which in ("found", "again")):
            why = differs(got, name, expected)
            for nudge in range(NUDGES if why else 0):  # which of two is found may be a matter of rounding
                other = load()
                for value in other.parameters():
                    value.mul_(1 + NOISE * torch.randn(value.shape))
                why = why and differs(got, name, found_by(other, case, row)) and why
            found.append(why)
    return found


def judge(load, case: Case, got: dict) -> list[str]:
    model, found = load(), []
    wide = load().double()
    for row in range(len(case.options["targets"])):
        (logits, weights), (true_logits, true_weights) = forced(model, case, row), forced(wide, case, row)
        for name in ("plain", "frozen"):
            found.append(seq2seq.wrong(f"{name} logits {row}", got[f"{name}.next"][row], logits, true_logits))
            found.append(seq2seq.wrong(f"{name} attention {row}", got[f"{name}.attention.{row}"], weights, true_weights))
    if "search" in case.options:
        found += judge_search(load, case, got)
    return [one for one in found if one]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    cases, loads = [], []
    for kind in ["whisper"] * 5 + [kind for kind in seq2seq.KINDS if draw.coin(0.4)]:
        folder = programs.folder / f"{kind}-{len(cases)}" / "model"
        make = whisper_logits.folder_of if kind == "whisper" else lambda draw, folder, kind=kind: seq2seq.model_of(draw, folder, kind)
        model = make(draw, folder)
        name = "WhisperForConditionalGeneration" if kind == "whisper" else seq2seq.KINDS[kind][1]

        def load(name=name, folder=folder):
            return getattr(transformers, name).from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()

        for _ in range(CASES):
            cases.append(case_of(draw, folder, kind, model))
            loads.append(load)
    failures = []
    with torch.no_grad():
        for case, load, got in zip(cases, loads, programs.compute(cases)):
            why = [got] if isinstance(got, str) else judge(load, case, got)
            if why:
                failures.append(Failure(json.dumps(case.options), "; ".join(why[:4])))
    return len(cases), failures

"""Searches with a table of logits in place of a model, and single steps of them, beside generate() of transformers.

What the models of `generation` seldom meet: rows in which several ends are probable, ties, logits that are no numbers, more
tokens than a filter looks at, the rules of timestamps, and each setting beside each of the others. Tokens, scores of beams and
of next tokens, and mean log probabilities as Whisper compares them with its threshold.
"""

import json
from dataclasses import dataclass

import torch
import transformers
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from harness import Case, Draw, Failure, Programs

SEARCHES, STEPS = 240, 480
NOISE, NUDGES = 1e-6, 12
TOLERANCE = 2e-5
LOST = -1e8  # sums of beams that never lived
START = 0
# Settings that change each other's meaning, which two random ones seldom do in a step where both act.
TOGETHER = [
    ("exponential_decay_length_penalty", "min_new_tokens"), ("exponential_decay_length_penalty", "min_new_tokens", "remove_invalid_values"),
    ("begin_suppress_tokens", "forced_bos_token_id"), ("begin_suppress_tokens", "forced_eos_token_id"), ("begin_suppress_tokens", "remove_invalid_values"),
    ("suppress_tokens", "forced_eos_token_id"), ("suppress_tokens", "remove_invalid_values"), ("suppress_tokens",), ("min_length", "min_new_tokens"),
]  # fmt: skip


class Sources(torch.nn.Module):
    """An encoder that says which source it encodes."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_) -> BaseModelOutput:
        rows, length = input_ids.shape
        return BaseModelOutput(last_hidden_state=torch.arange(rows).float().view(-1, 1, 1).expand(rows, length, 1).contiguous())


class Table(transformers.BartForConditionalGeneration):
    """The next logits depend on the source, the last token and the number of tokens."""

    def __init__(self):
        sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 1, "decoder_ffn_dim": 1, "encoder_attention_heads": 1, "decoder_attention_heads": 1}
        super().__init__(transformers.BartConfig(vocab_size=8, d_model=4, max_position_embeddings=4, **sizes))
        self.sources = Sources()
        self.generation_config = transformers.GenerationConfig()
        self.eval()

    def using(self, tensors: dict[str, Tensor], positions: int) -> "Table":
        self.tensors, self.config.max_position_embeddings = tensors, positions
        return self

    def get_encoder(self, *_):
        return self.sources

    def forward(self, input_ids=None, attention_mask=None, decoder_input_ids=None, encoder_outputs=None, **_) -> Seq2SeqLMOutput:
        source = encoder_outputs.last_hidden_state[:, 0, 0].long()
        shift = self.tensors["shifts"][source, decoder_input_ids.shape[1] - 1]
        return Seq2SeqLMOutput(logits=(self.tensors["table"][source, decoder_input_ids[:, -1]] + shift)[:, None])


class OfTheLiving(Table):
    """The same search, in which only what lived can end. In that of transformers what follows an end goes on with a score of -1e9 where
    too few tokens are possible, ends again, and makes early_stopping true before there are as many hypotheses as beams.
    """

    def _update_finished_beams(self, *, topk_log_probs: Tensor, next_token_hits_stopping_criteria: Tensor, **rest):
        ended = next_token_hits_stopping_criteria & (topk_log_probs > LOST)
        return super()._update_finished_beams(topk_log_probs=topk_log_probs, next_token_hits_stopping_criteria=ended, **rest)


@dataclass
class Sizes:
    vocab: int
    sources: int
    columns: int  # of the prefix, with the start
    ends: list[int]


def ids(draw: Draw, vocab: int, least: int, most: int) -> list[int]:
    return [draw.randrange(vocab) for _ in range(draw.randint(least, most))]


def processors(draw: Draw, sizes: Sizes) -> dict:
    """A value of each setting that changes scores."""
    vocab, ends = sizes.vocab, sizes.ends
    return {
        "sequence_bias": [[ids(draw, vocab, 1, 3), draw.choice([-4.0, 2.5, 5.0])] for _ in range(4 * vocab)],
        "encoder_repetition_penalty": draw.choice([0.6, 1.6]),
        "repetition_penalty": draw.choice([0.6, 1.6]),
        "no_repeat_ngram_size": draw.randint(1, 3),
        "encoder_no_repeat_ngram_size": draw.randint(1, 3),
        "bad_words_ids": [ids(draw, vocab, 1, 1), [draw.choice(ends or [1])], *(ids(draw, vocab, 2, 3) for _ in range(2 * vocab))],
        "min_length": draw.randint(1, 7),
        "min_new_tokens": draw.choice([0, 0, 1, 3, 5]),
        "forced_bos_token_id": draw.choice([draw.randrange(vocab), *ends]),
        "forced_eos_token_id": draw.choice([*ends, draw.randrange(vocab), draw.sample(range(vocab), 3)]),
        "remove_invalid_values": draw.coin(0.9),
        "exponential_decay_length_penalty": [draw.choice([0, 0, 0, 1, 3]), draw.choice([-0.5, 0.0, 0.5, 1.3, 1.3, 1.9])],
        "suppress_tokens": [*ids(draw, vocab, 1, max(1, vocab // 4)), vocab, vocab + 5],
        "begin_suppress_tokens": [*ids(draw, vocab, 1, max(1, vocab // 2)), vocab],
        "renormalize_logits": draw.coin(0.8),
    }


def filters(draw: Draw, vocab: int) -> dict:
    """The same of sampling."""
    return {
        "temperature": draw.choice([0.3, 0.7, 1.8, 3.0]), "top_h": draw.choice([0.1, 0.5, 0.9, 0.99]), "top_k": draw.choice([1, 2, 7, vocab, vocab + 9]),
        "top_p": draw.choice([0.0, 0.25, 0.7, 0.95, 1.0, 1.5]), "min_p": draw.choice([0.0, 0.05, 0.4, 1.0]), "typical_p": draw.choice([0.05, 0.2, 0.6, 0.95, 1.2]),
        "epsilon_cutoff": draw.choice([-0.5, 0.01, 0.1, 0.9, 1.5]), "eta_cutoff": draw.choice([0.01, 0.1, 0.6, 1.0]),
    }  # fmt: skip


def some_of(draw: Draw, all_of_them: dict, number: int, probability: float) -> dict:
    """The case's own setting, another one, and now and then more."""
    names = list(all_of_them)
    own = (names[number % len(names)], draw.choice(names))
    return {name: value for name, value in all_of_them.items() if name in own or draw.coin(probability)}


def chosen_processors(draw: Draw, sizes: Sizes, number: int) -> dict:
    found = processors(draw, sizes)
    own = draw.choice(TOGETHER) if draw.coin(0.4) else ()
    found = {name: found[name] for name in own} if own else some_of(draw, found, number, 0.05)
    if not sizes.ends:
        found.pop("exponential_decay_length_penalty", None)
    return found


def lengths(draw: Draw, sizes: Sizes) -> dict:
    most = draw.randint(1, 9)
    return draw.choice([{"max_new_tokens": most}, {"max_new_tokens": most}, {"max_length": sizes.columns + most},
                        {"max_length": sizes.columns + 1, "max_new_tokens": most}, {}])  # fmt: skip


def beams(draw: Draw, number: int) -> dict:
    """Each way to stop with each kind of exponent."""
    stops, exponents = [False, "never", True, "never", 1], [1.0, 0.0, 2.0, 0.4, -1.0]
    width = draw.choice([2, 2, 3, 4, 5])
    return {"num_beams": width, "early_stopping": stops[number % 5], "length_penalty": exponents[number // 5 % 5],
            "num_return_sequences": draw.choice([1, width])}  # fmt: skip


def spoilt(draw: Draw, values: Tensor, settings: dict, may_be_nan: bool = True) -> Tensor:
    """With tokens that are impossible, and values that are no numbers where the settings permit them."""
    if draw.coin(0.2):
        values = values.masked_fill(draw.bits(0.1, *values.shape), -torch.inf)
    if settings.get("remove_invalid_values") and may_be_nan and draw.coin(0.7):
        values = values.masked_fill(draw.bits(0.03, *values.shape), torch.nan if settings.get("do_sample") else draw.choice([torch.inf, torch.nan]))
    return values


def sizes_of(draw: Draw, vocab: int) -> Sizes:
    return Sizes(vocab, draw.randint(1, 3), draw.choice([1, 1, 2, 3]), sorted({draw.randrange(1, vocab) for _ in range(draw.choice([0, 1, 1, 2, 3, 4]))}))


def common(draw: Draw, sizes: Sizes) -> tuple[dict, dict[str, Tensor]]:
    """The tokens that begin and end, the source and the prefix."""
    ends = sizes.ends if len(sizes.ends) != 1 or draw.coin() else sizes.ends[0]
    settings = {"decoder_start_token_id": START, "pad_token_id": sizes.vocab - 1} | ({"eos_token_id": ends} if sizes.ends else {})
    prefix = draw.integers(sizes.vocab, sizes.sources, sizes.columns)
    prefix[:, 0] = START
    return settings, {"src": draw.integers(sizes.vocab, sizes.sources, draw.randint(1, 6)), "prefix": prefix}


def timestamps(draw: Draw, sizes: Sizes) -> dict:
    """Rules under which some ids are text, some timestamps, and some neither, of which the end is one, for a part of the cases."""
    if draw.coin(0.6):
        return {}
    first = draw.randint(1, sizes.vocab - 2)
    rules = {"no_timestamps_id": first, "eos_id": max(1, first - draw.randint(0, 2))}
    return {"timestamps": rules | ({"most": draw.randint(0, sizes.vocab)} if draw.coin() else {})}


def rules_of(case: Case) -> transformers.LogitsProcessorList:
    """The processor of the same rules."""
    if "timestamps" not in case.options:
        return transformers.LogitsProcessorList()
    rules = case.options["timestamps"]
    config = transformers.GenerationConfig(eos_token_id=rules["eos_id"])
    config.no_timestamps_token_id, config.max_initial_timestamp_index = rules["no_timestamps_id"], rules.get("most")
    return transformers.LogitsProcessorList([transformers.WhisperTimeStampLogitsProcessor(config, begin_index=case.tensors["prefix"].shape[1])])


def search_case(draw: Draw, number: int) -> Case:
    sizes = sizes_of(draw, draw.randint(5, 14))
    settings, tensors = common(draw, sizes)
    settings |= lengths(draw, sizes) | chosen_processors(draw, sizes, number)
    rules = timestamps(draw, sizes)
    if number % 3 == 0 and draw.coin(0.3) and not isinstance(settings.get("forced_eos_token_id"), list):  # as greedy search
        settings |= {"do_sample": True, "top_k": 1, "temperature": draw.choice([0.2, 1.0, 3.0])}
    if number % 3:
        settings |= beams(draw, number // 3)
        if isinstance(settings.get("forced_eos_token_id"), list):  # all with score 0
            settings["forced_eos_token_id"] = settings["forced_eos_token_id"][0]
    positions = draw.randint(sizes.columns + 9, 30)
    table = draw.normal(sizes.sources, sizes.vocab, sizes.vocab) * draw.choice([0.5, 1.5])
    shifts = draw.normal(sizes.sources, positions, sizes.vocab) * draw.choice([0.5, 1.5])
    for end in sizes.ends:  # now and then probable, so that hypotheses of several lengths compete
        shifts[:, :, end] += draw.choice([-1.0, 0.0, 1.0])
    # A NaN makes all log probabilities of its row 0, and which of equals is found is not defined.
    tensors |= {"table": spoilt(draw, table, settings, may_be_nan="num_beams" not in settings), "shifts": shifts}
    return Case({"op": "table_search", "settings": settings, "positions": positions} | rules, tensors, {})


def step_case(draw: Draw, number: int) -> Case:
    sizes = sizes_of(draw, draw.choice([6, 8, 12, 40, 150, 600]))
    settings, tensors = common(draw, sizes)
    samples = number % 3 == 0
    chosen = chosen_processors(draw, sizes, number // 3)
    width, most = 1, draw.randint(1, 6)
    settings |= {"max_new_tokens": most}
    if samples:
        few = [name for name in chosen if draw.coin(0.3)]
        settings |= {"do_sample": True, "top_k": 0} | {name: chosen[name] for name in few} | some_of(draw, filters(draw, sizes.vocab), number // 3, 0.15)
    else:
        width = draw.choice([1, 2])
        settings |= {"num_beams": width} | chosen
    rows = sizes.sources * width
    written = draw.choice([0, min(1, most - 1), most - 1, draw.randint(0, most - 1)])
    columns = torch.cat([tensors["prefix"].repeat_interleave(width, 0), draw.integers(sizes.vocab, rows, written)], 1)
    logits = draw.normal(rows, sizes.vocab) * draw.choice([0.3, 1.5, 4.0])
    if draw.coin(0.3) and "top_h" not in settings:  # whose limit is then a matter of rounding
        logits = (2 * logits).round() / draw.choice([2, 1e9])  # ties; nearly all of them
    tensors |= {"columns": columns, "logits": spoilt(draw, logits, settings)}
    return Case({"op": "next_scores", "settings": settings, "positions": 60} | timestamps(draw, sizes), tensors, {})


def expect_search(model: Table, case: Case, noise: float = 0.0) -> bool:
    """Sets what transformers finds in a table with this much noise; false if it refuses the settings, or a row has no token left."""
    settings, tensors = dict(case.options["settings"]), case.tensors
    tables = {name: tensors[name] * (1 + noise * torch.randn(tensors[name].shape)) for name in ("table", "shifts")}
    try:
        out = model.using(tables, case.options["positions"]).generate(
            input_ids=tensors["src"], attention_mask=torch.ones_like(tensors["src"]), decoder_input_ids=tensors["prefix"], use_cache=False,
            return_dict_in_generate=True, output_scores=True, logits_processor=rules_of(case), **settings)  # fmt: skip
    except (ValueError, RuntimeError, IndexError):
        return False
    scores = getattr(out, "sequences_scores", torch.zeros(len(out.sequences)))
    sequences = out.sequences[:, tensors["prefix"].shape[1] :]
    case.expected = {"sequences": sequences, "scores": scores, "largest": max(step.max() for step in out.scores), "means": means(out, sequences, settings)}
    return not any(bool(step.isneginf().all(1).any() or step.isnan().any()) for step in out.scores)


def means(out, sequences: Tensor, settings: dict) -> Tensor:
    """The mean log probability of each row, as WhisperGenerationMixin computes it; NaN where scores are too large for it."""
    ends = settings.get("eos_token_id", [])
    found = []
    for row, tokens in enumerate(rows_in(sequences, [ends] if isinstance(ends, int) else ends)):
        rows = out.beam_indices[row].tolist() if "beam_indices" in out else [row] * len(out.scores)
        scores = [step[index] for step, index in zip(out.scores, rows)][: len(tokens)]
        is_large = any(bool((step[step.isfinite()].abs() > -LOST).any() | step.isnan().any() | (step == torch.inf).any()) for step in scores)
        if is_large or not scores:
            found.append(torch.nan)
            continue
        mean = transformers.WhisperForConditionalGeneration._retrieve_avg_logprobs(scores, torch.tensor(tokens), settings.get("temperature", 0.0))
        found.append(float(mean))
    return torch.tensor(found)


def rows_in(sequences: Tensor, ends: list[int]) -> list[list[int]]:
    """The tokens up to the first end, without what fills a row."""
    rows = []
    for row in sequences.tolist():
        first = next((i for i, token in enumerate(row) if token in ends or token < 0), len(row))
        rows.append(row[: first + 1] if first < len(row) and row[first] >= 0 else row[:first])
    return rows


def far(got: Tensor, expected: Tensor) -> Tensor:
    """Which values differ; infinite ones must be equal."""
    near = (got.double() - expected.double()).abs() <= TOLERANCE * expected.double().abs().clamp_min(1)
    return ~((near & got.isfinite() & expected.isfinite()) | (got == expected) | (got.isnan() & expected.isnan()))


def search_differs(case: Case, got: dict[str, Tensor] | str) -> str:
    if isinstance(got, str):
        return got
    settings, scores = case.options["settings"], case.expected["scores"]
    ends = settings.get("eos_token_id", [])
    ours, theirs = (rows_in(found["sequences"], [ends] if isinstance(ends, int) else ends) for found in (got, case.expected))
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, transformers {len(theirs)}"
    has_scores = settings.get("num_beams", 1) > 1
    most = case.options["positions"]  # by which a penalty may divide
    lost = LOST / most ** max(settings.get("length_penalty", 1.0), 0.0)
    for row, score in enumerate(scores.tolist()):
        if score < lost:
            continue
        is_far = has_scores and bool(far(got["scores"][row], scores[row]))
        differs = ours[row] != theirs[row] and abs(score) != torch.inf  # infinite scores tie
        mean = case.expected["means"][row]
        if not (differs or is_far) and not mean.isnan() and bool(far(got["means"][row], mean)):
            return f"row {row}: mean log probability {got['means'][row]}, transformers {mean}"
        if differs or is_far:
            return f"row {row}: {ours[row]} {got['scores'][row]}, transformers {theirs[row]} {score}"
    return ""


def expect_step(model: Table, case: Case) -> bool:
    """Sets the scores that transformers' processors leave; false if it refuses the settings, or a row has no token left."""
    settings, tensors = case.options["settings"], case.tensors
    columns = tensors["prefix"].shape[1]
    try:
        config, _ = model._prepare_generation_config(None, **settings)
        config.validate()
        model._prepare_special_tokens(config, True, device=torch.device("cpu"), batch_size=len(tensors["src"]))
        config = model._prepare_generated_length(config, True, True, "input_ids", input_ids_length=columns, inputs_tensor=tensors["src"])
        processors = model._get_logits_processor(config, input_ids_seq_length=columns, encoder_input_ids=tensors["src"], device="cpu", model_kwargs={}, logits_processor=rules_of(case))  # fmt: skip
        logits = tensors["logits"]
        scores = processors(tensors["columns"], logits.log_softmax(1) if settings.get("num_beams", 1) > 1 else logits.clone())
    except (ValueError, RuntimeError, IndexError):
        return False
    if bool(scores.isneginf().all(1).any()):
        return False
    case.expected = {"scores": scores.softmax(1) if settings.get("do_sample") else scores}
    return True


def step_differs(case: Case, got: dict[str, Tensor] | str) -> str:
    if isinstance(got, str):
        return got
    wrong = far(got["scores"], case.expected["scores"]).nonzero()
    if not len(wrong):
        return ""
    row, token = wrong[0].tolist()
    return f"{len(wrong)} scores, of row {row} and token {token}: {got['scores'][row, token]}, transformers {case.expected['scores'][row, token]}"


def cases_of(draw: Draw, model: Table) -> tuple[list[Case], list[Case]]:
    """Searches and steps; those that transformers refuses are drawn again."""
    found: tuple[list[Case], list[Case]] = ([], [])
    for cases, count, make, expect in ((found[0], SEARCHES, search_case, expect_search), (found[1], STEPS, step_case, expect_step)):
        for number in range(count):
            for _ in range(20):
                case = make(draw, number)
                if expect(model, case):
                    cases.append(case)
                    break
    return found


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity_error()
    with torch.no_grad():
        model, of_the_living = Table(), OfTheLiving()
        searches, steps = cases_of(draw, model)
        results = programs.compute(searches + steps)
        failures = []
        for number, (case, got) in enumerate(zip(searches + steps, results)):
            is_search = number < len(searches)
            why = search_differs(case, got) if is_search else step_differs(case, got)
            # Of larger scores the beam search of transformers does not know which have ended (generation.py).
            if why and is_search and case.options["settings"].get("num_beams", 1) > 1 and case.expected["largest"] > -LOST:
                why = ""
            if why and is_search and case.options["settings"].get("early_stopping") is True:
                expect_search(of_the_living, case)
                why = search_differs(case, got)
            # Which of two is found may be a matter of rounding.
            if why and is_search and any(expect_search(model, case, NOISE) and not search_differs(case, got) for _ in range(NUDGES)):
                why = ""
            if why:
                failures.append(Failure(f"case {number}: {json.dumps(case.options)}", why))
    return len(searches) + len(steps), failures

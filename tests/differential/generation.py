"""`posenc generate` with random settings of transformers' generate(), plain and frozen: tokens, scores, samples, logits.

Each setting of the logits processors, lengths, forced tokens, several ends, prefixes (shared, per row, ragged) and the ways of
beam search to stop, for each model type, from the command line, generation_config.json or config.json; the frequencies of
sampled tokens with each filter; and teacher-forced logits. A result that differs is right if transformers itself finds it with
weights that differ by rounding.
"""

import copy
import json
import math
from dataclasses import dataclass
from pathlib import Path

import seq2seq
import torch
import transformers
from safetensors.torch import load_file, save_file

from harness import Draw, Failure, Programs

SEARCHES, NUDGES = 3, 12  # of each model type
SAMPLES = 3000
TOLERANCE = 2e-5
MOST = 1e8  # of scores in a beam search
LEAST_PROBABLE = 1e-7  # of frequencies that are far from the probabilities by chance


@dataclass
class Subject:
    """A model in a folder, and what of it decides what can be compared."""

    kind: str
    model: transformers.PreTrainedModel
    source: int  # sizes of the vocabularies
    target: int
    pad: int
    settings: dict  # of the folder
    options: dict  # of each generate() of transformers

    @property
    def counts_tokens(self) -> bool:
        """Whether the padding token has no position, and later tokens another one in a search than in a forced decoder."""
        return self.kind in ("fsmt", "m2m_100")


def some_ids(draw: Draw, vocab: int, least: int = 1, most: int = 3) -> list[int]:
    return [draw.randrange(vocab) for _ in range(draw.randint(least, most))]


def settings_of(draw: Draw, vocab: int, pad: int, end: int) -> dict:
    """Random settings; each is drawn seldom enough that a search still finds something."""
    beams = draw.choice([1, 1, 2, 3, 4])
    found: dict = {"num_beams": beams}
    if beams > 1:
        found |= {"early_stopping": draw.choice([True, False, "never", 1]), "length_penalty": draw.choice([0.0, 0.5, 1.0, 2.0, -1.0]),
                  "num_return_sequences": draw.randint(1, beams)}  # fmt: skip
    found |= draw.choice([{"max_new_tokens": draw.randint(1, 12)}, {"max_length": draw.randint(8, 16)}, {"max_length": 30, "max_new_tokens": 4}, {}])
    if draw.coin(0.3):
        found["min_length"] = draw.randint(0, 8)
    if draw.coin(0.2):
        found["min_new_tokens"] = draw.randint(0, 6)
    if draw.coin(0.5):
        found["eos_token_id"] = draw.choice([end, [end, *some_ids(draw, vocab, 1, 4)]])
    for name, values in {"repetition_penalty": [0.7, 1.3, 2.0], "encoder_repetition_penalty": [0.7, 1.5], "no_repeat_ngram_size": [1, 2, 3],
                         "encoder_no_repeat_ngram_size": [1, 2, 3], "remove_invalid_values": [True], "renormalize_logits": [True, False],
                         "forced_bos_token_id": [draw.randrange(vocab)], "forced_eos_token_id": [None, end, some_ids(draw, vocab)]}.items():  # fmt: skip
        if draw.coin(0.2):
            found[name] = draw.choice(values)
    if draw.coin(0.2):
        found["bad_words_ids"] = [[pad], *([[end]] if draw.coin() else []), *(some_ids(draw, vocab) for _ in range(30))]
    if draw.coin(0.2):
        found["sequence_bias"] = [[some_ids(draw, vocab), draw.choice([-4.0, 2.5, 5.0])] for _ in range(30)]
    if draw.coin(0.2):
        found["exponential_decay_length_penalty"] = [draw.randint(0, 4), draw.choice([0.8, 1.2, 1.5])]
    if draw.coin(0.2):
        found["suppress_tokens"] = [*some_ids(draw, vocab, 1, 8), vocab + 5]
    if draw.coin(0.2):
        found["begin_suppress_tokens"] = some_ids(draw, vocab, 1, 20)
    return with_other_numbers(draw, found)


def with_other_numbers(draw: Draw, settings: dict) -> dict:
    """Some of the numbers that transformers takes for values of another kind, and tokens below 0, which are none."""
    changed = dict(settings)
    for name in ("remove_invalid_values", "renormalize_logits", "low_memory"):
        if isinstance(changed.get(name), bool) and draw.coin():
            changed[name] = int(changed[name])
    for name in ("suppress_tokens", "begin_suppress_tokens"):
        if name in changed and draw.coin():
            changed[name] = [*map(float, changed[name]), -1]
        elif draw.coin(0.1):
            changed[name] = [-1]
    if isinstance(changed.get("eos_token_id"), list) and draw.coin(0.3):
        changed["eos_token_id"] = [*changed["eos_token_id"], -1]
    return changed


def rare_settings(draw: Draw, subject: "Subject") -> list[dict]:
    """What random settings seldom decide: an end among the bad words, a forced end before the least length, and a sequence
    that is complete with the first token."""
    start = subject.model.generation_config.decoder_start_token_id
    vocab, beams = min(subject.source, subject.target), draw.choice([1, 2])
    first = subject.model.generation_config.bos_token_id if start is None else start
    biases = [[[first, token], 9.0] for token in draw.sample(range(vocab), vocab // 3)]
    return [{"num_beams": beams, "eos_token_id": 7, "max_new_tokens": 12, "bad_words_ids": [[7]], "sequence_bias": [[[7], 3.0]]},
            {"num_beams": beams, "eos_token_id": 7, "max_new_tokens": 4, "min_new_tokens": 6, "forced_eos_token_id": 7},
            {"num_beams": beams, "max_new_tokens": 2, "sequence_bias": biases}]  # fmt: skip


def sampling_of(draw: Draw, vocab: int) -> dict:
    """Settings of one sampled token, with one or two of the filters and a few processors that move them."""
    filters = {"temperature": draw.choice([0.5, 0.8, 1.7, 3.0]), "top_k": draw.choice([0, 1, 2, 7, vocab + 9]), "top_p": draw.choice([0.0, 0.3, 0.7, 0.95, 1.0, 1.5]),
               "min_p": draw.choice([0.0, 0.02, 0.3, 1.0]), "typical_p": draw.choice([0.2, 0.6, 0.95, 1.0]), "epsilon_cutoff": draw.choice([0.005, 0.05, 0.9]),
               "eta_cutoff": draw.choice([0.005, 0.1]), "top_h": draw.choice([0.2, 0.5, 0.9])}  # fmt: skip
    found: dict = {"do_sample": True, "max_new_tokens": 1, "num_beams": 1, "num_return_sequences": SAMPLES, "forced_eos_token_id": None, "top_k": 0}
    found |= {name: filters[name] for name in draw.sample(list(filters), draw.randint(1, 3))}
    if draw.coin(0.3):
        found["suppress_tokens"] = some_ids(draw, vocab, 1, 8)
    if draw.coin(0.3):
        found["repetition_penalty"] = draw.choice([0.7, 1.5])
    if draw.coin(0.3):
        found["renormalize_logits"] = draw.coin()
    return found


def is_void(settings: dict) -> bool:
    """What transformers refuses itself."""
    forced = [settings.get("forced_bos_token_id"), settings.get("forced_eos_token_id")]
    lists = [set([one] if isinstance(one, int) else one) for one in forced if one is not None]
    ends = settings.get("eos_token_id")
    if settings.get("exponential_decay_length_penalty") and isinstance(ends, list) and min(ends) < 0:
        return True
    return any(one <= set(settings.get("suppress_tokens") or []) for one in lists)


def without_positions(draw: Draw, subject: Subject, settings: dict) -> dict:
    """The settings without those that write a padding token which has no position: its search and its score would differ."""
    if not subject.counts_tokens:
        return settings
    if settings.get("forced_bos_token_id") == subject.pad:
        settings = settings | {"forced_bos_token_id": (subject.pad + 1) % subject.target}
    return settings | {"suppress_tokens": [*settings.get("suppress_tokens", []), subject.pad]}


def inputs_of(draw: Draw, subject: Subject, source: int, most: int) -> dict[str, torch.Tensor]:
    rows, pad = draw.randint(1, 4), subject.pad
    start = subject.model.generation_config.decoder_start_token_id
    lengths = [draw.randint(1, 9) for _ in range(rows)]
    src, mask = torch.full((rows, max(lengths)), pad), torch.zeros(rows, max(lengths), dtype=torch.long)
    left = draw.coin(0.3)
    for row, length in enumerate(lengths):
        place = slice(-length, None) if left else slice(0, length)
        src[row, place] = torch.tensor([draw.randrange(source) for _ in range(length)])
        mask[row, place] = 1
    found = {"input_ids": src, "attention_mask": mask}
    if draw.coin(0.2):
        del found["attention_mask"]
    if most > 0 and draw.coin(0.5):
        columns = draw.randint(1, most)
        prefix = draw.integers(subject.target, rows, columns)
        if subject.counts_tokens:
            prefix[prefix == pad] = (pad + 1) % subject.target
        if start is not None and draw.coin():
            prefix[:, 0] = start
        elif start is not None and draw.coin():
            prefix[draw.randrange(rows), 0] = start
        found["decoder_input_ids"] = prefix
        if draw.coin(0.4):
            missing = [draw.randrange(columns) for _ in range(rows)]
            missing[draw.randrange(rows)] = 0
            for row, count in enumerate(missing):
                prefix[row, :count] = pad
            ragged = torch.arange(columns) >= torch.tensor(missing)[:, None]
            found["decoder_attention_mask"] = ragged.long()
    return found


def without_nulls(model, settings: dict):
    """The model and the settings: generate() would take those that are null from the folder."""
    if any(value is None for value in settings.values()):
        own, model = model.generation_config, copy.copy(model)
        model.generation_config = copy.deepcopy(own)
        for name, value in settings.items():
            if value is None:
                setattr(model.generation_config, name, None)
    return model, {name: value for name, value in settings.items() if value is not None}


def far_from(counts: torch.Tensor, probabilities: torch.Tensor) -> str:
    """Why the counts are not those of samples with these probabilities, or ""."""
    if counts[probabilities == 0].any():
        return f"tokens {(counts > 0).logical_and(probabilities == 0).nonzero().flatten().tolist()} have probability 0"
    expected = probabilities * counts.sum()
    seldom = expected < 5  # count as one
    pairs = torch.stack([torch.cat([each[~seldom], each[seldom].sum()[None]]) for each in (counts.double(), expected)])
    pairs = pairs[:, pairs[1] > 0]
    if pairs.shape[1] < 2:
        return ""
    square = ((pairs[0] - pairs[1]) ** 2 / pairs[1]).sum()
    chance = torch.special.gammaincc(torch.tensor((pairs.shape[1] - 1) / 2, dtype=torch.float64), square / 2)
    return f"these frequencies have the chance {chance:.3g}" if chance < LEAST_PROBABLE else ""


def check_samples(subject: Subject, given: dict, settings: dict, sequences: torch.Tensor) -> str:
    why = ""
    for number in range(-1, NUDGES):
        other, kept = without_nulls(subject.model if number < 0 else nudged(subject.model, number), settings | {"num_return_sequences": 1})
        out = other.generate(**given, **kept, **subject.options, return_dict_in_generate=True, output_scores=True)
        probabilities = out.scores[0][0].double().softmax(-1)
        found = far_from(torch.bincount(sequences[:, -1], minlength=len(probabilities)), probabilities)
        if not found:
            return ""
        why = why or found
    return why


def theirs(model, given: dict, settings: dict) -> tuple[list[list[int]], list[float]]:
    """Rows and scores. A ragged prefix is computed row by row, as transformers' positions would count its padding; only those of an
    M2M-100 whose start is the padding count it in posenc too."""
    model, kept = without_nulls(model, settings)
    if "attention_mask" not in given:
        given = given | {"attention_mask": torch.ones_like(given["input_ids"])}
    start, pad = model.generation_config.decoder_start_token_id, model.config.pad_token_id
    if "decoder_attention_mask" not in given or (model.config.model_type == "m2m_100" and start == pad):
        with_beams = {"return_dict_in_generate": True, "output_scores": True}
        out = model.generate(**given, **kept, **with_beams)
        scores = getattr(out, "sequences_scores", None)
        return out.sequences.tolist(), [] if scores is None else scores.tolist()
    mask, prefix = given["decoder_attention_mask"], given["decoder_input_ids"]
    has_start = bool((prefix[:, 0] == start).any())
    columns = prefix.shape[1] + (0 if has_start else 1)
    rows, scores = [], []
    for row in range(len(prefix)):
        own = prefix[row][mask[row] == 1]
        if not has_start:
            own = torch.cat([torch.tensor([start]), own])
        padding = columns - len(own)
        if own[0] != start:  # transformers would put one before it
            return [], []
        alone = {"input_ids": given["input_ids"][row : row + 1], "attention_mask": given["attention_mask"][row : row + 1], "decoder_input_ids": own[None]}
        stated = {name: kept.get(name, getattr(model.generation_config, name)) or 0 for name in ("max_length", "min_length")}
        lengths = {name: value - padding for name, value in stated.items() if value > padding}
        found, value = theirs(model, alone, kept | lengths)
        given_columns = ([start] if not has_start else []) + prefix[row].tolist()
        rows += [given_columns + one[len(own) :] for one in found]
        scores += value
    return rows, scores


def nudged(model, number: int):
    other = copy.deepcopy(model).double()
    if number:
        source = torch.Generator().manual_seed(number)
        for parameter in other.parameters():
            parameter.mul_(1 + 1e-6 * torch.randn(parameter.shape, generator=source, dtype=torch.float64))
    return other


def trimmed(row: list[int], fills: set[int]) -> list[int]:
    """Without what fills a row after its end; an end is such a token itself."""
    end = len(row)
    while end and row[end - 1] in fills:
        end -= 1
    return row[:end]


def is_forced_tie(settings: dict, ours: list[int], theirs: list[int]) -> bool:
    """Whether two rows differ only in which of several forced ends they have, all of which have probability 1 in beams."""
    forced = settings.get("forced_eos_token_id")
    same = isinstance(forced, list) and settings.get("num_beams", 1) > 1 and ours[:-1] == theirs[:-1]
    return same and ours[-1] in forced and theirs[-1] in forced


def loses_marks(subject: Subject, given: dict, settings: dict) -> bool:
    """Whether a step has scores above the 1e9 by which transformers' beam search marks the sequences that have ended: it goes on
    with these, and returns others that have not. A decay raises the -3.4e38 that `remove_invalid_values` makes of -inf to +inf."""
    model, kept = without_nulls(subject.model, settings | subject.options)
    out = model.generate(**given, **kept, return_dict_in_generate=True, output_scores=True)
    return hasattr(out, "sequences_scores") and any(bool(((step > MOST) | step.isnan()).any()) for step in out.scores)


def runs_out(subject: Subject, given: dict, settings: dict) -> bool:
    """Whether a row has no token left, which transformers writes as tokens of probability 0."""
    model, kept = without_nulls(subject.model, settings | subject.options)
    out = model.generate(**given, **kept, return_dict_in_generate=True, output_scores=True)
    scores = getattr(out, "sequences_scores", torch.zeros(1))
    return not bool((scores > -1e8).all()) or any(bool(step.isneginf().all(1).any()) for step in out.scores)


def compare(subject: Subject, given: dict, settings: dict, got: dict[str, torch.Tensor], fills: set[int], oracle=theirs) -> str:
    ours, our_scores = got["sequences"].tolist(), got.get("sequences_scores", torch.tensor([])).tolist()
    why, whole = "", subject.settings | settings

    def differs(i: int, rows: list[list[int]], scores: list[float]) -> bool:
        if i >= len(ours):
            return True
        never_lived = bool(scores) and scores[i] < -1e8
        ties = bool(scores) and math.isinf(scores[i]) and scores[i] == our_scores[i]
        return not (never_lived or ties or trimmed(ours[i], fills) == trimmed(rows[i], fills) or is_forced_tie(whole, ours[i], rows[i]))

    for number in range(-1, NUDGES):
        model = subject.model if number < 0 else nudged(subject.model, number)
        rows, scores = oracle(model, given, settings | subject.options)
        if not rows:
            return ""
        wrong = [i for i in range(len(rows)) if differs(i, rows, scores)]
        off = [i for i, (a, b) in enumerate(zip(our_scores, scores)) if b > -1e8 and abs(a - b) > TOLERANCE * max(1.0, abs(b))]
        if len(ours) == len(rows) and len(our_scores) == len(scores) and not wrong and not off:
            return ""
        if number < 0:
            i = (wrong or off or [0])[0]
            why = f"row {i}: {ours[i : i + 1]} {our_scores[i : i + 1]}, transformers {rows[i : i + 1]} {scores[i : i + 1]}"
    return why


def check_logits(programs: Programs, model, given: dict, more: list[str]) -> str:
    """`--logits`, with the positions and the mask that transformers gives to the columns."""
    got = searched(programs, given, {}, ["--logits", *more])
    if isinstance(got, str):
        return got
    expected = model(**given, use_cache=False).logits
    counts = given.get("decoder_attention_mask", torch.ones_like(given["decoder_input_ids"])).bool()
    off = (got["logits"] - expected)[counts].abs().max()
    return f"off by {off:.3g}" if not off <= TOLERANCE * expected[counts].abs().max() else ""


def searched(programs: Programs, given: dict, settings: dict, more: list[str]) -> dict[str, torch.Tensor] | str:
    """What `posenc generate` writes, or its error."""
    save_file(given, programs.folder / "in.safetensors")
    sets = [f"--set={name}={json.dumps(value)}" for name, value in settings.items()]
    done = programs.posenc("generate", programs.folder / "model", "--in", programs.folder / "in.safetensors", "--out", programs.folder / "out.safetensors", *sets, *more)
    return done.stderr.strip() if done.returncode else load_file(programs.folder / "out.safetensors")


def check_attention(draw: Draw, programs: Programs, subject: Subject) -> Failure | None:
    """`--attention` beside the weights that transformers returns for the targets found, and scores with a coverage penalty."""
    given = inputs_of(draw, subject, subject.source, 0)
    penalty = draw.choice([0.0, 0.4])
    settings = {"num_beams": 2, "num_return_sequences": 2, "max_new_tokens": 6, "length_penalty": 1.0, "eos_token_id": 7,
                "suppress_tokens": [subject.pad], "renormalize_logits": False}  # fmt: skip
    settings |= {name: None for name in subject.settings if name not in settings}
    more = ["--attention", f"--coverage-penalty={penalty}", *(["--plain"] if draw.coin() else [])]
    got = searched(programs, given, settings | {"forced_eos_token_id": None, "decoder_start_token_id": 8}, more)
    if isinstance(got, str):
        return Failure(f"{subject.kind} {more}", got)
    model = copy.deepcopy(subject.model)
    model.set_attn_implementation("eager")
    mask = given.get("attention_mask", torch.ones_like(given["input_ids"])).repeat_interleave(2, 0)
    sequences = got["sequences"]
    out = model(input_ids=given["input_ids"].repeat_interleave(2, 0), attention_mask=mask, decoder_input_ids=sequences[:, :-1],
                output_attentions=True, use_cache=False)  # fmt: skip
    weights, logs = out.cross_attentions[-1].mean(1), out.logits.log_softmax(-1)
    for row, tokens in enumerate(sequences[:, 1:].tolist()):
        count = tokens.index(7) + 1 if 7 in tokens else len(tokens)
        expected, ours = weights[row, :count], got["attention"][row, 1:]
        off = max((ours[:count] - expected).abs().max().item(), ours[count:].abs().sum().item(), got["attention"][row, 0].abs().sum().item())
        if not off < TOLERANCE:
            return Failure(f"{subject.kind} {more}", f"row {row}: off by {off:.3g}")
        total = logs[row, torch.arange(count), tokens[:count]].sum().item() / count
        sums = expected.sum(0)[mask[row] == 1]
        total += penalty * sums.clamp_max(1).log().sum().item()
        if abs(total - got["sequences_scores"][row].item()) > 5 * TOLERANCE * max(1.0, abs(total)):
            return Failure(f"{subject.kind} {more}", f"row {row}: score {got['sequences_scores'][row].item()} for {total}")
    return None


def fills_of(subject: Subject, settings: dict) -> set[int]:
    """The tokens that may follow a row's end, and the ends."""
    ends = (subject.settings | settings).get("eos_token_id", subject.model.generation_config.eos_token_id)
    return {subject.pad, *([ends] if isinstance(ends, int) else ends or [])}


def check_search(draw: Draw, programs: Programs, subject: Subject, samples: bool, rare: dict | None = None) -> Failure | None:
    """A search, or 3,000 samples of one token; with settings of its own or these."""
    vocab = min(subject.source, subject.target)
    end = draw.choice([7, draw.randrange(vocab)])
    settings = rare or (sampling_of(draw, vocab) if samples else settings_of(draw, vocab, subject.pad, end))
    settings = without_positions(draw, subject, settings)
    whole = subject.settings | settings
    if is_void(whole):
        return None
    reads_source = whole.get("encoder_repetition_penalty", 1.0) != 1.0 or whole.get("encoder_no_repeat_ngram_size", 0) > 0
    given = inputs_of(draw, subject, vocab if reads_source else subject.source, 0 if subject.kind == "fsmt" or samples or rare else 5)
    if samples:
        given = {name: value[:1] for name, value in given.items()}
    more = ["--plain"] if draw.coin(0.3) else []
    got = searched(programs, given, settings, more)
    try:
        if isinstance(got, str):
            theirs(subject.model, given, settings | subject.options)
            why = "" if "must have a logit that is a number and not suppressed" in got and runs_out(subject, given, settings) else got
        elif samples:
            why = check_samples(subject, given, settings, got["sequences"])
        else:
            why = compare(subject, given, settings, got, fills_of(subject, settings))
            why = why if why and not loses_marks(subject, given, settings) else ""
    except (ValueError, RuntimeError, IndexError) as error:  # of transformers itself
        why = "" if isinstance(got, str) else f"transformers refuses it: {error}"
    what = f"{subject.kind} {json.dumps(settings)} {' '.join(more)}; of the folder: {json.dumps(subject.settings)}"
    return Failure(what, why) if why else None


def check_forced(draw: Draw, programs: Programs, subject: Subject) -> Failure | None:
    given: dict[str, torch.Tensor] = {}
    while "decoder_input_ids" not in given:
        given = inputs_of(draw, subject, subject.source, 9)
    more = ["--plain"] if draw.coin(0.5) else []
    why = check_logits(programs, subject.model, given, more)
    return Failure(" ".join([subject.kind, "--logits", *more]), why) if why else None


def subject_of(draw: Draw, folder: Path, kind: str) -> Subject:
    """A model whose folder has settings of its own, in generation_config.json or, as older releases have it, in config.json."""
    model = seq2seq.model_of(draw, folder, kind, positions=draw.randint(30, 40))
    source = model.config.src_vocab_size if kind == "fsmt" else model.config.vocab_size
    target, pad = model.get_output_embeddings().weight.shape[0], model.config.pad_token_id
    settings: dict = {}
    if draw.coin():
        drawn = settings_of(draw, min(source, target), pad, 7)
        beams = drawn["num_beams"]
        settings = {name: drawn[name] for name in draw.sample(sorted(drawn), draw.randint(0, len(drawn))) if drawn[name] is not None}
        settings = {"num_beams": beams} | {name: value for name, value in settings.items() if name != "num_return_sequences"}
        if is_void({"forced_eos_token_id": 7} | settings):
            del settings["suppress_tokens"]
    if kind == "m2m_100" and draw.coin():
        settings["decoder_start_token_id"] = pad  # a start that has no position, though later tokens count it
    generation, config = folder / "generation_config.json", folder / "config.json"
    if draw.coin(0.7) or kind == "fsmt":
        generation.write_text(json.dumps(json.loads(generation.read_text()) | settings))
    else:
        generation.unlink()
        config.write_text(json.dumps(json.loads(config.read_text()) | settings))
    model = type(model).from_pretrained(folder, dtype=torch.float32).eval()
    is_deeper = kind in seq2seq.t5.KINDS and model.config.num_decoder_layers > model.config.num_layers
    return Subject(kind, model, source, target, pad, settings, {"use_cache": False} if is_deeper else {})  # its cache has too few layers


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    failures, count = [], 0
    with torch.no_grad():
        for kind in seq2seq.KINDS:
            own = programs.within(kind)
            subject = subject_of(draw, own.folder / "model", kind)
            found = [check_search(draw, own, subject, samples=number == SEARCHES) for number in range(SEARCHES + 1)]
            found += [check_search(draw, own, subject, samples=False, rare=one) for one in rare_settings(draw, subject)]
            found += [check_forced(draw, own, subject), check_attention(draw, own, subject)]
            failures += [one for one in found if one]
            count += len(found)
    return count, failures

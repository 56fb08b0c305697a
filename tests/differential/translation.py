"""Marian models with random settings against transformers: greedy and beam search, plain and frozen, and text.

A search is a chain of comparisons, and a near tie may go either way. A result that differs from transformers' is
therefore right if transformers itself finds it in float64, or with weights that differ by rounding. Its scores must be
those of its tokens in any case.
"""

import copy
import json
import sys
from pathlib import Path

import torch

from harness import Case, Draw, Failure, Programs
from written import written

sys.path.insert(0, str(Path(__file__).parents[1] / "models/marian"))
import make_models  # noqa: E402

SEARCHES, LINES, NUDGES = 3, 8, 12


def model_of(draw: Draw, folder: Path):
    """A folder with a tokenizer and an untrained model whose logits are far from uniform."""
    from transformers import MarianConfig, MarianMTModel

    separate = draw.coin(0.3)
    tokenizer = make_models.make_tokenizer(folder, separate)
    source = len(json.loads((folder / "vocab.json").read_text()))
    target = len(json.loads((folder / "target_vocab.json").read_text())) if separate else source
    heads, pad = [draw.choice([1, 2, 4]) for _ in range(2)], tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=source, decoder_vocab_size=target, d_model=4 * draw.randint(1, 12), dropout=0.0,
        encoder_layers=draw.randint(1, 3), decoder_layers=draw.randint(1, 3), encoder_attention_heads=heads[0],
        decoder_attention_heads=heads[1], encoder_ffn_dim=draw.randint(1, 60), decoder_ffn_dim=draw.randint(1, 60),
        activation_function=draw.choice(["relu", "gelu", "swish"]), scale_embedding=draw.coin(),
        share_encoder_decoder_embeddings=not separate, tie_word_embeddings=draw.coin(0.7) or not separate,
        max_position_embeddings=make_models.POSITIONS, pad_token_id=pad, decoder_start_token_id=pad, eos_token_id=0,
        forced_eos_token_id=draw.choice([0, None]), init_std=draw.choice([0.1, 0.3]),
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    with torch.no_grad():  # norms and biases start as ones and zeros, and so does the row of the padding
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(draw.normal(*parameter.shape), alpha=0.2)
        for module in model.modules():
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None and module.weight.requires_grad:
                module.weight[pad] = draw.normal(module.weight.shape[1]) * config.init_std
        model.final_logits_bias.copy_(draw.normal(*model.final_logits_bias.shape))
    beams = draw.choice([1, 2, 4])
    of_beams = {} if beams == 1 else {
        "length_penalty": draw.choice([0.0, 0.6, 1.0, 2.0]), "early_stopping": draw.choice([False, True, "never"]),
    }  # fmt: skip
    model.generation_config.update(
        max_length=make_models.POSITIONS, bad_words_ids=[[pad]], num_beams=beams, renormalize_logits=draw.coin(),
        forced_eos_token_id=config.forced_eos_token_id, **of_beams,
    )  # fmt: skip
    model.save_pretrained(folder)
    file = folder / "config.json"
    settings = json.loads(file.read_text())
    if draw.coin(0.3):  # the first layers
        settings |= {key: draw.randint(1, settings[key]) for key in ("encoder_layers", "decoder_layers")}
    file.write_text(json.dumps(written(draw, MarianConfig, settings)))
    return MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer


def searched(model, src, mask, beams: int, most: int) -> tuple[list, list]:
    """The distinct sequences of each source, best first, and their scores (none for greedy search)."""
    batch = {"input_ids": src, "attention_mask": mask}
    settings = {"num_beams": beams, "max_length": most + 1, "forced_eos_token_id": model.generation_config.forced_eos_token_id}
    found = make_models.found(model, batch, settings, stop=0)
    tokens, scores = [], []
    for b, rows in enumerate(found["tokens"]):
        first = [i for i, row in enumerate(rows) if row not in rows[:i]]
        tokens.append([rows[i] for i in first])
        scores.append([found["scores"][b][i] for i in first] if "scores" in found else None)
    return tokens, scores


def scored(model, src, mask, tokens: list, most: int) -> float:
    """generate()'s score of one sequence: the sum of its log probabilities, by the length penalty."""
    generation, begin = model.generation_config, model.config.decoder_start_token_id
    ids = torch.tensor([[begin, *tokens[:-1]]])
    logits = model(input_ids=src, attention_mask=mask, decoder_input_ids=ids).logits[0].double()
    logs = logits.log_softmax(-1)
    banned = [one[0] for one in generation.bad_words_ids]
    total = 0.0
    for place, token in enumerate(tokens):
        if generation.forced_eos_token_id is not None and place == most - 1:
            continue  # has probability 1
        row = logs[place].clone()
        if generation.renormalize_logits:
            row[banned] = -torch.inf
            row = row.log_softmax(-1)
        total += row[token].item()
    penalty = 1.0 if generation.length_penalty is None else generation.length_penalty
    return total / len(tokens) ** penalty


def nudged(model, number: int):
    """The model in float64, or copies with weights that differ by a few float32 roundings."""
    other = copy.deepcopy(model).double()
    if number:
        source = torch.Generator().manual_seed(number)
        with torch.no_grad():
            for parameter in other.parameters():
                noise = torch.randn(parameter.shape, generator=source, dtype=torch.float64)
                parameter.mul_(1 + 1e-6 * noise)
    return other


def check(model, src, mask, beams: int, most: int, ours: list, scores: list) -> str:
    theirs, their_scores = searched(model, src, mask, beams, most)
    wrong = [b for b in range(len(src)) if ours[b] != theirs[b][: len(ours[b])] or not ours[b]]
    wide = nudged(model, 0)
    for b in range(len(src)):
        for tokens, score in zip(ours[b], scores[b]):
            true = scored(wide, src[b : b + 1], mask[b : b + 1], tokens, most)
            if beams > 1 and abs(true - score) > 2e-5 * max(1.0, abs(true)):
                return f"source {b}: {tokens} has score {score}, and in float64 {true}"
    for number in range(NUDGES):
        if not wrong:
            return ""
        other = searched(wide if number == 0 else nudged(model, number), src, mask, beams, most)[0]
        wrong = [b for b in wrong if ours[b] != other[b][: len(ours[b])]]
    if not wrong:
        return ""
    b = wrong[0]
    return f"source {b}: {list(zip(ours[b], scores[b]))}, transformers {theirs[b]} {their_scores[b]}"


def searches(draw: Draw, programs: Programs, folder: Path, model, tokenizer) -> list[Failure]:
    cases, batches = [], []
    for _ in range(SEARCHES):
        pairs = [make_models.sentence(draw)[0] for _ in range(draw.randint(1, LINES))]
        given = tokenizer(pairs, padding=True, return_tensors="pt")
        beams, most = draw.choice([1, 2, 3, 5]), draw.randint(2, 30)
        batches.append((given.input_ids, given.attention_mask, beams, most))
        options = {"op": "translate", "folder": str(folder), "beams": beams, "max_length": most, "frozen": draw.coin()}
        cases.append(Case(options, {"src": given.input_ids, "mask": given.attention_mask.bool()}, {}))
    failures = []
    for case, got, (src, mask, beams, most) in zip(cases, programs.compute(cases), batches):
        if isinstance(got, str):
            failures.append(Failure(json.dumps(case.options), got))
            continue
        counts = [len(got[f"scores.{b}"]) for b in range(len(src))]
        ours = [[got[f"tokens.{b}.{n}"].tolist() for n in range(counts[b])] for b in range(len(src))]
        scores = [got[f"scores.{b}"].tolist() for b in range(len(src))]
        why = check(model, src, mask, beams, most, ours, scores)
        if why:
            failures.append(Failure(json.dumps(case.options), why))
    return failures


def texts(draw: Draw, programs: Programs, folder: Path, model, tokenizer) -> list[Failure]:
    """`posenc translate` of lines, compared one by one with the tokenizer and generate()."""
    lines = [make_models.sentence(draw)[0] for _ in range(LINES)] + draw.sample(make_models.LINES, 3)
    text = programs.folder / "lines.txt"
    text.write_text("".join(line + "\n" for line in lines))
    done = programs.posenc("translate", "--model", folder, "--threads", 1, text)
    if done.returncode:
        return [Failure("posenc translate", done.stderr.strip())]
    ours = done.stdout.split("\n")[:-1]
    if len(ours) != len(lines):
        return [Failure("posenc translate", f"{len(ours)} lines for {len(lines)}")]
    failures = []
    for line, got in zip(lines, ours):
        if not line.strip():
            continue
        given, right = tokenizer(line, return_tensors="pt"), False
        for number in range(-1, NUDGES):
            other = model if number < 0 else nudged(model, number)
            theirs = tokenizer.decode(other.generate(**given)[0], skip_special_tokens=True)
            if number < 0:
                first = theirs
            right = got == theirs
            if right:
                break
        if not right:
            failures.append(Failure(f"posenc translate: {line!r}", f"{got!r}, transformers {first!r}"))
    return failures


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    folder = programs.folder / "model"
    with torch.no_grad():
        model, tokenizer = model_of(draw, folder)
        found = searches(draw, programs, folder, model, tokenizer) + texts(draw, programs, folder, model, tokenizer)
    return SEARCHES + LINES + 3, found

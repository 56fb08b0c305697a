"""`posenc generate --text` and `--chat` beside tokenizer, apply_chat_template() and generate() of transformers: random decoders with each
kind of tokenizer, prompts in every script, conversations in published templates; greedy, beams, samples that only one token can be,
and stop strings.
"""

import copy
import json
import sys
from pathlib import Path

import torch
import transformers

sys.path.append(str(Path(__file__).parents[1] / "tokenizers"))
import chat_templates
import kinds
from harness import Draw, Failure, Programs
from published_templates import TEMPLATES

MODELS, NEAR = 3, 2e-5
SIZES = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 40, "max_position_embeddings": 4096}
DECODERS = {"llama": {}, "qwen2": {}, "gemma2": {"head_dim": 8}, "gpt_neox": {}, "mistral": {"sliding_window": 7}, "bloom": {"n_layer": 2, "n_head": 4},
            "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 4096}}  # fmt: skip
WITHOUT_TEXT = ("{{ messages", "{% include 'a' %}")


def folder_of(draw: Draw, folder: Path):
    """A random model with a tokenizer; returns it and the tokenizer as they load."""
    tokenizer = kinds.make(draw.choice(sorted(set(kinds.KINDS) - {"mBART", "NLLB"})), folder)  # whose languages another class has not
    kind = draw.choice(sorted(set(DECODERS) - ({"qwen2"} if type(tokenizer).__name__ != "Qwen2Tokenizer" else set())))  # whose tokenizer is Qwen's
    own = {} if kind == "gpt2" else {name: value for name, value in SIZES.items() if kind != "bloom" or name == "hidden_size"}
    ends = draw.choice([{"eos_token_id": draw.randrange(len(tokenizer))}, {"eos_token_id": draw.sample(range(len(tokenizer)), 30), "pad_token_id": 0}])
    config = transformers.CONFIG_MAPPING[kind](vocab_size=len(tokenizer) + draw.choice([0, 5]), **own, **DECODERS[kind], **ends)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(draw.normal(*value.shape) * draw.choice([0.2, 0.4]) + float(value.dim() == 1))
    model.save_pretrained(folder)
    if draw.coin(0.2):
        (folder / "generation_config.json").unlink()
    return type(model).from_pretrained(folder, dtype=torch.float32).eval(), transformers.AutoTokenizer.from_pretrained(folder)


def settings_of(draw: Draw, prompts: list[list[int]]) -> dict:
    longest, shortest = (choose(map(len, prompts), default=1) for choose in (max, min))
    found = draw.choice([{}, {"num_beams": 3, "num_return_sequences": draw.randint(1, 3)}, {"do_sample": True, "top_k": 1, "num_return_sequences": draw.choice([1, 2])}])
    lengths = [{"max_new_tokens": draw.randint(1, 12)}, {"max_length": longest, "max_new_tokens": 3}, {}]
    if longest < shortest + 20:  # a long search is decided by rounding
        lengths.append({"max_length": longest + draw.randint(1, 9)})
    found |= draw.choice(lengths)
    if draw.coin(0.3):
        found |= draw.choice([{"repetition_penalty": 1.7}, {"no_repeat_ngram_size": 2}, {"min_new_tokens": 4}, {"length_penalty": 2.0, "num_beams": 2, "do_sample": False}])
    return found


def stops_of(draw: Draw, model, tokenizer, prompt: list[int]) -> list[str]:
    """Parts of what the model writes after a prompt."""
    written = tokenizer.decode(model.generate(torch.tensor([prompt]), do_sample=False, num_beams=1, max_new_tokens=12)[0, len(prompt) :])
    begin = draw.randrange(max(1, len(written)))
    part = written[begin : begin + draw.randint(1, 3)]
    return [part, "never"] if part else []


def continued(model, tokenizer, prompt: list[int], settings: dict) -> list[dict]:
    ids = torch.tensor([prompt])
    out = model.generate(ids, attention_mask=torch.ones_like(ids), **settings, tokenizer=tokenizer, return_dict_in_generate=True, output_scores=True)
    scores = getattr(out, "sequences_scores", None)
    rows = [row[len(prompt) :] for row in out.sequences.tolist()]
    return [{"ids": row} | ({} if scores is None else {"score": scores[i].item()}) for i, row in enumerate(rows)]


def off_by(got: dict, expected: dict, tokenizer) -> str:
    ids, row = got["ids"], expected["ids"]
    if row[: len(ids)] != ids or len(set(row[len(ids) :])) > 1 or not ids:  # what follows is one token of padding
        return f"{ids} for {row}"
    if got["text"] != tokenizer.decode(ids, skip_special_tokens=True):
        return f"{got['text']!r} for {tokenizer.decode(ids, skip_special_tokens=True)!r}"
    if set(got) != {"ids", "text", *expected}:
        return f"has {sorted(got)}"
    if "score" in expected and not abs(got["score"] - expected["score"]) <= NEAR * max(1.0, abs(expected["score"])):
        return f"score {got['score']} for {expected['score']}"
    return ""


def compare(lines: list[dict], model, tokenizer, prompts: list[list[int]], settings: dict) -> str:
    own, wide = dict(settings), None
    each = own.get("num_return_sequences", 1)
    if len(lines) != each * len(prompts):
        return f"{len(lines)} lines for {len(prompts)} prompts of {each}"
    for number, prompt in enumerate(prompts):
        found = lines[number * each : (number + 1) * each]
        why = [off_by(*pair, tokenizer) for pair in zip(found, continued(model, tokenizer, prompt, own))]
        if any(why):  # near ties are decided by float64
            wide = copy.deepcopy(model).double() if wide is None else wide
            exact = [off_by(*pair, tokenizer) for pair in zip(found, continued(wide, tokenizer, prompt, own))]
            if any(exact):
                return f"prompt {number} {prompt}: {next(filter(None, why))}"
    return ""


def generated(programs: Programs, lines: list[str], settings: dict, stops: list[str], more: list) -> tuple[list[dict], str]:
    file = programs.folder / "lines.txt"
    file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    sets = [part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    done = programs.posenc("generate", programs.folder / "model", "--text", file, *sets, *(part for stop in stops for part in ("--stop", stop)), *more)
    return [json.loads(line) for line in done.stdout.split("\n")[:-1]], done.stderr.strip() if done.returncode else ""


def texts(draw: Draw) -> list[str]:
    found = [line for line in kinds.lines(draw, ["<s>", "</s>"], 5) if not set(line) & set("\n\r")]
    found += [draw.choice(["", " ", "a" * 700, "naïve café 東京 🙂", "the cat sat on"])]
    draw.shuffle(found)
    return found


def check(draw: Draw, programs: Programs, model, tokenizer, lines: list[str], prompts: list, more: list) -> Failure | None:
    """`prompts`: the ids of each line, or an error."""
    good = next((i for i, prompt in enumerate(prompts) if not isinstance(prompt, list) or not prompt), len(prompts))
    settings = settings_of(draw, prompts[:good])
    try:
        stops = stops_of(draw, model, tokenizer, prompts[0]) if good and draw.coin(0.4) else []
        with_stops = settings | ({"stop_strings": stops} if stops else {})
        if good:
            continued(model, tokenizer, prompts[0], with_stops)
    except Exception:  # of transformers: of a tokenizer that it finds no stop strings with
        return None
    batch = draw.choice([1, 2, 8])
    got, why = generated(programs, lines, settings, stops, ["--batch", batch, *more])
    if good == len(prompts):
        why = why or compare(got, model, tokenizer, prompts, with_stops)
    elif f"line {good + 1}: " not in why:
        why = f"line {good + 1} was not refused: {prompts[good]}, but: {why}"
    else:
        why = compare(got, model, tokenizer, prompts[:good], with_stops)
    what = f"{type(tokenizer).__name__} {model.config.model_type} {json.dumps(settings)} {stops} --batch {batch} {more} {lines!r}"
    return Failure(what, why) if why else None


def message_lines(draw: Draw) -> tuple[list[str], list[list[dict]]]:
    """Lines for --chat, and the conversations that they are."""
    conversations = [[{"role": "user", "content": text}] if draw.coin() else chat_templates.conversation(draw) for text in texts(draw)]
    lines = []
    for one in conversations:
        is_plain = len(one) == 1 and set(one[0]) == {"role", "content"} and one[0]["role"] == "user" and isinstance(one[0]["content"], str)
        text = one[0]["content"] if is_plain else ""
        fits = is_plain and not set(text) & set("\n\r") and not text.lstrip(" \t").startswith("[")
        lines.append(text if fits and draw.coin(0.8) else draw.choice(["", " ", "\t"]) + json.dumps(one, ensure_ascii=draw.coin()))
    return lines, conversations


def check_chat(draw: Draw, programs: Programs, model, tokenizer) -> Failure | None:
    name = draw.choice(sorted(TEMPLATES))
    source = TEMPLATES[name] + draw.choice(["", "{{ image_token }}{{ boi_token }}"])
    folder = programs.folder / "model"
    if draw.coin():
        (folder / "chat_template.jinja").write_text(source)
    else:
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        other = [{"name": "default", "template": source}, {"name": "tool_use", "template": TEMPLATES[draw.choice(sorted(TEMPLATES))]}]
        config = json.loads((folder / "tokenizer_config.json").read_text())
        named = draw.choice([{}, {"image_token": "<image>"}, {"extra_special_tokens": {"boi_token": "<boi>"}}])
        (folder / "tokenizer_config.json").write_text(json.dumps(config | named | {"chat_template": draw.choice([source, other])}))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    variables = draw.choice([{}, {}, {"enable_thinking": False}, {"tools": [chat_templates.tool(draw)]}])
    lines, conversations = message_lines(draw)
    prompts = []
    for one in conversations:
        try:
            ids = tokenizer.apply_chat_template(one, add_generation_prompt=True, **variables)["input_ids"]
            prompts.append(ids if max(ids, default=0) < model.config.vocab_size else "beyond the vocabulary")
        except Exception as error:
            prompts.append(repr(error)[:100])
    more = ["--chat", *(["--chat-template-kwargs", json.dumps(variables)] if variables or draw.coin() else [])]
    found = check(draw, programs, model, tokenizer, lines, prompts, more)
    if found:
        found.what = f"{name} {found.what}"
    return found


def check_refusals(draw: Draw, programs: Programs) -> Failure | None:
    """A folder without a template, or with one that posenc cannot read: an error with --chat alone."""
    template = draw.choice([None, *WITHOUT_TEXT])
    if template:
        (programs.folder / "model" / "chat_template.jinja").write_text(template)
    got, why = generated(programs, ["a cat"], {"max_new_tokens": 1}, [], ["--chat"])
    rule = "[chat_template] line 1" if template else "must have a chat template of the name 'default'"
    if got or rule not in why:
        return Failure(f"--chat with {template!r}", f"{got} {why}")
    for line, kwargs, rule in (('[{"role": ]', "{}", "must have JSON"), ("a", "[1]", "variables must be an object of JSON"), ("a", "{", "must have JSON")):
        (programs.folder / "model" / "chat_template.jinja").write_text(TEMPLATES["chatml"])
        got, why = generated(programs, ["", line], {"max_new_tokens": 1}, [], ["--chat", "--chat-template-kwargs", kwargs])
        if len(got) != (kwargs == "{}") or rule not in why or "line" not in why:
            return Failure(f"--chat {line} {kwargs}", f"{got} {why}")
    broken = draw.choice([b"\xff", b"a \xc3( b", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"caf\xc3"])  # which is no UTF-8
    (programs.folder / "broken.txt").write_bytes(b"a cat\n" + broken + b"\na cat\n")
    done = programs.posenc("generate", programs.folder / "model", "--text", programs.folder / "broken.txt", "--set", "max_new_tokens=1", "--batch", 1)
    if done.returncode != 1 or "line 2 must be UTF-8" not in done.stderr or done.stdout.count("\n") > 1:
        return Failure(f"{broken!r}", f"{done.returncode} {done.stdout} {done.stderr}")
    if template:
        (programs.folder / "model" / "chat_template.jinja").write_text(template)
    got, why = generated(programs, ["a cat"], {"max_new_tokens": 1}, [], [])
    (programs.folder / "model" / "chat_template.jinja").unlink(missing_ok=True)
    return Failure(f"--text with {template!r}", why) if why else None


def one(draw: Draw, programs: Programs) -> list[Failure | None]:
    folder = programs.folder / "model"
    folder.mkdir()
    model, tokenizer = folder_of(draw, folder)
    failures = [check_refusals(draw, programs)]
    for _ in range(2):
        lines = texts(draw)
        prompts = [tokenizer(line)["input_ids"] for line in lines]
        failures.append(check(draw, programs, model, tokenizer, lines, prompts, []))
    return [*failures, check_chat(draw, programs, model, tokenizer), check_chat(draw, programs, model, tokenizer)]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    transformers.utils.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    found: list[Failure | None] = []
    with torch.no_grad():
        for number in range(MODELS):
            found += one(draw, programs.within(str(number)))
    return len(found), [failure for failure in found if failure]

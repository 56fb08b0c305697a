"""Sounds to text: random Whisper models in folders with tokenizers, random sounds and settings, `posenc transcribe` beside transformers'
generate() of each sound alone: tokens, languages, segments, times of tokens, text and words.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
import whisper_folders
import whisper_oracle
from safetensors.torch import load_file, save_file

from harness import Draw, Failure, Programs

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speech"))
import sounds  # noqa: E402

FOLDERS, CALLS, ROWS, RATE = 2, 3, 3, 16000


def settings_of(draw: Draw, model, tokenizer) -> "dict[str, object]":
    """Those of a call."""
    config, chosen = model.generation_config, {}
    languages = [name.strip("<|>") for name in getattr(config, "lang_to_id", {})]
    short = model.config.max_target_positions // 2
    offers = {"num_beams": [2, 3], "max_new_tokens": [1, 3, short - 2], "repetition_penalty": [1.3], "no_repeat_ngram_size": [2],
              "condition_on_prev_tokens": [True], "temperature": [[0.0, 0.4], [0.0, 0.7, 0.2], None], "suppress_tokens": [[5, 6, 7]],
              "max_initial_timestamp_index": [0, 10], "length_penalty": [0.5], "min_new_tokens": [2], "early_stopping": [True]}  # fmt: skip
    if languages:
        offers |= {"language": languages + [None], "task": ["transcribe", "translate"]}
    for name, values in offers.items():
        if draw.coin(0.25):
            chosen[name] = draw.choice(values)
    if draw.coin(0.4):  # retries, which choose as greedy search
        chosen |= {"temperature": draw.choice([[0.0, 0.4], [0.0, 0.2, 0.8]]), "top_k": 1, "logprob_threshold": draw.choice([-1.0, -2.0, -0.3])}
        if draw.coin():
            chosen["compression_ratio_threshold"] = draw.choice([1.0, 1.35, 0.6])
        if draw.coin():
            chosen["no_speech_threshold"] = draw.choice([0.001, 0.004, 0.5])
    elif "temperature" in chosen:
        chosen["top_k"] = 1
    if draw.coin(0.3):
        prompt = tokenizer.get_prompt_ids(draw.choice(whisper_folders.TEXT)[: draw.randint(1, 9)]).tolist()
        chosen["prompt_ids"] = [int(token) for token in prompt[: model.config.max_target_positions // 2 - 6]]
        if chosen.get("condition_on_prev_tokens") and draw.coin():
            chosen["prompt_condition_type"] = "all-segments"
    return {name: value for name, value in chosen.items() if value is not None or name == "temperature"}


def rows_of(draw: Draw, model, extractor, long: bool) -> "list[tuple[torch.Tensor, int, np.ndarray]]":
    """Features, frames of the sound, and the sound."""
    rng, rows = np.random.default_rng(draw.getrandbits(62)), []
    for _ in range(draw.randint(1, ROWS)):
        seconds = draw.uniform(1.0, 3.0) if long else draw.uniform(0.05, 1.0)
        samples = sounds.sound(rng, 1, int(extractor.n_samples * seconds) + long, RATE)[0]
        samples = np.round(samples * 2**15).clip(-(2**15), 2**15 - 1).astype(np.float32) / 2**15
        found = sounds.features(extractor, samples)
        rows.append((torch.from_numpy(found["input_features"][0]), int(found["attention_mask"].sum()), samples))
    return rows


def expected(draw: Draw, model, rows, settings, times: str, masked: bool) -> "list[dict[str, object] | str]":
    given = dict(settings)
    if times != "folder":
        given["return_timestamps"] = times != "none"
    found = []
    for features, sounding, _ in rows:
        try:
            found.append(whisper_oracle.transcribe(model, features, sounding if masked else None, given, times == "word"))
        except (ValueError, IndexError) as error:  # refused
            found.append(str(error))
    return found


def differ(got: "dict[str, object]", want: "dict[str, object]") -> str:
    for name in ("language", "sequences"):
        if got[name] != want[name]:
            return f"{name} {got[name]} for {want[name]}"
    if "segments" in got:
        ours, theirs = got["segments"], want["segments"]
        if [one[2] for one in ours] != [one[2] for one in theirs]:
            return f"segments {ours} for {theirs}"
        if any(abs(a - b) > 1e-9 for one, other in zip(ours, theirs) for a, b in zip(one[:2], other[:2])):
            return f"times {ours} for {theirs}"
    if "token_timestamps" in got and not np.allclose(got["token_timestamps"], want["token_timestamps"], atol=1e-5):
        return f"times of tokens {got['token_timestamps']} for {want['token_timestamps']}"
    return ""


def near(draw: Draw, model, row, settings, times: str, masked: bool, same) -> bool:
    """Whether transformers itself, of features that differ by rounding, gives what we give, or several results."""
    features, sounding, samples = row
    seen = set()
    for _ in range(12):
        other = (features + 2e-6 * draw.normal(*features.shape), sounding, samples)
        want = expected(draw, model, [other], settings, times, masked)[0]
        if isinstance(want, dict) and not same(want):
            return True
        seen.add(json.dumps(want))
    return len(seen) > 1


def flags(settings, times: str) -> "list[str]":
    found = [] if times == "folder" else ["--timestamps", times]
    for name, value in settings.items():
        found += ["--set", f"{name}={json.dumps(value)}"]
    return found


def of_tensors(draw: Draw, programs: Programs, folder: Path, model, rows, settings, times: str, masked: bool) -> "list[dict] | str":
    """What the command makes of features."""
    longest = max(features.shape[1] for features, _, _ in rows)
    stacked = torch.stack([torch.nn.functional.pad(features, (0, longest - features.shape[1]), value=draw.choice([0.0, 1.0])) for features, _, _ in rows])
    tensors = {"input_features": stacked}
    given = dict(settings)
    if masked:
        tensors["attention_mask"] = torch.stack([(torch.arange(longest) < sounding).long() for _, sounding, _ in rows])
    if "prompt_ids" in given and draw.coin():
        tensors["prompt_ids"] = torch.tensor(given.pop("prompt_ids"))
    file, out = folder / f"{draw.getrandbits(40)}.safetensors", folder / "out.st"
    out.unlink(missing_ok=True)
    save_file(tensors, file)
    done = programs.posenc("transcribe", folder / "model", "--in", file, "--out", out, *flags(given, times), *(["--plain"] if draw.coin(0.3) else []))
    if done.returncode:
        return done.stderr.strip() if not out.exists() else "failed, and wrote a file"
    return split_rows(load_file(out), model.generation_config.pad_token_id, len(rows))


def split_rows(tensors, pad: int, count: int) -> "list[dict]":
    result, at = [], 0
    for row in range(count):
        own = {"sequences": tensors["sequences"][row].tolist(), "language": int(tensors["languages"][row])}
        if "segments" in tensors:
            spans = [one for one in range(len(tensors["segments"])) if int(tensors["segments"][one, 0]) == row]
            own["segments"], begin = [], 0
            for one in spans:
                length = int(tensors["segment_lengths"][one])
                own["segments"].append((*tensors["segments"][one, 1:].tolist(), own["sequences"][begin : begin + length]))
                begin += length
            at += len(spans)
            own["sequences"] = own["sequences"][:begin]
            if "token_timestamps" in tensors:
                own["token_timestamps"] = tensors["token_timestamps"][row, :begin].tolist()
        else:
            while own["sequences"] and own["sequences"][-1] == pad:
                own["sequences"].pop()
        result.append(own)
    return result


def of_sounds(draw: Draw, programs: Programs, folder: Path, model, rows, settings, times: str) -> "list[dict] | str":
    """What the command makes of files of sound: lines of JSON."""
    files = []
    for number, (_, _, samples) in enumerate(rows):
        data, _ = sounds.quantised(samples[None].astype(np.float64), sounds.PCM, 16)
        files.append(folder / f"{number}.wav")
        files[-1].write_bytes(sounds.wav(sounds.format_chunk(sounds.PCM, 16, 1, RATE), sounds.chunk(b"data", data)))
    batch = ["--batch", draw.choice([1, 2, 8])]
    done = programs.posenc("transcribe", folder / "model", *(part for file in files for part in ("--in", file)), *flags(settings, times), *batch)
    if done.returncode:
        return done.stderr.strip() if not done.stdout else "failed, and wrote"
    found = [json.loads(line) for line in done.stdout.splitlines()]
    ids = getattr(model.generation_config, "lang_to_id", {})
    for one in found:
        one["sequences"], one["language_code"] = one.pop("tokens"), one["language"]
        one["language"] = ids[f"<|{one['language']}|>"] if one["language"] is not None else -1
        if "segments" in one:
            one["all"] = one["segments"]
            one["segments"] = [(segment["start"], segment["end"], segment["tokens"]) for segment in one["all"]]
    return found


def texts_differ(tokenizer, got, want, times: str, first: int) -> str:
    if got["text"] != tokenizer.decode(want["sequences"], skip_special_tokens=True):
        return f"text {got['text']!r} for {tokenizer.decode(want['sequences'], skip_special_tokens=True)!r}"
    for one in got.get("all", []):
        if one["text"] != tokenizer.decode(one["tokens"], skip_special_tokens=True):
            return f"text of a segment {one['text']!r}"
    if times == "word":
        words = whisper_oracle.words_of(tokenizer, want, got["language_code"], first)
        if words != [one["words"] for one in got["all"]]:
            return f"words {[one['words'] for one in got['all']]} for {words}"
    return ""


def batch(draw: Draw, programs: Programs) -> "tuple[int, list[Failure]]":
    count, failures = 0, []
    for number in range(FOLDERS):
        folder = programs.folder / str(number)
        model, tokenizer, extractor = whisper_folders.folder(draw, folder / "model")
        first = model.generation_config.no_timestamps_token_id + 1
        for _ in range(CALLS):
            long, is_sound = draw.coin(), draw.coin()
            rows, settings = rows_of(draw, model, extractor, long), settings_of(draw, model, tokenizer)
            times = draw.choice(["folder", "segment", "word", "word"] + ([] if long else ["none"]))
            masked = is_sound or draw.coin(0.7) or (long and len(rows) > 1)
            try:
                wanted = expected(draw, model, rows, settings, times, masked)
            except whisper_oracle.NoProgress:
                continue
            got = of_sounds(draw, programs, folder, model, rows, settings, times) if is_sound else of_tensors(draw, programs, folder, model, rows, settings, times, masked)
            what = f"{folder / 'model'}: {'sounds' if is_sound else 'tensors'} of {[row[1] for row in rows]} frames, {' '.join(flags(settings, times))}"
            count += len(rows)
            refusals = [want for want in wanted if isinstance(want, str)]
            if isinstance(got, str) or refusals:
                if not isinstance(got, str) or not refusals or "posenc transcribe: " not in got:
                    failures.append(Failure(what, f"{got if isinstance(got, str) else 'not refused'}; transformers: {refusals}"))
                continue
            for row, own, want in zip(rows, got, wanted):
                def differs(other, own=own) -> str:
                    return differ(own, other) or (texts_differ(tokenizer, own, other, times, first) if is_sound else "")

                why = differs(want)
                if why and not near(draw, model, row, settings, times, masked, differs):
                    failures.append(Failure(what, why))
    return count, failures

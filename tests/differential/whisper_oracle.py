"""transformers' generate() for one sound alone, without what is broken in 5.23: docs/speech.md lists it."""

import contextlib
import copy

import torch
from transformers.models.whisper import generation_whisper, tokenization_whisper

Mixin = generation_whisper.WhisperGenerationMixin
MOST_WINDOWS = 40


class NoProgress(Exception):
    """transformers would not end."""


def mended(model, first: int, beams: int, max_length: int):
    """Replaces functions of a model, until the function that this returns is called."""
    own = {name: getattr(model, name) for name in ("generate_with_fallback", "_set_max_new_tokens_and_length", "_extract_token_timestamps")}
    retrieve = Mixin.__dict__["_retrieve_segment"]

    def fallback(*arguments, generation_config, **others):
        generation_config.num_beams = beams  # which a retry sets to 1 for good
        return own["generate_with_fallback"](*arguments, generation_config=generation_config, **others)

    def lengths(config, decoder_input_ids, generation_config):
        generation_config.max_length = max_length  # which grows with each window
        own["_set_max_new_tokens_and_length"](config, decoder_input_ids, generation_config)

    def times(outputs, *arguments, num_frames=None, **others):
        if num_frames is not None and int(num_frames[0]) < 2:  # a window beyond the sound: they would be those of the end, or -0.02
            return torch.zeros(outputs.sequences.shape)
        return own["_extract_token_timestamps"](outputs, *arguments, num_frames=num_frames, **others)

    def segment(seek_sequence, seek_num_frames, time_offset, prev_idx, **others):
        found, offset = retrieve.__func__(seek_sequence=seek_sequence, seek_num_frames=seek_num_frames, time_offset=time_offset, prev_idx=prev_idx, **others)
        tokens = seek_sequence.tolist()
        stamps, pairs = [token for token in tokens if token >= first], [pair for pair in zip(tokens, tokens[1:]) if min(pair) >= first]
        if not pairs and stamps[-1:] in ([], [first]):  # some numbers of frames would be one step shorter
            found[0]["end"] = time_offset[prev_idx] + int(seek_num_frames[prev_idx]) // 2 * 0.02
        return found, offset if int(offset) else seek_num_frames[prev_idx]

    for name, replaced in {"generate_with_fallback": fallback, "_set_max_new_tokens_and_length": lengths, "_extract_token_timestamps": times}.items():
        setattr(model, name, replaced)
    Mixin._retrieve_segment = staticmethod(segment)

    def undo() -> None:
        for name in own:
            delattr(model, name)
        Mixin._retrieve_segment = retrieve

    return undo


def transcribe(model, features: torch.Tensor, sounding: "int | None", settings: "dict[str, object]", words: bool) -> "dict[str, object]":
    """`features` (M, F). Returns the row's sequences, segments, language and times of tokens."""
    settings = dict(settings)
    config = copy.deepcopy(model.generation_config)
    for name in ("max_initial_timestamp_index",):  # which is no keyword where the folder has none
        if name in settings:
            setattr(config, name, settings.pop(name))
    if "prompt_ids" in settings:
        settings["prompt_ids"] = torch.tensor(settings["prompt_ids"])
    settings.setdefault("temperature", 0.0)
    window = 2 * model.config.max_source_positions
    if features.shape[1] > window:
        settings.setdefault("return_timestamps", True)
    first = config.no_timestamps_token_id + 1
    undo = mended(model, first, settings.get("num_beams") or config.num_beams or 1, settings.get("max_length") or config.max_length)
    saved, prefixes, windows = copy.deepcopy(model.generation_config), [], 0
    prepare = model._prepare_decoder_input_ids

    def seen(*arguments, **others):
        nonlocal windows
        windows += 1
        if windows > MOST_WINDOWS:
            raise NoProgress
        found = prepare(*arguments, **others)
        prefixes.append(others["init_tokens"][0].tolist())
        return found

    model._prepare_decoder_input_ids = seen
    mask = None if sounding is None else (torch.arange(features.shape[1]) < sounding).long()[None]
    try:
        with contextlib.redirect_stdout(None):
            found = model.generate(features[None], generation_config=config, attention_mask=mask, return_segments=True,
                                   return_token_timestamps=words or None, **settings)  # fmt: skip
    finally:
        undo()
        del model._prepare_decoder_input_ids
        model.generation_config = saved
    languages = getattr(config, "lang_to_id", {}).values()
    segments = found["segments"][0]
    times = [time for one in segments for time in one["token_timestamps"].tolist()] if words else []
    return {"sequences": found["sequences"][0].tolist() if segments else [], "language": next((token for token in prefixes[0][1:] if token in languages), -1),
            "segments": [(float(one["start"]), float(one["end"]), one["tokens"].tolist()) for one in segments], "token_timestamps": times}  # fmt: skip


def words_of(tokenizer, row: "dict[str, object]", code: "str | None", first: int) -> "list[list[dict]]":
    """The words of each segment, from the times of all tokens of the row."""
    times, begin, found = row["token_timestamps"], 0, []
    special = set(tokenizer.all_special_ids)
    for _, _, tokens in row["segments"]:
        kept, spans = [], []
        for i, token in enumerate(tokens, begin):
            if token not in special and token < first:
                kept.append(token)
                spans.append((round(times[i - 1] if i else 0.0, 2), round(times[i], 2)))
        begin += len(tokens)
        language = tokenization_whisper.LANGUAGES.get(code or "") or "english"
        found.append([{"text": word["text"], "start": word["timestamp"][0], "end": word["timestamp"][1]}
                      for word in tokenization_whisper._collate_word_timestamps(tokenizer, kept, spans, language, False)])  # fmt: skip
    return found

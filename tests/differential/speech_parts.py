"""Parts of the recogniser of speech beside the functions of transformers' Whisper: segments, compression, times of tokens, words, prompts and
what begins a window.
"""

import copy
import types

import numpy as np
import torch
import whisper_folders
from transformers import GenerationConfig
from transformers.models.whisper import generation_whisper as theirs
from transformers.models.whisper import tokenization_whisper

from harness import Case, Draw, Failure, Programs, run

FIRST, CASES = 40, 30
Mixin = theirs.WhisperGenerationMixin


def tokens(draw: Draw, length: int, timestamps: float = 0.4) -> "list[int]":
    times = iter(sorted(draw.randrange(FIRST, FIRST + 51) for _ in range(length)))
    found: "list[int]" = []
    while len(found) < length:
        found += [next(times)] * draw.choice([1, 2]) if draw.coin(timestamps) else [draw.randrange(30)]
    return found[:length]


def split(draw: Draw) -> Case:
    text, seek, frames = tokens(draw, draw.randint(0, 9), draw.choice([0.0, 0.3, 0.6])), 2 * draw.randrange(3000), draw.randint(1, 100)
    segments, offset = Mixin._retrieve_segment(
        torch.tensor(text, dtype=torch.long), [None], torch.tensor([seek], dtype=torch.float64) * 0.02 / 2, FIRST, torch.tensor([frames]), 0.02, 0.01, 2,
        0, 0, False, torch.zeros(1, 0))  # fmt: skip
    if int(offset) == 0:  # then it would begin this window again
        offset = frames
    rows = [[float(one["start"]), float(one["end"]), *one["idxs"]] for one in segments]
    stamps = [token for token in text if token >= FIRST]
    has_pair = any(min(pair) >= FIRST for pair in zip(text, text[1:]))
    if not has_pair and stamps[-1:] in ([], [FIRST]):
        rows[0][1] = seek * 0.02 / 2 + frames // 2 * 0.02  # theirs is one step less for some numbers of frames
    return Case({"op": "speech_split", "tokens": text, "first_timestamp": FIRST, "seek": seek, "frames": frames}, {},
                {"segments": torch.tensor(rows, dtype=torch.float64).view(-1, 4), "frames": torch.tensor([int(offset)])}, "bits")  # fmt: skip


def ratio(draw: Draw) -> Case:
    vocab = draw.choice([17, 255, 256, 257, 60000, 65536, 70000])
    some = [draw.randrange(vocab) for _ in range(draw.randint(1, 20))]
    text = draw.choices(some, k=draw.randint(1, 448))
    expected = Mixin._retrieve_compression_ratio(torch.tensor(text), vocab)
    return Case({"op": "speech_ratio", "tokens": text, "vocab": vocab}, {}, {"ratio": torch.tensor(expected, dtype=torch.float64)}, "bits")


def times(draw: Draw) -> Case:
    """Of one window: transformers' function, on what a search would return."""
    heads, count, columns, all_columns = draw.randint(1, 4), draw.randint(1, 12), draw.choice([1, 2, 3, 9, 50, draw.randint(1, 60)]), 60
    attention = torch.softmax(draw.normal(heads, count - 1, all_columns) * draw.choice([0.1, 3.0, 30.0]), -1)
    if draw.coin(0.2):
        attention = attention.round(decimals=1)  # so that sums are equal
    width = draw.choice([1, 3, 7, 9])
    prefix = draw.randint(1, 4)
    steps = torch.cat([torch.zeros(heads, prefix, all_columns), attention], 1)[None]
    outputs = type("Outputs", (dict,), {"__getattr__": dict.__getitem__})(cross_attentions=[(steps,)], sequences=torch.zeros(1, prefix + count))
    model = types.SimpleNamespace(config=types.SimpleNamespace(decoder_layers=1, median_filter_width=width))
    found = Mixin._extract_token_timestamps(model, outputs, [[0, head] for head in range(heads)], num_frames=torch.tensor([2 * columns + draw.randint(0, 1)]),
                                            num_input_ids=prefix)  # fmt: skip
    return Case({"op": "speech_times", "columns": columns, "count": count, "width": width}, {"attention": attention}, {"times": found[0, prefix:]}, "bits")


def to_bytes(text: str) -> torch.Tensor:
    return torch.tensor([byte - 256 if byte > 127 else byte for byte in text.encode()], dtype=torch.long)


def words(draw: Draw, folder, tokenizer) -> Case:
    first = tokenizer.convert_tokens_to_ids("<|notimestamps|>") + 1
    text = "".join(draw.choice([" ", "", "  "]) + draw.choice([*draw.choice(whisper_folders.TEXT).split(), "-", "(", "“", "。", "¿"]) for _ in range(draw.randint(0, 8)))
    ids = tokenizer(text, add_special_tokens=False).input_ids
    for _ in range(draw.randint(0, 4)):  # broken characters, special tokens and timestamps
        ids.insert(draw.randint(0, len(ids)), draw.choice([draw.randrange(256), draw.choice(tokenizer.all_special_ids), first + draw.randrange(50)]))
    moments = np.sort(np.array([draw.randrange(0, 100) for _ in ids])).astype(np.float32) * np.float32(0.02)
    before, code = float(np.float32(draw.choice([0.0, 0.1]))), draw.choice(["", "en", "zh", "ja", "de", "yue"])
    language = tokenization_whisper.LANGUAGES.get(code)
    kept, spans = [], []
    for i, token in enumerate(ids):
        if token not in tokenizer.all_special_ids and token < first:
            kept.append(token)
            spans.append((round(float(moments[i - 1]) if i else before, 2), round(float(moments[i]), 2)))
    found = tokenization_whisper._collate_word_timestamps(tokenizer, kept, spans, language, False)
    expected = {"text": to_bytes(tokenizer.decode(ids, skip_special_tokens=True)), "words": to_bytes("".join(word["text"] + "\0" for word in found)),
                "spans": torch.tensor([word["timestamp"] for word in found], dtype=torch.float64).view(-1, 2)}  # fmt: skip
    return Case({"op": "speech_words", "folder": str(folder), "tokens": ids, "before": before, "first_timestamp": first, "language": code},
                {"times": torch.from_numpy(moments)}, expected, "bits")  # fmt: skip


def prompt(draw: Draw, folder, tokenizer) -> Case:
    text = draw.choice(["", " ", "\u3000 ", "\n"]) + " ".join(draw.choices(draw.choice(whisper_folders.TEXT).split(), k=3)) + draw.choice(["", " ", "\t\u2003"])
    if draw.coin(0.2):
        return Case({"op": "speech_prompt", "folder": str(folder), "text": text + " <|en|> <|endoftext|>"}, {}, {}, refused="special token")
    return Case({"op": "speech_prompt", "folder": str(folder), "text": text}, {}, {"ids": torch.from_numpy(tokenizer.get_prompt_ids(text)).long()}, "bits")


def generation(draw: Draw, vocab: int) -> "dict[str, object]":
    settings: "dict[str, object]" = {"decoder_start_token_id": 30, "eos_token_id": 29, "pad_token_id": draw.choice([29, 29, 3]), "max_length": draw.choice([20, 9, 60])}
    if draw.coin(0.8):
        settings["no_timestamps_token_id"] = FIRST - 1
    if draw.coin(0.8):
        settings["lang_to_id"] = {"<|en|>": 31, "<|de|>": 32, "<|es|>": 33}
    if draw.coin(0.8):
        settings["task_to_id"] = {"transcribe": 34, "translate": 35}
    if draw.coin(0.5):
        settings["is_multilingual"] = draw.coin(0.8)
    if draw.coin(0.4):
        settings["forced_decoder_ids"] = draw.choice([[[1, None], [2, 34]], [[1, 32], [2, 35], [3, FIRST - 1]], [[2, 34]], [[1, 31], [3, 34]], [[1, FIRST - 1]]])
    if draw.coin(0.2):
        settings["language"] = draw.choice(["de", "english", "<|es|>"])
    if draw.coin(0.2):
        settings["task"] = draw.choice(["transcribe", "translate"])
    if draw.coin(0.6):
        settings["prev_sot_token_id"] = 36
    if draw.coin(0.5):
        settings["suppress_tokens"] = draw.sample(range(30), draw.randint(1, 3))
    if draw.coin(0.3):
        settings["condition_on_prev_tokens"] = draw.coin()
    return settings


class Model(Mixin):
    """What transformers' functions ask of a model."""

    device = torch.device("cpu")

    def __init__(self, config, detected: int):
        self.config, self.detected, self.detects = config, detected, 0

    def detect_language(self, **_):
        self.detects = 1
        return torch.tensor([self.detected])


def prefix(draw: Draw) -> Case:
    settings, vocab = generation(draw, FIRST + 51), FIRST + 51
    positions, detected, long = draw.choice([12, 24, 25, 60]), draw.choice([31, 32, 33]), draw.coin(0.6)
    overrides: "dict[str, object]" = {}
    for name, values in {"language": ["es", "Castilian", "GERMAN", "<|en|>", "italian", "klingon"], "task": ["translate", "transcribe"], "max_new_tokens": [3],
                         "condition_on_prev_tokens": [True, False], "prompt_ids": [[36, 5, 6], [7, 8, 9, 3], [36] + [4] * 9]}.items():  # fmt: skip
        if draw.coin(0.35):
            overrides[name] = draw.choice(values)
    if overrides.get("condition_on_prev_tokens") and draw.coin():
        overrides["prompt_condition_type"] = draw.choice(["first-segment", "all-segments"])
    config = {"forced_decoder_ids": [[1, 33], [2, 35]]} if draw.coin(0.2) else {}
    timestamps = long and "no_timestamps_token_id" in settings
    texts = [tokens(draw, draw.randint(0, 9)) for _ in range(draw.randint(0, 4))]
    is_low = draw.coin(0.8)
    case = Case({"op": "speech_prefix", "generation": settings, "config": config, "overrides": overrides, "vocab": vocab, "max_target_positions": positions,
                 "timestamps": timestamps, "detected": detected, "texts": texts, "is_low": is_low}, {}, {}, "bits")  # fmt: skip
    known = copy.deepcopy(settings)
    if "lang_to_id" not in known:  # an error of transformers'
        known.pop("language", None)
    if "task_to_id" not in known:
        known.pop("task", None)
    own = GenerationConfig(**known)
    own.suppress_tokens = None
    own.return_timestamps = timestamps
    try:
        model = Model(types.SimpleNamespace(max_target_positions=positions, **config), detected)
        Mixin._set_language_and_task(overrides.get("language"), overrides.get("task"), None, own)
        Mixin._set_thresholds_and_condition(own, None, None, None, overrides.get("condition_on_prev_tokens"))
        Mixin._set_prompt_condition_type(own, overrides.get("prompt_condition_type"))
        initial = model._retrieve_init_tokens(None, 1, own, model.config, 100, {})
        given = torch.tensor(overrides["prompt_ids"]) if "prompt_ids" in overrides else None
        segments = model._prepare_segments(given, 1, own)
        segments[0] += [{"tokens": torch.tensor(text, dtype=torch.long)} for text in texts]
        first = not texts
        condition = overrides.get("condition_on_prev_tokens") if first else own.condition_on_prev_tokens and is_low
        found, kwargs = model._prepare_decoder_input_ids(1, initial, segments, [0], [condition], given, own, model.config, "cpu",
                                                         torch.tensor(settings.get("suppress_tokens", [])) if "suppress_tokens" in settings else None,
                                                         FIRST if "no_timestamps_token_id" in settings else vocab + 1, {})  # fmt: skip
        own.max_new_tokens = overrides.get("max_new_tokens")
        model._set_max_new_tokens_and_length(model.config, found, own)
        most = found.shape[1] + own.max_new_tokens if own.max_new_tokens else own.max_length
        if most <= found.shape[1]:
            raise ValueError("no new tokens")
    except (ValueError, KeyError):
        case.refused = "must"
        return case
    if "decoder_attention_mask" in kwargs:  # nothing attends to padding
        found = found[kwargs["decoder_attention_mask"]][None]
    case.expected = {"detects": torch.tensor([model.detects]), "initial": initial[0], "prefix": found[0].long(), "most": torch.tensor([most])}
    return case


def batch(draw: Draw, programs: Programs) -> "tuple[int, list[Failure]]":
    folder = programs.folder / "model"
    tokenizer = whisper_folders.folder(draw, folder)[1]
    cases = [make(draw) for make in (split, ratio, times) for _ in range(CASES)] + [prefix(draw) for _ in range(4 * CASES)]
    cases += [make(draw, folder, tokenizer) for make in (words, prompt) for _ in range(CASES)]
    return run(programs, cases)

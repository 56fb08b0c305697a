"""Sounds that espeak-ng says, and what transformers, faster-whisper and posenc write of them: texts, times, words and seconds.

All read the same 16-bit samples at 16 kHz, search greedily and write timestamps.
"""

import re
import statistics
import subprocess
import sys
import time
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from page_tables import ROOT
from published_packages import CannotCompare, last_line, program_folder

sys.path += [str(ROOT / "tests/differential"), str(ROOT / "tests/speech")]
import sounds  # noqa: E402

RATE, ROUNDS = 16000, 3
STORY = (
    "Nobody expects the weather to change before Thursday. The old lighthouse is on a narrow rock, two miles from the harbour. Every evening the keeper "
    "climbs one hundred and forty steps, and lights the lamp. From the top he can see the fishing boats, the long white beach, and the roofs of the village. "
    "In winter the waves are so high that no boat can reach the rock for weeks. Then he reads the books that his sister has sent him, and writes letters which "
    "nobody collects. Last year a young woman came to repair the clock. She stayed for three days, because of a storm, and told him about the cities where she "
    "had worked. When the sea was calm again, she went back with the doctor, who had come to look at his hand. Since that day he has been learning to play the "
    "piano. It is a small instrument, and some of the keys are broken, but on quiet nights the sailors can hear it. They say that it is the only lighthouse in "
    "the world which can be found in the fog by its music. The keeper does not know about this. He thinks that the ships come closer to look at the lamp, and he "
    "cleans the glass with great care every morning. In the spring a new boat brought him bread, coffee, oil for the lamp, and a large parcel from his sister."
)
PAUSE = "<break time='7s'/>"


@dataclass
class Sound:
    name: str
    file: Path
    samples: np.ndarray
    is_short: bool  # within a window


@dataclass
class Heard:
    """What is written of a sound: times are (start, end) of segments, words (text, start, end)."""

    text: str
    times: list
    words: list

    def parts(self, sound: Sound) -> dict[str, object]:
        return {"text": self.text, "times": self.times} | ({"words": self.words} if sound.is_short else {})


# --- sounds ---


def said(text: str, folder: Path) -> np.ndarray:
    """(n) at RATE."""
    file = folder / "said.wav"
    try:
        done = subprocess.run(["espeak-ng", "-v", "en", "-s", "155", "-m", "-w", file, text], capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotCompare("speech needs the program espeak-ng; `make setup` installs it") from None
    if done.returncode:
        raise CannotCompare(f"espeak-ng: {last_line(done.stderr)}")
    with wave.open(str(file)) as sound:
        samples = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2") / 2**15
        return sounds.resampled(samples, sound.getframerate(), RATE)


def sound_of(name: str, file: Path, samples: np.ndarray, most: int) -> Sound:
    """Written into a file of 16 bits; short up to `most` samples."""
    data, rounded = sounds.quantised(samples[None], sounds.PCM, 16)
    file.write_bytes(sounds.wav(sounds.format_chunk(sounds.PCM, 16, 1, RATE), sounds.chunk(b"data", data)))
    return Sound(name, file, rounded[0], len(samples) <= most)


def say(folder: Path, window: int) -> list[Sound]:
    """Sounds of a sentence, of two and a half windows, with pauses, and of silence. `window`: in samples."""
    sentences = re.split(r"(?<=[.]) ", STORY)
    story = said(STORY, folder)[: 5 * window // 2]
    made = {"a sentence": said(sentences[0], folder)[:window], f"{len(story) / RATE:.4g} s": story,
            "pauses": said(PAUSE.join(sentences[:4]), folder)[: 3 * window // 2], "silence": np.zeros(window // 6)}  # fmt: skip
    return [sound_of(name, folder / f"{number}.wav", samples, window) for number, (name, samples) in enumerate(made.items())]


# --- what is written ---


def rounded(seconds: float) -> float:
    return round(float(seconds), 2)


def features(extractor, sound: Sound) -> tuple[torch.Tensor, int]:
    """(M, F), and how many frames the sound has."""
    found = sounds.features(extractor, sound.samples)
    return torch.from_numpy(found["input_features"][0]), int(found["attention_mask"].sum())


def by_transformers(model, tokenizer, features: torch.Tensor, frames: int) -> tuple[Heard, list[int]]:
    """With the tokens."""
    import whisper_oracle

    row = whisper_oracle.transcribe(model, features, frames, {"return_timestamps": True}, words=True)
    code = getattr(model.generation_config, "lang_to_id", {})
    language = next((name.strip("<|>") for name, token in code.items() if token == row["language"]), None)
    words = whisper_oracle.words_of(tokenizer, row, language, model.generation_config.no_timestamps_token_id + 1)
    times = [(rounded(start), rounded(end)) for start, end, _ in row["segments"]]
    text = tokenizer.decode(row["sequences"], skip_special_tokens=True)
    return Heard(text, times, [(word["text"], word["start"], word["end"]) for segment in words for word in segment]), row["sequences"]


def of_json(line: dict) -> Heard:
    """Of a line of `posenc transcribe --timestamps word`."""
    words = [(word["text"], word["start"], word["end"]) for segment in line["segments"] for word in segment["words"]]
    return Heard(line["text"], [(rounded(one["start"]), rounded(one["end"])) for one in line["segments"]], words)


def faster_whisper(folder: Path, dtype: str) -> Callable[[np.ndarray], Heard]:
    """On a file in CTranslate2's format: greedy, one try, without voice detection and earlier text."""
    sys.path.append(str(program_folder("faster-whisper", "av")))
    from faster_whisper import WhisperModel

    model = WhisperModel(str(folder), device="cpu", compute_type=dtype, cpu_threads=1, local_files_only=True)

    def call(samples: np.ndarray) -> Heard:
        segments, _ = model.transcribe(samples, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False, vad_filter=False,
                                       compression_ratio_threshold=None, log_prob_threshold=None, no_speech_threshold=None)  # fmt: skip
        found = list(segments)
        return Heard("".join(one.text for one in found), [(rounded(one.start), rounded(one.end)) for one in found], [])

    return call


def differences(sound: Sound, got: Heard, want: Heard, names: tuple[str, ...] = ("text", "times", "words")) -> list[str]:
    """A line for each part that differs, from shortly before the first difference on."""
    lines, theirs = [], want.parts(sound)
    for name, ours in got.parts(sound).items():
        if name in names and ours != theirs[name]:
            one, other = str(ours), str(theirs[name])
            first = max(0, next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other))) - 20)
            lines.append(f"{sound.name}: {name} ...{one[first : first + 60]!r} for ...{other[first : first + 60]!r}")
    return lines


# --- seconds ---


def generating(folder: Path, sound: Sound) -> Callable[[], object]:
    """transformers as it is, with the attention that it chooses."""
    from transformers import AutoFeatureExtractor, AutoModelForSpeechSeq2Seq

    model, extractor = AutoModelForSpeechSeq2Seq.from_pretrained(folder, dtype=torch.float32).eval(), AutoFeatureExtractor.from_pretrained(folder)
    return lambda: model.generate(features(extractor, sound)[0][None], return_timestamps=True, num_beams=1)


def medians(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Of ROUNDS rounds in which they take turns."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def seconds_line(sound: Sound, taken: dict[str, float]) -> str:
    """posenc's without the loading of the model, and how many times as long each of the others takes as posenc in the same numbers. A model
    that is small takes no longer than its loading varies."""
    ours = {dtype: max(1e-3, taken["posenc" + dtype] - taken["loading" + dtype]) for dtype in ("", " int8") if "posenc" + dtype in taken}
    theirs = [f"{name} {seconds:.2f} s ({seconds / ours[' int8' if name.endswith('int8') else '']:.2f}x)"
              for name, seconds in taken.items() if not name.startswith(("posenc", "loading"))]  # fmt: skip
    return f"{sound.name} on one thread: " + ", ".join([f"posenc{dtype} {seconds:.2f} s" for dtype, seconds in ours.items()] + theirs)

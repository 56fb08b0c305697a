"""Sounds to features: random sounds in WAV files of every format and in arrays, at random rates, with feature extractors of random
settings, `posenc transcribe --features` beside transformers' WhisperFeatureExtractor. tests/speech/sounds.py has the bounds.
"""

import io
import sys
from pathlib import Path

import numpy as np
from harness import Draw, Failure, Programs
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speech"))
import sounds  # noqa: E402

CASES = 12


def array(rng: np.random.Generator, samples: np.ndarray) -> "tuple[bytes, np.ndarray, str]":
    """A file of np.save."""
    made = samples.astype(rng.choice(["float32", "float64"]))
    if len(made) == 1 and rng.random() < 0.5:
        made = made[0]
    if rng.random() < 0.3:
        made = np.asfortranarray(made)
    file = io.BytesIO()
    np.lib.format.write_array(file, made, version=(int(rng.integers(1, 4)), 0))
    return file.getvalue(), samples.astype(np.float32), f".npy {made.dtype} {made.shape}"


def settings(own) -> "dict[str, object]":
    return {name: value for name, value in own.to_dict().items() if isinstance(value, (int, float))}


def batch(draw: Draw, programs: Programs) -> "tuple[int, list[Failure]]":
    rng, failures = np.random.default_rng(draw.getrandbits(62)), []
    for number in range(CASES):
        folder = programs.folder / f"model-{number}"
        own = sounds.extractor(rng, folder)
        rate = int(rng.choice([own.sampling_rate, own.sampling_rate, 8000, 11025, 22050, 24000, 44100, 48000, rng.integers(1000, 100000)]))
        seconds = own.chunk_length * rng.choice([0.0, rng.uniform(0, 1), rng.uniform(0, 1), rng.uniform(1, 1.5), 1.0])
        is_array = rng.random() < 0.3
        samples = sounds.sound(rng, int(rng.integers(1, 3 if is_array else 6)), int(seconds * rate), rate)
        data, means, what = array(rng, samples) if is_array else sounds.drawn_wav(rng, samples, rate)
        file, out = programs.folder / f"{number}.sound", programs.folder / f"{number}.safetensors"
        file.write_bytes(data)
        stated = ["--rate", rate] if is_array and (rate != own.sampling_rate or rng.random() < 0.5) else []
        done = programs.posenc("transcribe", folder, "--in", file, "--features", "--out", out, *stated)
        what = f"{what}, {samples.shape} at {rate} Hz, {settings(own)}"
        if done.returncode:
            failures.append(Failure(what, done.stderr.strip()))
            continue
        mean = means.astype(np.float64).mean(0)
        why = sounds.differ(load_file(out), sounds.features(own, sounds.resampled(mean, rate, own.sampling_rate)), rate != own.sampling_rate)
        if why:
            failures.append(Failure(what, why))
    return CASES, failures

"""Random sounds and their files, and the features that transformers and torchaudio's formula give of them.

`resampled` is the formula of torchaudio.functional.resample (sinc_interp_hann, a window of 6 zeros, roll-off 0.99), written out: its
weights in float64, rounded to float32, and the sums in float64. torchaudio itself rounds the phases of its weights to float32 first.
"""

import math
import struct
from pathlib import Path

import numpy as np

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
FORMATS = [(PCM, 8), (PCM, 16), (PCM, 24), (PCM, 32), (FLOAT, 32), (FLOAT, 64)]
REST_OF_GUID = bytes.fromhex("000000001000800000aa00389b71")


def sound(rng: np.random.Generator, channels: int, count: int, rate: int) -> np.ndarray:
    """(channels, count) float64 in [-1, 1]: tones that slide, noise, clicks and silence."""
    time = np.arange(count) / rate
    rows = []
    for _ in range(channels):
        row = rng.uniform(0, 0.4) * np.sin(2 * np.pi * (rng.uniform(50, 3000) * time + rng.uniform(-500, 500) * time**2))
        row += 10 ** rng.uniform(-6, -0.5) * rng.standard_normal(count)
        if count and rng.random() < 0.3:
            row[rng.integers(0, count, 3)] = 1.0
        if rng.random() < 0.3:
            row[count // 2 :] = 0.0
        rows.append(row * 10 ** rng.uniform(-3, 0))
    return np.clip(np.array(rows).reshape(channels, count), -1, 1)


def quantised(samples: np.ndarray, tag: int, bits: int) -> "tuple[bytes, np.ndarray]":
    """The interleaved bytes of (C, n) samples, and what they mean, float32."""
    frames = samples.T.reshape(-1)
    if tag == FLOAT:
        frames = frames.astype("<f4" if bits == 32 else "<f8")
        return frames.tobytes(), frames.astype(np.float32).reshape(samples.shape[::-1]).T
    scale = 2.0 ** (bits - 1)
    whole = np.clip(np.round(frames * scale), -scale, scale - 1).astype(np.int64)
    if bits == 8:
        data = (whole + 128).astype(np.uint8).tobytes()
    else:
        data = whole.astype("<i8").view(np.uint8).reshape(-1, 8)[:, : bits // 8].tobytes()
    return data, (whole / scale).astype(np.float32).reshape(samples.shape[::-1]).T


def chunk(name: bytes, data: bytes, size: "int | None" = None) -> bytes:
    return name + struct.pack("<I", len(data) if size is None else size) + data + b"\0" * (len(data) % 2)


def format_chunk(tag: int, bits: int, channels: int, rate: int, extensible: bool = False) -> bytes:
    block = channels * bits // 8
    fields = struct.pack("<HHIIHH", EXTENSIBLE if extensible else tag, channels, rate, rate * block % 2**32, block, bits)
    if extensible:
        fields += struct.pack("<HHIH", 22, bits, 0, tag) + REST_OF_GUID
    return chunk(b"fmt ", fields)


def wav(*chunks: bytes) -> bytes:
    return b"RIFF" + struct.pack("<I", (4 + sum(map(len, chunks))) % 2**32) + b"WAVE" + b"".join(chunks)


def drawn_wav(rng: np.random.Generator, samples: np.ndarray, rate: int) -> "tuple[bytes, np.ndarray, str]":
    """A WAV file of any format with other chunks, what it means, and what it is."""
    tag, bits = FORMATS[rng.integers(len(FORMATS))]
    extensible = rng.random() < 0.3
    data, means = quantised(samples, tag, bits)
    size = rng.choice([None, None, 0, 0xFFFFFFFF])
    torn = b"\7" * int(rng.integers(0, bits // 8 * len(samples)))
    others = [chunk(b"LIST", b"x" * int(rng.integers(0, 9))) for _ in range(rng.integers(0, 3))]
    if size is None and data:  # the sound may also end before the file
        end = chunk(b"data", data + torn) + chunk(b"LIST", b"abc")
    else:
        end = chunk(b"data", data + torn, size and int(size))[: 8 + len(data + torn)]
    what = f"{'extensible ' if extensible else ''}{'PCM' if tag == PCM else 'float'} {bits}, size {size}, {len(torn)} bytes torn"
    return wav(*others[:1], format_chunk(tag, bits, len(samples), rate, extensible), *others[1:], end), means, what


def resampled(samples: np.ndarray, source: int, target: int) -> np.ndarray:
    """(n) at another rate, float64."""
    if source == target:
        return samples
    common = math.gcd(source, target)
    before, after = source // common, target // common
    factor = 0.99 * min(before, after)
    width = math.ceil(6 * before / factor)
    count = -(-after * len(samples) // before)
    padded = np.concatenate([np.zeros(width), samples.astype(np.float64), np.zeros(width + before)])
    result = np.empty(count)
    for phase in range(min(after, count)):
        first = phase * before // after - width  # beyond, the window is 0 in float32
        taps = np.arange(first, first + 2 * width + 2)
        taps = taps[(taps >= -width) & (taps < width + before)]
        t = np.clip((taps / before - phase / after) * factor, -6, 6)
        weights = (np.cos(np.pi * t / 12) ** 2 * np.sinc(t) * factor / before).astype(np.float32).astype(np.float64)
        starts = np.arange(len(range(phase, count, after))) * before + taps[0] + width
        result[phase::after] = np.lib.stride_tricks.sliding_window_view(padded, len(taps))[starts] @ weights
    return result


def extractor(rng: np.random.Generator, folder: Path):
    """A WhisperFeatureExtractor of random settings, saved in the folder as 5.x or older releases save it."""
    import json

    import transformers

    settings = {"feature_size": int(rng.choice([80, 128, rng.integers(1, 40)])), "chunk_length": int(rng.choice([1, 2, 2, 30])),
                "sampling_rate": int(rng.choice([16000, 16000, 8000, 22050])), "padding_value": float(rng.choice([0.0, 0.0, 0.25]))}  # fmt: skip
    if rng.random() < 0.4:
        settings |= {"n_fft": int(2 * rng.integers(8, 600)), "hop_length": int(rng.integers(20, 400))}
    own = transformers.WhisperFeatureExtractor(**settings)
    own.save_pretrained(folder)
    if rng.random() < 0.5:
        saved = json.loads((folder / "preprocessor_config.json").read_text())
        (folder / "processor_config.json").write_text(json.dumps({"processor_class": "WhisperProcessor", "feature_extractor": saved}))
        if rng.random() < 0.5:
            (folder / "preprocessor_config.json").unlink()
        else:  # which 5.x does not read then
            (folder / "preprocessor_config.json").write_text(json.dumps(saved | {"feature_size": 3}))
    return own


def features(own, samples: np.ndarray) -> "dict[str, np.ndarray]":
    """Those of the pipeline: shorter sounds padded, longer ones as they are."""
    is_long = len(samples) > own.n_samples
    found = own(samples.astype(np.float32), sampling_rate=own.sampling_rate, return_attention_mask=True, return_tensors="np",
                **({"truncation": False, "padding": "longest"} if is_long else {}))  # fmt: skip
    return {"input_features": found["input_features"], "attention_mask": found["attention_mask"]}


def differ(got: "dict[str, np.ndarray]", expected: "dict[str, np.ndarray]", is_resampled: bool) -> str:
    """Returns "" if the features agree: to 1e-4, 3e-4 of a sound that was resampled, and 2e-3 more than 60 dB below the maximum."""
    if set(got) != set(expected):
        return f"tensors {sorted(got)}"
    for name in expected:
        if got[name].shape != expected[name].shape:
            return f"{name}: {got[name].shape} for {expected[name].shape}"
    if not np.array_equal(got["attention_mask"], expected["attention_mask"]):
        return f"attention_mask has {got['attention_mask'].sum()} ones for {expected['attention_mask'].sum()}"
    a, b = got["input_features"].astype(np.float64), expected["input_features"].astype(np.float64)
    bound = np.where(b < b.max() - 1.5, 2e-3, 3e-4 if is_resampled else 1e-4)
    worst = np.abs(a - b) / bound
    return f"off by {np.abs(a - b).max():.3g}, {worst.max():.3g} of what is allowed" if not worst.max() <= 1 else ""

"""`posenc transcribe --features` beside transformers' WhisperFeatureExtractor, on files that scipy, Python's wave and NumPy write, and
on files that are refused.

    tests/speech/commands_test.py --posenc build/release/posenc [--seed N]
"""

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

import numpy as np
import scipy.io.wavfile
import sounds
import transformers
from safetensors.numpy import load_file
from sounds import FLOAT, PCM, chunk, format_chunk, wav

options: argparse.Namespace
RATE, SECONDS = 16000, 1


class Commands(unittest.TestCase):
    def setUp(self):
        self.seed = options.seed if options.seed is not None else random.randrange(2**32)
        self.rng = np.random.default_rng([self.seed, *self._testMethodName.encode()])
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model, self.file, self.out = self.folder / "model", self.folder / "sound", self.folder / "out.safetensors"
        self.own = transformers.WhisperFeatureExtractor(chunk_length=SECONDS)
        self.own.save_pretrained(self.model)

    def posenc(self, *arguments, status: int = 0) -> str:
        words = [options.posenc, "transcribe", self.model, "--in", self.file, "--features", "--out", self.out, *arguments]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, status, f"--seed {self.seed}\n{done.stderr}")
        return done.stderr

    def agrees(self, means: np.ndarray, rate: int, *arguments) -> None:
        """The file, of which the samples `means` (C, n) are what it means."""
        self.posenc(*arguments)
        expected = sounds.features(self.own, sounds.resampled(means.astype(np.float64).mean(0), rate, RATE))
        self.assertEqual(sounds.differ(load_file(self.out), expected, rate != RATE), "", f"--seed {self.seed}")

    def refused(self, data: "bytes | None", *parts: str, arguments: "tuple[str, ...]" = ()) -> None:
        """Status 1, one line that names the file and what is wrong, and nothing written."""
        if data is not None:
            self.file.write_bytes(data)
        before = sorted(self.folder.iterdir())
        message = self.posenc(*arguments, status=1)
        self.assertEqual(message.count("\n"), 1, message)
        for part in parts:
            self.assertIn(part, message)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_files_of_scipy(self):
        for dtype in ("uint8", "int16", "int32", "float32", "float64"):
            for channels in (1, 3):
                samples = sounds.sound(self.rng, channels, int(self.rng.integers(100, 20000)), RATE)
                bits = np.dtype(dtype).itemsize * 8
                data, means = sounds.quantised(samples, FLOAT if "float" in dtype else PCM, bits)
                scipy.io.wavfile.write(self.file, RATE, np.frombuffer(data, dtype).reshape(-1, channels))
                self.agrees(means, RATE)

    def test_files_of_wave(self):
        for bits in (8, 16, 24, 32):
            data, means = sounds.quantised(sounds.sound(self.rng, 2, 5001, 8000), PCM, bits)
            with wave.open(str(self.file), "wb") as file:
                file.setparams((2, bits // 8, 8000, 0, "NONE", ""))
                file.writeframes(data)
            self.agrees(means, 8000)

    def test_arrays(self):
        samples = sounds.sound(self.rng, 2, 7000, 22050)
        with open(self.file, "wb") as file:
            np.save(file, samples)
        self.agrees(samples.astype(np.float32), 22050, "--rate", 22050)
        self.agrees(samples.astype(np.float32), RATE)
        with open(self.file, "wb") as file:
            np.save(file, samples[0].astype(np.float32))
        self.agrees(samples[:1].astype(np.float32), RATE, "--rate", RATE)

    def test_a_sound_is_padded_and_a_longer_one_is_whole(self):
        for count in (0, 1, 159, 160, 161, SECONDS * RATE - 1, SECONDS * RATE, SECONDS * RATE + 1, 3 * RATE + 77):
            data, means = sounds.quantised(sounds.sound(self.rng, 1, count, RATE), PCM, 16)
            self.file.write_bytes(wav(format_chunk(PCM, 16, 1, RATE), chunk(b"data", data)))
            self.agrees(means, RATE)
            found = load_file(self.out)
            self.assertEqual(found["input_features"].shape, (1, 80, max(count, SECONDS * RATE) // 160))
            self.assertEqual(found["attention_mask"].dtype, np.int64)
            if count == 0:
                self.assertTrue((found["input_features"] == -1.5).all())

    def test_the_last_frame_may_be_torn(self):
        data, means = sounds.quantised(sounds.sound(self.rng, 2, 900, RATE), PCM, 24)
        whole = wav(format_chunk(PCM, 24, 2, RATE), chunk(b"data", data))
        for cut in (1, 3, 5):
            self.file.write_bytes(whole[:-cut])
            self.agrees(means[:, :-1], RATE)
        self.refused(whole[:-6], "must have the 5400 bytes that its chunk `data` states. Got 5394")

    def test_settings_of_a_processor_come_first(self):
        data, means = sounds.quantised(sounds.sound(self.rng, 1, 4000, RATE), PCM, 16)
        self.file.write_bytes(wav(format_chunk(PCM, 16, 1, RATE), chunk(b"data", data)))
        other = transformers.WhisperFeatureExtractor(chunk_length=SECONDS, feature_size=7, n_fft=128).to_dict()
        for shared, filters in (({"feature_extractor": other}, 7), ({"processor_class": "WhisperProcessor"}, 80)):
            (self.model / "processor_config.json").write_text(json.dumps(shared))
            self.own = transformers.WhisperFeatureExtractor.from_pretrained(self.model)
            self.assertEqual(self.own.feature_size, filters)
            self.agrees(means, RATE)

    def test_random_folders(self):
        for number in range(6):
            self.model = self.folder / f"model-{number}"
            own = sounds.extractor(self.rng, self.model)
            samples = sounds.sound(self.rng, 1, int(own.n_samples * self.rng.uniform(0, 1.5)), own.sampling_rate)
            data, means, what = sounds.drawn_wav(self.rng, samples, own.sampling_rate)
            self.file.write_bytes(data)
            self.posenc()
            self.assertEqual(sounds.differ(load_file(self.out), sounds.features(own, means[0]), False), "", f"--seed {self.seed} {what}")

    def test_files_that_are_no_sound(self):
        form, data = format_chunk(PCM, 16, 1, RATE), chunk(b"data", b"\1\2" * 50)
        fields = lambda **changed: chunk(b"fmt ", struct.pack("<HHIIHH", *{"tag": 1, "channels": 1, "rate": RATE, "bytes": 2 * RATE, "block": 2, "bits": 16, **changed}.values()))  # noqa: E731
        self.refused(b"", "sound", "is empty")
        self.refused(b"ID3\4\0\0", "format", "MP3")
        self.refused(b"fLaC\0\0\0\x22", "format", "FLAC")
        self.refused(b"OggS\0\2", "format", "Ogg")
        self.refused(b"RF64" + wav(form, data)[4:], "format", "RF64")
        self.refused(b"text, and no sound", "format WAV", "'text, and no")
        self.refused(b"RIFF\4\0\0\0AVI ", "format WAV")
        self.refused(wav(form), "must have a chunk `data`. Got no such chunk")
        self.refused(wav(data, form), "must have a chunk `fmt ` before `data`. Got no such chunk")
        self.refused(wav(form, chunk(b"LIST", b"", 2**32 - 2), data), "must have the 4294967294 bytes that its chunk 'LIST' states. Got 108")
        self.refused(wav(form, chunk(b"data", b"\1\2" * 50, 4_000_000_000)), "must have the 4000000000 bytes that its chunk `data` states. Got 100")
        self.refused(wav(chunk(b"fmt ", b"\1\0" * 7), data), "must have at least 16 bytes in the chunk `fmt `. Got 14")
        for tag, name in ((6, "A-law"), (7, "mu-law"), (2, "ADPCM of Microsoft"), (17, "ADPCM of IMA"), (85, "MP3"), (99, "number 99")):
            self.refused(wav(fields(tag=tag, block=1, bits=8), data), "format", f"Got {name} of 8 bits")
        self.refused(wav(fields(bits=12), data), "format", "Got PCM of 12 bits")
        self.refused(wav(fields(tag=3), data), "format", "Got floating-point of 16 bits")
        self.refused(wav(fields(channels=0, block=0), data), "must have at least one channel. Got 0")
        self.refused(wav(fields(rate=0), data), "must have a rate of at least 1 Hz. Got 0")
        self.refused(wav(fields(rate=10**9), data), "must have a rate of at most 10 MHz. Got 1000000000")
        self.refused(wav(fields(block=3), data), "must have frames of as many bytes as its channels have. Got 3")
        whole = format_chunk(PCM, 16, 1, RATE, extensible=True)
        self.refused(wav(whole[:-4] + b"....", data), "format", "an unknown sub-format")
        self.refused(wav(chunk(b"fmt ", whole[8:26]), data), "must have 40 bytes in the chunk `fmt ` of WAVE_FORMAT_EXTENSIBLE. Got 18")
        self.refused(wav(format_chunk(FLOAT, 32, 2, RATE), chunk(b"data", np.array([0, 0, 1, np.nan], "<f4").tobytes())), "finite", "Got nan at sample 1 of channel 1")
        self.refused(wav(format_chunk(FLOAT, 64, 1, RATE), chunk(b"data", np.array([1e300], "<f8").tobytes())), "finite", "Got inf at sample 0 of channel 0")

    def test_arrays_that_are_no_sound(self):
        def npy(array: np.ndarray, change=lambda data: data) -> bytes:
            with open(self.folder / "array", "wb") as file:
                np.save(file, array)
            return change((self.folder / "array").read_bytes())

        some = np.zeros(9, np.float32)
        npy(some)  # so that the folder has the file
        self.refused(npy(some.astype(np.int16)), "must have the dtype float32 or float64", "Got '<i2'")
        self.refused(npy(some.astype(np.float16)), "must have the dtype float32 or float64", "Got '<f2'")
        self.refused(npy(some.astype(">f4")), "little-endian", "Got '>f4'")
        self.refused(npy(np.zeros((3, 4), np.float32)), "must have the shape (n) or (C, n) with one or two channels. Got (3, 4)")
        self.refused(npy(np.zeros((0, 4), np.float32)), "Got (0, 4)")
        self.refused(npy(np.zeros((1, 1, 4), np.float32)), "must have the shape (n) or (C, n). Got more axes")
        self.refused(npy(np.float32(1.0)), "Got ()")
        self.refused(npy(np.zeros(3, [("a", "<f4")])), "must have a header with a name in quotes here")
        self.refused(npy(np.array([0, np.inf])), "finite", "Got inf at sample 1 of channel 0")
        self.refused(npy(some, lambda data: data[:-1]), "must have the 36 bytes of its array. Got 35")
        self.refused(npy(some, lambda data: data[:9]), "must have a header. Got 9 bytes")
        self.refused(npy(some, lambda data: data[:40]), "must have a header of 118 bytes. Got 30")
        self.refused(npy(some, lambda data: data.replace(b"(9,)", b"(99999999999999,)").replace(b" " * 12, b"", 1)), "must have the 399999999999996 bytes of its array")
        self.refused(npy(some, lambda data: data[:6] + b"\7" + data[7:]), "must have version 1, 2 or 3 of the format. Got 7")
        self.refused(npy(some, lambda data: data.replace(b"'shape'", b"'shade'")), "must have a header of descr, fortran_order and shape, each once. Got 'shade'")

    def test_settings_that_are_none(self):
        self.file.write_bytes(wav(format_chunk(PCM, 16, 1, 8000), chunk(b"data", b"\1\2" * 50)))
        own = self.model / "preprocessor_config.json"
        saved = json.loads(own.read_text())
        for name, value, message in (
            ("feature_size", 0, "feature_size must be an integer from 1 to 1073741824. Got 0"), ("n_fft", 2.5, "n_fft must be an integer from 1 to 1073741824. Got 2.5"),
            ("hop_length", "x", 'hop_length must be a number. Got "x"'), ("sampling_rate", None, "sampling_rate must be a number. Got null"),
            ("n_fft", 1, "n_fft must be at least 2. Got 1"), ("chunk_length", 10**9, "chunk_length * sampling_rate must be at most 268435456. Got 1000000000 * 16000"),
            ("sampling_rate", 10**9, "sampling_rate must be at most 10000000 Hz. Got 1000000000"),
            ("dither", float("nan"), "dither must be finite. Got nan"), ("feature_extractor_type", "Wav2Vec2FeatureExtractor", 'must be WhisperFeatureExtractor, the only one that posenc has. Got "Wav2Vec2FeatureExtractor"'),
            ("padding_side", "left", 'padding_side must be right, the only one that posenc has. Got "left"'), ("n_fft", 40000, "samples must be at least 20001 for n_fft 40000"),
        ):  # fmt: skip
            own.write_text(json.dumps(saved | {name: value}))
            self.refused(None, message)
        own.write_text("[]")
        self.refused(None, "preprocessor_config.json: must be a JSON object. Got array")
        own.unlink()
        self.refused(None, "preprocessor_config.json: cannot be opened: No such file")
        shared = self.model / "processor_config.json"
        shared.write_text("{}")
        self.refused(None, "processor_config.json: must have feature_extractor where there is no preprocessor_config.json. Got no such setting")
        shared.write_text(json.dumps({"feature_extractor": saved | {"n_fft": -1}}))
        self.refused(None, "processor_config.json: feature_extractor.n_fft must be an integer")
        shared.write_text(json.dumps({"feature_extractor": saved}))
        self.refused(None, "--rate must be the rate that the file states, 8000. Got 16000", arguments=("--rate", "16000"))
        self.posenc("--rate", 8000)

    def test_the_command_line(self):
        self.assertIn("--in", self.posenc("--in", self.file, status=2))
        self.assertIn("--language", self.posenc("--language", "de", status=2))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int, default=None)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

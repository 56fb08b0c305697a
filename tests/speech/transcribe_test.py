"""`posenc transcribe`: what it writes of sounds in each format, alone and in batches, and what it refuses. tests/differential has its results
beside transformers.

    tests/speech/transcribe_test.py --posenc build/release/posenc [--seed N]
"""

import argparse
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "differential"))
import sounds  # noqa: E402
import whisper_folders  # noqa: E402
from harness import Draw  # noqa: E402

options: argparse.Namespace
RATE = 16000


class Transcribe(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        transformers.logging.set_verbosity_error()
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4))
        draw = Draw(f"{cls.seed}")
        cls.model = Path(cls.place.name) / "model"
        whisper_folders.folder(draw, cls.model, ["en", "de", "ja"])
        cls.change_settings("generation_config.json", return_timestamps=False, max_length=12, forced_decoder_ids=None)
        cls.seconds = json.loads((cls.model / "preprocessor_config.json").read_text())["chunk_length"]

    @classmethod
    def change_settings(cls, name: str, **changed):
        file = cls.model / name
        settings = json.loads(file.read_text()) | changed
        file.write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = np.random.default_rng([self.seed, *self._testMethodName.encode()])

    def wav(self, name: str, seconds: float, rate: int = RATE) -> Path:
        data, _ = sounds.quantised(sounds.sound(self.rng, 1, int(seconds * rate), rate), sounds.PCM, 16)
        file = self.folder / name
        file.write_bytes(sounds.wav(sounds.format_chunk(sounds.PCM, 16, 1, rate), sounds.chunk(b"data", data)))
        return file

    def run_on(self, inputs, *arguments, status: int = 0, model=None) -> subprocess.CompletedProcess:
        words = [options.posenc, "transcribe", model or self.model, *(part for one in inputs for part in ("--in", one)), *arguments]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, status, f"--seed {self.seed}\n{done.stderr}")
        return done

    def lines(self, inputs, *arguments) -> "list[dict]":
        done = self.run_on(inputs, *arguments)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refused(self, inputs, *arguments, says: str, status: int = 1, model=None) -> None:
        """One line, and nothing written."""
        out = self.folder / "out.json"
        before = sorted(self.folder.iterdir())
        done = self.run_on(inputs, *arguments, *([] if "--out" in arguments else ["--out", out]), status=status, model=model)
        self.assertIn(says, done.stderr)
        self.assertEqual((done.stderr.count("\n"), done.stdout), (1 if status == 1 else 2, ""), done.stderr)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_a_line_a_sound(self):
        files = [self.wav(f"{number}.wav", seconds) for number, seconds in enumerate((0.4, 2.7, 1.3, 0.01))]
        files.insert(2, self.wav("empty.wav", 0))
        for arguments in ([], ["--int8"], ["--timestamps", "word", "--set", "num_beams=2"], ["--timestamps", "segment", "--set", "condition_on_prev_tokens=true"],
                          ["--set", "temperature=[0.7, 0.9]", "--set", "logprob_threshold=-0.1", "--seed", "3"]):  # fmt: skip
            alone = [self.run_on([file], *arguments).stdout for file in files]
            for batch in (1, 2, 5):
                self.assertEqual(self.run_on(files, "--batch", batch, *arguments).stdout, "".join(alone), (arguments, batch))
            found = [json.loads(line) for line in alone]
            self.assertEqual([one["duration"] for one in found], [0.4, 2.7, 0.0, 1.3, 0.01])
            self.assertEqual((found[2]["text"], found[2]["language"], found[2]["tokens"], found[2].get("segments", [])), ("", None, [], []))
            for one in found:
                self.assertEqual(list(one), ["text", "language", "tokens", "duration"] + ["segments"] * ("--timestamps" in arguments))
                for segment in one.get("segments", []):
                    self.assertEqual(list(segment), ["start", "end", "text", "tokens"] + ["words"] * ("word" in arguments))

    def test_modules_and_arrays(self):
        file = self.wav("sound.wav", 1.5)
        samples = np.frombuffer(file.read_bytes()[44:], "<i2") / np.float32(2**15)
        np.save(self.folder / "sound.npy", samples)
        expected = self.lines([file], "--timestamps", "word")
        self.assertEqual(self.lines([self.folder / "sound.npy"], "--timestamps", "word"), expected)
        self.assertEqual(self.lines([file], "--timestamps", "word", "--rate", RATE), expected)
        self.assertEqual(self.lines([file], "--timestamps", "word", "--plain"), expected)
        frozen = self.folder / "frozen"
        subprocess.run([options.posenc, "freeze", self.model, frozen], check=True, capture_output=True)
        self.assertEqual(json.loads(self.run_on([file], "--timestamps", "word", model=frozen).stdout), expected[0])

    def test_seeds(self):
        file = self.wav("sound.wav", 2.5)
        drawn = [self.lines([file], "--set", "temperature=1.5", "--seed", seed)[0]["tokens"] for seed in (1, 1, 2, 3, 4)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertGreater(len(set(map(tuple, drawn))), 1)
        self.assertEqual(self.lines([file], "--set", "temperature=1.5", "--set", "seed=1")[0]["tokens"], drawn[0])

    def test_subtitles(self):
        file = self.wav("sound.wav", 3.4)
        for times in ("segment", "word"):
            found = self.lines([file], "--timestamps", times)[0]
            cues = [(cue["start"], cue["end"], cue["text"].strip()) for segment in found["segments"]
                    for cue in ([segment] if times == "segment" else segment["words"]) if re.sub(r"[ \t\r\n]+", "", cue["text"])]  # fmt: skip
            for end, point in (("srt", ","), ("vtt", ".")):
                out = self.folder / f"out.{end}"
                self.run_on([file], "--out", out, *(["--timestamps", "word"] if times == "word" else []))
                text = out.read_text()
                self.assertEqual(text.startswith("WEBVTT\n\n"), end == "vtt")
                written = re.findall(rf"(\d\d):(\d\d):(\d\d){re.escape(point)}(\d\d\d) --> (\d\d):(\d\d):(\d\d){re.escape(point)}(\d\d\d)\n", text)
                times_of = [tuple(round(int(h) * 3600 + int(m) * 60 + int(s) + int(ms) / 1000, 3) for h, m, s, ms in (one[:4], one[4:])) for one in written]
                self.assertEqual(times_of, [(round(a, 3), round(b, 3)) for a, b, _ in cues])
                if end == "srt":
                    self.assertEqual(re.findall(r"^(\d+)\n\d\d:", text, re.M), [str(number + 1) for number in range(len(cues))])
        self.run_on([file], "--out", self.folder / "out.txt", "--timestamps", "segment")
        lines = [re.sub(r"[\r\n]", " ", segment["text"]).strip(" \t") for segment in self.lines([file], "--timestamps", "segment")[0]["segments"]]
        self.assertEqual((self.folder / "out.txt").read_text(), "".join(line + "\n" for line in lines if line))
        self.run_on([file], "--out", self.folder / "out.json", "--timestamps", "segment")
        self.assertEqual(json.loads((self.folder / "out.json").read_text()), self.lines([file], "--timestamps", "segment")[0])

    def test_words_have_the_tokens_of_the_text(self):
        """Not those that are special in tokenizer.json alone, of which transformers makes words like <|0.04|>."""
        folder, file = self.folder / "bare", self.wav("sound.wav", 0.8)
        shutil.copytree(self.model, folder)
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        self.assertIn("<|de|>", settings.pop("extra_special_tokens"))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        special = json.loads((folder / "generation_config.json").read_text())["lang_to_id"]["<|de|>"]
        bias = ["--set", f"sequence_bias={[[[token], 40.0] for token in (special, 65, 66)]}", "--set", "no_repeat_ngram_size=2", "--set", "max_new_tokens=9"]
        found = json.loads(self.run_on([file], "--timestamps", "word", *bias, model=folder).stdout)
        self.assertTrue({special, 65, 66} <= set(found["tokens"]), f"--seed {self.seed}: {found}")
        for segment in found["segments"]:
            self.assertEqual("".join(word["text"] for word in segment["words"]), segment["text"], f"--seed {self.seed}")

    def test_a_terminal_has_segments(self):
        """Standard output is a terminal: the segments as they come, with their times, in place of JSON."""
        file, (ours, theirs) = self.wav("sound.wav", 2.2), pty.openpty()
        done = subprocess.run([options.posenc, "transcribe", self.model, "--in", file], stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=250)
        os.close(theirs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:
                break
            if not part:
                break
            shown += part
        segments = self.lines([file], "--timestamps", "segment")[0]["segments"]
        self.assertEqual(shown.decode("utf-8", "replace").count(" --> "), len(segments))
        self.assertNotIn(b"{", shown[:1])

    def test_tensors(self):
        model, _, extractor = whisper_folders.loaded(self.model)
        window, samples = 2 * model.config.max_source_positions, sounds.sound(self.rng, 1, RATE // 2, RATE)[0].astype(np.float32)
        given = extractor(samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        file, out = self.folder / "given.safetensors", self.folder / "out.safetensors"
        save_file({"input_features": given.input_features, "attention_mask": given.attention_mask.long(), "prompt_ids": torch.tensor([1, 2])}, file)
        for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json"):  # which tensors do not need
            shutil.copytree(self.model, self.folder / "bare", dirs_exist_ok=True)
            (self.folder / "bare" / name).unlink()
        self.run_on([file], "--out", out, "--timestamps", "word", model=self.folder / "bare")
        found = load_file(out)
        self.assertEqual({name: (value.dtype, value.dim()) for name, value in found.items()}, {
            "sequences": (torch.int64, 2), "languages": (torch.int64, 1), "segments": (torch.float64, 2), "segment_lengths": (torch.int64, 1),
            "token_timestamps": (torch.float32, 2)})  # fmt: skip
        self.assertEqual(found["sequences"].shape, found["token_timestamps"].shape)
        self.assertIn(int(found["languages"][0]), model.generation_config.lang_to_id.values())
        out.unlink()
        bins, mask = model.config.num_mel_bins, given.attention_mask.long()
        for tensors, says in (
            ({"attention_mask": mask}, "input_features"), ({"input_features": given.input_features, "mask": mask}, "mask"),
            ({"input_features": torch.zeros(1, bins + 1, window)}, f"input_features must be float32 (N, {bins}, F)"),
            ({"input_features": torch.zeros(1, bins, window, dtype=torch.float64)}, "input_features must be float32"),
            ({"input_features": torch.zeros(2, bins, window + 1)}, "need attention_mask"),
            ({"input_features": given.input_features, "attention_mask": mask[:, 1:]}, "attention_mask must be (N, F)"),
            ({"input_features": given.input_features, "attention_mask": 2 * mask}, "attention_mask must be 0 or 1. Got 2"),
            ({"input_features": given.input_features, "attention_mask": mask / 0.0}, "attention_mask must be 0 or 1. Got "),
            ({"input_features": given.input_features * float("inf")}, "input_features must be finite"),
            ({"input_features": given.input_features, "prompt_ids": torch.tensor([[1]])}, "prompt_ids"),
            ({"input_features": given.input_features, "prompt_ids": torch.tensor([99999])}, "prompt_ids must be"),
        ):  # fmt: skip
            save_file({name: value.contiguous() for name, value in tensors.items()}, file)
            self.refused([file], "--out", out, says=says)
        save_file({"input_features": given.input_features.contiguous(), "prompt_ids": torch.tensor([1])}, file)
        self.refused([file], "--out", out, "--set", "prompt_ids=[1]", says="--set prompt_ids must not be given with a tensor", status=2)
        self.refused([file], "--out", out, "--rate", 8000, says="--rate must be given for sounds, not for tensors", status=2)
        self.assertIn("--out is required for tensors", self.run_on([file], status=2).stderr)
        self.refused([file, file], "--out", out, says="--in must be one file for tensors", status=2)

    def test_rows_end_in_the_padding_of_the_call(self):
        """Rows of unequal lengths, with the setting's token after the shorter ones, as generate() has it, and without one the folder's."""
        model, _, _ = whisper_folders.loaded(self.model)
        window = 2 * model.config.max_source_positions
        file, out = self.folder / "given.safetensors", self.folder / "out.safetensors"
        mask = (torch.arange(3 * window) < torch.tensor([[window // 2], [3 * window]])).long()
        save_file({"input_features": torch.from_numpy(self.rng.normal(size=(2, model.config.num_mel_bins, 3 * window)).astype(np.float32)), "attention_mask": mask}, file)
        for settings, fill in (([], model.generation_config.pad_token_id), (["--set", "pad_token_id=7"], 7), (["--set", "pad_token_id=null"], model.generation_config.eos_token_id),
                               (["--set", "pad_token_id=null", "--set", "eos_token_id=9"], 9)):  # fmt: skip
            self.run_on([file], "--out", out, "--timestamps", "segment", *settings)
            found = load_file(out)
            lengths = [int(found["segment_lengths"][found["segments"][:, 0] == row].sum()) for row in range(2)]
            self.assertLess(lengths[0], lengths[1], f"--seed {self.seed}")
            self.assertEqual(found["sequences"].shape, (2, lengths[1]))
            self.assertEqual(found["sequences"][0, lengths[0] :].unique().tolist(), [fill], settings)

    def test_generate_names_the_command_of_speech(self):
        ids = self.folder / "ids.safetensors"
        save_file({"input_ids": torch.tensor([[1, 2]])}, ids)
        for arguments in (["--text", "-"], ["--in", ids, "--out", self.folder / "out.safetensors"]):
            done = subprocess.run([str(word) for word in (options.posenc, "generate", self.model, *arguments)], input="a text\n", capture_output=True, text=True, timeout=250)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
            self.assertIn("posenc transcribe", done.stderr)
            self.assertNotIn("posenc translate", done.stderr)

    def test_refusals(self):
        short, long, torn = self.wav("short.wav", 0.3), self.wav("long.wav", 3.1), self.wav("torn.wav", 0.5)
        torn.write_bytes(torn.read_bytes()[:-999])
        self.refused([short, torn], says="torn.wav: must have the 16000 bytes that its chunk `data` states")
        self.refused([self.folder / "absent.wav"], says="absent.wav")
        self.refused([short], "--language", "klingon", says="language must be a language's English name or code, such as german or de. Got 'klingon'")
        self.refused([short], "--language", "welsh", says="language must be one of the languages that the model has, its lang_to_id. Got 'welsh'")
        self.refused([short], "--set", "language=[\"en\", \"de\"]", says="must have a language for each of the 1 sounds. Got 2")
        self.refused([short], "--set", "beam_size=2", says="beam_size must be a setting of transformers' generate()")
        self.refused([short], "--set", "num_beams=0", says="num_beams")
        self.refused([short], "--set", "num_return_sequences=2", "--set", "num_beams=2", says="num_return_sequences must be 1")
        self.refused([short], "--set", "no_speech_threshold=0.5", says="no_speech_threshold needs logprob_threshold")
        self.refused([short], "--set", "max_new_tokens=400", says="max_target_positions")
        self.refused([short], "--set", "decoder_start_token_id=[1, 2]", says="settings: decoder_start_token_id must be one token. Got [1,2]")
        self.refused([short], "--set", "repetition_penalty=1e60", says="settings: repetition_penalty must be above 0 and finite, in float32. Got 1e+60")
        vocab = json.loads((self.model / "config.json").read_text())["vocab_size"]
        self.refused([short], "--set", f"suppress_tokens={list(range(vocab))}", "--timestamps", "none",
                     says="generation_config.json: token 1 of source 0 must have a logit that is a number and not suppressed. Got -inf, with suppress_tokens")  # fmt: skip
        self.refused([long], "--timestamps", "none", says="timestamps must not be switched off for a sound that is longer than a window")
        self.refused([long], "--set", "return_timestamps=false", says="timestamps must not be switched off")
        self.refused([short], "--prompt", "a <|endoftext|>", says="prompt must have no special token. Got '<|endoftext|>'")
        self.refused([short], "--prompt", "a", "--set", "prompt_ids=[1]", says="prompt must not be given with prompt_ids")
        self.refused([short], "--rate", 8000, says="rate must be that which the file states, 16000. Got 8000")
        self.refused([short], "--language", "en", "--set", "language=\"de\"", says="--set language must not be given with --language", status=2)
        self.refused([short], "--timestamps", "word", "--set", "return_timestamps=true", says="--set return_timestamps must not be given with --timestamps", status=2)
        self.refused([short, long], "--out", self.folder / "out.srt", says="--in must be one file for subtitles", status=2)
        self.refused([short], "--out", self.folder / "out.SRT", "--set", "return_timestamps=false",
                     says="--set return_timestamps must not be given for subtitles", status=2)  # fmt: skip
        for seconds in (0.5, 3.1):
            loud = self.folder / "loud.npy"
            np.save(loud, np.full(int(16000 * seconds), 3e38, np.float32))
            self.refused([short, loud], says="loud.npy: energies must be finite in float32")
        self.refused([short], "--out", self.folder / "out.vtt", "--timestamps", "none", says="--timestamps must not be none for subtitles", status=2)
        self.refused([short], "--out", self.model / "config.json", says="must not be a file that is read")
        self.refused([short], "--out", short, says="must not be a file that is read")

    def test_folders_that_are_refused(self):
        short, folder = self.wav("short.wav", 0.3), self.folder / "other"
        shutil.copytree(self.model, folder)

        def refused(says: str, name: str, changed: "dict | None") -> None:
            before = (folder / name).read_bytes()
            if changed is None:
                (folder / name).unlink()
            else:
                (folder / name).write_text(json.dumps(json.loads(before) | changed))
            self.refused([short], says=says, model=folder)
            (folder / name).write_bytes(before)

        refused("tokenizer", "tokenizer.json", None)
        refused("preprocessor_config.json", "preprocessor_config.json", None)
        refused("num_mel_bins must be feature_size of the feature extractor", "preprocessor_config.json", {"feature_size": 3})
        refused("model_type", "config.json", {"model_type": "moonshine"})
        refused("model_type", "config.json", {"model_type": "bert"})
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(settings | {"median_filter_width": 4}))  # which words alone need
        self.assertEqual(self.run_on([short], model=folder).stdout, self.run_on([short]).stdout)
        self.refused([short], "--timestamps", "word", says="config.json: median_filter_width must be odd. Got 4", model=folder)
        (folder / "config.json").write_text(json.dumps(settings))
        generation, vocab = json.loads((folder / "generation_config.json").read_text()), settings["vocab_size"]
        (folder / "generation_config.json").write_text(json.dumps(generation | {"no_timestamps_token_id": vocab - 1}))
        self.refused([short], "--timestamps", "segment", says=f"timestamp_rules of no_timestamps_id {vocab - 1}", model=folder)
        (folder / "generation_config.json").write_text(json.dumps(generation))
        refused("preprocessor_config.json: sampling_rate must be at most 10000000 Hz. Got 1000000000", "preprocessor_config.json", {"sampling_rate": 10**9})
        refused("lang_to_id must be an object of tokens", "generation_config.json", {"lang_to_id": {"<|en|>": 99999}})
        refused("condition_on_prev_tokens must be true or false", "generation_config.json", {"condition_on_prev_tokens": "yes"})
        (folder / "generation_config.json").write_text(json.dumps({"decoder_start_token_id": 1, "eos_token_id": 2}))
        self.refused([short], "--language", "de", says="language must not be set for a model without lang_to_id", model=folder)
        self.refused([short], "--timestamps", "segment", says="must have no_timestamps_token_id", model=folder)
        self.refused([short], "--timestamps", "word", says="alignment_heads must be set for the times of words", model=folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--seed", type=int)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

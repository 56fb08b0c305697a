#!/usr/bin/env python3
"""A wheel, installed by pip into a fresh environment with its torch, and used: the command, a program with CMake, the paths, another torch.

tests/package/wheel_test.py WHEEL MODEL    MODEL: a folder with an encoder and its tokenizer (tests/models/encoder/make_models.py writes one)
"""

import json
import re
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

from linked_test import run

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
wheel: Path
model: Path


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        venv.create(cls.folder / "venv", with_pip=True)
        cls.bin = cls.folder / "venv/bin"
        run(cls.bin / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel, "numpy")
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

    def test_a_program_is_built_with_cmake(self):
        prefix = run(self.bin / "python", "-m", "posenc", "--cmake-prefix").strip()
        self.assertEqual(prefix, str(self.package))
        build = self.folder / "consumer"
        run("cmake", "-S", HERE / "positions_consumer", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", build)
        self.assertEqual(run(build / "positions_consumer", self.folder / "w.safetensors").strip(), "0.8415")
        self.assertIn(f"Torch_DIR:PATH={self.package.parent}/torch/share", re.sub(r"posenc/\.\./", "", (build / "CMakeCache.txt").read_text()))

    def test_the_tokenizers_are_loaded_from_python(self):
        code = "import ctypes, posenc, pathlib; ctypes.CDLL(str(pathlib.Path(posenc.libraries) / 'libposenc_tokenizers.so'))"
        run(self.bin / "python", "-c", code)

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

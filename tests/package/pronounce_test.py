#!/usr/bin/env python3
"""examples/pronounce, built with an installed posenc: trains for a few steps, resumes, and uses the model.

tests/package/pronounce_test.py PROGRAM
"""

import subprocess
import sys
import tempfile
import unittest
from itertools import product
from pathlib import Path

program: Path


class Pronounce(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_program(self, *arguments: str) -> subprocess.CompletedProcess:
        done = subprocess.run([str(program), *arguments], cwd=self.folder, capture_output=True, text=True, timeout=3000)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_it_trains_and_speaks(self):
        words = ["".join(letters) for letters in product("bdg", "aei", "pst")]
        (self.folder / "words.dict").write_text("".join(f"{word} {' '.join(word.upper())}\n" for word in words))
        train = ["train", "--dictionary", "words.dict", "--out", "out", "--held-out", "5", "--rows", "8", "--d-model", "16",
                 "--layers", "1", "--steps", "6"]  # fmt: skip
        self.assertIn("5 held-out words: phoneme error rate ", self.run_program(*train).stdout)
        self.assertIn("resuming after step 6", self.run_program(*train).stderr)
        said = self.run_program("say", "--model", "out/model.safetensors", "--n-best", "2", "bat").stdout
        self.assertRegex(said, r"^bat  .*%\nbat  .*%\n$")


if __name__ == "__main__":
    program = Path(sys.argv.pop(1)).resolve()
    unittest.main()

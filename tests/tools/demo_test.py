"""The steps of tools/demo.sh, on small inputs: what a stranger reads fits 80 columns, and each step can fail."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "tools/demo"
SMALL = DEMO / "small_bert"
WRONG = "token_and_position_embedding__TokenAndPositionEmbedding.script.pt"
TRAINING = {"--steps": "240", "--rows": "16", "--d-model": "16", "--layers": "1", "--held-out": "20"}


def words() -> str:
    """A language of 140 words that are pronounced as they are spelt."""
    spelt = [a + b + c + d for a in "bdgklmn" for b in "aeiou" for c in "prst" for d in ("", "o")]
    return "".join(f"{word} {' '.join(word.upper())}\n" for word in spelt)


def altered(path: Path, name: str, to: Path) -> None:
    """A copy of a safetensors file in which the first number of the tensor `name` is another one."""
    tensors = load_file(path)
    tensors[name].view(-1)[0] += 0.5
    with safe_open(path, "pt") as file:
        save_file(tensors, to, file.metadata())


class DemoTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._temporary = tempfile.TemporaryDirectory()
        cls.out = Path(cls._temporary.name)
        (cls.out / "setup.env").write_text(f"PYTHON={sys.executable}\n")
        (cls.out / "words").write_text(words())

    @classmethod
    def tearDownClass(cls):
        cls._temporary.cleanup()

    def run_step(self, name, *arguments, out=None, **environment):
        """The exit status, and what the step has written to both streams."""
        place = {"POSENC_SETUP": str(self.out / "setup.env"), "POSENC_DEMO_OUT": str(out or self.out)}
        run = subprocess.run([DEMO / f"{name}.sh", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False, timeout=3000, env={**os.environ, **place, **environment})
        said = run.stdout.replace(str(out or self.out), "build/demo")  # as it is by default
        self.assertNotRegex(said, r"[\x1b\r]", "colour, or a line that is overwritten")
        for line in said.splitlines():  # a program's own message may be longer
            self.assertTrue(len(line) <= 80 or line.startswith("posenc"), line)
        return run.returncode, said

    def passes(self, name, *arguments, **settings):
        status, said = self.run_step(name, *arguments, **settings)
        self.assertEqual(status, 0, said)
        self.assertIn("What it proves: ", said)
        return said

    def fails(self, message, name, *arguments, **settings):
        status, said = self.run_step(name, *arguments, **settings)
        self.assertEqual(status, 1, said)
        self.assertIn("demo: " + message, said)
        return said

    def train(self, out, **changes):
        options = {**TRAINING, **{f"--{name}": value for name, value in changes.items()}}
        return [self.out / "words", *(word for option in options.items() for word in option)], {"out": self.out / out}

    def test_a_model_of_transformers(self):
        said = self.passes("encoder")
        self.assertIn("6 layers of width 384, 12 heads, 30,522 tokens", said)
        self.assertRegex(said, r"transformers [\d.]+ ms, posenc [\d.]+ ms: [\d.]+ times as fast")

    def test_without_transformers_a_model_that_it_saved_earlier(self):
        (self.out / "absent").mkdir()
        (self.out / "absent/transformers.py").write_text("raise ImportError\n")
        said = self.passes("encoder", PYTHONPATH=str(self.out / "absent"))
        self.assertIn("transformers is not installed: a small model", said)
        self.assertRegex(said, r"difference +at most [\d.e-]+; allowed 1e-05\n")

    def test_the_model_that_transformers_saved_earlier_is_still_what_it_computes(self):
        run = subprocess.run([sys.executable, DEMO / "encoder.py", "--check-small"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_another_result_than_that_of_transformers(self):
        folder = self.out / "other_bert"
        shutil.copytree(SMALL, folder)
        altered(SMALL / "sample.safetensors", "last_hidden_state", folder / "sample.safetensors")
        said = self.fails("C++ does not compute what transformers computed", "encoder", folder)
        self.assertIn("WRONG", said)
        shutil.copy(SMALL / "sample.safetensors", folder)
        (folder / "sentences.txt").write_text("Another sentence.\n" + (SMALL / "sentences.txt").read_text().partition("\n")[2])
        self.fails("C++ does not compute what transformers computed", "encoder", folder)
        (folder / "model.safetensors").unlink()
        self.fails("C++ does not compute", "encoder", folder)

    def test_a_module_of_ones_own(self):
        said = self.passes("module")
        self.assertIn("posenc::load_weights(block, path, options)", said)
        self.assertIn("12 tensors loaded. 0 of 16384 outputs differ; largest difference 0, allowed 0.\n", said)
        self.assertIn("Refused, a block of half the width:\n  block.pt ", said)
        self.assertIn("Refused, Python's names without the map:\n", said)
        sample = self.out / "altered.safetensors"
        altered(self.out / "block_sample.safetensors", "y", sample)
        said = self.fails("the outputs differ from Python's", "module", self.out / "block.pt", sample)
        self.assertIn("1 of 16384 outputs differ; largest difference 0.5, allowed 0.", said)

    def test_the_notebooks(self):
        scripts = Path(os.environ["POSENC_SCRIPTS"])
        said = self.passes("notebooks", scripts)
        self.assertEqual(said.count(", bit for bit\n"), 10)
        self.assertRegex(said, r"\nnotebook 03   a mistake: no sqrt\(d_model\)  NOT equal: 0 of 7 inputs\n$")
        folder = self.out / "scripts"
        (folder / "wrong").mkdir(parents=True)
        shutil.copy(scripts / "wrong" / WRONG, folder)
        shutil.copy(scripts / "wrong" / WRONG, folder / "wrong")
        self.fails("1 of the modules are not bit-identical", "notebooks", folder)
        for name in (folder / WRONG, folder / "wrong" / WRONG):
            shutil.copy(scripts / WRONG, name)
        self.fails("the module without its scale was not detected", "notebooks", folder)
        (folder / "wrong" / WRONG).write_text("no script")
        self.fails("the module without its scale could not be compared", "notebooks", folder)

    def test_training_and_its_pictures(self):
        arguments, settings = self.train("learns")
        said = self.passes("pronounce", *arguments, **settings)
        self.assertEqual(said.count("\nstep "), 5)
        self.assertRegex(said, r"word +the model +the dictionary\n")
        self.assertIn("20 held-out words: ", said)
        again = self.passes("pronounce", *arguments, **settings)
        self.assertIn("An earlier run has trained it.", again)
        self.assertEqual(again.splitlines()[-9:], said.splitlines()[-9:], "it is tested again")
        drawn = self.passes("pictures", **settings)
        self.assertEqual(drawn.count(".png "), 4)

    def test_training_that_teaches_nothing(self):
        arguments, settings = self.train("stupid", steps="1")
        self.fails("the model has not learnt to pronounce", "pronounce", *arguments, **settings)
        (self.out / "stupid/pronounce/curve.jsonl").unlink()
        said = self.fails("a picture could not be drawn", "pictures", **settings)
        self.assertIn("plot: build/demo/pronounce/curve.jsonl: No such file or directory\n", said)


class WholeTest(unittest.TestCase):
    def demo(self, failing=""):
        """tools/demo.sh with steps that only say their name."""
        with tempfile.TemporaryDirectory() as folder:
            tools = Path(folder) / "tools"
            shutil.copytree(ROOT / "tools/demo", tools / "demo")
            shutil.copy(ROOT / "tools/demo.sh", tools)
            for step in ("encoder", "module", "notebooks", "pronounce", "pictures"):
                (tools / f"demo/{step}.sh").write_text(f"#!/bin/sh\necho this is {step}\n[ {step} != '{failing}' ]\n")
            return subprocess.run([tools / "demo.sh"], capture_output=True, text=True, check=False)

    def test_the_steps_and_the_last_screen(self):
        run = self.demo()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("\nthis is "), 5)
        self.assertIn("What to try next", run.stdout)
        for line in run.stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_it_builds_what_it_runs(self):
        steps = "".join(path.read_text() for path in DEMO.glob("*.sh"))
        [targets] = re.findall(r"^demo:.*\n.*\n\t@tools/build.sh release (.*)", (ROOT / "Makefile").read_text(), re.M)
        self.assertEqual(set(re.findall(r'"\$bin/(?:tests/)?([\w-]+)"', steps)), set(targets.split()))

    def test_the_demo_ends_with_the_step_that_fails(self):
        run = self.demo("notebooks")
        self.assertEqual(run.returncode, 1)
        self.assertNotIn("this is pronounce", run.stdout)
        self.assertNotIn("What you have seen", run.stdout)


if __name__ == "__main__":
    unittest.main()

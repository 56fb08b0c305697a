#!/usr/bin/env python3
"""The first program of docs/getting-started.md and the test of docs/parity.md, verbatim: their files, commands and output, with an
installed posenc; and the command that configures posenc itself.

tests/package/quick_start_test.py PREFIX TORCH_DIR
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/getting-started.md"
prefix: Path
torch: Path


def blocks(text: str) -> "list[tuple[str, str]]":
    """(language, text) for each code block."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.S | re.M)


def first_program() -> "list[tuple[str, str]]":
    return blocks(PAGE.read_text().split("## A first program\n")[1].split("\n## ")[0])[:4]


def in_folder(folder: Path, commands: str) -> "subprocess.CompletedProcess[str]":
    """Runs commands with posenc where "Building and installing" puts it."""
    if not (folder / "posenc").exists():
        (folder / "posenc").symlink_to(prefix)
    return subprocess.run(["bash", "-e"], input=commands, cwd=folder, env={**os.environ, "HOME": str(folder)},
                          capture_output=True, text=True, timeout=3000)  # fmt: skip


def report_in(text):
    """The first report of outputs in `text`: its first line, and what it says of each output. The weights are random, and
    differ from one processor to another: so do the numbers, and which output is the farthest off and comes first."""
    lines = iter(re.sub(r"torch \S+\)|\bat \[[\d, ]+\]|-?\d[\d.e+-]*\b", "#", text).splitlines())
    heading = next(line for line in lines if line.startswith("[Golden] "))
    outputs = "\n".join(itertools.takewhile(lambda line: line.startswith("  "), lines))
    return heading, sorted(re.split(r"\n(?=  \S)", outputs))


class QuickStart(unittest.TestCase):
    def test_commands_give_the_output_that_is_shown(self):
        (_, lists), (_, program), (_, commands), (_, output) = first_program()
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            (home / "CMakeLists.txt").write_text(lists)
            (home / "main.cpp").write_text(program)
            result = in_folder(home, commands)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertTrue(result.stdout.endswith("\n" + output), result.stdout)

    def test_blocks_are_of_the_languages_that_are_expected(self):
        self.assertEqual([language for language, _ in first_program()], ["cmake", "cpp", "sh", "text"])

    def test_golden_file_passes_and_fails_as_it_is_shown(self):
        shown = dict(blocks((ROOT / "docs/parity.md").read_text()))  # there is one block of each language but Python
        fault = " * std::sqrt(64.0)"
        self.assertIn(f"Without `{fault.strip()}`", (ROOT / "docs/parity.md").read_text())
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            (home / "CMakeLists.txt").write_text(shown["cmake"])
            (home / "tagger_test.cpp").write_text(shown["cpp"])
            subprocess.run([sys.executable, ROOT / "tests/docs/make_golden.py", home], check=True)
            result = in_folder(home, shown["sh"] + "ctest --test-dir build")
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("100% tests passed", result.stdout)
            self.assertIn(fault, shown["cpp"])
            (home / "tagger_test.cpp").write_text(shown["cpp"].replace(fault, ""))
            result = in_folder(home, "cmake --build build > build.log; build/tagger_test")
            self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
            self.assertEqual(report_in(result.stdout), report_in(shown["text"]), result.stdout)

    def test_the_library_is_configured_as_the_documents_say(self):
        commands = [re.search(r"^cmake -B build -DTorch_DIR=.*$", path.read_text(), re.M).group() for path in (PAGE, ROOT / "README.md")]
        self.assertEqual(*commands)
        with tempfile.TemporaryDirectory() as name:
            libtorch = Path(name) / "libtorch"
            libtorch.symlink_to(torch.parents[2])
            command = commands[0].replace("-B build", f"-S '{ROOT}' -B '{name}/build'")
            result = subprocess.run(["bash", "-e"], input=command, env={**os.environ, "HOME": name}, capture_output=True, text=True, timeout=3000)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            cache = (Path(name) / "build/CMakeCache.txt").read_text()
            self.assertRegex(cache, r"(?m)^CMAKE_BUILD_TYPE:\w+=Release$")
            self.assertRegex(cache, rf"(?m)^Torch_DIR:\w+={libtorch}/share/cmake/Torch$")


if __name__ == "__main__":
    prefix, torch = (Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main()

#!/usr/bin/env python3
"""The first program of docs/getting-started.md, verbatim: its files, commands and output, with an installed posenc; and the
command that configures posenc itself.

tests/package/quick_start_test.py PREFIX TORCH_DIR
"""

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


def blocks() -> "list[tuple[str, str]]":
    """(language, text) for each code block of the section."""
    section = PAGE.read_text().split("## A first program\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, flags=re.S | re.M)


class QuickStart(unittest.TestCase):
    def test_commands_give_the_output_that_is_shown(self):
        (_, lists), (_, program), (_, commands), (_, output) = blocks()[:4]
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            (home / "posenc").symlink_to(prefix)  # where "Building and installing" puts it
            (home / "CMakeLists.txt").write_text(lists)
            (home / "main.cpp").write_text(program)
            result = subprocess.run(["bash", "-e"], input=commands, cwd=home, env={**os.environ, "HOME": name},
                                    capture_output=True, text=True, timeout=1500)  # fmt: skip
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertTrue(result.stdout.endswith("\n" + output), result.stdout)

    def test_blocks_are_of_the_languages_that_are_expected(self):
        self.assertEqual([language for language, _ in blocks()[:4]], ["cmake", "cpp", "sh", "text"])

    def test_the_library_is_configured_as_the_documents_say(self):
        commands = [re.search(r"^cmake -B build -DTorch_DIR=.*$", path.read_text(), re.M).group() for path in (PAGE, ROOT / "README.md")]
        self.assertEqual(*commands)
        with tempfile.TemporaryDirectory() as name:
            libtorch = Path(name) / "libtorch"
            libtorch.symlink_to(torch.parents[2])
            command = commands[0].replace("-B build", f"-S '{ROOT}' -B '{name}/build'")
            result = subprocess.run(["bash", "-e"], input=command, env={**os.environ, "HOME": name}, capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            cache = (Path(name) / "build/CMakeCache.txt").read_text()
            self.assertRegex(cache, r"(?m)^CMAKE_BUILD_TYPE:\w+=Release$")
            self.assertRegex(cache, rf"(?m)^Torch_DIR:\w+={libtorch}/share/cmake/Torch$")


if __name__ == "__main__":
    prefix, torch = (Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
    unittest.main()

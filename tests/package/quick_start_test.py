#!/usr/bin/env python3
"""README's quick start, verbatim: its files, commands and output, with an installed posenc.

tests/package/quick_start_test.py PREFIX
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

README = Path(__file__).resolve().parent.parent.parent / "README.md"
prefix: Path


def blocks() -> "list[tuple[str, str]]":
    """(language, text) for each code block of the section."""
    section = README.read_text().split("## Quick start\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w+)\n(.*?)^```$", section, flags=re.S | re.M)


class QuickStart(unittest.TestCase):
    def test_commands_give_the_output_that_is_shown(self):
        (_, lists), (_, program), (_, commands), (_, output) = blocks()[:4]
        install, *rest = commands.splitlines()
        self.assertEqual(install, "make install prefix=$HOME/posenc")
        with tempfile.TemporaryDirectory() as name:
            home = Path(name)
            (home / "posenc").symlink_to(prefix)  # where the first command would have installed it
            (home / "CMakeLists.txt").write_text(lists)
            (home / "main.cpp").write_text(program)
            result = subprocess.run(["bash", "-e"], input="\n".join(rest), cwd=home, env={**os.environ, "HOME": name},
                                    capture_output=True, text=True, timeout=1500)  # fmt: skip
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertTrue(result.stdout.endswith("\n" + output), result.stdout)

    def test_blocks_are_of_the_languages_that_are_expected(self):
        self.assertEqual([language for language, _ in blocks()[:4]], ["cmake", "cpp", "sh", "text"])


if __name__ == "__main__":
    prefix = Path(sys.argv.pop(1)).resolve()
    unittest.main()

#!/usr/bin/env python3
"""The installed man page and completions match the program, and man and the shells can read them.

    tests/docs/command_line_test.py --posenc build/release/posenc
"""

import argparse
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHARE = ROOT / "src/cli/share"
sys.path.insert(0, str(ROOT / "tools"))
import command_line_doc  # noqa: E402

options: argparse.Namespace


def completed(*words: str) -> "list[str]":
    """Bash's completions for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _posenc; printf "%s\\n" "${COMPREPLY[@]}"'
    run = subprocess.run(["bash", "-c", script, "bash", SHARE / "posenc.bash", *words], capture_output=True, text=True,
                         check=True, cwd=ROOT)  # fmt: skip
    return run.stdout.split()


class Parsing(unittest.TestCase):
    HELP = """What it does.
Usage: posenc table [OPTIONS] FILE

Positionals:
  FILE TEXT REQUIRED          a file

Options:
  -h,--help                   Print this help
  --dim INT Excludes: --cases D, channels
  --kind TEXT:one|two Excludes: --cases
                              which
                              of them
[Option Group: rows]
  [At most 1 of the following options are allowed]
  Options:
    --length INT Excludes: --cases
                                nominal rows, 0 .. 9

Example:
  posenc table x"""

    def test_a_help_is_read_as_cli11_writes_it(self):
        command = command_line_doc.parsed("table", self.HELP.splitlines())
        self.assertEqual(command.text, "What it does.")
        self.assertEqual(command.usage, "posenc table [OPTIONS] FILE")
        self.assertEqual([option.names for option in command.options()], [["-h", "--help"], ["--dim"], ["--kind"], ["--length"]])
        self.assertEqual([option.value for option in command.options()], ["", "INT", "TEXT", "INT"])
        self.assertEqual([option.text for option in command.options()][1:], ["D, channels", "which of them", "nominal rows, 0 .. 9"])
        self.assertEqual(command.options()[2].choices, ["one", "two"])
        self.assertEqual(command.footer, ["Example:", "  posenc table x"])


class Files(unittest.TestCase):
    def test_they_are_up_to_date(self):
        for name, text in command_line_doc.files(options.posenc).items():
            self.assertEqual((SHARE / name).read_text(), text, f"{name}: tools/command_line_doc.py --posenc ... --write")

    def test_every_option_of_every_subcommand_is_completed(self):
        top = subprocess.run([options.posenc, "--help"], capture_output=True, text=True, check=True).stdout
        names = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", top.partition("\nSubcommands:\n")[2], re.MULTILINE)
        self.assertIn("verify", names)
        self.assertLessEqual(set(names), set(completed("posenc", "")))
        for name in names:
            text = subprocess.run([options.posenc, name, "--help"], capture_output=True, text=True, check=True).stdout
            shown = set(re.findall(r"^ {2,4}(?:-\w,)?(--[\w-]+)", text, re.MULTILINE))
            self.assertEqual(shown, set(completed("posenc", name, "--")), name)
            for option in shown:
                self.assertIn(option.replace("-", "\\-"), (SHARE / "posenc.1").read_text())
                self.assertIn(f"*{option}[", (SHARE / "_posenc").read_text())

    def test_bash_completes_values_and_files(self):
        self.assertEqual(completed("posenc", "ver"), ["version", "verify"])
        self.assertEqual(completed("posenc", "table", "--preset", "whis"), ["whisper"])
        self.assertEqual(completed("posenc", "table", "--precision", "="), ["reference", "exact"])
        self.assertEqual(completed("posenc", "table", "--precision", "=", "e"), ["exact"])
        self.assertEqual(completed("posenc", "table", "--dim", ""), [])
        self.assertEqual(completed("posenc", "inspect", "READ"), ["README.md"])
        self.assertIn("identify", completed("posenc", "help", ""))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_parses_its_completion(self):
        subprocess.run(["zsh", "-n", SHARE / "_posenc"], check=True)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_man_formats_the_page_without_a_warning(self):
        run = subprocess.run(["groff", "-man", "-ww", "-z", SHARE / "posenc.1"], capture_output=True, text=True, check=True)
        self.assertEqual(run.stderr, "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

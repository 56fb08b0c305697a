#!/usr/bin/env python3
"""The installed man page and completions match the program, and man and the shells can read them.

    tests/docs/command_line_test.py --posenc build/release/posenc
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SHARE = ROOT / "src/cli/share"
sys.path.insert(0, str(ROOT / "tools"))

options: argparse.Namespace


def completed(*words: str) -> "list[str]":
    """Bash's completions for the last word."""
    script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _posenc; printf "%s\\n" "${COMPREPLY[@]}"'
    run = subprocess.run(["bash", "-c", script, "bash", SHARE / "posenc.bash", *words], capture_output=True, text=True,
                         check=True, cwd=ROOT)  # fmt: skip
    return run.stdout.split()


def program(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([options.posenc, *words], capture_output=True, text=True)


def help_of(name: str) -> str:
    return program(*([name] if name else []), "--help").stdout


def option_names(text: str) -> "set[str]":
    """The options in a help text, in which CLI11 starts each in the same column, or two further in a group."""
    listed = re.findall(r"^ {2,4}(?:-\w,)?(--[\w-]+(?:,--[\w-]+)*)", text, re.MULTILINE)
    return {name for names in listed for name in names.split(",")}


def subcommands() -> "list[str]":
    names = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", help_of("").partition("\nSubcommands:\n")[2], re.MULTILINE)
    assert "inspect" in names
    return names


class Files(unittest.TestCase):
    def test_every_option_of_every_subcommand_is_completed(self):
        self.assertEqual(set(subcommands()), {word for word in completed("posenc", "") if not word.startswith("-")})
        page = (SHARE / "posenc.1").read_text()
        for name in subcommands():
            shown = option_names(help_of(name))
            self.assertEqual(shown, {word for word in completed("posenc", name, "-") if word.startswith("--")}, name)
            for option in shown:
                self.assertIn(option.replace("-", "\\-"), page)
                self.assertIn(f"*{option}[", (SHARE / "_posenc").read_text())
        self.assertEqual(option_names(help_of("")), {word for word in completed("posenc", "--") if word.startswith("--")})

    def test_the_program_takes_every_option_that_is_completed(self):
        for name in ("rotary", "table"):  # those with groups; the others' names are compared with their help
            for option in completed("posenc", name, "-"):
                self.assertNotIn("there is no option", program(name, option).stderr, f"{name} {option}")
        self.assertIn("there is no option", program("rotary", "--frobnicate").stderr)

    def test_the_subcommand_accepts_every_value_that_is_completed(self):
        checked = 0
        for name in subcommands():
            for option in completed("posenc", name, "--"):
                for word in completed("posenc", name, option, "")[:2] if option != "--help" else []:
                    if Path(ROOT / word).exists():
                        continue  # the name of a file
                    # What is missing is reported after each value has been checked.
                    text = program(name, option, word).stderr
                    self.assertNotRegex(text, rf"{option} must ", f"{name} {option} {word}")
                    checked += 1
        self.assertGreater(checked, 5)
        self.assertRegex(program("rotary", "--preset", "whisper").stderr, "--preset must ")
        self.assertNotIn("whisper", completed("posenc", "rotary", "--preset", ""))
        self.assertIn("llama", completed("posenc", "rotary", "--preset", ""))

    def test_every_preset_is_completed(self):
        for words, listing in [(["table"], []), (["rotary"], ["--rotary"])]:
            entries = json.loads(program("presets", "--json", *listing).stdout)
            names = {name for entry in entries for name in (entry["name"], *entry.get("aliases", []))}
            self.assertEqual(names, set(completed("posenc", *words, "--preset", "")))

    def test_no_text_of_cli11_itself_is_taken_for_an_option(self):
        for path in (SHARE / "posenc.1", SHARE / "posenc.bash", SHARE / "_posenc"):
            self.assertNotRegex(path.read_text(), r"\[(Exactly|At most|Option Group)")

    def test_bash_completes_values_and_files(self):
        self.assertEqual(completed("posenc", "i"), ["identify", "inspect"])
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

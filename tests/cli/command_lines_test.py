"""Wrong command lines of every subcommand end with status 2, and an output that cannot be written is found before any work.

    tests/cli/command_lines_test.py --posenc build/release/posenc
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

options: argparse.Namespace
WRONG = {"number": "x", "choice": "no such word", "key=value": "x", "file": "", "folder": "", "output": "-"}
# What no option's own rule says. The files are not there: what is wrong with the command line comes first.
WHOLE = [
    ["encode", "model", "--out", "o"], ["encode", "model", "--in", "i", "--text", "t", "--out", "o"],
    ["generate", "model", "--in", "i", "--out", "o", "--set", "num_beams=2", "--set", "num_beams=3"],
    ["generate", "model", "--in", "i", "--out", "o", "--set", "num_beams=[", "--set", "top_k=1"],
    ["rotary", "--preset", "llama", "--param", "head_dim=4", "--param", "head_dim=8", "--in", "i", "--out", "o"],
    ["table", "--preset", "whisper", "--dim", "4", "--length", "3", "--param", "a=1", "--param", "a=2", "--out", "o"],
    ["table", "--preset", "whisper", "--length", "3", "--out", "o"], ["table", "--dim", "4", "--length", "3", "--out", "o"],
    ["table", "--preset", "whisper", "--dim", "4", "--out", "o"],
    ["translate"], ["translate", "--model", "m", "folder", "file"], ["translate", "m", "a", "b"],
    ["tokenize", "m", "--count", "--json"], ["help", "nosuch"], ["presets", "--rotary", "--vision"],
]  # fmt: skip
OUTPUTS = [
    ["convert", "none", "OUT"], ["encode", "none", "--in", "none", "--out", "OUT"], ["encode", "none", "--text", "none", "--out", "OUT"],
    ["generate", "none", "--in", "none", "--out", "OUT"], ["relative", "--config", "none", "--out", "OUT"],
    ["rotary", "--config", "none", "--in", "none", "--out", "OUT"], ["table", "--cases", "none", "--out", "OUT"],
    ["similarity", "none", "none", "--similarity", "cosine", "--out", "OUT"],
    ["table", "--preset", "whisper", "--dim", "4", "--positions", "none", "--out", "OUT"],
    ["transcribe", "none", "--in", "none", "--features", "--out", "OUT"],
]  # fmt: skip


class CommandLines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def posenc(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run([options.posenc, *arguments], capture_output=True, text=True, timeout=250, stdin=subprocess.DEVNULL, cwd=self.folder)

    def wrong(self, *arguments: str):
        done = self.posenc(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), f"{arguments}\n{done.stderr}")
        self.assertIn("\nTry: posenc", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_every_option_of_every_command(self):
        described = json.loads(self.posenc("--describe").stdout)
        self.assertGreater(len(described["subcommands"]), 14)
        for command in described["subcommands"]:
            name, found = command["name"], command["options"]
            self.wrong(name, "--no-such-option")
            if any(one["required"] for one in [*found, *command["positionals"]]):
                self.wrong(name)
            self.wrong(name, *["argument"] * (len(command["positionals"]) + 1))
            values = {each: one for one in found for each in one["names"]}
            for one in found:
                option = one["names"][-1]
                value = one["choices"][:1] or {"number": ["1"], "key=value": ["a=1"]}.get(one["kind"], ["x"]) if one["value"] else []
                if one["kind"] in WRONG:
                    self.wrong(name, option, WRONG[one["kind"]])
                if one["needs"]:
                    self.wrong(name, *["argument"] * len(command["positionals"]), option, *value)
                for other in filter(option.__lt__, one["excludes"]):
                    second = values[other]
                    self.wrong(name, option, *value, other, *(second["choices"][:1] or ["1"] if second["value"] else []))

    def test_whole_command_lines(self):
        for arguments in WHOLE:
            self.wrong(*arguments)

    def test_outputs_come_before_the_work(self):
        listed = {command["name"] for command in json.loads(self.posenc("--describe").stdout)["subcommands"]
                  if any(one["kind"] == "output" for one in [*command["options"], *command["positionals"]])}  # fmt: skip
        self.assertEqual(listed, {arguments[0] for arguments in OUTPUTS})
        (self.folder / "folder").mkdir()
        (self.folder / "file").write_text("precious")
        (self.folder / "link").symlink_to("nofolder/x")
        (self.folder / "locked").mkdir(mode=0o500)
        (self.folder / "readonly").touch(mode=0o400)
        outs = ["nofolder/x", "folder", "file/x", "link", "x" * 300, *(["locked/x", "readonly"] if os.geteuid() else [])]
        for arguments in OUTPUTS:
            for out in outs:
                given = [out if one == "OUT" else one for one in arguments]
                done = self.posenc(*given)
                self.assertEqual((done.returncode, done.stdout), (1, ""), f"{given}\n{done.stderr}")
                self.assertRegex(done.stderr, rf"^posenc {given[0]}: {out}: (cannot be written|exists and may not be written to)")
        self.assertEqual((self.folder / "file").read_text(), "precious")
        self.assertEqual(len(list(self.folder.iterdir())), 5)

    def test_folders_come_before_the_work(self):
        (self.folder / "model").mkdir()
        (self.folder / "model" / "config.json").write_text('{"model_type": "bert"}')  # without weights
        (self.folder / "file").write_text("precious")
        for out in ("file", "file/x", "x" * 300):
            done = self.posenc("freeze", "model", out)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(done.stderr, rf"^posenc freeze: \[freeze_folder\] {out}: cannot be made a folder")
        done = self.posenc("freeze", "model", "new/x")
        self.assertIn("[load_encoder] model: ", done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["file", "model"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    options, rest = parser.parse_known_args()
    options.posenc = str(Path(options.posenc).resolve())
    unittest.main(argv=[sys.argv[0], *rest])

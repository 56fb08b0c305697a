#!/usr/bin/env python3
"""The C interface from a C99 program: the twelve kinds of tokenizer beside transformers, threads, errors, null, and leaks.

    tests/text/c_api_test.py --cases build/release/tests/posenc-c-cases [--lines N] [--kinds "GPT-2,T5"] [--seed N]
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical", TOKENIZERS_PARALLELISM="false", RUST_BACKTRACE="0")
import cases
import kinds

options: argparse.Namespace
ENVIRONMENT = {**os.environ, "LSAN_OPTIONS": "exitcode=23"}


class Program:
    """posenc-c-cases with a folder."""

    def __init__(self, folder: str):
        self.process = subprocess.Popen([options.cases, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT)
        self.vocabulary = int(self.line()[0])

    def line(self) -> "list[str]":
        status, *words = self.process.stdout.readline().decode().split()
        assert status == "ok", (status, words)
        return words

    def text(self) -> str:
        return self.process.stdout.read(int(self.process.stdout.readline())).decode()

    def ask(self, words: "list[object]", texts: "list[str]" = []):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        for text in texts:
            self.process.stdin.write(b"%d\n%s" % (len(text.encode()), text.encode()))
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def encode(self, texts, pairs, threads):
        """A dictionary of lists of rows, as transformers returns it."""
        self.ask(["encode", len(texts), int(pairs is not None), 1, 1, threads], [*texts, *(pairs or [])])
        rows, columns, *numbers = map(int, self.line())
        take = iter(numbers)
        result = {name: [[next(take) for _ in range(columns)] for _ in range(rows)]
                  for name in ("input_ids", "attention_mask", "token_type_ids", "special_tokens_mask")}  # fmt: skip
        result["offset_mapping"] = [[(next(take), next(take)) for _ in range(columns)] for _ in range(rows)]
        result["tokens"] = [[self.text() for _ in range(columns)] for _ in range(rows)]
        return result

    def decode(self, how, ids, skip):
        self.ask([how, len(ids), int(skip), *ids])
        self.line()
        return self.text()

    def close(self):
        """The program's status: 23 if anything is leaked."""
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class CInterface(unittest.TestCase):
    def test_results_errors_and_null(self):
        said = subprocess.run([options.cases], capture_output=True, text=True, check=False, env=ENVIRONMENT)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_kinds(self):
        for kind in options.kinds.split(",") if options.kinds else kinds.KINDS:
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                tokenizer = kinds.make(kind, Path(folder))
                program = Program(folder)
                self.assertEqual(program.vocabulary, len(tokenizer))
                rng = random.Random(f"{options.seed} {kind}")
                lines = kinds.lines(rng, [*tokenizer.added_tokens_encoder], options.lines)
                self.compare(tokenizer, program, lines, None, f"--seed {options.seed} --kinds '{kind}'")
                self.compare(tokenizer, program, lines[:50], lines[-50:], f"--seed {options.seed} --kinds '{kind}'")
                program.ask(["threads", 80, 8], lines[:80] if tokenizer.pad_token else [max(lines, key=len)] * 80)
                self.assertEqual(program.line(), ["8"], "threads that found the same")
                self.assertEqual(program.close(), 0)

    def compare(self, tokenizer, program, texts, pairs, where):
        can_pad = tokenizer.pad_token is not None
        step = 100 if can_pad else 1
        for begin in range(0, len(texts), step):
            part, seconds = texts[begin : begin + step], pairs and pairs[begin : begin + step]
            package = tokenizer(part, seconds, padding=can_pad, return_token_type_ids=True, return_offsets_mapping=True,
                                return_special_tokens_mask=True)  # fmt: skip
            theirs = {name: [[tuple(x) if isinstance(x, (list, tuple)) else x for x in row] for row in rows] for name, rows in package.items()}
            if "token_type_ids" not in tokenizer.model_input_names:  # here the model takes none, so that all are 0
                theirs["token_type_ids"] = [[0] * len(row) for row in theirs["token_type_ids"]]
            theirs["tokens"] = [encoding.tokens for encoding in package.encodings]
            ours = program.encode(part, seconds, random.choice((-1, 1, 3)))
            for name, rows in theirs.items():
                self.assertEqual(ours[name], rows, f"{name}: {where}")
            for row in ours["input_ids"][:20]:
                for skip in (False, True):
                    self.assertEqual(program.decode("decode", row, skip), tokenizer.decode(row, skip_special_tokens=skip), where)
                self.assertEqual(program.decode("stream", row, True), tokenizer.backend_tokenizer.decode(row, skip_special_tokens=True), where)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    parser.add_argument("--lines", type=int, default=2000 if cases.EXHAUSTIVE else 200)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

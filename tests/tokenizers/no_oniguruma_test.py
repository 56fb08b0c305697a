#!/usr/bin/env python3
"""A posenc without Oniguruma has the expressions of all well-known tokenizers, and says what it lacks for others.

    tests/tokenizers/no_oniguruma_test.py --cases build/release/tests/posenc-regex-cases-without-oniguruma
"""

import argparse
import sys
import unittest

import regex_test


class NoOniguruma(unittest.TestCase):
    def test_known_expressions_need_none(self):
        for name, pattern in regex_test.KNOWN.items():
            with self.subTest(name):
                answer, (found,) = regex_test.ask("regex", pattern, ["I'm a  Zebra 12"])
                self.assertEqual(answer, "simple")
                self.assertNotIsInstance(found, str)

    def test_others_are_refused(self):
        for pattern in (r"(?<=a)b", r"(\w)\1", r"\bx"):
            answer, _ = regex_test.ask("regex", pattern)
            self.assertEqual(answer, f"error: Regex: this posenc has no Oniguruma, which the expression needs. Got '{pattern}'")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", required=True)
    regex_test.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])

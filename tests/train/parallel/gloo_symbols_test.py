#!/usr/bin/env python3
"""posenc::gloo defines no virtual table of c10d's or Gloo's classes. LibTorch's Gloo is newer than the headers that are
installed, and a program would put its own, shorter table in front of LibTorch's, since both are weak symbols.

    tests/train/parallel/gloo_symbols_test.py LIBRARY
"""

import re
import subprocess
import sys
import unittest

library: str
FOREIGN = re.compile(r" (?:vtable|typeinfo|typeinfo name|VTT) for (?:c10d|gloo|std::.*gloo)::?.*")


class Symbols(unittest.TestCase):
    def test_no_table_of_foreign_classes(self):
        listed = subprocess.run(["nm", "--demangle", "--defined-only", library], capture_output=True, text=True, check=True).stdout
        self.assertIn("posenc::gloo_group(", listed)
        self.assertEqual(FOREIGN.findall(listed), [])
        self.assertNotIn("GlooStore", listed)


if __name__ == "__main__":
    library = sys.argv.pop()
    unittest.main()

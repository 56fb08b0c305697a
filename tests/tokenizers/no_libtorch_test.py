#!/usr/bin/env python3
"""The library posenc::tokenizers has no symbol of LibTorch. (tests/package/closures_test.py: and none of posenc but those of base.)

    tests/tokenizers/no_libtorch_test.py LIBRARY
"""

import re
import subprocess
import sys
import unittest

library: str


def symbols(*options):
    listed = subprocess.run(["nm", "-C", *options, library], capture_output=True, text=True, check=True).stdout
    return {name for name in re.findall(r"^(?:[0-9a-f]+)? +[A-Za-z] (.*)$", listed, re.M)}


class NoLibTorch(unittest.TestCase):
    def test_no_symbol_of_libtorch(self):
        dynamic = ["-D"] if ".so" in library else []
        undefined = symbols(*dynamic, "--undefined-only")
        self.assertTrue(any(name.startswith("std::") for name in undefined), "nm lists what the library needs")
        self.assertEqual([name for name in undefined if re.search(r"\b(c10|at|torch|caffe2)::", name)], [])


if __name__ == "__main__":
    library = sys.argv.pop(1)
    unittest.main()

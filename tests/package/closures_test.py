#!/usr/bin/env python3
"""What each component's archive needs is in what the table of components says: cmake/posenc_components.cmake.

tests/package/closures_test.py PREFIX COMPONENT...     an installed static build, and the components that it has
"""

import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from components import TABLE, Components  # noqa: E402

known = Components((ROOT / TABLE).read_text())
prefix: Path
components: "list[str]"


def symbols(path, defined):
    """The mangled names that an archive defines, or those that it needs of others."""
    option = "--defined-only" if defined else "--undefined-only"
    lines = subprocess.run(["nm", option, str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
    return {words[-1] for line in lines if len(words := line.split()) >= 2 and not line.endswith(":")}


def demangled(names):
    if not names:
        return []
    said = subprocess.run(["c++filt"], input="\n".join(sorted(names)), capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


class Closures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archives = {name: next(prefix.rglob(f"libposenc_{name}.a")) for name in components}
        cls.defined = {name: symbols(path, True) for name, path in cls.archives.items()}
        cls.needed = {name: symbols(path, False) for name, path in cls.archives.items()}

    def test_functions_of_posenc_are_in_the_components_that_are_needed(self):
        for name in components:
            there = set().union(*(self.defined[one] for one in known.reached(name)))
            missing = [text for text in demangled(self.needed[name] - there) if re.match(r"(?:\w+ (?:for|to) )*posenc::", text)]
            with self.subTest(component=name):
                self.assertEqual(missing, [])

    def test_plain_components_need_nothing_of_libtorch(self):
        for name in {*known.plain, "kernels"} & set(components):
            with self.subTest(component=name):
                self.assertEqual([text for text in demangled(self.needed[name]) if re.match(r"(?:\w+ (?:for|to) )*(c10|at|torch|caffe2)::", text)], [])

    def test_the_table_names_each_component_that_was_built(self):
        self.assertLessEqual(set(components), set(known.names))


if __name__ == "__main__":
    prefix, components = Path(sys.argv[1]).resolve(), sys.argv[2:]
    unittest.main(argv=sys.argv[:1])

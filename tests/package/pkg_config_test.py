#!/usr/bin/env python3
"""Builds a program with an installed posenc but without CMake, using only the flags from pkg-config.

tests/package/pkg_config_test.py PREFIX COMPILER    CXXFLAGS in the environment
"""

import os
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MAIN = Path(__file__).resolve().parent / "consumer" / "main.cpp"
prefix: Path
compiler: str


class PkgConfig(unittest.TestCase):
    def test_its_flags_build_a_program_that_runs(self):
        folders = [str(path.parent) for path in prefix.rglob("posenc_identify.pc")]
        self.assertEqual(len(folders), 1)
        def pkg_config(*arguments):
            return subprocess.run(["pkg-config", *arguments], capture_output=True, text=True, check=True,
                                  env={**os.environ, "PKG_CONFIG_PATH": folders[0]}).stdout  # fmt: skip

        said = pkg_config("--cflags", "--libs", "posenc_identify")
        standard = pkg_config("--variable=cxx_standard", "posenc_core").strip()
        self.assertNotIn("$", said, "every variable has a value")
        flags = shlex.split(os.environ.get("CXXFLAGS", ""))
        with tempfile.TemporaryDirectory() as name:
            program = str(Path(name) / "app")
            subprocess.run([compiler, f"-std=c++{standard}", *flags, str(MAIN), *shlex.split(said), "-o", program], check=True)
            printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        self.assertIn("0.8415", printed)  # the row of position 1 starts with sin(1)

    def test_the_groups_library_has_its_own_file(self):
        folders = [str(path.parent) for path in prefix.rglob("posenc_gloo.pc")]
        if not folders:
            self.skipTest("posenc::gloo was not built")
        said = subprocess.run(["pkg-config", "--libs", "posenc_gloo"], capture_output=True, text=True, check=True,
                              env={**os.environ, "PKG_CONFIG_PATH": folders[0]}).stdout  # fmt: skip
        self.assertRegex(said, "-lposenc_gloo .*-lposenc_train .*-lposenc_core ")


if __name__ == "__main__":
    prefix, compiler = Path(sys.argv[1]).resolve(), sys.argv[2]
    unittest.main(argv=sys.argv[:1])

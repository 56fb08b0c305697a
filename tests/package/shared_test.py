#!/usr/bin/env python3
"""What a shared posenc exports: the names of its public headers, the same ones however the sources are compiled together.

tests/package/shared_test.py SHARED_PREFIX STATIC_PREFIX     two installed builds
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
shared: Path
static: Path
LIBRARIES = ["posenc", "posenc_tokenizers", "posenc_gloo"]  # the last one if it was built
# Templates of LibTorch and the standard library: the compiler emits them wherever they are used, and the loader merges them
# by name.
COMMON = re.compile(r"^(std|__gnu_cxx|c10|c10d|at|torch|caffe2|ska|ska_ordered)::")
# Symbols that belong to a class, such as `vtable for posenc::TransformerImpl`.
OF_A_CLASS = re.compile(r"^(vtable|VTT|typeinfo|typeinfo name|guard variable|construction vtable|(non-)?virtual thunk) (for|to) ")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


def library(prefix, name):
    return next(path for path in prefix.rglob(f"lib{name}.*") if path.suffix in (".so", ".a"))


LINKERS = {"__bss_start", "_edata", "_end"}


def exported(name, *options):
    """(kind, name) of what the shared library exports."""
    lines = run("nm", "-D", "--defined-only", *options, library(shared, name)).splitlines()
    return [pair for line in lines if (pair := line[17:].split(" ", 1))[1] not in LINKERS]


def public_words():
    """Every word of the public headers: a name that is not among them is private."""
    return set(re.findall(r"\w+", "\n".join(path.read_text() for path in (ROOT / "include/posenc").rglob("*.h"))))


def without_arguments(name):
    """`posenc::functional::embed` of `posenc::functional::embed(at::Tensor const&)[abi:cxx11]`, and
    `std::less::operator` of `std::less<int>::operator()(int, int) const::table`."""
    name = OF_A_CLASS.sub("", name).replace("operator()", "operator")
    depth, kept = 0, ""
    for letter in name:
        if letter == "(" and depth == 0:
            break
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and letter not in ">)":
            kept += letter
    return kept.split(" ")[-1]


class Shared(unittest.TestCase):
    def test_only_public_names_are_exported(self):
        words = public_words()
        for name in LIBRARIES:
            seen = 0
            for kind, symbol in exported(name, "-C"):
                plain = without_arguments(symbol)
                if kind in "WVu" and (COMMON.match(plain) or COMMON.match(OF_A_CLASS.sub("", symbol))):  # the latter of function types
                    continue
                parts = [part.lstrip("~") for part in re.sub(r"\[abi:\w+\]|operator.*", "", plain).split("::")]
                with self.subTest(library=name, symbol=symbol):
                    if name != "posenc_tokenizers" or not plain.startswith("posenc_"):  # its C interface
                        self.assertEqual(parts[0], "posenc", "a name of another library")
                    self.assertEqual([part for part in parts if part and part not in words], [], "is private")
                seen += kind not in "WVu"
            self.assertGreater(seen, 0, name)

    def test_the_static_library_has_the_same_public_symbols(self):
        """Here both are compiled in unity mode, but in other groups; the workflow compares with a build file by file.
        Nothing may depend on what shares a group."""
        archives = {path.stem.removeprefix("lib"): path for path in static.rglob("libposenc_*.a")}
        if not archives:
            self.skipTest("this build is shared itself")
        of = {"posenc_tokenizers": ["posenc_base", "posenc_tokenizers"], "posenc_gloo": ["posenc_gloo"]}
        of["posenc"] = [name for name in archives if name not in ("posenc_tokenizers", "posenc_gloo")]
        for name in LIBRARIES:
            listed = run("readelf", "-sW", *(archives[one] for one in of[name])).splitlines()
            rows = [line.split() for line in listed if re.match(r"\s*\d+: ", line)]
            public = {row[7] for row in rows if len(row) > 7 and row[4] == "GLOBAL" and row[5] == "DEFAULT" and row[6] != "UND"}
            self.assertEqual({symbol for kind, symbol in exported(name) if kind not in "WVu"}, public)

    def test_its_file_name_has_the_version_that_programs_depend_on(self):
        header = (ROOT / "include/posenc/version.h").read_text()
        major, minor = (re.search(rf"POSENC_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR"))
        for name in LIBRARIES:
            soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library(shared, name))).group(1)
            self.assertEqual(soname, f"lib{name}.so.{major}" if major != "0" else f"lib{name}.so.0.{minor}")
            self.assertTrue(os.path.exists(library(shared, name).parent / soname))


if __name__ == "__main__":
    shared, static = (Path(sys.argv.pop(1)).resolve() for _ in range(2))
    LIBRARIES = [name for name in LIBRARIES if any(shared.rglob(f"lib{name}.so"))]
    unittest.main()

#!/usr/bin/env python3
"""Selections of components, built from posenc's sources, installed and used.

    components_test.py plain FOLDER CMAKE_ARGUMENT...       the tokenizers, static and shared, where no LibTorch is
    components_test.py positions FOLDER CMAKE_ARGUMENT...   positions and weights
"""

import json
import shutil
import subprocess
import sys
import unittest
from functools import cache
from pathlib import Path

from linked_test import run
from text_test import TOKENIZER

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
folder: Path
arguments: "list[str]"


@cache
def install(name, *options):
    """Builds and installs posenc with these options; returns the prefix."""
    build, prefix = folder / name, folder / f"{name}_prefix"
    shutil.rmtree(prefix, ignore_errors=True)
    run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_BUILD_TYPE=Release", *options, *arguments)
    run("cmake", "--build", build)
    run("cmake", "--install", build)
    return prefix


def consumer(name, prefix, *options):
    """Builds a user's project with what is installed; returns its folder."""
    build = folder / f"{prefix.name}_{name}"
    shutil.rmtree(build, ignore_errors=True)
    run("cmake", "-S", HERE / name, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
    run("cmake", "--build", build)
    return build


class Plain(unittest.TestCase):
    WITHOUT = "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON"

    def installed(self, shared):
        return install(f"plain_{shared.lower()}", "-DPOSENC_COMPONENTS=tokenizers", self.WITHOUT, f"-DBUILD_SHARED_LIBS={shared}")

    def uses(self, prefix):
        build = consumer("tokenizers_consumer", prefix, self.WITHOUT)
        (folder / "good.json").write_text(json.dumps(TOKENIZER))
        (folder / "bad.json").write_text(json.dumps(TOKENIZER | {"decoder": {"type": "Nope"}}))
        for program in ("in_cpp", "in_c"):
            ids, text, error = run(build / program, folder / "good.json", folder / "bad.json").splitlines()
            self.assertEqual((ids.split(), text), ("2 3 4".split(), "hello world"), program)
            self.assertIn("must be a decoder of tokenizers 0.23", error)
            loaded = run(build / program, LD_TRACE_LOADED_OBJECTS="1")
            self.assertNotRegex(loaded, r"lib(torch|c10|gomp)")

    def test_static_and_shared(self):
        for shared in ("OFF", "ON"):
            prefix = self.installed(shared)
            with self.subTest(shared=shared):
                self.uses(prefix)
                self.assertFalse(list(prefix.rglob("posencTorchTargets.cmake")))

    def test_pkg_config(self):
        prefix = self.installed("OFF")
        path = next(prefix.rglob("posenc_tokenizers.pc")).parent
        flags = run("pkg-config", "--cflags", "--libs", "posenc_tokenizers", PKG_CONFIG_PATH=str(path)).split()
        run("c++", "-std=c++17", HERE / "tokenizers_consumer/main.cpp", *flags, "-o", folder / "by_pkg_config")
        (folder / "good.json").write_text(json.dumps(TOKENIZER))
        (folder / "bad.json").write_text("{}")
        self.assertEqual(run(folder / "by_pkg_config", folder / "good.json", folder / "bad.json").splitlines()[1], "hello world")
        flags = run("pkg-config", "--static", "--cflags", "--libs", "posenc_tokenizers", PKG_CONFIG_PATH=str(path)).split()
        run("cc", "-std=c99", HERE / "tokenizers_consumer/main.c", *flags, "-o", folder / "c_by_pkg_config")
        self.assertEqual(run(folder / "c_by_pkg_config", folder / "good.json", folder / "bad.json").splitlines()[1], "hello world")

    def test_an_absent_component_is_named(self):
        prefix = self.installed("OFF")
        said = subprocess.run(["cmake", "-S", HERE / "positions_consumer", "-B", folder / "absent", f"-DCMAKE_PREFIX_PATH={prefix}"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("[posenc] this posenc was built without positions; it has base, tokenizers", " ".join(said.stderr.split()))

    def test_an_unknown_component_is_refused(self):
        said = subprocess.run(["cmake", "-S", ROOT, "-B", folder / "unknown", "-DPOSENC_COMPONENTS=tokenizers;sins"],
                              capture_output=True, text=True, check=False)
        self.assertNotEqual(said.returncode, 0)
        self.assertRegex(" ".join(said.stderr.split()), r"\[posenc\] POSENC_COMPONENTS must be all, or a list of these: base, kernels, .*\. Got sins")

    def test_what_a_selection_cannot_have_is_refused(self):
        for selection, option, rule in (("tokenizers", "CLI", "the command line needs the component models"),
                                        ("tokenizers", "EXAMPLES", "POSENC_BUILD_EXAMPLES needs all components"),
                                        ("tokenizers", "BENCHMARKS", "POSENC_BUILD_BENCHMARKS needs all components"),
                                        ("", "CLI", "Got nothing")):
            said = subprocess.run(["cmake", "-S", ROOT, "-B", folder / "refused", f"-DPOSENC_COMPONENTS={selection}", "-UPOSENC_BUILD_*",
                                   f"-DPOSENC_BUILD_{option}=ON", self.WITHOUT], capture_output=True, text=True, check=False)  # fmt: skip
            self.assertNotEqual(said.returncode, 0)
            self.assertIn(f"[posenc] {rule}" if selection else rule, " ".join(said.stderr.split()))


class Positions(unittest.TestCase):
    def test_it_is_installed_and_used(self):
        prefix = install("positions", "-DPOSENC_COMPONENTS=positions;weights")
        self.assertFalse(list(prefix.rglob("libposenc_transformer.*")) + list(prefix.rglob("posenc/transformer.h")))
        build = consumer("positions_consumer", prefix)
        self.assertEqual(run(build / "positions_consumer", folder / "w.safetensors").strip(), "0.8415")


if __name__ == "__main__":
    kind, folder, arguments = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:]
    folder.mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], {"plain": "Plain", "positions": "Positions"}[kind]])

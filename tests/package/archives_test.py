#!/usr/bin/env python3
"""The archives and Debian packages of a release, unpacked and used in other folders.

tests/package/archives_test.py BUILD TOKENIZERS TORCH_DIR    two builds: of everything, and of the tokenizers as a shared library
"""

import json
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

from linked_test import needed, run
from text_test import TOKENIZER

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
build: Path
tokenizers: Path
torch: Path
os.environ.pop("LD_LIBRARY_PATH", None)


class Packed:
    """What both have to be; `source` is the build."""

    source: Path

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        out = cls.folder / "packages"
        run("cpack", "--config", cls.source / "CPackConfig.cmake", "-B", out)
        (cls.archive,), (cls.debian,) = out.glob("*.tar.gz"), out.glob("*.deb")
        run("tar", "xzf", cls.archive, "-C", cls.folder)
        cls.prefix = (cls.folder / cls.archive.name.removesuffix(".tar.gz")).rename(cls.folder / "moved")
        run("dpkg-deb", "-x", cls.debian, cls.folder / "root")

    def field(self, name):
        return run("dpkg-deb", "-f", self.debian, name).strip()

    def test_no_folder_of_this_machine_is_named(self):
        for prefix in (self.prefix, self.folder / "root"):
            for path in sorted(prefix.rglob("*")):
                if path.is_file():
                    for place in (ROOT, torch, build):
                        self.assertNotIn(os.fsencode(place), path.read_bytes(), path)

    def consumer(self, name, prefix, *options):
        folder = self.folder / f"{name}_{prefix.name}"
        run("cmake", "-S", HERE / name, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *options)
        run("cmake", "--build", folder)
        return folder

    def test_both_have_the_same_files(self):
        listed = [{str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()} for prefix in (self.prefix, self.folder / "root/usr")]
        self.assertEqual(*listed)


class Tokenizers(Packed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = tokenizers
        super().setUpClass()

    def test_programs_in_c_and_cpp(self):
        for prefix in (self.prefix, self.folder / "root/usr"):
            programs = self.consumer("tokenizers_consumer", prefix, "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON")
            (self.folder / "good.json").write_text(json.dumps(TOKENIZER))
            (self.folder / "bad.json").write_text("{}")
            for program in ("in_c", "in_cpp"):
                said = run(programs / program, self.folder / "good.json", self.folder / "bad.json").splitlines()
                self.assertEqual((said[0].split(), said[1]), ("2 3 4".split(), "hello world"))

    def test_what_it_needs(self):
        self.assertEqual(self.field("Package"), "posenc-tokenizers")
        self.assertNotIn("+", self.field("Version"))
        self.assertIn("libstdc++6", self.field("Depends"))
        self.assertEqual(needed(next(self.prefix.rglob("libposenc_tokenizers.so"))), set())


class Recipes(unittest.TestCase):
    def test_vcpkg_has_the_version(self):
        version = re.search(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text())[1]
        self.assertEqual(json.loads((ROOT / "packaging/vcpkg/posenc/vcpkg.json").read_text())["version"], version)


class Everything(Packed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = build
        super().setUpClass()
        for prefix in (cls.prefix, cls.folder / "root/usr"):
            (prefix / "libtorch").symlink_to(torch)

    def test_the_command_line_finds_the_libtorch_beside_it(self):
        for prefix in (self.prefix, self.folder / "root/usr"):
            self.assertRegex(run(prefix / "bin/posenc", "--version"), r"posenc \d")
            loaded = run(prefix / "bin/posenc", LD_TRACE_LOADED_OBJECTS="1")
            self.assertIn(f"{prefix}/bin/../libtorch/lib/libtorch_cpu.so", loaded)

    def test_a_program_is_built_with_cmake(self):
        programs = self.consumer("positions_consumer", self.prefix)
        self.assertEqual(run(programs / "positions_consumer", self.folder / "w.safetensors").strip(), "0.8415")
        cache = (programs / "CMakeCache.txt").read_text()
        self.assertIn(f"Torch_DIR:PATH={self.prefix}/libtorch/share/cmake/Torch", cache)

    def test_a_program_is_built_with_pkg_config(self):
        path = next(self.prefix.rglob("posenc_weights.pc")).parent
        flags = run("pkg-config", "--cflags", "--libs", "posenc_positions", "posenc_weights", PKG_CONFIG_PATH=str(path)).split()
        folders = [os.path.normpath(flag.removeprefix("-Wl,-rpath,")) for flag in flags if flag.startswith("-Wl,-rpath,")]
        self.assertEqual(folders, [f"{self.prefix}/libtorch/lib"])
        standard = run("pkg-config", "--variable=cxx_standard", "posenc_core", PKG_CONFIG_PATH=str(path)).strip()
        run("c++", f"-std=c++{standard}", "-O0", HERE / "positions_consumer/main.cpp", *flags, "-o", self.folder / "by_pkg_config")
        self.assertEqual(run(self.folder / "by_pkg_config", self.folder / "w.safetensors").strip(), "0.8415")

    def test_what_it_needs(self):
        self.assertEqual(self.field("Package"), "posenc")
        self.assertRegex(self.field("Version"), r"^[\d.]+\+torch2\.\d+$")
        self.assertIn("zlib1g-dev", self.field("Depends"))
        self.assertIn("posenc-selection", self.field("Conflicts"))


if __name__ == "__main__":
    build, tokenizers = (Path(given).resolve() for given in sys.argv[1:3])
    torch = Path(sys.argv[3]).resolve().parents[2]
    unittest.main(argv=sys.argv[:1])

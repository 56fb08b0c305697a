#!/usr/bin/env python3
"""The LibTorch libraries that posenc's programs and libraries load: torch_cpu and c10, and all of them if a program links them.

    linked_test.py PREFIX SHARED_PREFIX    two installed builds
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

prefixes: list[Path]


def run(*words, **environment):
    said = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment}, timeout=3000)  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def needed(path):
    """The libraries of LibTorch that a file names."""
    names = re.findall(r"\(NEEDED\).*\[lib(.*)\.so", run("readelf", "-d", path))
    return {name for name in names if re.match(r"torch|c10|shm", name)}


class Linked(unittest.TestCase):
    def test_the_command_line_and_shared_libraries_need_no_more(self):
        found = [prefixes[0] / "bin/posenc"]
        found += [path for path in prefixes[1].rglob("libposenc*.so") if not path.is_symlink() or path.exists()]
        self.assertGreaterEqual(len(found), 3, found)
        for path in found:
            with self.subTest(path=path.name):
                if path.name.startswith("libposenc_tokenizers."):
                    self.assertEqual(needed(path), set())
                    self.assertRegex(run("readelf", "-d", path), r"RUNPATH.*\[\$ORIGIN\]")
                    continue
                self.assertIn("torch_cpu", needed(path))
                self.assertLessEqual(needed(path), {"torch_cpu", "c10"})

    def consumer(self, prefix, link):
        """A program that uses posenc, and which libraries it loads."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        (root / "main.cpp").write_text("namespace posenc { const char* version(); }\nint main() { return posenc::version()[0] == 0; }\n")
        (root / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES CXX)\nfind_package(posenc REQUIRED)\n"
            f"find_package(Torch REQUIRED)\nadd_executable(user main.cpp)\ntarget_link_libraries(user PRIVATE {link})\n")
        run("cmake", "-S", root, "-B", root / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", root / "build")
        run(root / "build/user")
        loaded = run(root / "build/user", LD_TRACE_LOADED_OBJECTS="1")
        return needed(root / "build/user"), set(re.findall(r"lib(\w+)\.so\S* => /", loaded))

    def test_a_program_loads_the_libraries_of_the_cpu(self):
        for prefix in prefixes:
            with self.subTest(prefix=prefix.name):
                names, loaded = self.consumer(prefix, "posenc::posenc")
                self.assertLessEqual(names, {"torch_cpu", "c10"})
                self.assertFalse(loaded & {"torch_cuda", "torch_python", "c10_cuda"}, loaded)

    def test_a_program_that_asks_for_it_loads_all(self):
        names, loaded = self.consumer(prefixes[0], "posenc::posenc ${TORCH_LIBRARIES}")
        self.assertIn("torch", names)
        where = re.search(r"-L(\S+) -Wl,-rpath", next(prefixes[0].rglob("posenc_core.pc")).read_text()).group(1)
        if (Path(where) / "libtorch_cuda.so").exists():
            self.assertIn("torch_cuda", loaded)


if __name__ == "__main__":
    prefixes = [Path(argument).resolve() for argument in sys.argv[1:3]]
    unittest.main(argv=sys.argv[:1])

"""What find_package(posenc) does with the LibTorch that it finds, and what is installed; only configures.

    config_test.py PREFIX TORCH_DIR        an installed posenc, and the folder of the LibTorch that it was built with
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PREFIX, TORCH_DIR = (Path(argument).absolute() for argument in sys.argv[1:3])
PACKAGE = next(PREFIX.glob("lib*/**/cmake/posenc"))  # lib, lib64, lib/<architecture>
BUILT = re.search(r'PACKAGE_VERSION "(\d+\.\d+)', (TORCH_DIR / "TorchConfigVersion.cmake").read_text()).group(1)

# Like PyTorch's CUDA build: its public/cuda.cmake returns if torch::cudart is a target, and otherwise looks for a
# toolkit.
CUDA_TORCH = """
if(NOT TARGET torch::cudart)
  message(FATAL_ERROR "PyTorch looks for a toolkit")
endif()
set(Torch_FOUND TRUE)
"""


class ConfigTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text="", executable=False):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if executable:
            path.chmod(0o755)
        return path

    def configure(self, lines, *arguments, **environment):
        self.write("CMakeLists.txt", f"cmake_minimum_required(VERSION 3.22)\nproject(user LANGUAGES CXX)\n{lines}\n")
        kept = {name: value for name, value in os.environ.items() if name not in ("Torch_DIR", "CMAKE_PREFIX_PATH")}
        run = subprocess.run(["cmake", "-S", self.root, "-B", self.root / "build", *arguments], capture_output=True,
                             text=True, check=False, env={**kept, **environment}, timeout=3000)
        return run.returncode, " ".join((run.stdout + run.stderr).split())

    def find(self, lines, *arguments, package=PACKAGE, **environment):
        return self.configure(f"find_package(posenc REQUIRED)\n{lines}", f"-Dposenc_DIR={package}", *arguments, **environment)

    def torch(self, version, config="set(Torch_FOUND TRUE)\n"):
        self.write("torch/TorchConfig.cmake", config)
        self.write("torch/TorchConfigVersion.cmake", f'set(PACKAGE_VERSION "{version}")\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n')
        return f"-DTorch_DIR={self.root}/torch"

    def without_its_libtorch(self):
        """The package in a separate prefix, without the LibTorch that it was built with."""
        library = PACKAGE.parents[1]
        copy = self.root / library.relative_to(PREFIX)
        package = shutil.copytree(PACKAGE, copy / "cmake/posenc")
        for path in library.glob("libposenc*.*"):
            (copy / path.name).symlink_to(path)
        (self.root / "include").symlink_to(PREFIX / "include")
        config = package / "posencConfig.cmake"
        config.write_text(config.read_text().replace(str(TORCH_DIR), "/nowhere"))
        return package

    # --- posenc's own CMakeLists.txt ---

    def own(self, *variables, torch=None):
        """Configures posenc itself as if CMake had found these variables, with a LibTorch of this version."""
        source = Path(__file__).resolve().parents[2]
        lines = "".join(f'set({name} "{value}")\n' for name, value in (text.split("=") for text in variables))
        code, output = self.configure(f"{lines}add_subdirectory({source} posenc)", *([self.torch(*torch)] if torch else []))
        self.assertEqual(code, 1, output)
        return output

    def test_windows_is_refused_with_the_reason(self):
        output = self.own("WIN32=TRUE", "CMAKE_SYSTEM_NAME=Windows", "CMAKE_CXX_COMPILER_ID=MSVC")
        self.assertIn("[posenc] Windows is not supported: posenc's files, processes and signals are POSIX's", output)
        self.assertIn("use WSL. Got Windows and MSVC", output)

    def test_an_unknown_system_is_refused(self):
        self.assertIn("[posenc] the system must be Linux or macOS. Got FreeBSD", self.own("CMAKE_SYSTEM_NAME=FreeBSD"))

    def test_a_processor_of_another_kind_is_refused(self):
        rule = "[posenc] the processor must have 64 bits and be little-endian, as PyTorch's files are. Got "
        self.assertIn(rule + "armv7l with 32 bits, LITTLE_ENDIAN",
                      self.own("CMAKE_SYSTEM_PROCESSOR=armv7l", "CMAKE_SIZEOF_VOID_P=4"))
        self.assertIn(rule + "s390x with 64 bits, BIG_ENDIAN",
                      self.own("CMAKE_SYSTEM_PROCESSOR=s390x", "CMAKE_CXX_BYTE_ORDER=BIG_ENDIAN"))

    def test_a_universal_binary_is_refused(self):
        self.assertIn("build each slice by itself. Got CMAKE_OSX_ARCHITECTURES=arm64;x86_64",
                      self.own("CMAKE_OSX_ARCHITECTURES=arm64;x86_64"))

    def test_the_kernels_are_those_of_the_compilers_target(self):
        # A toolchain file need not name a processor: the target of the compiler decides, as in src/kernels/sets.h.
        cmake = Path(__file__).resolve().parents[2] / "cmake"
        for processor in ("", "unheard_of"):
            code, output = self.configure(f'set(CMAKE_SYSTEM_PROCESSOR "{processor}")\ninclude({cmake}/posenc_kernels.cmake)\n'
                                          'string(JOIN "," sets ${POSENC_SETS})\nmessage(STATUS "sets=${sets}")')
            self.assertEqual(code, 0, output)
            self.assertIn("sets=" + {"x86_64": "generic,sse2,avx2,avx512,avx2vnni,avx512vnni,avx512bf16 ", "aarch64": "generic,neon,neondot "}.get(os.uname().machine, "generic "), output)

    def test_an_unknown_or_old_compiler_is_refused(self):
        rule = "[posenc] the compiler must be g++ 12, clang 14 or Apple's clang 15, or newer. Got "
        for name, version in (("GNU", "11.4.0"), ("Clang", "13.0.1"), ("AppleClang", "14.0.3"), ("NVHPC", "24.1")):
            self.assertIn(f"{rule}{name} {version}, ", self.own(f"CMAKE_CXX_COMPILER_ID={name}", f"CMAKE_CXX_COMPILER_VERSION={version}"))

    WRONG_FOLDER = "[posenc] Torch_DIR must be the folder of TorchConfig.cmake, such as <LibTorch>/share/cmake/Torch. Got "

    def test_a_torch_dir_without_a_libtorch_is_refused(self):
        # find_package would take another LibTorch, such as that of python3
        source = Path(__file__).resolve().parents[2]
        self.write("libtorch/share/cmake/Torch/TorchConfig.cmake")
        for folder in ("/nonexistent", f"{self.root}/libtorch"):
            code, output = self.configure(f"add_subdirectory({source} posenc)", f"-DTorch_DIR={folder}", f"-DPOSENC_PYTHON={sys.executable}")
            self.assertEqual(code, 1, output)
            self.assertIn(self.WRONG_FOLDER + folder, output)

    def test_an_old_libtorch_is_refused(self):
        self.assertIn(f"[posenc] LibTorch must be 2.12 or newer. Got 2.10.0 in {self.root}/torch", self.own(torch=["2.10.0"]))
        output = self.own(torch=["2.11.0"])
        self.assertIn(f"[posenc] LibTorch must be 2.12 or newer. Got 2.11.0 in {self.root}/torch: libtorch.so of 2.11 exports", output)

    def test_a_libtorch_without_its_distributed_package_is_refused(self):
        config = "set(Torch_FOUND TRUE)\nadd_library(torch_cpu INTERFACE IMPORTED GLOBAL)\n"
        output = self.own(torch=["2.16.0", config])
        self.assertIn("[posenc] LibTorch must be built with its distributed package", output)
        self.assertIn("[posenc] LibTorch 2.16 is newer than those that posenc has been tested with, 2.12 to 2.15", output)

    def test_openmp_on_macos_is_libtorchs(self):
        config = ("set(Torch_FOUND TRUE)\nadd_library(torch_cpu INTERFACE IMPORTED GLOBAL)\n"
                  f'set(TORCH_INSTALL_PREFIX "{self.root}/torch")\n'
                  "set_target_properties(torch_cpu PROPERTIES INTERFACE_COMPILE_DEFINITIONS USE_DISTRIBUTED)\n")
        mac = ("APPLE=TRUE", "CMAKE_SYSTEM_NAME=Darwin")
        self.assertIn(f"[posenc] LibTorch must bring libomp.dylib, as PyTorch's own builds for macOS do. Got {self.root}/torch/lib without it",
                      self.own(*mac, torch=["2.13.0", config]))
        output = self.own(*mac, f"POSENC_LIBOMP={self.root}/libomp.dylib", torch=["2.13.0", config])
        self.assertIn("[posenc] OpenMP's header omp.h was found neither in LibTorch nor in Homebrew: run `brew install libomp`", output)

    # --- posencConfig.cmake ---

    def test_old_cmake_gets_the_headers_and_nobody_a_warning(self):
        # The exported file set requires CMake 3.23; posencConfig.cmake reads the version from this variable.
        code, output = self.configure(
            "set(CMAKE_VERSION 3.22.1)\nfind_package(posenc REQUIRED)\n"
            "get_target_property(folders posenc::posenc INTERFACE_INCLUDE_DIRECTORIES)\n"
            'message(STATUS "folders=${folders}")', f"-Dposenc_DIR={PACKAGE}")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, rf"folders=\S*{re.escape(str(PREFIX))}/include")
        self.assertNotIn("Warning", output, "LibTorch's on kineto among them")

    def test_older_cmake_is_refused(self):
        code, output = self.configure("set(CMAKE_VERSION 3.21.0)\nfind_package(posenc REQUIRED)", f"-Dposenc_DIR={PACKAGE}")
        self.assertEqual(code, 1, output)
        self.assertIn("[posenc] CMake must be 3.22 or newer. Got 3.21.0", output)

    def test_another_libtorch_is_refused(self):
        code, output = self.find("", self.torch("2.3.1"))
        self.assertEqual(code, 1, output)
        self.assertIn(f"[posenc] LibTorch must be {BUILT}, with which posenc was built. Got 2.3.1 in {self.root}/torch", output)
        # also if the project itself has found the other one before
        code, output = self.configure("find_package(Torch REQUIRED)\nfind_package(posenc REQUIRED)",
                                      f"-Dposenc_DIR={PACKAGE}", self.torch("2.3.1"))
        self.assertEqual(code, 1, output)
        self.assertIn(f"[posenc] LibTorch must be {BUILT}, with which posenc was built. Got 2.3.1 in {self.root}/torch", output)
        code, output = self.find("", self.torch(f"{BUILT}1.0"))
        self.assertIn(f"Got {BUILT}1.0 in", output)

    def test_a_torch_dir_without_a_libtorch_is_no_libtorch(self):
        code, output = self.find("", "-DTorch_DIR=/nonexistent")
        self.assertEqual(code, 1, output)
        self.assertIn(self.WRONG_FOLDER + "/nonexistent", output)
        code, output = self.find("", Torch_DIR="/nonexistent")
        self.assertEqual(code, 1, output)
        self.assertIn(self.WRONG_FOLDER + "/nonexistent", output)
        code, output = self.find("", "-DTorch_DIR=/nonexistent", f"-DTorch_DIR={TORCH_DIR}", Torch_DIR="/nonexistent")
        self.assertEqual(code, 0, output)

    def test_none_is_said_so(self):
        package = self.without_its_libtorch()
        self.write("path/python3", "#!/bin/sh\nexit 1\n", executable=True)
        code, output = self.find("", package=package, PATH=f"{self.root}/path:{os.environ['PATH']}")
        self.assertEqual(code, 1, output)
        self.assertIn(f"[posenc] LibTorch {BUILT} must be in CMAKE_PREFIX_PATH or Torch_DIR, in /nowhere", output)

    def test_what_needs_no_libtorch_is_found_without_one(self):
        without = f"-Dposenc_DIR={PACKAGE}", "-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON"
        for lines in ("find_package(posenc REQUIRED COMPONENTS tokenizers OPTIONAL_COMPONENTS positions)",
                      "find_package(posenc QUIET COMPONENTS positions)\nfind_package(posenc REQUIRED COMPONENTS tokenizers)",
                      "find_package(posenc QUIET COMPONENTS positions nope)\nfind_package(posenc REQUIRED COMPONENTS tokenizers)"):
            code, output = self.configure(f'{lines}\nmessage(STATUS "positions=${{posenc_positions_FOUND}}, ${{posenc_tokenizers_FOUND}}")', *without)
            self.assertEqual(code, 0, output)
            self.assertRegex(output, "TRUE" if "nope" in lines else "positions=FALSE, TRUE")

    def test_pythons_torch_is_the_last_resort(self):
        package = self.without_its_libtorch()
        self.write("path/python3", f"#!/bin/sh\necho {TORCH_DIR.parent}\n", executable=True)
        code, output = self.find('message(STATUS "torch=${Torch_DIR}")', package=package,
                                 PATH=f"{self.root}/path:{os.environ['PATH']}")
        self.assertEqual(code, 0, output)
        self.assertIn(f"torch={TORCH_DIR}", output)

    # --- LibTorch's CUDA build ---

    def cuda(self, toolkit):
        """Configures a project with LibTorch's CUDA build and the files of a toolkit."""
        self.write("toolkit/bin/nvcc", "#!/bin/sh\nexit 1\n", executable=True)
        for name, text in toolkit.items():
            self.write(f"toolkit/{name}", text)
        return self.configure(
            f'include("{PACKAGE}/posenc_torch.cmake")\nposenc_find_torch()\nmessage(STATUS "found=${{Torch_FOUND}}")',
            self.torch(BUILT, CUDA_TORCH), PATH=f"{self.root}/toolkit/bin:{os.environ['PATH']}")

    def test_half_a_toolkit_is_as_good_as_none(self):
        for toolkit in ({}, {"include/cuda.h": "#define CUDA_VERSION 13000\n"}, {"lib64/libcudart.so": ""},
                        {"include/cuda.h": "#define CUDA_VERSION 11050\n", "lib64/libcudart.so": ""}):
            with self.subTest(toolkit=toolkit):
                shutil.rmtree(self.root / "toolkit", ignore_errors=True)
                code, output = self.cuda(toolkit)
                self.assertEqual(code, 0, output)
                self.assertRegex(output, "found=(1|TRUE)")

    def test_a_whole_toolkit_is_pytorchs_business(self):
        code, output = self.cuda({"include/cuda.h": "#define CUDA_VERSION 13000\n", "lib64/libcudart.so": ""})
        self.assertEqual(code, 1, output)
        self.assertIn("PyTorch looks for a toolkit", output)

    # --- what is installed ---

    def test_no_flag_of_one_compilers_is_exported(self):
        self.assertNotIn("-fopenmp", (PACKAGE / "posencTorchTargets.cmake").read_text())

    def test_man_page_and_completions_are_where_they_are_looked_for(self):
        for name in ("man/man1/posenc.1", "bash-completion/completions/posenc", "zsh/site-functions/_posenc"):
            self.assertTrue((PREFIX / "share" / name).is_file(), name)

    def test_the_runpath_names_what_is_there(self):
        found = subprocess.run(["readelf", "-d", PREFIX / "bin/posenc"], capture_output=True, text=True, check=True).stdout
        folders = re.search(r"RUNPATH.*\[(.*)\]", found).group(1).split(":")
        self.assertIn(str(TORCH_DIR.parents[2] / "lib"), folders)
        for folder in folders:
            self.assertTrue(folder.startswith("$ORIGIN") or os.path.isdir(folder), folder)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

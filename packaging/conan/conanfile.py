"""posenc for Conan 2: by default the tokenizers, which need no LibTorch.

    conan create packaging/conan
    conan create packaging/conan -o posenc/*:components=all -c tools.cmake.cmaketoolchain:extra_variables="{'Torch_DIR': '<LibTorch>/share/cmake/Torch'}"

Run with the tokenizers, static and shared, with its requirements from Debian's packages ([platform_requires] in the profile); not run: the
recipes that ConanCenter has for them, and all components. ConanCenter has no LibTorch: it is the user's own.
"""

import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy

ROOT = Path(__file__).resolve().parents[2]


class Posenc(ConanFile):
    name = "posenc"
    license = "MIT"
    description = "Token embeddings, positional encodings and Transformers on LibTorch"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "components": ["ANY"]}
    default_options = {"shared": False, "components": "tokenizers"}

    def set_version(self):
        self.version = re.search(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text())[1]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, pattern, ROOT, self.export_sources_folder)

    def requirements(self):
        self.requires("nlohmann_json/3.11.3")
        self.requires("oniguruma/6.9.9")
        if self.options.components != "tokenizers":
            self.requires("fmt/10.2.1")
            self.requires("zlib/[>=1.2.11 <2]", transitive_libs=True)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["POSENC_COMPONENTS"] = str(self.options.components).replace(",", ";")
        for part in ("CLI", "EXAMPLES", "TESTS"):
            toolchain.cache_variables[f"POSENC_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # posenc's own CMake package, which finds the user's LibTorch, and its pkg-config files
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/posenc"]

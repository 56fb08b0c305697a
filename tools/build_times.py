#!/usr/bin/env python3
"""Measures what the selections of components cost to build, for docs/components.md, and writes docs/components.json.

    tools/build_times.py [--torch DIR] [--only SELECTION] [--jobs N]

Each of tools/docs_components.py's selections is configured in a new folder, built and installed without a compiler's cache, the
command line, the tests and the examples; then a small program of it is linked with static libraries and stripped. The tokenizers
are built once more as a shared library. With --only nothing is written.

The machine must have nothing else to do: the load before the run is recorded. tools/docs.py --write then writes the page.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from docs_components import MEASURED, SELECTIONS
from page_tables import ROOT

WEIGHTS = """#include <posenc/positions.h>
#include <posenc/weights.h>

int main(int count, char** words) {
  posenc::PositionalEncoding position(posenc::PositionalEncodingOptions(64).max_len(100));
  if (count > 1) posenc::load_weights(*position, words[1]);
  return position->forward(torch::zeros({1, 4, 64})).size(1) == 4 ? 0 : 1;
}
"""
TOKENIZERS = """#include <posenc/tokenizers.h>

#include <cstdio>

int main(int count, char** words) {
  if (count < 3) return 0;
  const auto tokenizer = posenc::tokenizers::Tokenizer::from_folder(words[1]);
  std::puts(tokenizer.decode(tokenizer.encode_ids(words[2])).c_str());
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(size LANGUAGES CXX)
find_package(posenc REQUIRED COMPONENTS {components})
add_executable(size main.cpp)
target_link_libraries(size PRIVATE {targets})
"""


def run(*words) -> float:
    """Runs a command and returns its seconds; shows what it printed if it fails."""
    begin = time.monotonic()
    done = subprocess.run([str(word) for word in words], env=os.environ | {"CCACHE_DISABLE": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout[-4000:]}")
    return time.monotonic() - begin


def build(folder: Path, selection: str, options, *more) -> "dict[str, float]":
    """Builds posenc in folder/build and installs it in folder/posenc."""
    torch = [f"-DTorch_DIR={options.torch}"] if options.torch else []
    plain = ["-DPOSENC_BUILD_CLI=OFF", "-DPOSENC_BUILD_EXAMPLES=OFF", "-DPOSENC_BUILD_TESTS=OFF", "-DCMAKE_CXX_COMPILER_LAUNCHER="]
    return {
        "configure": run("cmake", "-S", ROOT, "-B", folder / "build", f"-DPOSENC_COMPONENTS={selection}", *plain, *torch, *more),
        "build": run("cmake", "--build", folder / "build", "--parallel", options.jobs),
        "install": run("cmake", "--install", folder / "build", "--prefix", folder / "posenc"),
    }


def stripped(path: Path) -> int:
    copy = path.with_name(path.name + ".stripped")
    shutil.copy(path, copy)
    run("strip", copy)
    return copy.stat().st_size


def program(folder: Path, selection: str, options) -> int:
    """The size of a stripped program with static libraries."""
    source = folder / "program"
    source.mkdir()
    parts = ["tokenizers"] if selection == "tokenizers" else ["positions", "weights"]
    names = {"components": " ".join(parts), "targets": " ".join(f"posenc::{part}" for part in parts)}
    (source / "CMakeLists.txt").write_text(PROJECT.format(**names))
    (source / "main.cpp").write_text(TOKENIZERS if selection == "tokenizers" else WEIGHTS)
    torch = [f"-DTorch_DIR={options.torch}"] if options.torch else []
    run("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={folder / 'posenc'}", "-DCMAKE_BUILD_TYPE=Release", *torch)
    run("cmake", "--build", source / "build")
    run(source / "build/size")
    return stripped(source / "build/size")


def output(*words) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").is_file() else None
    return found[1] if found else platform.processor()


def torch_version(cache: str) -> str:
    return Path(re.search(r"^Torch_DIR:.*=(.*)", cache, re.M)[1], "TorchConfigVersion.cmake").read_text().split('PACKAGE_VERSION "')[1].split('"')[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="DIR", help="the folder of LibTorch's TorchConfig.cmake; by default as posenc finds it")
    parser.add_argument("--only", metavar="SELECTION", choices=list(SELECTIONS), help="measure this one and write nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    load, known = os.getloadavg()[0], {}
    result = {"processor": processor(), "cores": os.cpu_count(), "load": round(load, 1), "date": str(datetime.date.today())}
    for selection in [options.only] if options.only else SELECTIONS:
        with tempfile.TemporaryDirectory(prefix="posenc_build_times_") as name:
            seconds = build(Path(name), selection, options)
            known[selection] = {"seconds": {step: round(value, 1) for step, value in seconds.items()}, "program": program(Path(name), selection, options)}
            cache = (Path(name) / "build/CMakeCache.txt").read_text()
        if selection != "tokenizers":
            result["torch"] = torch_version(cache)
        compiler = re.search(r"^CMAKE_CXX_COMPILER:.*=(.*)", cache, re.M)[1]
        result["compiler"] = f"{Path(compiler).name} {output(compiler, '-dumpfullversion', '-dumpversion').strip()}"
        print(f"{selection}: {known[selection]}", flush=True)
    if options.only in (None, "tokenizers"):
        with tempfile.TemporaryDirectory(prefix="posenc_build_times_") as name:
            build(Path(name), "tokenizers", options, "-DBUILD_SHARED_LIBS=ON")
            [library] = {path.resolve() for path in (Path(name) / "posenc").rglob("libposenc_tokenizers.so*")}
            result["shared_tokenizers"] = stripped(library)
            print(f"{library.name}, stripped: {result['shared_tokenizers']} bytes")
    if not options.only:
        MEASURED.write_text(json.dumps(result | {"selections": known}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

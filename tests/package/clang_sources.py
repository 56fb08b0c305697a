"""Checks sources with clang, given a build folder of another compiler, with warnings as errors: the kernels, for each
instruction set, and the sources on LibTorch that have caused problems. Writes nothing.

    clang_sources.py CLANG BUILD_FOLDER
"""

import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ON_LIBTORCH = ["train/fused_adam.cpp"]  # ten seconds each

def command(clang, entry, source):
    """The entry's flags for clang and a source, with syntax checks only. Without OpenMP, whose header comes with LLVM's
    libomp, which may not be installed, and without the precompiled header, which is gcc's."""
    words = shlex.split(entry["command"])
    kept = [word for word in words
            if word.startswith(("-D", "-I", "-std=", "-m", "-W", "-ffp-")) and word not in ("-Winvalid-pch", "-Wno-restrict")]
    system = [folder for word, folder in zip(words, words[1:]) if word == "-isystem"]
    return [clang, *kept, *(f"-isystem{folder}" for folder in system), "-Werror", "-fsyntax-only", str(source)]


def main(clang, folder):
    entries = json.loads((Path(folder) / "compile_commands.json").read_text())
    kernels = [entry for entry in entries if "/src/kernels/" in entry["file"]]  # in a unity build a unit of each set and group
    library = next(entry for entry in entries if "/CMakeFiles/posenc_train_objects.dir/" in entry["command"])
    commands = [command(clang, entry, entry["file"]) for entry in kernels]
    commands += [command(clang, library, ROOT / "src" / name) for name in ON_LIBTORCH]
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda words: subprocess.run(words, cwd=folder, capture_output=True, text=True), commands))
    for words, run in zip(commands, runs):
        if run.returncode:
            print(" ".join(words), run.stderr, sep="\n")
    failed = sum(run.returncode != 0 for run in runs)
    print(f"{len(runs)} sources read by {clang}, {failed} refused")
    return 1 if failed or not kernels else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

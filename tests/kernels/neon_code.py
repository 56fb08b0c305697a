"""The kernels for NEON multiply and add whole vectors at once: the compiler makes `fmla` of them. Exits with 77 where
g++ for ARM64 is not installed."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "aarch64-linux-gnu-"
FMLA = {"linear_few": r"fmla\s.*\.4s", "linear_many": r"fmla\s.*\.4s", "encoder_embeddings": r"fmla\s.*\.4s", "sincos_rows": r"fml[as]\s.*\.2d",
        "sincos_rows_pair": r"fml[as]\s.*\.2d"}  # fmt: skip
LEAST = 20  # a loop's worth


def code(kernel, folder):
    out = Path(folder) / "kernel.o"
    subprocess.run([f"{PREFIX}g++", "-std=c++20", "-O3", "-ffp-contract=off", "-fno-trapping-math", "-DPOSENC_ISA=neon", f"-I{ROOT}/src",
                    "-c", ROOT / f"src/kernels/isa/{kernel}.cpp", "-o", out], check=True)  # fmt: skip
    return subprocess.run([f"{PREFIX}objdump", "-d", out], check=True, capture_output=True, text=True).stdout


def main():
    if not shutil.which(f"{PREFIX}g++"):
        print(f"skipped: {PREFIX}g++ is not installed (Debian: g++-aarch64-linux-gnu)")
        return 77
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for kernel, pattern in FMLA.items():
            found = len(re.findall(pattern, code(kernel, folder)))
            if found < LEAST:
                failed = 1
                print(f"{kernel}.cpp for NEON must have at least {LEAST} instructions `{pattern}`. Got {found}")
    return failed


if __name__ == "__main__":
    sys.exit(main())

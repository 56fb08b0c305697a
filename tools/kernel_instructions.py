#!/usr/bin/env python3
"""Counts the instructions that kernels execute on ARM64, in emulation: with NEON, and with the generic set.

    kernel_instructions.py [--write]   prints the table; --write puts it into docs/developers/arm64_kernels.md

Needs Debian's g++-aarch64-linux-gnu and qemu-user-static. The generic set is compiled there without vector instructions.
Emulation does not model time, so the table does not reflect stalls or caches.
"""

import argparse
import subprocess
import sys

from page_tables import DOCS, ROOT, filled, table

BUILD = ROOT / "build" / "kernel_instructions"
PAGE = DOCS / "developers/arm64_kernels.md"


def build():
    subprocess.run(["cmake", "-S", ROOT / "tests" / "kernels" / "instructions", "-B", BUILD, "-G", "Ninja",
                    "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
                    "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    subprocess.run(["cmake", "--build", BUILD], check=True, stdout=sys.stderr)


def executed(isa, kernel, times):
    """Every executed instruction is a line of the log if each is translated by itself."""
    run = subprocess.Popen(["qemu-aarch64-static", "-singlestep", "-d", "exec,nochain", "-D", "/dev/stdout",
                            BUILD / "kernel_instructions", isa, kernel, str(times)], stdout=subprocess.PIPE)  # fmt: skip
    lines = 0
    while block := run.stdout.read(1 << 20):
        lines += block.count(b"\nTrace ")
    if run.wait() != 0:
        sys.exit(f"kernel_instructions {isa} {kernel!r} ended with {run.returncode}")
    return lines


def rows():
    program = ["qemu-aarch64-static", BUILD / "kernel_instructions"]
    kernels = subprocess.run(program, check=True, capture_output=True, text=True).stdout.splitlines()
    for kernel in kernels:
        generic, neon = (executed(isa, kernel, 2) - executed(isa, kernel, 1) for isa in ("generic", "neon"))
        yield kernel, f"{generic:,}", f"{neon:,}", f"{generic / neon:.1f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    build()
    text = table(["kernel", "generic", "NEON", "generic / NEON"], rows())
    print(text, end="")
    if write:
        PAGE.write_text(filled(PAGE.read_text(), {"kernels": lambda: text}, "kernel_instructions.py"))


if __name__ == "__main__":
    main()

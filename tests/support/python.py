"""Runs scripts for support/python.h. Each line of standard input names a folder: its script.py is run there by a fork of
this process, which has imported torch. What it prints goes to python.log. The answer is a line with its exit status."""

import os
import runpy
import sys
import traceback
import warnings

import safetensors.torch  # noqa: F401  imports torch


def run(folder: str) -> int:
    os.chdir(folder)
    log = os.open("python.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.path[0] = folder
    try:
        runpy.run_path("script.py", run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


warnings.simplefilter("ignore")
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = run(line.rstrip("\n"))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

"""Opens each hostile file in a separate process, and checks the error code and limits on memory and time.

    run.py OPEN [--sanitized]    OPEN: the program of open.cpp; --sanitized: do not limit memory
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import make  # noqa: E402

MEGABYTE = 1 << 20
SECONDS = 1.0  # of processor time for a hostile file, in `make test-all`
A_SECOND = 20_000_000  # bytes per second for larger files: valid headers of that size take as long
HANG = 100  # seconds of CPU time before the process is killed


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (HANG, HANG))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def problem(program, path, code, sanitized):
    """What is wrong with the handling of this file, or None."""
    done = subprocess.run([program, path], capture_output=True, text=True, errors="replace", preexec_fn=limits,
                          cwd=path.parent)
    if done.returncode != 0:
        return f"ended with {done.returncode}: {done.stderr[-2000:]}"
    got, kilobytes, seconds, message = (done.stdout.rstrip("\n").split(" ", 3) + [""])[:4]
    if got != code:
        return f"must be {code}. Got {got} {message}"
    if code != "ok" and f"[read_manifest] {path.parent}{os.sep}" not in message:
        return f"must name the function and the file. Got {message}"
    if len(message) > 1000 + len(str(path)):
        return f"must have a short message. Got {len(message)} characters"
    if any(ord(c) < 32 for c in message):
        return f"must have no control characters in its message. Got {message!r}"
    longest = max(SECONDS, path.stat().st_size / A_SECOND) * (5 if sanitized else 1)
    if "POSENC_EXHAUSTIVE" in os.environ and float(seconds) > longest:
        return f"must cost at most {longest} s. Got {seconds}"
    most = 10 * path.stat().st_size + 64 * MEGABYTE
    if not sanitized and int(kilobytes) * 1024 > most:
        return f"must cost at most {most // MEGABYTE} MB. Got {int(kilobytes) // 1024}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--sanitized", action="store_true")
    arguments = parser.parse_args()
    count, failures = 0, []
    with tempfile.TemporaryDirectory(prefix="posenc-hostile-") as folder:
        for path, code in list(make.write(folder)):
            count += 1
            wrong = problem(arguments.program, path, code, arguments.sanitized)
            if wrong:
                failures.append(f"{path.parent.name}/{path.name} {wrong}")
        if list(Path(folder).rglob("posenc-was-here")):
            failures.append("code of a file was run")
    print("\n".join(failures))
    print(f"{count} hostile files, {len(failures)} not dealt with as they should be")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())

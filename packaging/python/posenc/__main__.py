"""`python -m posenc --cmake-prefix` and the like print one path; any other arguments are those of the command `posenc`."""

import importlib.util
import os
import sys
from pathlib import Path

PATHS = {"--cmake-prefix": "cmake_prefix", "--include": "include", "--libraries": "libraries", "--command": "command"}


def command():
    """The command line: the program of this package, in place of this process."""
    try:
        import posenc
    except ImportError as error:
        sys.exit(str(error))
    arguments = sys.argv[1:]
    if len(arguments) == 1 and arguments[0] in PATHS:
        print(getattr(posenc, PATHS[arguments[0]]))
        return
    if not (posenc.prefix.parent / "torch").is_dir():  # as in an environment that has the torch of an outer one
        there = Path(importlib.util.find_spec("torch").origin).parent / "lib"
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(there), os.environ.get("LD_LIBRARY_PATH")]))
    os.execv(posenc.command, ["posenc", *arguments])


if __name__ == "__main__":
    command()

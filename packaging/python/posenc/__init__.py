"""Where this posenc is: the C++ library on LibTorch, its headers, its CMake package and the command `posenc`.

It computes nothing in Python; C++ programs find it by `python -m posenc --cmake-prefix`.
"""

import re
from importlib import metadata
from pathlib import Path

#: The folder that holds `bin`, `include`, `lib` and `lib/cmake`.
prefix = Path(__file__).resolve().parent
__version__ = metadata.version("posenc")
#: The minor version of torch that the libraries were built with, such as "2.13".
torch_version = next(re.search(r"(\d+\.\d+)\.\*", need)[1] for need in metadata.requires("posenc") if need.startswith("torch"))
#: For CMAKE_PREFIX_PATH; posenc's CMake package finds the torch beside it.
cmake_prefix = str(prefix)
include = str(prefix / "include")
libraries = str(prefix / "lib")
command = str(prefix / "bin/posenc")


def _check_torch():
    try:
        found = metadata.version("torch")
    except metadata.PackageNotFoundError:
        found = "none"
    if not re.match(rf"{re.escape(torch_version)}(\.|$)", found):
        raise ImportError(f"[posenc] torch must be {torch_version}, with which this wheel was built. Got {found}: install torch=={torch_version}.*, "
                          "or build a wheel for this torch (pip install --no-build-isolation in posenc's sources)")  # fmt: skip


_check_torch()

"""Writes the hostile files, each named after what it attacks: FOLDER/<part>/<case>.

    make.py FOLDER    prints, for each, its path in FOLDER and the expected error code
"""

import importlib
import sys
from pathlib import Path

PARTS = ("safetensors", "index", "archives", "others")


def write(folder):
    """Yields (path, code) for each file that it has written."""
    for part in PARTS:
        module = importlib.import_module(part)
        at = Path(folder) / part
        at.mkdir(parents=True, exist_ok=True)
        for name, data in getattr(module, "beside", dict)().items():
            (at / name).write_bytes(data)
        for name, data, code in module.cases():
            path = at / name
            if path.exists():
                raise SystemExit(f"{part}: two cases are called {name}")
            path.write_bytes(data)
            yield path, code


if __name__ == "__main__":
    for path, code in write(sys.argv[1]):
        print(path.relative_to(sys.argv[1]), code)

"""Creates the zoo's environment: `PYTHON make_env.py DIR` (a virtual environment; nothing outside DIR is touched).

torch is the one that PYTHON imports, made visible in DIR: the tables are compared under the torch of posenc's other
tests, and nothing of that size is downloaded twice. Does nothing if DIR was made from the same lists and the same
torch. Prints what each part took. A package that cannot be installed skips its presets, which compare.py reports.
"""

import hashlib
import subprocess
import sys
import time
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("numpy", "safetensors")  # nothing can be compared without these


def outer_torch() -> tuple[str, str]:
    """The version, and the folder that `import torch` came from."""
    import torch

    return torch.__version__, str(Path(torch.__file__).resolve().parent.parent)


def key(torch: tuple[str, str]) -> str:
    h = hashlib.sha256(repr((sys.version, torch)).encode())
    for name in ("requirements.txt", "sources.txt", "sources.py"):
        h.update((HERE / name).read_bytes())
    return h.hexdigest()


def requirements() -> list[str]:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return [line for line in lines if "==" in line and not line.startswith("#")]


def step(what: str, command: list[str]) -> bool:
    begin = time.monotonic()
    print(f"zoo: {what} ...", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout, end="")
    outcome = "done" if done.returncode == 0 else "FAILED"
    print(f"zoo: {what}: {outcome} after {time.monotonic() - begin:.0f} s", flush=True)
    return done.returncode == 0


def install(python: str) -> list[str]:
    """Installs the packages; returns those that could not be installed."""
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    pins = requirements()
    if step(f"installing {len(pins)} packages with their dependencies", [*pip, *pins]):
        return []
    return [pin for pin in pins if not step(f"installing {pin}", [*pip, pin])]  # one failure must not hide the rest


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: PYTHON make_env.py DIR", file=sys.stderr)
        return 2
    folder = Path(sys.argv[1]).resolve()
    torch = outer_torch()
    stamp = folder / "zoo-stamp"
    if stamp.is_file() and stamp.read_text() == key(torch):
        return 0
    print(f"zoo: making {folder.name}, with torch {torch[0]} of {sys.executable}", flush=True)
    begin = time.monotonic()
    venv.create(folder, with_pip=True, clear=True)
    python = str(folder / "bin" / "python")
    major, minor = sys.version_info[:2]
    site = folder / "lib" / f"python{major}.{minor}" / "site-packages"
    (site / "outer_torch.pth").write_text(torch[1] + "\n")  # searched after the environment's own packages
    failed = install(python)
    if any(pin.split("==")[0] in NEEDED for pin in failed):
        print(f"zoo: nothing can be compared without {' and '.join(NEEDED)}", file=sys.stderr)
        return 1
    complete = step("downloading and unpacking the one-file packages", [python, str(HERE / "sources.py")])
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file() and not f.is_symlink()) >> 20
    print(f"zoo: {folder.name} made in {time.monotonic() - begin:.0f} s, {size} MB", flush=True)
    if complete and not failed:
        stamp.write_text(key(torch))
    return 0


if __name__ == "__main__":
    sys.exit(main())

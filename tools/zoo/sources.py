"""Fetches the packages of sources.txt and loads one file of each by path, without the package's dependencies.

The file is the package's own, unchanged. An import in it that is not installed here becomes a `Stub`: its attributes
and calls return stubs, a stub used as a decorator returns the function or class itself, and a stub used as a base class
is `torch.nn.Module`. A stub can never become a number: arithmetic with one raises, so no stub can affect a table.
"""

import builtins
import functools
import importlib
import importlib.metadata
import os
import subprocess
import sys
import tarfile
import tempfile
import types
import zipfile
from collections import Counter
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
ROOT = Path(sys.prefix) / "zoo-sources"  # inside the zoo's own environment
REAL = {"torch", "numpy", "einops", "packaging", "typing_extensions", "keras", *sys.stdlib_module_names}
# fairseq's last wheels are for Python 3.8; only its pure Python files are used.
OLD_WHEEL = {
    "fairseq": ["--python-version", "3.8", "--platform", "manylinux1_x86_64", "--platform", "manylinux_2_5_x86_64"]
}
SDIST = {"openai-whisper", "sam2"}  # no wheel is published


os.environ["KERAS_BACKEND"] = "torch"  # before the first import of keras


class MissingSource(Exception):
    pass


def read_list() -> dict[str, list[str]]:
    """Maps distribution==version to files."""
    rows = (line.split() for line in (HERE / "sources.txt").read_text().splitlines())
    return {r[0]: r[1:] for r in rows if r and not r[0].startswith("#")}


# --- fetching ------------------------------------------------------------------------------------


def _unpack(archive: Path, pin: str, files: list[str]) -> None:
    target = ROOT / pin
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as z:
            contents = {f: z.read(f) for f in files}
    else:
        with tarfile.open(archive) as t:
            members = {m.name.split("/", 1)[-1]: m for m in t.getmembers() if m.isfile()}
            contents = {f: t.extractfile(members[f]).read() for f in files}
    for name, data in contents.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _download(pins: list[str], options: list[str], folder: Path) -> bool:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder)]
    return subprocess.run([*pip, *options, *pins], check=False).returncode == 0


def _archive(folder: Path, pin: str) -> Path:
    want = pin.lower().replace("-", "_").replace("==", "-")
    for f in folder.iterdir():
        name = f.name.lower()
        head = name[: -len(".tar.gz")] if name.endswith(".tar.gz") else "-".join(name.split("-")[:2])
        version = head.rsplit("-", 1)[-1]
        if head.rsplit("-", 1)[0].replace("-", "_") + "-" + version == want:
            return f
    raise MissingSource(f"{pin} was not downloaded")


def _groups(pins: list[str]) -> list[tuple[list[str], list[str]]]:
    """(pip options, pins) for each download command; two versions of one package go into two commands."""
    groups: dict[tuple, list[str]] = {}
    versions: Counter = Counter()
    for pin in pins:
        name = pin.split("==")[0]
        options = ["--no-build-isolation"] if name in SDIST else ["--only-binary=:all:", *OLD_WHEEL.get(name, [])]
        groups.setdefault((versions[name], *options), []).append(pin)
        versions[name] += 1
    return [(list(options), members) for (_, *options), members in groups.items()]


def fetch() -> list[str]:
    """Downloads missing packages; one that cannot be downloaded is reported, but is not fatal."""
    missing = {p: f for p, f in read_list().items() if not all((ROOT / p / x).is_file() for x in f)}
    failed = []
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        for options, pins in _groups(list(missing)):
            if not _download(pins, options, folder) and len(pins) > 1:
                for pin in pins:  # one failure must not hide the rest
                    _download([pin], options, folder)
        for pin, files in missing.items():
            try:
                _unpack(_archive(folder, pin), pin, files)
            except (MissingSource, KeyError, OSError) as e:
                failed.append(f"{pin}: {e}")
    return failed


# --- loading -------------------------------------------------------------------------------------


class Stub:
    def __init__(self, name):
        self.__dict__["_name"] = name

    def __getattr__(self, name):
        if name == "__version__":
            return "0"
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self._name}.{name}")

    def __setattr__(self, name, value):
        pass

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, types.FunctionType)):
            return args[0]  # used as a decorator
        return Stub(f"{self._name}()")

    def __getitem__(self, key):
        return self  # generic alias, such as List[Stub]

    def __or__(self, other):
        return self  # X | None in an annotation

    __ror__ = __or__

    def __iter__(self):
        return iter(())

    def __mro_entries__(self, bases):
        classes = [b for b in bases if isinstance(b, type)]
        stubs = [b for b in bases if isinstance(b, Stub)]
        first = stubs[0] is self and not any(issubclass(c, torch.nn.Module) for c in classes)
        return (torch.nn.Module,) if first else ()


def _importer(module_name, overrides):
    def load(name, globals=None, locals=None, fromlist=(), level=0):
        absolute = name
        if level:
            parts = module_name.split(".")[:-level]
            absolute = ".".join([*parts, name] if name else parts)
        if absolute in overrides:
            return overrides[absolute] if fromlist else Stub(absolute)
        if absolute.split(".")[0] in REAL and not level:
            return builtins.__import__(name, globals, locals, fromlist, 0)
        return Stub(absolute if fromlist else absolute.split(".")[0])

    return load


_loaded: dict[tuple[str, str], types.ModuleType] = {}


def load(pin: str, file: str, overrides: dict | None = None) -> types.ModuleType:
    """The module in `file` of the package `pin` ("name==version"); overrides: dotted name -> module-like object."""
    if (pin, file) in _loaded:
        return _loaded[pin, file]
    path = ROOT / pin / file
    if not path.is_file():
        raise MissingSource(f"{pin} is not installed (run make_env.py)")
    dotted = file[: -len(".py")].replace("/", ".")
    module = types.ModuleType(f"zoo_{pin}_{dotted}")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _importer(dotted, overrides or {})}
    sys.modules[module.__name__] = module  # dataclasses and d2l look themselves up
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    _loaded[pin, file] = module
    return module


def installed(name: str) -> types.ModuleType:
    """A module of a package that is installed with its dependencies, at the pinned version."""
    package = name.split(".")[0]
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise MissingSource(f"{package} is not installed (run make_env.py)") from None
    if found != pinned(package):
        raise MissingSource(f"{package} is {found}, expected {pinned(package)} (run make_env.py)")
    return importlib.import_module(name)


@functools.cache
def pinned(package: str) -> str:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)[package]


if __name__ == "__main__":
    problems = fetch()
    print("\n".join(problems) or f"{len(read_list())} packages unpacked")
    sys.exit(1 if problems else 0)

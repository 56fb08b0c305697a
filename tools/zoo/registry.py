"""The references of each preset: `REFERENCES[name]` and `COPIES[name]`, filled by the adapter modules."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

import rederived
import sources

PACKAGE, REDERIVED = "package", "rederived"
REFERENCES: dict[str, "Reference"] = {}
COPIES: dict[str, list["Reference"]] = {}  # other systems with the preset's bits: its field `also`


@dataclass(frozen=True)
class Reference:
    name: str
    kind: str  # package: the real package's own class | rederived: a repository's steps in torch or numpy
    system: str  # the system that the name refers to
    package: str  # distribution, or repository for a rederived one
    version: str
    build: Callable[..., torch.Tensor]
    element_loop: bool = False  # the system fills the table element by element in Python
    only: Callable[[int, int, dict], bool] = lambda length, dim, params: True  # the cases that the system supports
    bit_comparable: bool = True  # False: the system's own kernels (TensorFlow) differ in the last bits

    @property
    def label(self) -> str:
        """As in the preset's field `also`."""
        return f"{self.package} {self.version}, {self.system}"

    @property
    def is_copy(self) -> bool:
        return REFERENCES[self.name] is not self

    @property
    def params(self) -> dict[str, tuple]:
        """name -> (default, compared values)."""
        return rederived.parameters(self.name)

    def table(self, length: int, dim: int, **params) -> torch.Tensor:
        """float32 [rows, channels], contiguous; raises the system's exceptions."""
        full = {**rederived.defaults(self.name), **params}
        with torch.no_grad():
            t = self.build(length, dim, **full)
        t = t.detach().to(torch.float32).contiguous().clone()  # some systems return a cached tensor
        assert t.ndim == 2, f"{self.name}: {tuple(t.shape)}"
        return t


def package(name: str, pin: str, system: str, **flags):
    """Decorator: the function calls the real class of the package `pin`."""
    return _register(name, PACKAGE, system, *pin.split("=="), **flags)


def copy(name: str, pin: str, system: str, **flags):
    """Decorator: the function calls a class of the package `pin` that has the bits of the preset `name`."""

    def add(build):
        COPIES.setdefault(name, []).append(Reference(name, PACKAGE, system, *pin.split("=="), build, **flags))
        return build

    return add


def all_of(name: str) -> list["Reference"]:
    """Everything that the preset is compared with."""
    return [REFERENCES[name], *COPIES.get(name, [])]


def repository(name: str, source: str, system: str, **flags):
    """Decorator: the function repeats the steps of a system that exists only in a repository (`owner/name@commit`)."""
    return _register(name, REDERIVED, system, *source.split("@"), **flags)


def _register(name, kind, system, dist, version, **flags):
    def add(build):
        assert name not in REFERENCES, name
        REFERENCES[name] = Reference(name, kind, system, dist, version, build, **flags)
        return build

    return add


def module(pin: str, file: str, overrides: dict | None = None):
    """A one-file package from sources.txt."""
    return sources.load(pin, file, overrides)


def real_positions(length: int, start: float, step: float) -> torch.Tensor:
    return start + step * torch.arange(length, dtype=torch.float32)


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)

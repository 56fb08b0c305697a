"""The rotary embeddings of other packages than transformers: `ROTARY[name]`, filled by the rotary_*.py adapters.

An adapter draws one configuration, runs the package's own class and its own rotation on it, and returns a `Case`: what
`posenc rotary` is given, and what it has to return, bit for bit. `@copy` has other classes with a preset's bits.
"""

import random
import types
from collections.abc import Callable
from dataclasses import dataclass

import torch

ROTARY: dict[str, "RotaryReference"] = {}
ROTARY_COPIES: dict[str, list["RotaryReference"]] = {}  # other classes with the preset's bits: its field `also`


class Draw:
    """Everything random of one case: from its seed alone."""

    def __init__(self, *seed):
        self.random = random.Random(":".join(map(str, seed)))
        self.generator = torch.Generator().manual_seed(self.random.getrandbits(62))

    def choice(self, values):
        return self.random.choice(list(values))

    def integer(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def positions(self, most: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, most, shape, generator=self.generator)

    def dtype(self) -> torch.dtype:
        return self.choice([torch.float32, torch.bfloat16, torch.float16])

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, generator=self.generator).to(dtype)

    def query_key(self, *shape: int) -> tuple[torch.Tensor, torch.Tensor]:
        dtype = self.dtype()
        return self.normal(*shape, dtype=dtype), self.normal(*shape, dtype=dtype)


@dataclass
class Case:
    params: dict  # of `posenc rotary --param`
    positions: torch.Tensor | None  # None: posenc is given cos and sin
    cos: torch.Tensor
    sin: torch.Tensor
    q: torch.Tensor
    k: torch.Tensor
    rotated_q: torch.Tensor
    rotated_k: torch.Tensor

    def inputs(self) -> dict[str, torch.Tensor]:
        where = {"cos": self.cos, "sin": self.sin} if self.positions is None else {"position_ids": self.positions}
        return {name: t.contiguous().clone() for name, t in (where | {"q": self.q, "k": self.k}).items()}

    def expected(self) -> dict[str, torch.Tensor]:
        return {"cos": self.cos, "sin": self.sin, "q": self.rotated_q, "k": self.rotated_k}


@dataclass(frozen=True)
class RotaryReference:
    name: str
    package: str
    version: str
    system: str
    draw: Callable[[Draw], Case]

    @property
    def label(self) -> str:
        """As in the preset's field `also`."""
        return f"{self.package} {self.version} {self.system}"

    def case(self, *seed) -> Case:
        with torch.no_grad():
            return self.draw(Draw(self.name, *seed))


def rotary(name: str, pin: str, system: str):
    """Decorator: the function runs the real class of the package `pin`."""

    def add(draw):
        assert name not in ROTARY, name
        ROTARY[name] = RotaryReference(name, *pin.split("=="), system, draw)
        return draw

    return add


def copy(name: str, pin: str, system: str):
    """Decorator: the function runs a class of the package `pin` that has the bits of the preset `name`. What `also`
    has in parentheses is no part of `system`."""

    def add(draw):
        ROTARY_COPIES.setdefault(name, []).append(RotaryReference(name, *pin.split("=="), system, draw))
        return draw

    return add


def all_of(name: str) -> list[RotaryReference]:
    """Everything that the preset is compared with."""
    return [reference for reference in (ROTARY.get(name), *ROTARY_COPIES.get(name, [])) if reference]


def rotary_names() -> list[str]:
    return [*ROTARY, *(name for name in ROTARY_COPIES if name not in ROTARY)]


def nested(function, name: str):
    """The function `name` that `function` defines inside itself."""
    code = next(c for c in function.__code__.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
    assert not code.co_freevars, name
    return types.FunctionType(code, function.__globals__, name, None)


def even(draw: Draw, least: int, most: int) -> int:
    return 2 * draw.integer(least // 2, most // 2)

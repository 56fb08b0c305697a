"""The relative positions of real systems: `RELATIVE[name]`, filled by the modules of this folder.

A function draws one configuration, runs the system's own class on it, and returns a `Case`: what `posenc relative` is
given, and what it has to return, bit for bit.
"""

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

RELATIVE: dict[str, "Reference"] = {}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass
class Case:
    settings: dict
    tensors: dict[str, Tensor]
    expected: dict[str, Tensor]


class Draw:
    """Everything random of one case: from its seed alone."""

    def __init__(self, *seed, gradients: bool = False):
        self.gradients = gradients  # whether tensors are leaves that need a gradient
        self.random = random.Random(":".join(map(str, seed)))
        self.generator = torch.Generator().manual_seed(self.random.getrandbits(62))
        self.name = self.choice([*DTYPES])
        self.dtype = DTYPES[self.name]

    def choice(self, values):
        return self.random.choice(list(values))

    def integer(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def coin(self) -> bool:
        return self.random.random() < 0.5

    def normal(self, *shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(shape, generator=self.generator) * scale).to(self.dtype).requires_grad_(self.gradients)

    def integers(self, least: int, end: int, *shape: int) -> Tensor:
        return torch.randint(least, end, shape, generator=self.generator)

    def query_key(self, batch: int, heads: int, queries: int, keys: int, width: int) -> dict[str, Tensor]:
        return {"q": self.normal(batch, heads, queries, width), "k": self.normal(batch, heads, keys, width)}

    def module(self, module: nn.Module) -> nn.Module:
        """The module with random parameters, in the dtype of the case."""
        for parameter in module.parameters():
            parameter.data = torch.randn(parameter.shape, generator=self.generator)
        module.to(self.dtype).eval()  # of which timm's return nothing
        return module

    def tokens(self, batch: int, length: int) -> Tensor:
        """A mask with padding on one side."""
        mask, left = torch.ones(batch, length, dtype=torch.int64), self.coin()
        for row in mask:
            count = self.integer(0, length - 1)
            row[:count] = 0
            if not left:
                row.copy_(row.flip(0))
        return mask


@dataclass(frozen=True)
class Reference:
    name: str
    draw: Callable[[Draw], Case]
    dtypes: frozenset = field(default_factory=lambda: frozenset(DTYPES))

    def case(self, *seed, gradients: bool = False, in_float64: bool = False) -> Case:
        """`gradients`: the expected tensors depend on the others by autograd, in float32, or of the same numbers in float64."""
        number, dtypes = 0, ["float32"] if gradients else self.dtypes
        while True:
            draw = Draw(self.name, *seed, number, gradients=gradients)
            if draw.name in dtypes:
                break
            number += 1
        if in_float64:
            draw.dtype = torch.float64
        with torch.set_grad_enabled(gradients):
            case = self.draw(draw)
        case.settings = {"preset": self.name, "dtype": draw.name} | case.settings
        return case


def relative(*names: str, dtypes=DTYPES):
    """Decorator: the function draws a case of each of the presets; it is given the name if there are several."""

    def add(draw):
        for name in names:
            assert name not in RELATIVE, name
            call = (lambda d, name=name: draw(d, name)) if len(names) > 1 else draw
            RELATIVE[name] = Reference(name, call, frozenset(dtypes))
        return draw

    return add


def parameters(module: nn.Module, *names: str) -> dict[str, Tensor]:
    """The parameters as the command takes them; those whose name begins with one of `names`, or all."""
    return {f"w.{n}": p if torch.is_grad_enabled() else p.detach() for n, p in module.named_parameters() if not names or n.startswith(names)}


class Given(nn.Module):
    """A projection that returns a given tensor."""

    def __init__(self, tensor: Tensor):
        super().__init__()
        self.tensor = tensor

    def forward(self, *args, **kwargs) -> Tensor:
        return self.tensor


def flat(x: Tensor) -> Given:
    """(B, H, L, D) as a projection returns it, (B, L, H * D)."""
    return Given(x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1))


@contextlib.contextmanager
def softmax_inputs() -> Iterator[list[Tensor]]:
    """What is given to each softmax: the scores."""
    seen: list[Tensor] = []
    places = [(torch.nn.functional, "softmax"), (torch, "softmax"), (torch.Tensor, "softmax")]
    saved = [getattr(owner, name) for owner, name in places]

    def recorded(original):
        def call(x, *args, **kwargs):
            seen.append(x.clone())
            return original(x, *args, **kwargs)

        return call

    for (owner, name), original in zip(places, saved):
        setattr(owner, name, recorded(original))
    try:
        yield seen
    finally:
        for (owner, name), original in zip(places, saved):
            setattr(owner, name, original)


def additive_mask(draw: Draw, *shape: int) -> Tensor:
    """0, and the lowest number where a key is masked."""
    hidden = torch.rand(shape, generator=draw.generator) < 0.3
    return torch.zeros(shape, dtype=draw.dtype).masked_fill(hidden, torch.finfo(draw.dtype).min)

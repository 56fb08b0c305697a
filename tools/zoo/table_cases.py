"""The cases to compare: determined by a seed, and either valid for the preset or deliberately invalid."""

import itertools
import math
import random
from dataclasses import dataclass, field

import engine
import rederived

# Dimensions at which similar recipes give different bits; 96, 320 and 512 alone cannot distinguish them.
TELLING = [18, 20, 34, 36, 38, 68, 70]
EVEN = [4, 6, 10, *TELLING, 96, 320]
ODD = [5, 7, 9, 19, 33, 35, 51, 69, 71]
LENGTHS = [1, 7, 50, 513]
FORBIDDEN = [1, 2, 3, 5, 6, 7, 8, 10, 24, 33, 70]
RANDOM_CASES = 24
LOOP_ENTRIES = 12_000  # limit for tables filled element by element in Python
GRID_ENTRIES = 150_000


@dataclass(frozen=True)
class Case:
    preset: str
    length: int
    dim: int
    params: dict = field(default_factory=dict)
    expect: str = "table"  # table | error

    def record(self) -> dict:
        """An entry of `posenc table --cases`."""
        return {"preset": self.preset, "length": self.length, "dim": self.dim, "params": self.params}

    def arguments(self) -> list[str]:
        out = ["--preset", self.preset, "--length", str(self.length), "--dim", str(self.dim)]
        for k, v in self.params.items():
            out += ["--param", f"{k}={v}"]
        return out


def allowed(name: str, dim: int) -> bool:
    r = rederived.recipe(name)
    return dim >= r.minimum and dim % r.multiple == 0 and not (dim % 2 and r.odd == "error")


def _dims(name: str) -> list[int]:
    r = rederived.recipe(name)
    if r.odd == "-":
        return []
    dims = EVEN + (ODD if r.odd != "error" else [])
    if r.multiple > 1:
        dims += [r.multiple * k for k in (2, 3, 5, 7, 9, 17, 18)]
    return sorted({d for d in dims if allowed(name, d)})


def _grid(name: str, rng: random.Random, dim: int) -> dict:
    known = rederived.parameters(name)
    while True:
        shape = {k: rng.choice(known[k][1] + [rng.randint(1, 24)]) for k in known if k in ("height", "width", "depth")}
        if math.prod(shape.values()) * dim <= GRID_ENTRIES:
            return shape


def _nominal_length(name: str, shape: dict) -> int:
    square = shape["height"] if "width" not in shape else shape["width"]
    return shape["height"] * square * shape.get("depth", 1)


def _plain_params(name: str) -> list[dict]:
    """All combinations of the compared values; the caller shuffles them."""
    known = {k: v for k, (_, v) in rederived.parameters(name).items() if k not in ("height", "width", "depth")}
    return [dict(zip(known, values)) for values in itertools.product(*known.values())]


def _point_dim(params: dict) -> int:
    return 3 + 6 * params["multires"] if "multires" in params else 1 + 2 * params["num_bands"]


def _fits_shift(name: str, dim: int, params: dict) -> bool:
    """diffusers_timesteps: a single frequency cannot have shift 1."""
    return dim // 2 - params.get("downscale_freq_shift", 0) > 0


def generate(name: str, seed: int = 0, element_loop: bool = False) -> list[Case]:
    rng = random.Random(f"{seed}:{name}")
    combinations = _plain_params(name)
    rng.shuffle(combinations)
    params = itertools.cycle(combinations)
    is_grid = "height" in rederived.parameters(name)
    dims = _dims(name)
    cases: list[Case] = []

    def add(length, dim):
        chosen = dict(next(params))
        if rederived.recipe(name).odd == "-":
            dim = _point_dim(chosen)
        if is_grid:
            shape = _grid(name, rng, dim)
            length, chosen = _nominal_length(name, shape), {**shape, **chosen}
        if element_loop and length * dim > LOOP_ENTRIES:
            length = max(1, LOOP_ENTRIES // dim)
        if _fits_shift(name, dim, chosen):
            cases.append(Case(name, length, dim, chosen))

    for k, dim in enumerate(dims or [0] * 4 * len(combinations)):
        add(LENGTHS[k % 4], dim)
        if dim in TELLING:
            add(LENGTHS[(k + 2) % 4], dim)
    step = rederived.recipe(name).multiple
    odd = rederived.recipe(name).odd != "error"
    enough = len(cases) + RANDOM_CASES
    while len(cases) < enough:
        dim = rng.randrange(4, 300 if not is_grid else 200)
        dim = dim if odd and step == 1 else dim - dim % max(step, 2)
        if not dims or allowed(name, dim):
            add(rng.choice([rng.randint(1, 40), rng.randint(1, 600)]), dim)
    if not is_grid and not element_loop:
        add(5000, 40 if step == 4 else 38)
        add(600, 512)
    cases += _forbidden(name, rng)
    return cases


def of(reference, seed: int = 0) -> list[Case]:
    """The cases of a reference of the registry: those of its preset that the system supports."""
    made = generate(reference.name, seed, reference.element_loop)
    if reference.is_copy:  # the preset refuses the same whatever it is compared with
        made = [c for c in made if c.expect == "table"]
    return [c for c in made if c.expect == "error" or reference.only(c.length, c.dim, c.params)]


def _forbidden(name: str, rng: random.Random) -> list[Case]:
    out = []
    for dim in FORBIDDEN:
        params = dict(rng.choice(_plain_params(name)))
        shape = _grid(name, rng, max(dim, 1)) if "height" in rederived.parameters(name) else {}
        length = _nominal_length(name, shape) if shape else 7
        try:
            rederived.table(name, length, dim, **shape, **params)
        except engine.Forbidden:
            out.append(Case(name, length, dim, {**shape, **params}, "error"))
    return out

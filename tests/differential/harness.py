"""What the areas share: cases, their rules, and calls of the programs under test."""

import json
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}

# glibc fills memory that is freed, so that a use of it is seen.
OVERWRITE_FREED_MEMORY = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
DRAWN_CASES = 40

# How much a result may differ from Python's: |a - b| <= units * eps(dtype) * max|b| + factor * max|b - truth| + FLOOR *
# eps(dtype) * the largest result of the case, where the truth is Python's result in float64. None means equal bits. The
# floor is for gradients that are 0 except for rounding, such as those of the scores of a single key.
FLOOR = 16
RULES = {
    "bits": (None, None, "the same IEEE operations in the same order"),
    "sums": (64, 8, "sums in another order; badly conditioned where Python's own error says so"),
    "gradients": (512, 0, "sums of up to a million terms, which Python adds up one after another"),
    "exact": (4, 0, "rounded once from float64, by another library's sine"),
    "attention": (8, 8, "as sums, of a softmax; a bias that is rounded before it is added shows"),
    "frozen": (256, 16, "as sums; its exponentials and its order of products are its own"),
    "momentum": (64, 4, "Python adds up a sparse momentum in the order of its rows, ours in place"),
}


@dataclass
class Case:
    """One call of the driver and its expected result."""

    options: dict  # `op` and its arguments
    tensors: dict[str, Tensor]
    expected: dict[str, Tensor]
    rule: str = "sums"
    truth: dict[str, Tensor] = field(default_factory=dict)  # in float64
    refused: str = ""  # text that the error must contain


@dataclass
class Failure:
    what: str
    why: str


class Programs:
    """`posenc` and the driver, in the folder of a batch."""

    def __init__(self, posenc: str, driver: str, folder: Path, labels: str | None = None):
        self._posenc, self._driver, self.folder, self._labels = posenc, driver, folder, labels

    def within(self, name: str) -> "Programs":
        """The same in a folder of this one."""
        folder = self.folder / name
        folder.mkdir()
        return Programs(self._posenc, self._driver, folder, self._labels)

    def posenc(self, *arguments: object) -> subprocess.CompletedProcess:
        return subprocess.run([self._posenc, *map(str, arguments)], capture_output=True, text=True, timeout=3000)

    def labels(self, cases: list[dict]) -> list[list | str]:
        """The results of the calls of each case, or its error message."""
        done = subprocess.run([self._labels], input=json.dumps(cases), capture_output=True, text=True, timeout=3000)
        if done.returncode:
            return [f"posenc-label-cases ended with {done.returncode}: {done.stderr.strip().splitlines()[-3:]}"] * len(cases)
        return json.loads(done.stdout)

    def compute(self, cases: list[Case], name: str = "cases", environment: dict[str, str] = {}) -> list[dict[str, Tensor] | str]:
        """Returns the results of each case, or its error message. `environment`: variables for the driver."""
        given, out = self.folder / f"{name}.safetensors", self.folder / f"{name}.out.safetensors"
        tensors = {f"{i}/{key}": value.detach().contiguous().clone()
                   for i, case in enumerate(cases) for key, value in case.tensors.items()}  # fmt: skip
        save_file(tensors, given, {"cases": json.dumps([case.options for case in cases])})
        done = subprocess.run([self._driver, given, out], capture_output=True, text=True, timeout=3000,
                              env={**os.environ, **OVERWRITE_FREED_MEMORY, **environment})  # fmt: skip
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            numbers = [int(line) for line in lines if line.isdecimal()]
            why = f"the driver ended with {done.returncode}: {lines[-4:]}"
            if not numbers:
                return [why] * len(cases)
            last = numbers[-1]  # the case that ended it; the others are computed without it
            before = self.compute(cases[:last], f"{name}-", environment) if last else []
            return before + [why] + (self.compute(cases[last + 1 :], f"{name}+", environment) if cases[last + 1 :] else [])
        with safe_open(out, "pt") as file:
            errors = file.metadata() or {}
        results: list[dict[str, Tensor] | str] = [errors.get(str(i), {}) for i in range(len(cases))]
        for key, value in load_file(out).items():
            number, key = key.split("/", 1)
            results[int(number)][key] = value
        return results


def differ(got: Tensor, expected: Tensor, rule: str, truth: Tensor | None = None, largest: float = 0.0) -> str:
    """Returns "" if `got` satisfies the rule, otherwise the difference."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype} {tuple(got.shape)} for {expected.dtype} {tuple(expected.shape)}"
    if not got.numel():
        return ""
    units, factor, _ = RULES[rule]
    if units is None:
        raw = [x.contiguous().reshape(-1).view(torch.uint8) for x in (got, expected)]
        nan = got.isnan() & expected.isnan() if got.is_floating_point() else torch.zeros_like(got, dtype=torch.bool)
        same = (raw[0] == raw[1]).view(got.numel(), -1).all(1) | nan.reshape(-1)
        wrong = int((~same).sum())
        return f"{wrong} of {got.numel()} elements differ in bits" if wrong else ""
    a, b = got.double(), expected.double()
    if not torch.equal(a.isfinite(), b.isfinite()):
        return "other elements are finite"
    a, b = a.nan_to_num(), b.nan_to_num()
    bound = torch.finfo(got.dtype).eps * (units * b.abs().max() + FLOOR * largest)
    if truth is not None:
        bound = bound + factor * (b - truth.double().nan_to_num()).abs().max()
    worst = (a - b).abs().max()
    return f"off by {worst:.3g}, allowed {bound:.3g}" if worst > bound else ""


def judge(cases: list[Case], results: list[dict[str, Tensor] | str]) -> list[Failure]:
    """Returns the failures among the cases."""
    failures = []
    for number, (case, got) in enumerate(zip(cases, results)):
        found = []
        if isinstance(got, str):
            if not case.refused or case.refused not in got:
                found.append(got)
        elif case.refused:
            found.append("was not refused")
        else:
            sizes = [float(value.double().nan_to_num(0, 0, 0).abs().max()) for value in case.expected.values()
                     if value.numel()]  # fmt: skip
            largest = max(sizes, default=0.0) if case.rule in ("sums", "frozen", "attention") else 0.0
            for key, value in case.expected.items():
                truth = case.truth.get(key)
                why = differ(got[key], value, case.rule, truth, largest) if key in got else "is missing"
                if why:
                    found.append(f"{key}: {why}")
        if found:
            failures.append(Failure(f"case {number}: {json.dumps(case.options)}", "; ".join(found[:4])))
    return failures


def run(programs: Programs, cases: list[Case]) -> tuple[int, list[Failure]]:
    return len(cases), judge(cases, programs.compute(cases))


def drawn(op: str, draw: "Draw", programs: Programs) -> tuple[int, list[Failure]]:
    """Cases that the driver makes of their seeds and compares itself."""
    return run(programs, [Case({"op": op, "seed": draw.getrandbits(48)}, {}, {}) for _ in range(DRAWN_CASES)])


class Draw(random.Random):
    """Draws random choices and, from the same seed, tensors."""

    def __init__(self, seed: str):
        super().__init__(seed)
        self.torch = torch.Generator().manual_seed(self.getrandbits(62))

    def coin(self, probability: float = 0.5) -> bool:
        return self.random() < probability

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.torch)

    def bits(self, share: float, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.torch) < share

    def integers(self, bound: int, *shape: int) -> Tensor:
        return torch.randint(bound, shape, generator=self.torch)

"""How one fixture is made and written: portable numbers, forward, backward, safetensors.

What holds where:
* in.*, and every param.* that is not a table, are drawn from integers: the same on every machine.
* A float32 table (param.pe, param.pos_enc, param.embedding.weight of a frozen one) has other last
  bits on other CPUs, since float32 exp and pow differ between them. A freshly computed one equals
  the committed one within 3 p 2^-24 + 1.2e-7 at position p; on one machine, bit for bit.
* Given the file's own param.*, look-up, scale and sum are single roundings: out.output and the
  look-up gradients hold bit for bit anywhere. Matrix products (timestep_embedding,
  adam_ten_steps) sum in an order of their own and hold within a few ulp of their terms.
* portable = "false": holds only on the machine that wrote the file, which is never committed.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Callable, Dict, Optional

import torch
from safetensors.torch import save
from torch import Tensor, nn

COMMITTED_LIMIT = 64 * 1024  # bytes a file
LIVE = "POSENC_FIXTURES_LIVE"
FOLDER = "POSENC_FIXTURES"


def fixtures_dir() -> Path:
    """Where the notebooks' last cell writes: $POSENC_FIXTURES, else tests/fixtures."""
    default = Path(__file__).resolve().parents[2] / "tests" / "fixtures"
    return Path(os.environ.get(FOLDER) or default)


def live() -> bool:
    """Whether the cases that hold on this machine only are wanted too."""
    return os.environ.get(LIVE) == "1"


def generator(*name: str) -> torch.Generator:
    """A generator seeded by the name of what it is for, so that no case disturbs another."""
    return torch.Generator().manual_seed(seed_of(*name))


def seed_of(*name: str) -> int:
    return zlib.crc32("/".join(name).encode()) & 0x7FFFFFFF


def normal_like(source: torch.Generator, *shape: int) -> Tensor:
    """Bell-shaped float32 of deviation 1.15 that are equal on every machine (randn's are not).

    A sum of four integers over a power of two: exact in float32, with all 24 bits in use.
    """
    parts = torch.randint(-(2**21), 2**21, (4, *shape), generator=source)
    return parts.sum(0).to(torch.float32) * 2.0**-21


def fill_parameters(module: nn.Module, source: torch.Generator, gain: float = 1.0) -> None:
    """Gives every trainable parameter portable values; rows at a padding_idx stay zero."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.copy_(normal_like(source, *parameter.shape) * gain)
        for part in module.modules():
            if isinstance(part, nn.Embedding) and part.padding_idx is not None:
                part.weight[part.padding_idx].zero_()


def parameters_of(module: nn.Module) -> Dict[str, Tensor]:
    """The state_dict, copied, under param.<key>."""
    return {f"param.{key}": value.clone() for key, value in module.state_dict().items()}


def forward_and_backward(
    module: nn.Module,
    inputs: Dict[str, Tensor],
    source: torch.Generator,
    call: Optional[Callable[..., Tensor]] = None,
    before_forward: Optional[Callable[[], object]] = None,
) -> Dict[str, Tensor]:
    """in.*, param.*, out.output, and the gradients of (output * cotangent).sum()."""
    leaves = {
        name: value.clone().requires_grad_(value.is_floating_point())
        for name, value in inputs.items()
    }
    tensors = {f"in.{name}": value for name, value in inputs.items()}
    tensors.update(parameters_of(module))
    if before_forward is not None:
        before_forward()
    output = (call or module)(*leaves.values())
    tensors["out.output"] = output.detach()
    if not output.requires_grad:
        return tensors  # frozen from end to end
    cotangent = normal_like(source, *output.shape).to(output.dtype)
    (output * cotangent).sum().backward()
    tensors["in.cotangent"] = cotangent
    for name, leaf in leaves.items():
        if leaf.grad is not None:
            tensors[f"grad.in.{name}"] = leaf.grad
    for key, parameter in module.named_parameters():
        if parameter.grad is not None:
            tensors[f"grad.{key}"] = parameter.grad
    return tensors


def in_stable_order(file: bytes) -> bytes:
    """The same safetensors file with its metadata sorted: the writer's order changes by run."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + file[8 + size :]


def write(
    folder: Path,
    notebook: str,
    module: str,
    stem: str,
    case: str,
    tensors: Dict[str, Tensor],
    options: Dict[str, object],
    portable: bool = True,
    seed: Optional[int] = None,
) -> str:
    """Writes <folder>/<stem>/<case>.safetensors and returns <stem>/<case>."""
    metadata = {
        "slug": notebook,
        "module": module,
        "stem": stem,
        "case": case,
        "torch": torch.__version__.split("+")[0],
        "seed": str(seed_of(stem, case) if seed is None else seed),
        "options": json.dumps(options, sort_keys=True),
        "portable": "true" if portable else "false",
    }
    path = Path(folder) / stem / f"{case}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    copies = {name: t.detach().clone().contiguous() for name, t in tensors.items()}
    path.write_bytes(in_stable_order(save(copies, metadata)))
    size = path.stat().st_size
    if portable and size > COMMITTED_LIMIT:
        path.unlink()
        raise ValueError(f"{stem}/{case} takes {size} bytes, committed ones {COMMITTED_LIMIT}")
    return f"{stem}/{case}"

"""What the cases of several notebooks share: one module case, whole tables, options."""

from pathlib import Path
from typing import Callable, Dict, List, Optional

import torch
from torch import Tensor, nn

from reference.fixture import fill_parameters, forward_and_backward, generator, live, write

# Rows and dimensions of the whole tables: vector tails, more rows than one SIMD block, and
# 700 x 65 > 32768 elements, where PyTorch would begin to split the work over threads.
TABLE_SIZES = [
    (1, 2), (1, 128), (7, 18), (50, 34), (64, 512), (513, 36), (513, 70), (700, 130), (1000, 128),
]  # fmt: skip
DTYPES = {"float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
REPEATED = torch.tensor([[3, 3, 3, 0, 7, 3, 0, 3], [7, 7, 0, 3, 3, 10, 10, 3]])


def ids_for(stem: str, case: str, vocab_size: int, *shape: int) -> Tensor:
    return torch.randint(0, vocab_size, shape, generator=generator(stem, case, "ids"))


def module_case(
    folder: Path,
    notebook: str,
    stem: str,
    case: str,
    module: nn.Module,
    inputs: Dict[str, Tensor],
    options: Dict[str, object],
    dtype: str = "float32",
    gain: float = 1.0,
    call: Optional[Callable[..., Tensor]] = None,
    with_gradients: bool = True,
    portable: bool = True,
    dropout_seed: Optional[int] = None,
) -> str:
    source = generator(stem, case)
    fill_parameters(module, source, gain)
    if dtype != "float32":
        module.to(DTYPES[dtype])  # as a user does: the float32 table is rounded once
    before = None
    if dropout_seed is not None:
        before = lambda: torch.manual_seed(dropout_seed)  # noqa: E731
    tensors = forward_and_backward(module, inputs, source, call, before)
    if not with_gradients:
        tensors = {k: v for k, v in tensors.items() if not k.startswith("grad.")}
        tensors.pop("in.cotangent", None)
    options = {"batch_first": True, "train": module.training, **options, "dtype": dtype}
    name = type(module).__name__
    return write(folder, notebook, name, stem, case, tensors, options, portable, seed=dropout_seed)


def tables(folder: Path, notebook: str, preset: str, build: Callable, sizes=()) -> List[str]:
    """Whole tables for equality of bits, live only. build(L, D) -> (L, D)."""
    if not live():
        return []
    written = []
    for length, dim in [*TABLE_SIZES, *sizes]:
        options = {"preset": preset, "max_len": length, "d_model": dim, "dtype": "float32"}
        table = {"out.output": build(length, dim)}
        case = f"{preset}_{length}x{dim}"
        written.append(
            write(folder, notebook, "table", "sinusoid", case, table, options, portable=False)
        )
    return written


def token_options(vocab_size: int, d_model: int, scale="none", padding_idx=None) -> Dict:
    return {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "scale": scale,
        "padding_idx": padding_idx,
    }

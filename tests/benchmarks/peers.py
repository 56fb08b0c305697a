"""The PyTorch peers of the benchmarks, one process per peer. `peers.py PEER --list` prints the names of the cases of
PEER (eager or compile). `peers.py PEER --serve` answers each name on stdin with a line `seconds fingerprint`, or
`error: text`. The fingerprint is that of fingerprint.h, or `-` if the result may differ from ours: torch.compile draws
other dropout masks, and rounds bfloat16 once."""

import argparse
import sys
import time
import types
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks_ref"))
import relative_peers  # noqa: E402
from reference.token_and_position_embedding import TokenAndPositionEmbedding  # noqa: E402

VOCABULARY, WIDTH, LENGTH = 32000, 512, 512
LEAST_SECONDS = 0.03  # minimum duration of a measurement
P = 0.1


def fingerprint(tensor: Tensor) -> str:
    flat = tensor.detach().contiguous().view(-1)
    bits = flat.view(torch.int16 if flat.element_size() == 2 else torch.int32).to(torch.int64)
    return str((bits * torch.arange(1, 2 * bits.numel(), 2)).sum().item())


FINGERPRINTS: dict[tuple, str] = {}  # per case: results are the same in every round


def known_or(key: tuple, make) -> str:
    if key not in FINGERPRINTS:
        FINGERPRINTS[key] = make()
    return FINGERPRINTS[key]


def timed(work, prepare=lambda: None, clock=time.perf_counter) -> float:
    """Seconds per call, not counting `prepare`."""
    calls, total = 0, 0.0
    while total < LEAST_SECONDS:
        prepared = prepare()
        start = clock()
        work() if prepared is None else work(prepared)
        total += clock() - start
        calls += 1
    return total / calls


# --- the embedding: look-up, scale, position, dropout -------------------------------------------


@lru_cache(None)
def embed(dtype: torch.dtype) -> nn.Module:
    """Uses the seed of embed_benchmark.cpp, so that the weights are the same."""
    torch.manual_seed(1)
    return TokenAndPositionEmbedding(VOCABULARY, WIDTH, LENGTH, P).to(dtype)


@lru_cache(None)
def ids_of(tokens: int) -> Tensor:
    torch.manual_seed(2)
    return torch.randint(VOCABULARY, (max(1, tokens // LENGTH), min(tokens, LENGTH)))


@lru_cache(None)
def compiled(dtype: torch.dtype, training: bool, tokens: int):
    """Compiles each case with its own code object: versions of one code object share a limit, and are tried one after
    another in each call."""
    forward = TokenAndPositionEmbedding.forward
    own = types.FunctionType(forward.__code__.replace(), forward.__globals__)
    return torch.compile(types.MethodType(own, embed(dtype)), dynamic=False)


def forward_case(peer: str, tokens: int, dtype: torch.dtype, training: bool):
    model, ids = embed(dtype).train(training), ids_of(tokens)
    call = compiled(dtype, training, tokens) if peer == "compile" else model
    with torch.set_grad_enabled(training):
        torch.manual_seed(7)
        first = call(ids)
        other = peer == "compile" and (training or dtype != torch.float32)
        print_of = "-" if other else known_or((training, dtype, tokens), lambda: fingerprint(first))
        del first
        return timed(lambda: call(ids)), print_of


def backward_case(peer: str, tokens: int, existing: bool):
    model, ids = embed(torch.float32).train(), ids_of(tokens)
    weight = model.token_embedding.weight
    call = compiled(torch.float32, True, tokens) if peer == "compile" else model
    torch.manual_seed(4)
    cotangent = torch.randn(*ids.shape, WIDTH)

    def prepare():
        if not existing:
            weight.grad = None
        return call(ids)

    weight.grad = torch.ones_like(weight) if existing else None
    torch.manual_seed(3)
    call(ids).backward(cotangent)
    print_of = "-" if peer == "compile" else known_or((existing, tokens), lambda: fingerprint(weight.grad))
    seconds = timed(lambda out: out.backward(cotangent), prepare)
    weight.grad = None
    return seconds, print_of


def step_case(tokens: int):
    """Forward, dropout, backward, SGD with a sparse gradient."""
    torch.manual_seed(1)
    model, ids = TokenAndPositionEmbedding(VOCABULARY, WIDTH, LENGTH, P), ids_of(tokens)
    model.token_embedding.sparse = True
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(4)
    cotangent = torch.randn(*ids.shape, WIDTH)

    def step():
        optimizer.zero_grad()
        model(ids).backward(cotangent)
        optimizer.step()

    return timed(step), "-"  # ours sums each row before the step, which rounds differently


# --- rotary embeddings: transformers' two lines ---------------------------------------------------


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def apply_rotary(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def rotary_case(peer: str, length: int, dtype: torch.dtype):
    torch.manual_seed(1)
    q, k = (torch.randn(1, 32, length, 128).to(dtype) for _ in range(2))
    angles = torch.arange(length)[:, None] * 1e4 ** (-torch.arange(0, 128, 2) / 128)
    cos, sin = (torch.cat((f(angles),) * 2, -1).to(dtype)[None, None] for f in (torch.cos, torch.sin))
    call = apply_rotary
    if peer == "compile":
        call = torch.compile(types.FunctionType(apply_rotary.__code__.replace(), globals()), dynamic=False)
    with torch.no_grad():
        call(q, k, cos, sin)
        return timed(lambda: call(q, k, cos, sin), clock=time.process_time), "-"  # as Google Benchmark


# --- the optimisers ------------------------------------------------------------------------------


def new_table(width: int) -> Tensor:
    torch.manual_seed(1)
    return torch.randn(VOCABULARY, width).mul_(0.02).requires_grad_()


def dense_gradient(table: Tensor) -> Tensor:
    torch.manual_seed(2)
    return torch.randn_like(table)


def row_gradient(table: Tensor, tokens: int) -> Tensor:
    torch.manual_seed(3)
    ids = torch.randint(VOCABULARY, (1, tokens))
    return torch.sparse_coo_tensor(ids, torch.randn(tokens, table.size(1)), table.shape).coalesce()


def optimizer_case(make, width: int, tokens: int | None, same: bool = True):
    """`same`: whether the update rounds like ours; Python's default Adam does not."""
    table = new_table(width)
    table.grad = dense_gradient(table) if tokens is None else row_gradient(table, tokens)
    optimizer = make([table])
    for _ in range(3):
        optimizer.step()
    print_of = fingerprint(table) if same else "-"
    return timed(optimizer.step), print_of


# --- names ---------------------------------------------------------------------------------------


def cases(peer: str) -> dict:
    """Maps names to functions; names end in tokens or rows / width / threads, of rotary embeddings in length / bits."""
    found = {}

    def add(family: str, size: int, threads: int, function, name: str = peer) -> None:
        found[f"{family}/{name}/{size}/512/{threads}"] = (threads, function)

    def forwards(family: str, sizes, dtype: torch.dtype, training: bool) -> None:
        for tokens, threads in sizes:
            add(family, tokens, threads, lambda t=tokens: forward_case(peer, t, dtype, training))

    large = [(4096, 2), (32768, 2)]
    forwards("embed", [(t, 1) for t in (1, 16, 128, 4096, 32768)] + large, torch.float32, False)
    forwards("embed_bf16", [(t, 1) for t in (1, 128, 4096)], torch.bfloat16, False)
    forwards("embed_train", [(t, 1) for t in (16, 128, 4096)], torch.float32, True)
    for existing in (False, True):
        add("embed_backward_existing" if existing else "embed_backward", 4096, 1,
            lambda e=existing: backward_case(peer, 4096, e))  # fmt: skip
    for bits, dtype in ((32, torch.float32), (16, torch.bfloat16)):
        for length in (1, 128, 2048):
            found[f"rotary/{peer}/{length}/{bits}"] = (1, lambda n=length, d=dtype: rotary_case(peer, n, d))
    if peer == "compile":
        return found

    for tokens in (128, 4096):
        add("embed_step", tokens, 1, lambda t=tokens: step_case(t))
    found |= relative_peers.cases(lambda work: timed(work, clock=time.process_time))
    optim = torch.optim
    for threads in (1, 2):
        for name, options in (("python_fused", {"fused": True}), ("python", {})):
            add("adam", VOCABULARY, threads,
                lambda o=options: optimizer_case(lambda p: optim.Adam(p, lr=1e-3, **o), 512, None, bool(o)), name)  # fmt: skip
    for tokens in (128, 4096):
        add("sparse_adam", tokens, 1,
            lambda t=tokens: optimizer_case(lambda p: optim.SparseAdam(p, lr=1e-3), 512, t), "python")  # fmt: skip
        add("sgd_rows", tokens, 1,
            lambda t=tokens: optimizer_case(lambda p: optim.SGD(p, lr=1e-3), 512, t), "python")  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=["eager", "compile"])
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--list", action="store_true")
    mode.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    known = cases(arguments.peer)
    if arguments.list:
        print("\n".join(known))
        return
    for line in sys.stdin:
        try:
            threads, function = known[line.strip()]
            torch.set_num_threads(threads)
            seconds, print_of = function()
            answer = f"{seconds:.9f} {print_of}"
        except Exception as error:  # for example, no compiler for torch.compile: the driver continues
            answer = "error: " + " ".join(str(error).split())[:300]
        print(answer, flush=True)


if __name__ == "__main__":
    main()

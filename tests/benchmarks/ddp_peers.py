"""Python's peer of rank_benchmark.cpp: DistributedDataParallel over Gloo. `ddp_peers.py MODEL FOLDER RANK SIZE`; answers
lines `THREADS PARTS COPIES` with seconds."""

import contextlib
import sys
import time

import torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel
from train_step_peers import Step


def main() -> None:
    name, folder, rank, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    step = Step(name)
    dist.init_process_group("gloo", init_method=f"file://{folder}/ddp-store", rank=rank, world_size=size)
    model = DistributedDataParallel(step.model, gradient_as_bucket_view=True)
    print("ready", flush=True)
    for line in sys.stdin:
        threads, parts, copies = map(int, line.split())
        torch.set_num_threads(threads)
        src, tgt = step.src.repeat(copies, 1), step.tgt.repeat(copies, 1)
        start = time.perf_counter()
        step.optimizer.zero_grad()
        for part in range(parts):
            with model.no_sync() if part + 1 < parts else contextlib.nullcontext():
                logits = model(src, tgt[:, :-1], tgt_mask=step.mask)
                loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=0, label_smoothing=0.1)
                (loss / parts).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        step.optimizer.step()
        print(time.perf_counter() - start, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Memory that PyTorch has from ncclMemAlloc, in a pool that is registered with the communicator, and
its allocator's hook, which registers every segment with every communicator and deregisters it before
it is freed."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from torch_ranks import DEVICE, ON_GPU, equal, run

COUNT = 1 << 20

os.environ.setdefault("TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "1")


def expect_sum(x: torch.Tensor, rank: int, size: int) -> None:
    x.fill_(rank + 1)
    dist.all_reduce(x)
    equal(x[::997], torch.full_like(x[::997], size * (size + 1) / 2))


def body(rank: int, size: int) -> None:
    if not ON_GPU:
        return
    backend = dist.group.WORLD._get_backend(DEVICE)
    for i in range(3):  # segments come and go
        for count in (COUNT, 7 * COUNT, 100):
            expect_sum(torch.empty(count, device=DEVICE), rank, size)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.empty_cache()
        dist.barrier()
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(COUNT, device=DEVICE)
    backend.register_mem_pool(pool)
    for _ in range(3):
        expect_sum(x, rank, size)
    gathered = torch.empty(COUNT * size, device=DEVICE)
    dist.all_gather_into_tensor(gathered, x + rank)
    equal(gathered.view(size, COUNT)[:, 5],
          torch.tensor([size * (size + 1) / 2 + r for r in range(size)]))
    torch.cuda.synchronize()
    dist.barrier()
    backend.deregister_mem_pool(pool)
    del x


run(body)

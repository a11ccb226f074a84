#!/usr/bin/env python3
"""Memory that PyTorch has from ncclMemAlloc, in a pool that is registered with the communicator,
deregistered and freed, several times. Without the allocator's hook (torch_memory.py), by which a
pool's segments are deregistered when they are freed: PyTorch refuses to do that twice."""

from __future__ import annotations

import torch
import torch.distributed as dist

from torch_ranks import DEVICE, ON_GPU, equal, run

COUNT = 1 << 20


def use_pool(backend: dist.Backend, rank: int, size: int) -> None:
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        x = torch.empty(COUNT, device=DEVICE)
    backend.register_mem_pool(pool)
    for _ in range(3):
        x.fill_(rank + 1)
        dist.all_reduce(x)
        equal(x[::997], torch.full_like(x[::997], size * (size + 1) / 2))
    gathered = torch.empty(COUNT * size, device=DEVICE)
    dist.all_gather_into_tensor(gathered, x + rank)
    equal(gathered.view(size, COUNT)[:, 5],
          torch.tensor([size * (size + 1) / 2 + r for r in range(size)]))
    torch.cuda.synchronize()
    dist.barrier()
    backend.deregister_mem_pool(pool)


def body(rank: int, size: int) -> None:
    if not ON_GPU:
        return
    backend = dist.group.WORLD._get_backend(DEVICE)
    for _ in range(3):
        use_pool(backend, rank, size)


run(body)

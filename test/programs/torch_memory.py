#!/usr/bin/env python3
"""The hook of PyTorch's allocator, which registers every segment with every communicator and
deregisters it before it is freed. Pools: torch_pool.py."""

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


run(body)

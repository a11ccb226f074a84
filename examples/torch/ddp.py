#!/usr/bin/env python3
"""Data-parallel training on CPUs, on one machine or several. What it prints does not depend on how
many ranks there are: 1, 2, 3 or 4.

    torchrun --nproc-per-node 2 examples/torch/ddp.py
    occl-run --hosts a,b -n 4 python3 examples/torch/ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import occl.torch  # noqa: F401  registers the backend

STEPS, BATCH, WIDTH = 10, 48, 64


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Of all ranks."""
    x = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
    return x, x.sin().sum(1, keepdim=True)


def main() -> None:
    dist.init_process_group("occl")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(WIDTH, 256), nn.ReLU(), nn.Linear(256, 1)).double()
    parallel = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
    for step in range(STEPS):
        x, y = (whole.chunk(size)[rank] for whole in batch(step))
        loss = nn.functional.mse_loss(parallel(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step}: loss {loss.item():.9f}", flush=True)
    if rank == 0:
        total = sum(parameter.double().square().sum() for parameter in net.parameters())
        print(f"parameters: {total.item():.9f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""For programs of PyTorch: the process group, the device, and a model on it."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Callable

import torch
import torch.distributed as dist
from torch import nn

import ranks

DEVICE = torch.device("cpu")
if ranks.LIBRARY:
    DEVICE = torch.device("cuda", ranks.device_of(int(os.environ.get("RANK", "0"))))
ON_GPU = DEVICE.type == "cuda"
BACKEND = "nccl" if ON_GPU else os.environ.get("BACKEND", "gloo")
if BACKEND == "occl":
    import occl.torch  # noqa: F401


def run(body: Callable[[int, int], None], bound: bool = True) -> None:
    """body(rank, size) in a process group; `bound`: of a device, so that PyTorch makes the
    communicator at once, and those of subgroups by ncclCommSplit."""
    def with_group(rank: int) -> None:
        torch.set_num_threads(1)
        if ON_GPU:
            torch.cuda.set_device(DEVICE)
        dist.init_process_group(
            BACKEND, init_method=f"file://{os.environ['OCCL_MEETING']}/store",
            rank=rank, world_size=ranks.SIZE, timeout=timedelta(seconds=ranks.LIMIT / 2),
            device_id=DEVICE if ON_GPU and bound else None)
        body(rank, ranks.SIZE)
        ranks.check_library(rank, ranks.SIZE)
        dist.barrier()
        dist.destroy_process_group()
    ranks.main(with_group)


def equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert torch.equal(got.cpu(), expected.cpu()), (got, expected)


def close(got: torch.Tensor, expected: torch.Tensor, bound: float) -> float:
    """The largest difference, which is at most the bound."""
    difference = (got.detach() - expected.detach()).abs().max().item()
    assert difference <= bound, f"differs by {difference}, more than {bound}"
    return difference


def mlp() -> nn.Sequential:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16)).double().to(DEVICE)


def batch(size: int, step: int, *shape: int) -> torch.Tensor:
    """Of all ranks, made alike on each."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(size * 4, *shape, generator=generator, dtype=torch.float64).to(DEVICE)


def train(net: nn.Module, inputs: Callable[[int], torch.Tensor], steps: int) -> None:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        net(inputs(step)).square().mean().backward()
        optimizer.step()

#!/usr/bin/env python3
"""DistributedDataParallel of ResNet-50, two steps in float64: parameters are those that one
process comes to with the batches of all ranks one after the other, whose gradients it averages.
Sums alone are in another order: within 1e-9 of the largest parameter's size, 1. Batch norms see a
rank's batch on both sides. Rank 0's parameters count: others begin with different ones."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from resnet import resnet50
from torch_ranks import DEVICE, ON_GPU, batch, close, run

STEPS = 2
PIXELS = 64  # the width of an image
PARAMETERS = 25_557_032  # of ResNet-50, as torchvision has it
BOUND = 1e-9


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return resnet50().double().to(DEVICE)


def backward(net: nn.Module, images: torch.Tensor) -> None:
    labels = torch.arange(len(images), device=DEVICE)
    nn.functional.cross_entropy(net(images), labels).backward()


def body(rank: int, size: int) -> None:
    torch.backends.cudnn.deterministic = True
    alone = network(0)
    assert sum(p.numel() for p in alone.parameters()) == PARAMETERS
    before = [p.detach().clone() for p in alone.parameters()]
    together = DistributedDataParallel(network(rank), device_ids=[DEVICE] if ON_GPU else None)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9) for net in (alone, together)]
    for step in range(STEPS):
        parts = batch(size, step, 3, PIXELS, PIXELS).chunk(size)
        for optimizer in optimizers:
            optimizer.zero_grad()
        for part in parts:
            backward(alone, part)
        for p in alone.parameters():
            p.grad /= size
        backward(together, parts[rank])
        for optimizer in optimizers:
            optimizer.step()
    worst = max(close(got, expected, BOUND) for got, expected in zip(together.parameters(), alone.parameters()))
    moved = max((a - b).abs().max().item() for a, b in zip(alone.parameters(), before))
    assert moved > 1e-2, f"nothing was learnt: parameters moved by {moved}"
    if rank == 0:
        print(f"parameters moved by up to {moved:.2g} and differ by up to {worst:.2g}")


run(body)

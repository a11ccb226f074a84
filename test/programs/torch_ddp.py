#!/usr/bin/env python3
"""DistributedDataParallel: 20 steps of a small CNN end with the parameters that one process with
the whole batch comes to. All is in float64, sums are in another order: within 1e-10."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torch_ranks import DEVICE, ON_GPU, batch, close, run, train

STEPS = 20
BOUND = 1e-10


def cnn() -> nn.Module:
    torch.manual_seed(6)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
                         nn.Linear(16 * 4 * 4, 10)).double().to(DEVICE)


def body(rank: int, size: int) -> None:
    alone = cnn()
    train(alone, lambda step: batch(size, step, 3, 12, 12), STEPS)
    # Small buckets, so that there are several of them in flight while gradients are computed.
    together = DistributedDataParallel(cnn(), device_ids=[DEVICE] if ON_GPU else None,
                                       bucket_cap_mb=0.005)
    train(together, lambda step: batch(size, step, 3, 12, 12).chunk(size)[rank], STEPS)
    worst = max(close(got, expected, BOUND)
                for got, expected in zip(together.parameters(), alone.parameters()))
    before = cnn()
    moved = max((a - b).abs().max().item()
                for a, b in zip(alone.parameters(), before.parameters()))
    assert moved > 1e-3, f"nothing was learnt: parameters moved by {moved}"
    if rank == 0:
        print(f"parameters moved by up to {moved:.2g} and differ by up to {worst:.2g}")


run(body)

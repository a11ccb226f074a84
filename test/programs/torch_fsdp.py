#!/usr/bin/env python3
"""FSDP2 (fully_shard): 10 steps of a small MLP end with the parameters of one process, within
1e-10, in float64."""

from __future__ import annotations

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from torch_ranks import DEVICE, batch, close, mlp, run, train

STEPS = 10
BOUND = 1e-10


def body(rank: int, size: int) -> None:
    alone = mlp()
    train(alone, lambda step: batch(size, step, 16), STEPS)
    mesh = init_device_mesh(DEVICE.type, (size,))
    sharded = mlp()
    for layer in (sharded[0], sharded[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    train(sharded, lambda step: batch(size, step, 16).chunk(size)[rank], STEPS)
    for got, expected in zip(sharded.parameters(), alone.parameters()):
        close(got.full_tensor(), expected, BOUND)


run(body)

#!/usr/bin/env python3
"""Tensor parallelism by DTensor: an MLP whose first layer is divided by columns and the second by
rows, with its input sharded as well; output and parameters after 10 steps as of one process, within
1e-10, in float64. Every rank makes the whole and takes its part of it: PyTorch scatters by sends and
receives, which OCCL does not have between devices yet."""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)

from torch_ranks import DEVICE, batch, close, equal, mlp, run, train

STEPS = 10
BOUND = 1e-10


def body(rank: int, size: int) -> None:
    mesh = init_device_mesh(DEVICE.type, (size,))
    alone = mlp()
    divided = mlp()
    parallelize_module(divided, mesh, {
        "0": ColwiseParallel(input_layouts=Shard(0)),
        "2": RowwiseParallel(output_layouts=Replicate())}, src_data_rank=None)
    x = batch(size, 99, 16)
    close(divided(x.chunk(size)[rank]), alone(x), BOUND)
    train(alone, lambda step: batch(size, step, 16), STEPS)
    train(divided, lambda step: batch(size, step, 16).chunk(size)[rank], STEPS)
    for got, expected in zip(divided.parameters(), alone.parameters()):
        close(got.full_tensor(), expected, BOUND)
    whole = torch.arange(size * 3 * 8.).view(size * 3, 8).to(DEVICE)
    rows = distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None)
    equal(rows.to_local(), whole.chunk(size)[rank])
    equal(rows.full_tensor(), whole)
    equal((rows.t() @ rows).full_tensor(), whole.t() @ whole)  # partial sums


run(body)

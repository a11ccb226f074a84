"""Cases: models trained on CUDA tensors, against the same computation on one rank."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)
from torch.nn.parallel import DistributedDataParallel

from operations import Context, equal
from training import close, train


def model(c: Context) -> nn.Module:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(16, 64, device="cpu"), nn.ReLU(),
                         nn.Linear(64, 16, device="cpu")).double().to(c.device)


def batch(c: Context, step: int) -> torch.Tensor:
    """Of all ranks, a slice for each."""
    generator = torch.Generator("cpu").manual_seed(step)
    return torch.randn(c.size * 4, 16, generator=generator, dtype=torch.float64,
                       device="cpu").to(c.device)


def trained_alone(c: Context) -> nn.Module:
    net = model(c)
    train(net, lambda step: batch(c, step))
    return net


def case_ddp(c: Context) -> None:
    reference = trained_alone(c)
    net = DistributedDataParallel(model(c), bucket_cap_mb=0.001)
    train(net, lambda step: batch(c, step).chunk(c.size)[c.rank])
    for got, expected in zip(net.parameters(), reference.parameters()):
        close(got, expected)


def case_fsdp2(c: Context) -> None:
    reference = trained_alone(c)
    mesh = init_device_mesh(c.device.type, (c.size,))
    net = model(c)
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, lambda step: batch(c, step).chunk(c.size)[c.rank])
    for got, expected in zip(net.parameters(), reference.parameters()):
        close(got.full_tensor(), expected)


def case_tensor_parallel(c: Context) -> None:
    reference = trained_alone(c)
    mesh = init_device_mesh(c.device.type, (c.size,))
    net = model(c)
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    train(net, lambda step: batch(c, step))
    for got, expected in zip(net.parameters(), reference.parameters()):
        close(got.full_tensor() if hasattr(got, "full_tensor") else got, expected)


def case_dtensor(c: Context) -> None:
    mesh = init_device_mesh(c.device.type, (c.size,))
    whole = torch.arange(c.size * 3 * 8.).view(c.size * 3, 8)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    equal(sharded.to_local(), whole.chunk(c.size)[c.rank])
    equal(sharded.full_tensor(), whole)
    equal(sharded.redistribute(mesh, [Shard(1)]).to_local(),
          whole.chunk(c.size, 1)[c.rank].contiguous())  # an all-to-all with splits
    equal((sharded.t() @ sharded).full_tensor(), whole.t() @ whole)
    equal(distribute_tensor(whole, mesh, [Replicate()]).redistribute(mesh, [Shard(1)])
          .full_tensor(), whole)
    uneven = torch.arange(c.size * 2 + 1.)
    equal(distribute_tensor(uneven, mesh, [Shard(0)]).full_tensor(), uneven)
    assert dist.get_backend() == "occl"


CASES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("case_")}

"""Cases: what trains models on top of a backend, against the same computation on one rank."""

from __future__ import annotations

import copy
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)
from torch.nn.parallel import DistributedDataParallel

from operations import Context, equal


def model() -> nn.Module:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)).double()


def batch(c: Context, step: int) -> torch.Tensor:
    """Of all ranks, a slice for each."""
    generator = torch.Generator().manual_seed(step)
    return torch.randn(c.size * 4, 8, generator=generator, dtype=torch.float64)


def close(got: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-9) -> None:
    assert torch.allclose(got, expected, rtol=tolerance, atol=tolerance), (got, expected)


def train(net: nn.Module, inputs, steps: int = 3) -> list[float]:
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = net(inputs(step)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def case_ddp(c: Context) -> None:
    """Parameters after some steps are those of one rank with the whole batch, and of gloo."""
    reference = model()
    train(reference, lambda step: batch(c, step))
    results = []
    for group in (c.occl, c.gloo):
        net = DistributedDataParallel(model(), process_group=group, bucket_cap_mb=0.001)
        train(net, lambda step: batch(c, step).chunk(c.size)[c.rank])
        for got, expected in zip(net.parameters(), reference.parameters()):
            close(got, expected)
        results.append([p.detach().clone() for p in net.parameters()])
    for ours, theirs in zip(*results):
        close(ours, theirs)


def case_ddp_hooks_and_unused_parameters(c: Context) -> None:
    class Sometimes(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = model(), model()

        def forward(self, x, which):
            return (self.a if which else self.b)(x)
    net = DistributedDataParallel(Sometimes(), find_unused_parameters=True)
    for step in range(4):  # ranks use other parts of it
        net(batch(c, step).chunk(c.size)[c.rank], (step + c.rank) % 2).square().mean().backward()
    gradients = [p.grad for p in net.parameters()]
    for gradient in gradients:
        same = gradient.clone()
        dist.broadcast(same, 0)
        close(gradient, same)
    hooked = DistributedDataParallel(model().float())
    hooked.register_comm_hook(None, default_hooks.bf16_compress_hook)
    losses = train(hooked, lambda step: batch(c, step).float().chunk(c.size)[c.rank])
    assert losses[-1] == losses[-1]
    with net.no_sync():
        net(batch(c, 9)[:4], 0).sum().backward()


def case_fsdp2(c: Context) -> None:
    reference = model()
    train(reference, lambda step: batch(c, step))
    mesh = init_device_mesh("cpu", (c.size,))
    net = model()
    for layer in (net[0], net[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, lambda step: batch(c, step).chunk(c.size)[c.rank])
    for got, expected in zip(net.parameters(), reference.parameters()):
        assert isinstance(got, DTensor)
        close(got.full_tensor(), expected)


def case_fsdp2_and_tensor_parallel(c: Context) -> None:
    """Two dimensions: three kinds of groups in use at a time."""
    mesh = init_device_mesh("cpu", (2, c.size // 2), mesh_dim_names=("data", "tensor"))
    reference = model()
    train(reference, lambda step: batch(c, step))
    net = model()
    parallelize_module(net, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(net, mesh=mesh["data"])
    part = mesh.get_local_rank("data")
    train(net, lambda step: batch(c, step).chunk(2)[part])
    for got, expected in zip(net.parameters(), reference.parameters()):
        close(got.full_tensor(), expected)


def case_dtensor(c: Context) -> None:
    mesh = init_device_mesh("cpu", (c.size,))
    torch.manual_seed(1)
    whole = torch.arange(c.size * 3 * 8.).view(c.size * 3, 8)
    sharded = distribute_tensor(whole, mesh, [Shard(0)])
    equal(sharded.to_local(), whole.chunk(c.size)[c.rank])
    equal(sharded.full_tensor(), whole)
    equal(sharded.redistribute(mesh, [Shard(1)]).to_local(),
          whole.chunk(c.size, 1)[c.rank].contiguous())
    equal((sharded.t() @ sharded).full_tensor(), whole.t() @ whole)  # partial sums
    equal(sharded.sum().full_tensor(), whole.sum())
    equal(distribute_tensor(whole, mesh, [Replicate()]).redistribute(mesh, [Shard(1)])
          .full_tensor(), whole)
    uneven = torch.arange(c.size * 2 + 1.)
    equal(distribute_tensor(uneven, mesh, [Shard(0)]).full_tensor(), uneven)


def case_pipeline(c: Context) -> None:
    """1F1B: each rank has a layer, microbatches go through; losses and gradients as on one rank."""
    torch.manual_seed(3)
    layers = [nn.Linear(8, 8).double() for _ in range(c.size)]
    whole = nn.Sequential(*copy.deepcopy(layers))
    x = batch(c, 0)
    microbatches = 8
    loss_of = nn.MSELoss()
    losses = [loss_of(whole(part), torch.zeros_like(part)) for part in x.chunk(microbatches)]
    (sum(losses) / microbatches).backward()
    stage = PipelineStage(layers[c.rank], c.rank, c.size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, microbatches, loss_fn=loss_of)
    found: list[torch.Tensor] = []
    if c.rank == 0:
        schedule.step(x)
    elif c.rank == c.size - 1:
        schedule.step(target=torch.zeros_like(x), losses=found)
        close(torch.stack([f.detach() for f in found]),
              torch.stack([loss.detach() for loss in losses]))
    else:
        schedule.step()
    close(layers[c.rank].weight.grad, whole[c.rank].weight.grad)


def case_checkpoint(c: Context) -> None:
    mesh = init_device_mesh("cpu", (c.size,))
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder, 0)
    whole = torch.arange(c.size * 10.).view(-1, 5)
    state = {"weights": distribute_tensor(whole, mesh, [Shard(0)]), "step": torch.tensor(7)}
    checkpoint.save(state, checkpoint_id=folder[0])
    fresh = {"weights": distribute_tensor(torch.zeros_like(whole), mesh, [Shard(1)]),
             "step": torch.tensor(0)}
    checkpoint.load(fresh, checkpoint_id=folder[0])  # in another layout
    equal(fresh["weights"].full_tensor(), whole)
    equal(fresh["step"], torch.tensor(7))


CASES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("case_")}

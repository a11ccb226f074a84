#!/usr/bin/env python3
"""A pipeline in the order 1F1B: each rank has a layer, microbatches go through them by
batch_isend_irecv; losses, parameters' gradients as of one process, within 1e-10, in float64."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

from torch_ranks import DEVICE, batch, close, run

MICROBATCHES = 8
BOUND = 1e-10


def body(rank: int, size: int) -> None:
    torch.manual_seed(3)
    layers = [nn.Linear(24, 24).double().to(DEVICE) for _ in range(size)]
    whole = nn.Sequential(*copy.deepcopy(layers))
    x = torch.cat([batch(size, step, 24) for step in range(MICROBATCHES)])
    loss_of = nn.MSELoss()
    losses = [loss_of(whole(part), torch.zeros_like(part)) for part in x.chunk(MICROBATCHES)]
    (sum(losses) / MICROBATCHES).backward()
    stage = PipelineStage(layers[rank], rank, size, DEVICE)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=loss_of)
    found: list[torch.Tensor] = []
    given = {"target": torch.zeros_like(x), "losses": found} if rank == size - 1 else {}
    schedule.step(*([x] if rank == 0 else []), **given)
    for got, expected in zip(found, losses):
        close(got, expected, BOUND)
    assert len(found) == (MICROBATCHES if rank == size - 1 else 0), found
    for got, expected in zip(layers[rank].parameters(), whole[rank].parameters()):
        close(got.grad, expected.grad, BOUND)


run(body)

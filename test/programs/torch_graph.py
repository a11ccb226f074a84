#!/usr/bin/env python3
"""all_reduce and all_gather_into_tensor captured in a torch.cuda.CUDAGraph, and replayed with
other data."""

from __future__ import annotations

import torch
import torch.distributed as dist

from torch_ranks import DEVICE, ON_GPU, equal, run

COUNT = 4099


def body(rank: int, size: int) -> None:
    if not ON_GPU:
        return
    x = torch.zeros(COUNT, device=DEVICE)
    gathered = torch.zeros(COUNT * size, device=DEVICE)

    def step() -> torch.Tensor:
        doubled = x * 2
        dist.all_reduce(doubled)
        dist.all_gather_into_tensor(gathered, doubled + rank)
        return gathered + 1

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # so that nothing is made for the first time in the capture
        step()
    stream.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()
    for i in range(10):
        x.fill_(rank + i)
        graph.replay()
        summed = 2 * sum(r + i for r in range(size))
        equal(result.view(size, COUNT)[:, 0], torch.tensor([summed + r + 1. for r in range(size)]))
        equal(result.view(size, COUNT).amin(1), result.view(size, COUNT).amax(1))
    eager = torch.full((7,), float(rank), device=DEVICE)
    dist.all_reduce(eager)
    equal(eager, torch.full((7,), float(sum(range(size)))))
    torch.cuda.synchronize()
    del graph


run(body)

#!/usr/bin/env python3
"""Times of the backend occl beside gloo's, in the same run, in turns; prints rows for
bench/report.py --add torch, and a table with ratios on standard error.

    PYTHONPATH=python bench/torch/compare.py [--rounds 5] [--machines] >rows.csv

Ranks are processes of this machine; with --machines two, as if each were on a machine of its own:
both backends go over TCP to the same address of this one. A time is the median over rounds of the mean of a round's
calls on the slowest rank.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

import occl.torch  # noqa: F401  registers the backend

torch.set_num_threads(1)
BACKENDS = ("occl", "gloo")
MACHINES = False


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


def resnet18() -> nn.Module:
    """As ResNet-18: 8 blocks, 11.4 million parameters; for images of 32 x 32."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    width = 64
    for outputs in (64, 128, 256, 512):
        layers += [Block(width, outputs, 1 if outputs == 64 else 2), Block(outputs, outputs, 1)]
        width = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def timed(group, calls: int, call) -> float:
    """Seconds a call on the slowest rank."""
    call()
    dist.barrier(group)
    began = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = torch.tensor([(time.perf_counter() - began) / calls])
    dist.all_reduce(seconds, dist.ReduceOp.MAX, group=group)
    return seconds.item()


def measurements(size: int, groups: dict):
    """(what, bytes or "", {backend: function that returns seconds})."""
    across = ", two machines" if MACHINES else ""
    sizes = ((256, 300), (16 << 10, 200), (256 << 10, 50), (4 << 20, 5)) if MACHINES else ((256, 300), (16 << 20, 2))
    for elements, calls in sizes:
        x = torch.zeros(elements)
        yield f"all_reduce of float{across}", 4 * elements, {
            b: lambda g=g: timed(g, calls, lambda: dist.all_reduce(x, group=g))
            for b, g in groups.items()}
    if size != 2:
        return
    step_of = {}
    for backend, group in groups.items():
        net = nn.parallel.DistributedDataParallel(resnet18(), process_group=group)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

        def step(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            net(torch.randn(2, 3, 32, 32)).sum().backward()
            optimizer.step()
        step_of[backend] = lambda group=group, step=step: timed(group, 3, step)
    yield f"DDP step of ResNet-18, batch 2{across}", "", step_of


def rank_main(rank: int, size: int, rounds: int, place: str) -> None:
    if MACHINES:
        os.environ["OCCL_HOSTID"] = f"machine {rank}"
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=size)
    groups = {backend: dist.new_group(backend=backend) for backend in BACKENDS}
    for what, count, functions in measurements(size, groups):
        seconds: dict[str, list[float]] = {b: [] for b in BACKENDS}
        for _ in range(rounds):
            for backend in BACKENDS:  # in turns, so that both see the same machine
                seconds[backend].append(functions[backend]())
        if rank == 0:
            ours, theirs = (statistics.median(seconds[b]) for b in BACKENDS)
            for library, value in (("OCCL", ours), ("gloo", theirs)):
                print(f'"{what}",,{size},{count},,{library},time,us,{value * 1e6:.1f}', flush=True)
            print(f"| {what} | {size} | {count} | {ours * 1e6:,.0f} | {theirs * 1e6:,.0f} "
                  f"| {theirs / ours:.2f} |", file=sys.stderr, flush=True)
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--machines", action="store_true")
    options = parser.parse_args()
    global MACHINES
    MACHINES = options.machines
    print("case,place,ranks,bytes,way,library,metric,unit,value", flush=True)
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}\n\n"
          "| what | ranks | bytes | occl, us | gloo, us | gloo / occl |\n|---|---|---|---|---|---|",
          file=sys.stderr, flush=True)
    for size in (2,) if MACHINES else (2, 8):
        place = str(Path(tempfile.mkdtemp()) / "store")
        children = []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                try:
                    rank_main(rank, size, options.rounds, place)
                    os._exit(0)
                except BaseException as error:
                    print(f"rank {rank}: {error}", file=sys.stderr, flush=True)
                    os._exit(1)
            children.append(child)
        if any([os.waitpid(child, 0)[1] for child in children]):
            sys.exit(1)


if __name__ == "__main__":
    main()

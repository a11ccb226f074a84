#!/usr/bin/env python3
"""A training loop of accelerate, with gradient accumulation, gather_for_metrics and clipping: the
parameters of one process with the whole batch, within 1e-10, in float64."""

from __future__ import annotations

import os

import torch

import ranks

STEPS = 12
BOUND = 1e-10


def train(accelerator, net: torch.nn.Module, part: slice) -> float:
    """Returns the last loss. Without an accelerator: of all ranks."""
    from torch_ranks import batch

    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    if accelerator:
        net, optimizer = accelerator.prepare(net, optimizer)
    loss = torch.zeros(())
    for step in range(STEPS):
        x = batch(ranks.SIZE, step, 16)[part]
        loss = net(x).square().mean()
        if accelerator:
            with accelerator.accumulate(net):
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        else:
            (loss / 2).backward()
            if step % 2:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
    return accelerator.gather(loss.detach()[None]).mean().item() if accelerator else loss.item()


def body(rank: int) -> None:
    from accelerate import Accelerator

    from torch_ranks import DEVICE, close, mlp

    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        torch.cuda.set_device(DEVICE)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=ranks.port(rank))
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=DEVICE.type == "cpu")
    assert accelerator.num_processes == ranks.SIZE and accelerator.process_index == rank
    alone, together = mlp(), mlp()
    rows = 4  # of a rank
    expected = train(None, alone, slice(None))
    found = train(accelerator, together, slice(rank * rows, (rank + 1) * rows))
    assert abs(found - expected) <= BOUND, (found, expected)
    for got, wanted in zip(together.parameters(), alone.parameters()):
        close(got, wanted, BOUND)
    ranks.check_library(rank, ranks.SIZE)
    accelerator.wait_for_everyone()
    accelerator.end_training()


ranks.main(body)

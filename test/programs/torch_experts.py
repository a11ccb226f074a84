#!/usr/bin/env python3
"""A mixture of experts: tokens go to the ranks of their experts, and back, by all_to_all_single with
uneven splits, some of them 0; output and gradients as of one process that has all experts, within
1e-10, in float64."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_to_all_single

from torch_ranks import DEVICE, batch, close, equal, run

WIDTH = 12
STEPS = 6
BOUND = 1e-10


def expert_of(tokens: torch.Tensor, step: int, size: int) -> torch.Tensor:
    """Of each token; in the first step all of them are the first rank's."""
    return (tokens[:, 0] * 1000).long().abs() % size * (step > 0)


def through_experts(tokens: torch.Tensor, expert: nn.Module, step: int, size: int) -> torch.Tensor:
    chosen = expert_of(tokens, step, size)
    order = torch.argsort(chosen, stable=True)
    counts = torch.bincount(chosen, minlength=size)
    incoming = torch.empty_like(counts)
    dist.all_to_all_single(incoming, counts)
    sent, received = counts.tolist(), incoming.tolist()
    arrived = tokens.new_empty((sum(received), WIDTH))
    arrived = all_to_all_single(arrived, tokens[order].contiguous(), received, sent)
    back = all_to_all_single(torch.empty_like(tokens), expert(arrived), sent, received)
    return torch.zeros_like(tokens).index_copy(0, order, back)


def body(rank: int, size: int) -> None:
    torch.manual_seed(5)
    experts = [nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH)).double()
               .to(DEVICE) for _ in range(size)]
    for step in range(STEPS):
        everything = batch(size, step, WIDTH)
        mine = everything.chunk(size)[rank].clone().requires_grad_()
        alone = everything.clone().requires_grad_()
        chosen = expert_of(alone, step, size)
        expected = sum(expert(alone) * (chosen == e)[:, None] for e, expert in enumerate(experts))
        wanted = torch.autograd.grad(expected.square().sum(),
                                     [alone, *experts[rank].parameters()], allow_unused=True)
        out = through_experts(mine, experts[rank], step, size)
        got = torch.autograd.grad(out.square().sum(), [mine, *experts[rank].parameters()])
        close(out, expected.chunk(size)[rank], BOUND)
        close(got[0], wanted[0].chunk(size)[rank], BOUND)
        for one, other in zip(got[1:], wanted[1:]):
            close(one, other, BOUND)
    number = torch.tensor([rank], device=DEVICE)
    dist.all_reduce(number)
    equal(number, torch.tensor([size * (size - 1) // 2]))


run(body)

#!/usr/bin/env python3
"""torch.distributed: collectives of types and sizes, subgroups, barriers, work that is waited for.

Rank r of n has elements r + 1 + (i mod 5), so that sums are n (n + 1) / 2 + n (i mod 5), exact in
all types."""

from __future__ import annotations

import torch
import torch.distributed as dist

from torch_ranks import DEVICE, ON_GPU, equal, run

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8,
         torch.int32, torch.int64]


def mine(rank: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (torch.arange(count) % 5 + rank + 1).to(dtype).to(DEVICE)


def reductions(rank: int, size: int) -> None:
    ops = [(dist.ReduceOp.SUM, lambda x: x.sum(0)), (dist.ReduceOp.MAX, lambda x: x.amax(0)),
           (dist.ReduceOp.MIN, lambda x: x.amin(0)), (dist.ReduceOp.PRODUCT, lambda x: x.prod(0))]
    for dtype in TYPES:
        for count in (1, 31, 1001):
            all_of = torch.stack([mine(r, count, torch.float64) for r in range(size)])
            for op, by in ops:
                x = mine(rank, count, dtype)
                dist.all_reduce(x, op)
                equal(x, by(all_of).to(dtype))
    x = mine(rank, 100_003)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    equal(x, mine(0, 100_003) * size + sum(range(size)))
    if ON_GPU:  # gloo has no averages
        x = mine(rank, 77, torch.float64)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        equal(x, mine(0, 77, torch.float64) + (size - 1) / 2)
    x = mine(rank, 9)
    dist.reduce(x, size - 1)
    if rank == size - 1:
        equal(x, mine(0, 9) * size + sum(range(size)))


def gathers(rank: int, size: int) -> None:
    for count in (1, 33, 20_011):
        whole = torch.cat([mine(r, count) for r in range(size)])
        gathered = torch.empty_like(whole)
        dist.all_gather_into_tensor(gathered, mine(rank, count))
        equal(gathered, whole)
        parts = [torch.empty(count, device=DEVICE) for _ in range(size)]
        dist.all_gather(parts, mine(rank, count))
        equal(torch.cat(parts), whole)
        x = mine(rank, count * size)
        part = torch.empty(count, device=DEVICE)
        dist.reduce_scatter_tensor(part, x)
        sums = mine(0, count * size) * size + sum(range(size))
        equal(part, sums.chunk(size)[rank])
        if ON_GPU:  # in equal parts this is ncclAlltoAll
            exchanged = torch.empty_like(x)
            dist.all_to_all_single(exchanged, x)
            equal(exchanged, torch.cat([mine(r, count * size).chunk(size)[rank]
                                        for r in range(size)]))
    for root in range(size):
        x = mine(rank, 501)
        dist.broadcast(x, root)
        equal(x, mine(root, 501))
    things = [{"of": rank}] if rank == 0 else [None]
    dist.broadcast_object_list(things, 0)
    assert things == [{"of": 0}]


def subgroups(rank: int, size: int) -> None:
    """Each rank alone, and all of them in a second group whose calls are between those of the
    first; ranks differ in which they start first."""
    alone = [dist.new_group([r]) for r in range(size)][rank]
    x = mine(rank, 10)
    dist.all_reduce(x, group=alone)
    equal(x, mine(rank, 10))
    other = dist.new_group(list(range(size)))
    groups = [dist.group.WORLD, other] if rank % 2 == 0 else [other, dist.group.WORLD]
    for _ in range(10):
        data = {group: mine(rank, 999) for group in groups}
        works = [dist.all_reduce(data[group], group=group, async_op=True) for group in groups]
        for work in works:
            work.wait()
        for x in data.values():
            equal(x, mine(0, 999) * size + sum(range(size)))


def sends(rank: int, size: int) -> None:
    """To the next rank, one by one and together, and with counts of every pair."""
    after, before = (rank + 1) % size, (rank - 1) % size
    for count in (1, 999, 100_000):
        got = torch.zeros_like(mine(rank, count))
        if size > 1:
            if rank % 2 == 0:
                dist.send(mine(rank, count), after)
                dist.recv(got, before)
            else:
                dist.recv(got, before)
                dist.send(mine(rank, count), after)
            equal(got, mine(before, count))
        got.zero_()
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, mine(rank, count), after),
             dist.P2POp(dist.irecv, got, before)])
        for work in works:
            work.wait()
        equal(got, mine(before, count))
    counts = [[(a * 3 + b) % 5 * 100 for b in range(size)] for a in range(size)]
    sent = torch.cat([mine(rank, counts[rank][b]) + b for b in range(size)])
    got = torch.zeros(sum(counts[a][rank] for a in range(size)), device=sent.device)
    dist.all_to_all_single(got, sent, [counts[a][rank] for a in range(size)], counts[rank])
    equal(got, torch.cat([mine(a, counts[a][rank]) + rank for a in range(size)]))


def body(rank: int, size: int) -> None:
    for part in (reductions, gathers, subgroups, sends):
        part(rank, size)
        dist.barrier()


run(body, bound=False)

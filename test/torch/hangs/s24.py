"""S24: 24 groups, all-reduces of 1 MiB, in orders that each rank draws by itself."""
import os
import random

import torch
import torch.distributed as dist

RANKS = 2
ROUNDS = 3


def body(rank: int) -> None:
    seed = int(os.environ["SEED"])
    groups = [dist.new_group() for _ in range(24)]
    for step in range(ROUNDS):
        order = list(range(24))
        random.Random(seed + 2 * step + rank).shuffle(order)
        xs = [torch.full((1 << 18,), i + 1.) for i in range(24)]
        for work in [dist.all_reduce(xs[i], group=groups[i], async_op=True) for i in order]:
            work.wait()
        for i, x in enumerate(xs):
            assert x[0] == 2 * (i + 1) and x[-1] == 2 * (i + 1)

"""U2: each rank waits for a collective of a group before it calls the one that the other waits for."""
from datetime import timedelta

import torch
import torch.distributed as dist

RANKS = 2
SECONDS = 4
ERROR = [r"deadline passed.*waits for rank 1", r"deadline passed.*waits for rank 0"]


def body(rank: int) -> None:
    groups = [dist.new_group(timeout=timedelta(seconds=SECONDS)) for _ in range(2)]
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(torch.ones(1000), group=group)

"""U4: a rank never calls; the error of the others names it."""
import time

import torch
import torch.distributed as dist

RANKS = 3
SECONDS = 4
ERROR = [r"deadline passed.*waits for rank 2", r"deadline passed.*waits for rank 2", None]


def body(rank: int) -> None:
    dist.all_reduce(torch.ones(10))
    if rank == 2:
        time.sleep(8)
    else:
        dist.all_reduce(torch.ones(10))

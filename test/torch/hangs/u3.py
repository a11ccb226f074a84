"""U3: collectives of two groups that do not return before they have ended, on devices in the current
stream, in opposite orders: the second may need what the first one writes, so nobody can tell that it does
not."""
from datetime import timedelta

import torch
import torch.distributed as dist

RANKS = 2
SECONDS = 8
ERROR = [r"rank 1", r"rank 0"]


def body(rank: int) -> None:
    groups = [dist.new_group(timeout=timedelta(seconds=SECONDS)) for _ in range(2)]
    for group in groups:
        dist.all_reduce(torch.ones(1000), group=group)
    if torch.ones(1).is_cuda:
        torch.cuda.synchronize()
    dist.barrier()
    for group in groups if rank == 0 else groups[::-1]:
        dist.all_reduce(torch.ones(1000), group=group)

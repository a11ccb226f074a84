"""U1: two collectives of one group in another order; an error names both ranks and what they have."""
import torch
import torch.distributed as dist

RANKS = 2
ERROR = [r"^(?=.*ranks disagree)(?=.*rank 0 has allreduce, count 10)(?=.*rank 1 has allreduce, count 20)"]


def body(rank: int) -> None:
    works = [dist.all_reduce(torch.ones(n), async_op=True)
             for n in ((10, 20) if rank == 0 else (20, 10))]
    for work in works:
        work.wait()
    dist.all_reduce(torch.ones(1))  # whose part was at an end before is told by its next call

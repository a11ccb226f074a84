"""H1 (nccl#1192): a reduction of all begins beside a chain of messages, before anybody is connected."""
import torch
import torch.distributed as dist

RANKS = 4


def body(rank: int) -> None:
    x, y = torch.full((1000,), 1.), torch.zeros(1 << 18)
    if rank == 0:
        works = [dist.reduce(x, 3, async_op=True), dist.isend(y + 7, 1)]
    elif rank == 3:
        works = [dist.irecv(y, 2), dist.reduce(x, 3, async_op=True)]
    else:
        dist.irecv(y, rank - 1).wait()
        works = [dist.reduce(x, 3, async_op=True), dist.isend(y, rank + 1)]
    for work in works:
        work.wait()
    assert rank == 0 or y[5] == 7
    assert rank != 3 or x[0] == 4

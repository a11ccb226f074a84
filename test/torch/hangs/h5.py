"""H5 (pytorch#109401): isend and irecv of 16 MiB in other orders on the two sides of a pair."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    t, u, v = torch.full((4 << 20,), rank + 1.), torch.zeros(4 << 20), torch.zeros(4 << 20)
    peer = 1 - rank
    if rank == 0:
        dist.isend(t, peer).wait()
        works = [dist.irecv(u, peer), dist.isend(t, peer), dist.irecv(v, peer)]
    else:
        dist.irecv(u, peer).wait()
        works = [dist.irecv(v, peer), dist.isend(t, peer), dist.isend(t, peer)]
    for work in works:
        work.wait()
    assert u[-1] == peer + 1 and v[-1] == peer + 1

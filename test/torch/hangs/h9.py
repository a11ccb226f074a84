"""H9 (nccl#2130): a batch of a send and a receive, against a batch of a receive, then a send."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    t, u = torch.full((4 << 20,), rank + 1.), torch.empty(4 << 20)
    if rank == 0:
        batch = [dist.P2POp(dist.isend, t, 1), dist.P2POp(dist.irecv, u, 1)]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
    else:
        for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, u, 0)]):
            work.wait()
        dist.isend(t, 0).wait()
    assert u[-1] == 2 - rank

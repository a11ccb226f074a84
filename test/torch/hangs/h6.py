"""H6 (pytorch#138074): every rank of a ring sends 256 MiB before it receives."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    big, got = torch.full((64 << 20,), rank + 1.), torch.empty(64 << 20)
    works = [dist.isend(big, (rank + 1) % RANKS), dist.irecv(got, (rank - 1) % RANKS)]
    for work in works:
        work.wait()
    assert got[0] == (rank - 1) % RANKS + 1 and got[-1] == got[0]

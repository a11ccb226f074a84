"""H7 (pytorch#174288): one batch of 2000 sends and receives, with other numbers for each peer."""
import torch
import torch.distributed as dist

RANKS = 4


def messages(source: int, destination: int) -> int:
    return 20 + 67 * source + 31 * destination


def body(rank: int) -> None:
    ops, got = [], []
    for peer in range(RANKS):
        if peer == rank:
            continue
        for i in range(messages(rank, peer)):
            ops.append(dist.P2POp(dist.isend, torch.full((1 + i % 300,), float(i)), peer))
        for i in range(messages(peer, rank)):
            got.append((i, torch.empty(1 + i % 300)))
            ops.append(dist.P2POp(dist.irecv, got[-1][1], peer))
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert all(x[0] == i and x[-1] == i for i, x in got)

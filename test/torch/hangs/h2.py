"""H2: six groups, all-reduces in opposite orders, all started before any is waited for."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    groups = [dist.new_group() for _ in range(6)]
    for _ in range(3):
        xs = [torch.full((1 << 20,), i + 1.) for i in range(6)]
        order = list(range(6)) if rank == 0 else list(range(6))[::-1]
        for work in [dist.all_reduce(xs[i], group=groups[i], async_op=True) for i in order]:
            work.wait()
        for i, x in enumerate(xs):
            assert x[0] == 2 * (i + 1) and x[-1] == 2 * (i + 1)

"""H10: memory is given back to the device (cudaFree) between collectives in opposite orders. On CPUs
only the orders are left of it."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    groups = [dist.new_group(), dist.new_group()]
    for _ in range(5):
        xs = [torch.ones(1 << 20), torch.ones(1 << 20)]
        cached = torch.empty(64 << 20)
        del cached
        works = []
        for i in ((0, 1) if rank == 0 else (1, 0)):
            works.append(dist.all_reduce(xs[i], group=groups[i], async_op=True))
            torch.cuda.empty_cache()
        for work in works:
            work.wait()
        assert xs[0][0] == 2 and xs[1][-1] == 2

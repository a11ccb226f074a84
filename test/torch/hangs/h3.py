"""H3 (Megatron-LM#107): two groups in opposite orders."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    groups = [dist.new_group(), dist.new_group()]
    for _ in range(20):
        xs = [torch.ones(1 << 16), torch.ones(1 << 16)]
        works = [dist.all_reduce(xs[i], group=groups[i], async_op=True)
                 for i in ((0, 1) if rank == 0 else (1, 0))]
        for work in works:
            work.wait()
        assert xs[0][0] == 2 and xs[1][-1] == 2

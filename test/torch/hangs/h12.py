"""H12 (rccl#2191): three groups at a time, as FSDP2 with tensor parallelism uses them."""
import torch
import torch.distributed as dist

RANKS = 4


def body(rank: int) -> None:
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    data, tensor, world = rows[rank // 2], columns[rank % 2], dist.group.WORLD
    for step in range(30):
        full, shard = torch.empty(1 << 15), torch.full((1 << 14,), rank + 1.)
        gather = dist.all_gather_into_tensor(full, shard, group=data, async_op=True)
        partial = torch.ones(1 << 12)
        reduce = dist.all_reduce(partial, group=tensor, async_op=True)
        norm = torch.ones(1)
        total = dist.all_reduce(norm, group=world, async_op=True)
        out = torch.empty(1 << 13)
        scatter = dist.reduce_scatter_tensor(out, torch.ones(1 << 14), group=data, async_op=True)
        works = [gather, reduce, total, scatter]
        for work in works[step % 4:] + works[:step % 4]:
            work.wait()
        assert full[0] + full[-1] == 4 * (rank // 2) + 3 and partial[0] == 2
        assert norm[0] == 4 and out[-1] == 2

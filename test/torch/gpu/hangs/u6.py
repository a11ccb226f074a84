"""U6: ranks that disagree in the type of a collective; the error has both."""
import torch
import torch.distributed as dist

RANKS = 2
ERROR = [r"^(?=.*float32)(?=.*int32)"]


def body(rank: int) -> None:
    group = dist.new_group()
    x = torch.ones(8, dtype=torch.float32 if rank == 0 else torch.int32)
    dist.all_reduce(x, group=group, async_op=True).wait()

"""H4 (torchrec#4149): a rank synchronizes its device while a collective waits that the other rank
calls only after one that it waits for."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    g1, g2 = dist.new_group(), dist.new_group()
    x, out, y = torch.full((1 << 16,), rank + 1.), torch.empty(1 << 16), torch.ones(1 << 16)
    if rank == 0:
        a = dist.all_to_all_single(out, x, group=g1, async_op=True)
        if x.is_cuda:
            torch.cuda.synchronize()
        dist.all_reduce(y, group=g2, async_op=True).wait()
        a.wait()
    else:
        dist.all_reduce(y, group=g2, async_op=True).wait()
        assert y.tolist()[7] == 2
        dist.all_to_all_single(out, x, group=g1, async_op=True).wait()
    assert y[-1] == 2 and out[0] == 1 and out[-1] == 2

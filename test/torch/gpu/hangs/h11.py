"""H11: two graphs with a collective of a group each, in streams of their own, replayed in opposite
orders."""
import torch
import torch.distributed as dist

RANKS = 2


def body(rank: int) -> None:
    groups = [dist.new_group(), dist.new_group()]
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    xs = [torch.ones(1 << 20), torch.ones(1 << 20)]
    for stream, group in zip(streams, groups):
        with torch.cuda.stream(stream):
            dist.all_reduce(torch.ones(1 << 20), group=group)
        stream.synchronize()
    dist.barrier()
    graphs = [torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()]
    for graph, stream, group, x in zip(graphs, streams, groups, xs):
        with torch.cuda.graph(graph, stream=stream):
            dist.all_reduce(x, group=group)
    dist.barrier()
    for _ in range(10):
        for i in ((0, 1) if rank == 0 else (1, 0)):
            with torch.cuda.stream(streams[i]):
                graphs[i].replay()
        torch.cuda.synchronize()
    assert xs[0][0] == 2 ** 10 and xs[1][-1] == 2 ** 10
    graphs.clear()

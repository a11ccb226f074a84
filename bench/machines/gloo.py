#!/usr/bin/env python3
"""All-reduces of PyTorch's backend gloo beside what compare_plans measures, under the same job:
occl-run --hosts a,b -n 8 python3 gloo.py BYTES[,BYTES...]. The first rank prints rows of that table: bytes and the microseconds of a call
on the slowest rank, the median of five rounds."""
import statistics
import sys
import time

import torch
import torch.distributed as dist

ROUNDS = 5

torch.set_num_threads(1)
dist.init_process_group("gloo")
for size in map(int, sys.argv[1].split(",")):
    tensor = torch.ones(size // 4)
    calls = min(max((4 << 20) // size, 1), 200)
    times = []
    for _ in range(ROUNDS):
        dist.all_reduce(tensor)
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            dist.all_reduce(tensor)
        took = torch.tensor([(time.perf_counter() - begin) / calls * 1e6])
        dist.all_reduce(took, dist.ReduceOp.MAX)
        times.append(took.item())
    if dist.get_rank() == 0:
        print(f"| gloo | {size} | {statistics.median(times):.1f} | | |", flush=True)
dist.destroy_process_group()

#!/usr/bin/env python3
"""All-gather and product of two ranks, each on a GPU: in one kernel of Triton (all_gather_matmul.py),
and by NCCL's all-gather and torch.matmul in turn. The results are compared, and both are timed.

    torchrun --nproc-per-node 2 examples/triton/compare.py [SENDERS]...

SENDERS: how many programs of the kernel send at its begin; 24.
"""

import os
import statistics
import sys

import torch
import torch.distributed as dist
from all_gather_matmul import AllGatherMatmul

import occl

SHAPES = [(1024, 4096, 4096), (2048, 4096, 4096), (4096, 4096, 4096), (4096, 8192, 4096)]
UNTIMED, TIMED = 5, 30


def microseconds(run) -> list[float]:
    """Of each turn on the rank that takes longest."""
    times = []
    for turn in range(UNTIMED + TIMED):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        dist.barrier()
        torch.cuda.synchronize()
        events[0].record()
        run()
        events[1].record()
        torch.cuda.synchronize()
        if turn >= UNTIMED:
            times.append(events[0].elapsed_time(events[1]) * 1000)
    longest = torch.tensor(times, device="cuda")
    dist.all_reduce(longest, dist.ReduceOp.MAX)
    return longest.tolist()


def compare(comm: occl.Communicator, senders: int, M: int, N: int, K: int) -> None:
    torch.manual_seed(comm.rank)
    own = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(K, N, device="cuda", dtype=torch.bfloat16)
    c, wanted = (torch.empty(2 * M, N, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    whole = torch.empty(2 * M, K, device="cuda", dtype=torch.bfloat16)
    ours = AllGatherMatmul(comm, own, senders)

    def in_turn() -> None:
        dist.all_gather_into_tensor(whole, own)
        torch.matmul(whole, b, out=wanted)

    def alone() -> None:
        torch.matmul(whole, b, out=wanted)

    times = {name: microseconds(run) for name, run in
             (("ours", lambda: ours(b, c)), ("in turn", in_turn), ("torch.matmul alone", alone))}
    assert ours.words[1] == 0, "a band has not come in time"
    # Each is a sum of K products in float32, rounded once.
    exact, most = whole.double() @ b.double(), whole.double().abs() @ b.double().abs()
    bound = 2.0**-7 * exact.abs() + K * 2.0**-23 * most
    assert ((c.double() - exact).abs() <= bound).all(), (c.double() - exact).abs().max()
    if comm.rank == 0:
        medians = {name: statistics.median(each) for name, each in times.items()}
        print(f"{senders} senders, 2 x {M} x {K} times {K} x {N}: " + ", ".join(
            f"{name} {median:.0f} us" for name, median in medians.items()), flush=True)
    ours.close()


def main() -> None:
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    with occl.init(device=rank, timeout=30.0, heap_bytes=256 << 20) as comm:
        for senders in [int(word) for word in sys.argv[1:]] or [24]:
            for shape in SHAPES:
                compare(comm, senders, *shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    main()

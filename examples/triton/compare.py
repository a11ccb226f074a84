#!/usr/bin/env python3
"""All-gather and product of two ranks, each on a GPU: in one kernel of Triton (all_gather_matmul.py),
and by NCCL's all-gather and then torch.matmul, or the same tiles in a kernel of Triton. The results
are compared with float64, and all are timed, several in a row.

    torchrun --nproc-per-node 2 examples/triton/compare.py [SENDERS]...

SENDERS: how many programs of the kernel send at its begin; 24.
"""

import os
import statistics
import sys

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from all_gather_matmul import (COLUMNS, DEPTH, GROUP, ROWS, STAGES, WARPS, AllGatherMatmul, _place,
                               _tile)

import occl

SHAPES = [(1024, 4096, 4096), (2048, 4096, 4096), (4096, 4096, 4096), (4096, 8192, 4096)]
UNTIMED, TIMED, IN_A_ROW = 2, 10, 10


@triton.jit
def matmul(a, b, c, M, N, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
           GROUP: tl.constexpr):
    """The tiles of all_gather_matmul, of an A that is there."""
    for tile in range(tl.program_id(0), (M // ROWS) * (N // COLUMNS), tl.num_programs(0)):
        row, column = _place(tile, M, N, ROWS, COLUMNS, GROUP)
        _tile(a, b, c, row, column, N, K, ROWS, COLUMNS, DEPTH)


def microseconds(run) -> list[float]:
    """Of each turn on the rank that takes longest."""
    times = []
    for turn in range(UNTIMED + TIMED):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        dist.barrier()
        torch.cuda.synchronize()
        events[0].record()
        for _ in range(IN_A_ROW):
            run()
        events[1].record()
        torch.cuda.synchronize()
        if turn >= UNTIMED:
            times.append(events[0].elapsed_time(events[1]) * 1000 / IN_A_ROW)
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

    def gather() -> None:
        dist.all_gather_into_tensor(whole, own)

    def by_torch() -> None:
        torch.matmul(whole, b, out=wanted)

    def by_triton() -> None:
        matmul[ours.grid](whole, b, wanted, 2 * M, N, K, ROWS, COLUMNS, DEPTH, GROUP,
                          num_warps=WARPS, num_stages=STAGES)

    times = {name: microseconds(run) for name, run in (
        ("one kernel", lambda: ours(b, c)), ("NCCL, torch", lambda: (gather(), by_torch())),
        ("NCCL, Triton", lambda: (gather(), by_triton())), ("NCCL", gather), ("torch", by_torch),
        ("Triton", by_triton))}
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

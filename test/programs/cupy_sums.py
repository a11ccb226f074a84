#!/usr/bin/env python3
"""CuPy: NcclCommunicator.initAll of ranks that share the first GPU, in groups of one thread; then
ranks of an id, a thread each."""

from __future__ import annotations

import threading

import cupy
from cupy.cuda import nccl

import ranks

COUNT = 10_007


def expect(array: cupy.ndarray, value: float) -> None:
    assert bool((array == value).all()), (array, value)


def one_thread(size: int) -> None:
    comms = nccl.NcclCommunicator.initAll([0] * size)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(size)]
    data = [cupy.full(COUNT, rank + 1, dtype=cupy.float32) for rank in range(size)]
    gathered = [cupy.zeros(COUNT * size, dtype=cupy.float32) for _ in range(size)]
    cupy.cuda.Device(0).synchronize()
    nccl.groupStart()
    for comm, stream, x, all_of in zip(comms, streams, data, gathered):
        comm.allGather(x.data.ptr, all_of.data.ptr, COUNT, nccl.NCCL_FLOAT32, stream.ptr)
        comm.allReduce(x.data.ptr, x.data.ptr, COUNT, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)
        comm.broadcast(x.data.ptr, x.data.ptr, 1, nccl.NCCL_FLOAT32, 0, stream.ptr)
    nccl.groupEnd()
    for stream in streams:
        stream.synchronize()
    for x, all_of in zip(data, gathered):
        expect(x, size * (size + 1) / 2)
        for rank in range(size):
            expect(all_of[rank * COUNT:(rank + 1) * COUNT], rank + 1)
    for rank, comm in enumerate(comms):
        assert comm.device_id() == 0 and comm.rank_id() == rank and comm.size() == size
        comm.check_async_error()
        comm.destroy()


def of_an_id(rank: int, size: int, uid, wrong: list[str]) -> None:
    try:
        cupy.cuda.Device(0).use()
        comm = nccl.NcclCommunicator(size, uid, rank)
        x = DATA[rank]
        comm.reduceScatter(x.data.ptr, PARTS[rank].data.ptr, COUNT, nccl.NCCL_FLOAT64,
                           nccl.NCCL_MAX, STREAMS[rank].ptr)
        STREAMS[rank].synchronize()
        ENDED.wait(20)  # before anybody frees memory
        comm.destroy()
    except Exception as error:  # noqa: BLE001
        wrong.append(f"rank {rank}: {error!r}")


SIZE = min(ranks.SIZE, 2)  # more ranks of one process have no room on one device
print(f"NCCL {nccl.get_version()} as it says, CuPy {cupy.__version__}")
one_thread(SIZE)

# Memory first: what allocates or loads waits for kernels that run, of which one waits for its peer.
DATA = [cupy.arange(COUNT * SIZE, dtype=cupy.float64) * (-1) ** rank for rank in range(SIZE)]
PARTS = [cupy.zeros(COUNT, dtype=cupy.float64) for _ in range(SIZE)]
STREAMS = [cupy.cuda.Stream(non_blocking=True) for _ in range(SIZE)]
ENDED = threading.Barrier(SIZE)
cupy.cuda.Device(0).synchronize()
UID, WRONG = nccl.get_unique_id(), []
THREADS = [threading.Thread(target=of_an_id, args=(rank, SIZE, UID, WRONG)) for rank in range(SIZE)]
for thread in THREADS:
    thread.start()
for thread in THREADS:
    thread.join()
assert not WRONG, WRONG
for r in range(SIZE):
    assert bool((PARTS[r] == cupy.arange(r * COUNT, (r + 1) * COUNT)).all()), (r, PARTS[r])
ranks.check_library(0, SIZE)
print("OK cupy_sums.py")

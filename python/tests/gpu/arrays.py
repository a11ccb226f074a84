#!/usr/bin/env python3
"""The package on GPUs, with arrays of CuPy, PyTorch, JAX and Numba: results against numpy in float64.
arrays.py [WORD]... runs the cases that have one of the words in their names."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from ranks import SIZE, case, device_of, expect, main, raises

import occl

COUNTS = (1, 3, 1000, 65_537, 1 << 20)


def value_of(rank: int, count: int, dtype: str) -> Any:
    """A rank's input, in float64 or int64: exact in every type."""
    if dtype.startswith(("float", "bfloat")):
        return ((np.arange(count) * 7 + rank * 3) % 13 - 6) / 4
    return (np.arange(count) * 7 + rank * 3) % 13


def check_all(comm: occl.Communicator, make: Any, take: Any, dtype: str, count: int) -> None:
    """All collectives. make(array in numpy) is one of the framework of the type, take its inverse."""
    n, rank = comm.size, comm.rank
    inputs = [value_of(r, n * count, dtype) for r in range(n)]
    mine = make(inputs[rank])
    total = np.sum(inputs, axis=0)
    expect(take(comm.all_reduce(mine)), total, dtype)
    expect(take(comm.all_reduce(mine, "min")), np.min(inputs, axis=0), dtype)
    expect(take(comm.all_gather(mine)), np.concatenate(inputs), dtype, 1)
    part = slice(rank * count, (rank + 1) * count)
    expect(take(comm.reduce_scatter(mine, "max")), np.max(inputs, axis=0)[part], dtype)
    expect(take(comm.all_to_all(mine)), np.concatenate([one[part] for one in inputs]), dtype, 1)
    root = count % n
    reduced = comm.reduce(mine, root)
    gathered = comm.gather(mine, root)
    assert (reduced is None) == (gathered is None) == (rank != root)
    if rank == root:
        expect(take(reduced), total, dtype)
        expect(take(gathered), np.concatenate(inputs), dtype, 1)
    expect(take(comm.broadcast(make(inputs[rank]), root)), inputs[root], dtype, 1)


@case("cupy")
def cupy_collectives(comm: occl.Communicator) -> None:
    import cupy

    cupy.cuda.Device(comm.device).use()
    for dtype in ("float32", "float16", "float64", "int32", "uint8"):
        for count in COUNTS:
            check_all(comm, lambda x: cupy.asarray(x.astype(dtype)), cupy.asnumpy, dtype, count)
    with cupy.cuda.Stream(non_blocking=True):
        check_all(comm, lambda x: cupy.asarray(x.astype("f4")), cupy.asnumpy, "float32", 5003)


@case("torch")
def torch_collectives(comm: occl.Communicator) -> None:
    import torch

    torch.cuda.set_device(comm.device)
    for dtype in ("float32", "bfloat16", "float16", "float64", "int64", "int8"):
        for count in COUNTS:
            check_all(comm, lambda x: torch.from_numpy(x).cuda().to(getattr(torch, dtype)),
                      lambda x: x.double().cpu().numpy() if x.is_floating_point()
                      else x.cpu().numpy(), dtype, count)
    with torch.cuda.stream(torch.cuda.Stream()):
        check_all(comm, lambda x: torch.from_numpy(x).cuda().float(),
                  lambda x: x.double().cpu().numpy(), "float32", 5003)


@case("jax")
def jax_collectives(comm: occl.Communicator) -> None:
    import jax
    import jax.numpy as jnp

    device = jax.local_devices()[comm.device]
    for dtype in ("float32", "bfloat16", "int32"):
        for count in COUNTS:
            check_all(comm, lambda x: jax.device_put(jnp.asarray(x, dtype), device),
                      lambda x: np.asarray(x.astype("float32") if dtype == "bfloat16" else x), dtype,
                      count)
    with jax.default_device(device):
        # Behind what JAX is at, and before what it does next; no array is stored to twice.
        x = jnp.full((1 << 20,), comm.rank + 1.0)
        for _ in range(20):
            x = comm.all_reduce(jnp.sin(x) * 0 + comm.rank + 1) * 2
            expect(np.asarray(x), np.full(1 << 20, SIZE * (SIZE + 1.0)))
        zeros = [jnp.zeros((64,)) for _ in range(50)]
        kept = [comm.all_reduce(one + comm.rank) for one in zeros]
        assert all((np.asarray(one) == 0).all() for one in zeros)
        assert all((np.asarray(one) == SIZE * (SIZE - 1) / 2).all() for one in kept)
        raises(occl.InvalidArgumentError, "read-only", lambda: comm.all_reduce(x, out=x))


@case("numba")
def numba_collectives(comm: occl.Communicator) -> None:
    from numba import cuda

    cuda.select_device(comm.device)
    check_all(comm, lambda x: cuda.to_device(x.astype("f4")), lambda x: x.copy_to_host(), "float32",
              1001)


@case("torch")
def streams(comm: occl.Communicator) -> None:
    """What the current stream has so far comes first, and memory is not used anew before the stream
    of the call has come so far."""
    import torch

    torch.cuda.set_device(comm.device)
    side, kept = torch.cuda.Stream(), []
    for i in range(100):
        torch.cuda._sleep(1_000_000)
        x = torch.full((100_003,), float(comm.rank + i), device="cuda")
        kept.append(comm.all_reduce(x, stream=side))
        del x
        torch.full((100_003,), -1e9, device="cuda")  # in its place, if that were free
    side.synchronize()
    for i, one in enumerate(kept):
        expect(one.cpu(), np.full(100_003, SIZE * i + SIZE * (SIZE - 1) / 2.0))


@case("cupy")
def cupy_streams(comm: occl.Communicator) -> None:
    import cupy

    cupy.cuda.Device(comm.device).use()
    side = cupy.cuda.Stream(non_blocking=True)
    with cupy.cuda.Stream(non_blocking=True):
        big = cupy.random.rand(2048, 2048, dtype=cupy.float32)
        for i in range(20):
            x = (big @ big)[:100, :100].ravel() * 0 + (comm.rank + i)
            total = comm.all_reduce(x, stream=side)
            del x
            cupy.full(10_000, -1e9, dtype=cupy.float32)
            side.synchronize()
            expect(cupy.asnumpy(total), np.full(10_000, SIZE * i + SIZE * (SIZE - 1) / 2.0))


@case("torch")
def graphs(comm: occl.Communicator) -> None:
    import torch

    torch.cuda.set_device(comm.device)
    x, out = torch.zeros(5003, device="cuda"), torch.zeros(5003, device="cuda")
    comm.all_reduce(x, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        comm.all_reduce(x, out=out)
        comm.all_reduce(out, "max", out=x)
    for i in range(10):
        x.fill_(comm.rank + i)
        graph.replay()
        expect(x.cpu(), np.full(5003, SIZE * i + SIZE * (SIZE - 1) / 2.0))
    graph.reset()


@case("torch")
def asynchronous(comm: occl.Communicator) -> None:
    """Started in another order on each rank; streams and hosts wait for them."""
    import torch

    torch.cuda.set_device(comm.device)
    inputs = [torch.full((10_007,), float(comm.rank + i), device="cuda") for i in range(16)]
    order = list(range(16))
    for turn in range(5):
        np.random.default_rng(10 * turn + comm.rank).shuffle(order)
        requests = {i: comm.start("all_reduce", inputs[i], id=i) for i in order}
        for i, request in requests.items():
            result = request.wait_in_stream() if i % 2 else request.result()
            expect((result + 1).cpu(), np.full(10_007, SIZE * i + SIZE * (SIZE - 1) / 2.0 + 1))
        assert all(request.result() is not None for request in requests.values())


@case("torch cupy")
def memory(comm: occl.Communicator) -> None:
    """Arrays of occlMemAlloc, their views, and making and dropping them."""
    import cupy
    import torch

    torch.cuda.set_device(comm.device)
    cupy.cuda.Device(comm.device).use()
    with comm.split(0, registered_buffers=True, heap_bytes=64 << 20) as registered:
        array = registered.empty((4, 1001))
        tensor = torch.as_tensor(array, device="cuda")
        assert tensor.data_ptr() == array.pointer and tensor.shape == (4, 1001)
        tensor.fill_(comm.rank + 1)
        registered.all_reduce(array, out=array, stream=torch.cuda.current_stream())
        expect(tensor.cpu(), np.full((4, 1001), SIZE * (SIZE + 1) / 2.0))
        seen = cupy.asarray(array)
        torch.cuda.synchronize()
        expect(cupy.asnumpy(seen), np.full((4, 1001), SIZE * (SIZE + 1) / 2.0))
        for i in range(300):  # more than the heap has at once
            view = torch.as_tensor(registered.empty(1 << 20), device="cuda")
            view.fill_(i)
            registered.all_reduce(view, "max", out=view)
            if i % 20 == 0:
                expect(view[:5].cpu(), np.full(5, float(i)))
            del view
            if i % 8 == 7:
                torch.cuda.synchronize()
        half = torch.as_tensor(registered.empty(2 * 7, "uint8"), device="cuda").view(torch.bfloat16)
        half.fill_(1.5)
        expect(registered.all_reduce(half, out=half).float().cpu(), np.full(7, 1.5 * SIZE))
        del tensor, seen, half


@case("torch")
def transfers(comm: occl.Communicator) -> None:
    import torch

    torch.cuda.set_device(comm.device)
    right, left = (comm.rank + 1) % SIZE, (comm.rank - 1) % SIZE
    for count in (1, 1000, 3_000_001):
        x = torch.full((count,), float(comm.rank), device="cuda")
        y = torch.empty_like(x)
        with occl.group():
            comm.send(x, right)
            comm.recv(y, left)
        expect(y.cpu(), np.full(count, float(left)))
    sends = [q + 1 for q in range(SIZE)]
    receives = [comm.rank + 1] * SIZE
    out = torch.empty(sum(receives), device="cuda")
    comm.all_to_all_v(torch.full((sum(sends),), float(comm.rank), device="cuda"), sends, out, receives)
    expect(out.cpu(), np.repeat(np.arange(SIZE), comm.rank + 1))


@case("torch cupy")
def what_is_refused(comm: occl.Communicator) -> None:
    import cupy
    import torch

    torch.cuda.set_device(comm.device)
    cupy.cuda.Device(comm.device).use()
    wrong = occl.InvalidArgumentError
    here = torch.ones(4, device="cuda")
    raises(wrong, "in memory of the host", lambda: comm.all_reduce(np.ones(4)))
    raises(wrong, "in memory of the host", lambda: comm.all_reduce(here, out=torch.ones(4)))
    raises(wrong, "not contiguous", lambda: comm.all_reduce(torch.ones(4, 4, device="cuda")[:, 1]))
    raises(wrong, "not contiguous", lambda: comm.all_reduce(cupy.ones((4, 4))[:, 1]))
    managed = cupy.ndarray(4, memptr=cupy.cuda.malloc_managed(64))
    raises(wrong, "managed", lambda: comm.all_reduce(managed))
    raises(wrong, "per-thread", lambda: comm.all_reduce(here, stream=2))
    with occl.init_all(1)[0] as host:
        raises(wrong, "ranks are on CPUs", lambda: host.all_reduce(here))
        raises(wrong, "ranks are on CPUs", lambda: host.all_reduce(cupy.ones(4)))
    expect(comm.all_reduce(here).cpu(), np.full(4, float(SIZE)))  # nothing of it has begun


@case("torch cupy jax", devices=2)
def other_devices(comm: occl.Communicator) -> None:
    import cupy
    import jax
    import torch

    other = 1 - device_of(comm.rank)
    torch.cuda.set_device(comm.device)
    raises(occl.InvalidArgumentError, f"is on CUDA device {other}",
           lambda: comm.all_reduce(torch.ones(4, device=f"cuda:{other}")))
    with cupy.cuda.Device(other):
        away = cupy.ones(4)
    raises(occl.InvalidArgumentError, f"is on CUDA device {other}", lambda: comm.all_reduce(away))
    away = jax.device_put(np.ones(4, "f4"), jax.local_devices()[other])
    raises(occl.InvalidArgumentError, f"is on CUDA device {other}", lambda: comm.all_reduce(away))
    here = torch.ones(4, device=f"cuda:{comm.device}")  # CuPy and JAX have another one as the current
    expect(comm.all_reduce(here).cpu(), np.full(4, float(SIZE)))


@case("torch")
def ranks_that_disagree(comm: occl.Communicator) -> None:
    import torch

    torch.cuda.set_device(comm.device)
    comm.barrier()

    def call() -> None:
        comm.all_reduce(torch.ones(4 + comm.rank, device="cuda"))
        comm.barrier()

    raises(occl.MismatchError, "", call)
    assert comm.failure()


@case("torch")
def a_rank_that_is_killed(comm: occl.Communicator) -> None:
    import torch

    torch.cuda.set_device(comm.device)
    comm.barrier()
    if comm.rank == 1:
        os._exit(0)
    raises(occl.PeerFailedError, "1", comm.barrier)


@case()
def an_interrupt(comm: occl.Communicator) -> None:
    import signal
    import threading

    comm.barrier()
    if comm.rank == 0:
        threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        raises(KeyboardInterrupt, "", comm.barrier)
        return
    threading.Event().wait(2)
    raises(occl.AbortedError, "", comm.barrier)


@case("torch")
def the_page(comm: occl.Communicator) -> None:
    """What docs/python.md shows."""
    import torch

    text = Path(__file__).with_name("python.md").read_text()
    start = text.index("\n\n    import torch, occl") + 2
    block = textwrap.dedent(text[start:text.index("\n\n", start)])
    os.environ |= {"OCCL_RANK": str(comm.rank), "OCCL_SIZE": str(comm.size),
                   "OCCL_JOB": "the-page-" + os.environ["OCCL_CASE"]}
    torch.cuda.set_device(comm.device)
    names = {"device": comm.device, "other": torch.cuda.Stream()}
    exec(compile(block, "python.md", "exec"), names)
    torch.cuda.synchronize()
    expect(names["total"].cpu(), np.full(1000, float(SIZE**3)))
    assert names["view"].shape == (4, 1000)
    names.pop("view")
    names["comm"].close()


@case("torch", alone=True)
def run_a_plan() -> None:
    """occl.run: ranks are threads; without occlc, of a plan that was compiled elsewhere."""
    import torch

    plan = occl.load(Path(__file__).with_name("ring.plan.json"))
    inputs = [torch.full((4, 1000), rank + 1.0, device=f"cuda:{device_of(rank)}")
              for rank in range(plan.ranks)]
    for tensor in inputs:
        torch.cuda.synchronize(tensor.device)
    outputs = [torch.empty_like(tensor) for tensor in inputs]
    result = occl.run(plan, inputs, outputs=outputs, iterations=20)
    print(result)
    for output in result.outputs:
        expect(output.cpu(), np.full((4, 1000), plan.ranks * (plan.ranks + 1) / 2))


@case("torch", alone=True)
def ranks_of_one_process() -> None:
    """occl.init_all, a thread and a stream for each rank."""
    from concurrent.futures import ThreadPoolExecutor

    import torch

    def make(rank: int) -> tuple[Any, Any, Any]:
        with torch.cuda.device(device_of(rank)):
            stream = torch.cuda.Stream()
            tensors = [torch.full((1003,), rank + 1.0, device="cuda") for _ in range(2)]
            torch.cuda.synchronize()
            return stream, *tensors

    made = [make(rank) for rank in range(SIZE)]
    comms = occl.init_all(SIZE, device=0, heap_bytes=64 << 20)
    assert [comm.device for comm in comms] == [device_of(rank) for rank in range(SIZE)]

    def body(comm: occl.Communicator) -> None:
        stream, x, out = made[comm.rank]
        for _ in range(10):
            comm.all_reduce(x, out=out, stream=stream)
        comm.barrier()

    with ThreadPoolExecutor(SIZE) as threads:
        list(threads.map(body, comms))
    for _, _, out in made:
        expect(out.cpu(), np.full(1003, SIZE * (SIZE + 1) / 2))
    for comm in comms:
        comm.close()


if __name__ == "__main__":
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    main()

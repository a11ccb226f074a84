#!/usr/bin/env python3
"""occl.triton and partitioned requests of PyTorch's tensors on two GPUs: kernels of Triton mark, wait and
compute. triton_kernels.py [WORD]... runs the cases that have one of the words in their names."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from ranks import ROUNDING, case, main, raises

import occl

if importlib.util.find_spec("triton"):  # else all cases are skipped
    import torch
    import triton
    import triton.language as tl
    from all_gather_matmul import (COLUMNS, DEPTH, GROUP, ROWS, STAGES, WARPS, AllGatherMatmul,
                                   landing, matmul_send)

    import occl.triton

SECOND = 1_000_000_000

if importlib.util.find_spec("triton"):
    @triton.jit
    def produce(field, send, key, COUNT: tl.constexpr, BLOCK: tl.constexpr):
        p = tl.program_id(0)
        for at in range(0, COUNT, BLOCK):
            i = at + tl.arange(0, BLOCK)
            tl.store(field + p * COUNT + i, (p * COUNT + i) * 3 + key, mask=i < COUNT)
        occl.triton.ready(send, p)

    @triton.jit
    def consume(field, receive, out, outcomes, nanoseconds, COUNT: tl.constexpr, BLOCK: tl.constexpr):
        q = tl.program_id(0)
        found = occl.triton.wait(receive, q, nanoseconds)
        tl.store(outcomes + q, found)
        if found == occl.triton.ARRIVED:
            for at in range(0, COUNT, BLOCK):
                i = at + tl.arange(0, BLOCK)
                value = tl.load(field + q * COUNT + i, mask=i < COUNT)
                tl.store(out + q * COUNT + i, value, mask=i < COUNT)

    @triton.jit
    def relay(mine, theirs, send, receive, out, key, COUNT: tl.constexpr):
        """Each program sends a partition and continues with that of the peer, in one kernel."""
        p = tl.program_id(0)
        i = p * COUNT + tl.arange(0, COUNT)
        tl.store(mine + i, i * 3 + key)
        occl.triton.ready(send, p)
        if occl.triton.wait(receive, p, 5_000_000_000) == occl.triton.ARRIVED:
            tl.store(out + i, tl.load(theirs + i) + tl.load(mine + i))

    @triton.jit
    def counted(field, send, counters, key, PROGRAMS: tl.constexpr, COUNT: tl.constexpr):
        """PROGRAMS of them make a partition, one after the other of the partitions' parts."""
        p = tl.program_id(0) % (tl.num_programs(0) // PROGRAMS)
        part = tl.program_id(0) // (tl.num_programs(0) // PROGRAMS)
        i = (p * PROGRAMS + part) * COUNT + tl.arange(0, COUNT)
        tl.store(field + i, i * 3 + key)
        occl.triton.ready_counted(send, p, counters + p, PROGRAMS)

    @triton.jit
    def begin(send, receive):
        occl.triton.start(receive)
        occl.triton.start(send)

    @triton.jit
    def ask(receive, outcomes, flushed, send, PARTITIONS: tl.constexpr):
        """Until all have arrived, by looks alone; then the send is flushed."""
        for q in range(PARTITIONS):
            found = occl.triton.arrived(receive, q)
            looks = 0
            while (found == occl.triton.NOT_YET) & (looks < 10_000_000):
                found = occl.triton.arrived(receive, q)
                looks += 1
            tl.store(outcomes + q, found)
        tl.store(flushed, occl.triton.flush(send, 5_000_000_000))


class Pair:
    """A send to the other rank and a receive from it, of int32."""

    def __init__(self, comm: occl.Communicator, sent: int, received: int, count: int, together: int = 0):
        torch.cuda.set_device(comm.device)
        self.comm, self.sent, self.received, self.count = comm, sent, received, count
        self.field = torch.zeros(count, dtype=torch.int32, device="cuda")
        self.memory = torch.as_tensor(comm.empty(count, "int32"), device="cuda")
        self.out = torch.zeros_like(self.field)
        self.outcomes = torch.full((received,), 9, dtype=torch.int32, device="cuda")
        self.send = comm.psend(self.field, sent, 1 - comm.rank, partitions_per_message=together)
        self.receive = comm.precv(self.memory, received, 1 - comm.rank)

    def key(self, epoch: int, rank: int) -> int:
        return 1000 * epoch + 100 * rank + 5

    def start(self) -> None:
        self.receive.start_on()
        self.send.start_on()

    def produce(self, epoch: int) -> None:
        produce[(self.sent,)](self.field, self.send.device_pointer(), self.key(epoch, self.comm.rank),
                              self.count // self.sent, 1024, extern_libs=occl.triton.extern_libs())

    def consume(self, nanoseconds: int = 5 * SECOND) -> None:
        consume[(self.received,)](self.memory, self.receive.device_pointer(), self.out, self.outcomes,
                                  nanoseconds, self.count // self.received, 1024,
                                  extern_libs=occl.triton.extern_libs())

    def wait(self) -> None:
        self.send.wait_on()
        assert self.receive.wait_on() is self.memory

    def expect(self, found: Any, epoch: int, times: int = 1) -> None:
        wanted = torch.arange(self.count, device="cuda", dtype=torch.int32) * 3 * times
        wanted += self.key(epoch, 1 - self.comm.rank)
        if times == 2:
            wanted += self.key(epoch, self.comm.rank)
        assert torch.equal(found, wanted), (epoch, (found != wanted).nonzero()[:5], found[:5])

    def close(self) -> None:
        self.send.close()
        self.receive.close()


def loaded(comm: occl.Communicator) -> None:
    """All kernels, before any waits for the peer's: CUDA loads a kernel at its first launch."""
    pair = Pair(comm, 2, 2, 2048)
    pair.start()
    pair.produce(0)
    pair.wait()
    pair.start()
    pair.produce(0)
    pair.consume()
    pair.wait()
    torch.cuda.synchronize()
    pair.close()
    comm.barrier()


@case("torch triton", devices=2)
def kernels_mark_and_wait(comm: occl.Communicator) -> None:
    """Partitions that do not divide each other, large ones, which are sent in pieces, and messages of
    several."""
    loaded(comm)
    for shape in ((1, 1, 64), (3, 3, 48), (33, 17, 33 * 17 * 8), (8, 4, 1 << 20), (64, 16, 1 << 16, 5),
                  (1, 7, 7 * 300_000), (5, 1, 5000, 2)):
        pair = Pair(comm, *shape)
        for epoch in range(1, 4):
            pair.start()
            pair.produce(epoch)
            pair.consume()
            pair.wait()
            pair.expect(pair.out, epoch)
            pair.expect(pair.memory, epoch)
            assert not pair.outcomes.any(), pair.outcomes
        pair.close()


@case("torch triton", devices=2)
def one_kernel_sends_and_waits(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 64, 64, 64 * 4096)
    for epoch in range(1, 11):
        pair.start()
        relay[(64,)](pair.field, pair.memory, pair.send.device_pointer(), pair.receive.device_pointer(),
                     pair.out, pair.key(epoch, comm.rank), 4096,
                     extern_libs=occl.triton.extern_libs())
        pair.wait()
        pair.expect(pair.out, epoch, times=2)
    pair.close()


@case("torch triton", devices=2)
def several_programs_make_a_partition(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 16, 4, 16 * 8 * 1024)
    counters = torch.zeros(16, dtype=torch.int64, device="cuda")
    for epoch in range(1, 4):
        pair.start()
        counted[(16 * 8,)](pair.field, pair.send.device_pointer(), counters,
                           pair.key(epoch, comm.rank), 8, 1024,
                           extern_libs=occl.triton.extern_libs())
        pair.wait()
        pair.expect(pair.memory, epoch)
        assert counters.tolist() == [8 * epoch] * 16
    pair.close()


@case("torch triton", devices=2)
def kernels_start_ask_and_flush(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 4, 4, 4096)
    flushed = torch.full((1,), 9, dtype=torch.int32, device="cuda")
    for epoch in range(1, 4):
        begin[(1,)](pair.send.device_pointer(), pair.receive.device_pointer(),
                    extern_libs=occl.triton.extern_libs())
        pair.produce(epoch)
        ask[(1,)](pair.receive.device_pointer(), pair.outcomes, flushed, pair.send.device_pointer(), 4,
                  extern_libs=occl.triton.extern_libs())
        pair.wait()
        pair.expect(pair.memory, epoch)
        assert not pair.outcomes.any() and not flushed.any(), (pair.outcomes, flushed)
    pair.close()


@case("torch triton", devices=2)
def waits_are_bounded(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 4, 4, 4096)
    pair.start()
    pair.consume(1000)
    assert pair.outcomes.tolist() == [1] * 4, pair.outcomes  # NOT_YET
    comm.barrier()
    pair.produce(1)
    pair.wait()
    pair.expect(pair.memory, 1)
    pair.close()


@case("torch triton", devices=2)
def work_of_streams_and_graphs(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 8, 8, 8 * 1024)
    side = torch.cuda.Stream()
    for epoch in range(1, 4):
        with torch.cuda.stream(side):
            pair.start()
            pair.field.copy_(torch.arange(pair.count, device="cuda", dtype=torch.int32) * 3
                             + pair.key(epoch, comm.rank))
            pair.send.prepare_on()
            pair.send.ready_on(range(3, 8))
            pair.send.ready_on(0)
            pair.send.ready_on(range(1, 3), side)
            pair.wait()
            pair.expect(pair.memory, epoch)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        pair.start()
        pair.produce(7)
        pair.wait()
    for _ in range(5):
        pair.memory.zero_()
        torch.cuda.synchronize()
        comm.barrier()
        graph.replay()
        pair.expect(pair.memory, 7)
    torch.cuda.synchronize()
    graph.reset()
    pair.close()


@case("torch triton", devices=2)
def a_collective_of_a_kernel(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 8, 8, 8 * 4096)  # whose kernel is launched once before
    sums = torch.zeros_like(pair.field)
    with comm.pcall("all_reduce", pair.field, 8, out=sums, out_partitions=4) as total:
        pair.start()
        pair.produce(0)
        pair.wait()
        torch.cuda.synchronize()
        for epoch in range(1, 4):
            total.start_on()
            produce[(8,)](pair.field, total.device_pointer(), pair.key(epoch, comm.rank), 4096, 1024,
                          extern_libs=occl.triton.extern_libs())
            assert total.wait_on() is sums
            pair.expect(sums, epoch, times=2)
            torch.cuda.synchronize()
    pair.close()


@case("torch triton", devices=2)
def misuse_ends_the_communicator(comm: occl.Communicator) -> None:
    loaded(comm)
    pair = Pair(comm, 2, 2, 2048)
    pair.start()
    pair.produce(1)
    pair.produce(1)
    raises(occl.InvalidArgumentError, "has not ended", pair.send.close)
    pair.send.wait_on()
    torch.cuda.synchronize()
    for _ in range(100):
        try:
            comm.barrier()
        except occl.Error:
            break
    assert "marks a partition twice: " in comm.failure() or comm.rank, comm.failure()


@case("torch triton", devices=2)
def what_is_refused(comm: occl.Communicator) -> None:
    torch.cuda.set_device(comm.device)
    wrong = occl.InvalidArgumentError
    ordinary = torch.zeros(64, device="cuda")
    raises(wrong, "occlMemAlloc", lambda: comm.precv(ordinary, 4, 1 - comm.rank))
    raises(wrong, "in memory of the host", lambda: comm.psend(torch.zeros(64), 4, 1))
    raises(wrong, "not contiguous", lambda: comm.psend(torch.zeros(8, 8, device="cuda")[:, 1], 4, 1))
    send = comm.psend(ordinary, 4, 1 - comm.rank)
    raises(wrong, "occlPstartOn", send.start)
    raises(wrong, "occlPreadyOn", lambda: send.ready(0))
    raises(wrong, "no partitions 3 to 4", lambda: send.ready_on(range(3, 5)))
    raises(wrong, "step 1", lambda: send.ready_on(range(0, 4, 2)))
    send.ready_on(range(0))
    send.close()
    raises(occl.ClosedError, "has been closed", send.device_pointer)
    with occl.init_all(1)[0] as host:
        import numpy

        with host.psend(numpy.zeros(4), 2, 0) as on_host:
            raises(wrong, "the communicator is on hosts", on_host.start_on)
            raises(wrong, "the communicator is on hosts", on_host.device_pointer)


@case("torch triton", devices=2)
def products(comm: occl.Communicator) -> None:
    """All-gather and product in one kernel, and a product sent by bands, against float64: each element
    is a sum of K products of bfloat16 in float32, rounded once."""
    loaded(comm)
    M, N, K = 1024, 1024, 512

    def random(rank: int, *shape: int) -> Any:
        made = torch.randn(*shape, generator=torch.Generator().manual_seed(rank + shape[0]))
        return made.to(torch.bfloat16).cuda()

    def expect(found: Any, a: Any, b: Any) -> None:
        a, b = a.double(), b.double()
        bound = ROUNDING["bfloat16"] * (a @ b).abs() + K * ROUNDING["float32"] * (a.abs() @ b.abs())
        assert ((found.double() - a @ b).abs() <= bound).all(), (found.double() - a @ b).abs().max()

    own, b, c = random(comm.rank, M, K), random(7, K, N), torch.empty(2 * M, N, device="cuda",
                                                                      dtype=torch.bfloat16)
    gathered = AllGatherMatmul(comm, own)
    for turn in range(4):
        own.copy_(random(2 * turn + comm.rank, M, K))
        c.zero_()
        gathered(b, c)
        assert gathered.words[1] == 0, gathered.words
        expect(c, torch.cat([random(2 * turn, M, K), random(2 * turn + 1, M, K)]), b)
    gathered.close()

    c, counters = torch.empty(M, N, device="cuda", dtype=torch.bfloat16), torch.zeros(
        M // ROWS, dtype=torch.int64, device="cuda")
    memory = landing(comm, c)
    next_tile = torch.zeros(1, dtype=torch.int32, device="cuda")
    with comm.psend(c, M // ROWS, 1 - comm.rank) as send, \
            comm.precv(memory, M // ROWS, 1 - comm.rank) as receive:
        for turn in range(3):
            receive.start_on()
            send.start_on()
            next_tile.zero_()
            matmul_send[(32,)](random(2 * turn + comm.rank, M, K), b, c, send.device_pointer(), counters,
                               next_tile, M, N, K, ROWS, COLUMNS, DEPTH, GROUP, num_warps=WARPS,
                               num_stages=STAGES, extern_libs=occl.triton.extern_libs())
            send.wait_on()
            receive.wait_on()
            expect(c, random(2 * turn + comm.rank, M, K), b)
            expect(memory, random(2 * turn + 1 - comm.rank, M, K), b)


if __name__ == "__main__":
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    main()

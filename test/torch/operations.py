"""Cases: operations of torch.distributed, each with occl and gloo, or against what must come out."""

from __future__ import annotations

import itertools
import random
import threading
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
COUNTS = [0, 1, 7, 1000, 70001]


class Context:
    """What a case has: groups of all ranks with both backends, and random numbers."""

    def __init__(self, rank: int, size: int, seed: int):
        self.rank, self.size, self.seed = rank, size, seed
        self.occl = dist.group.WORLD
        self.gloo = dist.new_group(backend="gloo")

    def begin(self, name: str) -> None:
        self.common = random.Random(f"{self.seed}/{name}")  # the same on all ranks
        self.own = random.Random(f"{self.seed}/{name}/{self.rank}")
        self.torch = torch.Generator().manual_seed(self.own.randrange(1 << 40))

    def meet(self) -> None:
        dist.monitored_barrier(self.gloo, timeout=timedelta(seconds=120))

    def tensor(self, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Small whole numbers, so that results do not depend on the order of sums."""
        values = torch.randint(0 if dtype in (torch.uint8, torch.bool) else -4, 5, (count,),
                               generator=self.torch)
        return (values > 0) if dtype == torch.bool else values.to(dtype)

    def both(self, operation, *tensors: torch.Tensor) -> None:
        """operation(group, *copies of the tensors) leaves the same in them with both backends."""
        results = []
        for group in (self.occl, self.gloo):
            copies = [t.clone() for t in tensors]
            operation(group, *copies)
            results.append(copies)
        for ours, theirs in zip(*results):
            equal(ours, theirs)


def equal(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert got.dtype == expected.dtype and got.shape == expected.shape, (got, expected)
    if got.dtype.itemsize == 1 and got.is_floating_point():
        got, expected = got.float(), expected.float()
    same = torch.equal(got, expected)
    assert same, f"{got.dtype} {tuple(got.shape)}: {got.flatten()[:8]} != {expected.flatten()[:8]}"


def raises(kind, text: str, function, *arguments, **named) -> str:
    try:
        function(*arguments, **named)
    except kind as error:
        assert text.lower() in str(error).lower(), f"'{text}' is not in: {error}"
        return str(error)
    raise AssertionError(f"no error, of '{text}'")


def case_all_reduce(c: Context) -> None:
    for dtype, op in itertools.product(FLOATS + INTEGERS, "SUM PRODUCT MIN MAX".split()):
        for count in COUNTS if dtype in (torch.float32, torch.uint8) else [1000]:
            x = c.tensor(count, dtype)
            if op == "PRODUCT":
                x = x.remainder(2)  # small enough for any type
            c.both(lambda g, t: dist.all_reduce(t, getattr(ReduceOp, op), group=g), x)


def case_all_reduce_types_gloo_lacks(c: Context) -> None:
    """Against sums made here of what all ranks have."""
    def parts(x):
        return [p.to(x.dtype) for p in everybodys(c, x)]
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        x = c.tensor(513).remainder(3).to(dtype)
        total = sum(everybodys(c, x.float())).to(dtype)
        dist.all_reduce(x)
        equal(x, total)
    for dtype in (torch.complex64, torch.complex128):
        x = torch.complex(c.tensor(333).double(), c.tensor(333).double()).to(dtype)
        for op, total in ((ReduceOp.SUM, sum(parts(x))), (ReduceOp.AVG, sum(parts(x)) / c.size)):
            y = x.clone()
            dist.all_reduce(y, op)
            equal(y, total)
        raises(ValueError, "complex", dist.all_reduce, x, ReduceOp.PRODUCT)
    for dtype in (torch.uint32, torch.uint64):
        x = torch.randint(0, 9, (100,), generator=c.torch).to(dtype)
        total = sum(everybodys(c, x.long())).to(dtype)
        dist.all_reduce(x)
        equal(x, total)
    x = c.tensor(100, torch.bool)
    seen = torch.stack(everybodys(c, x))
    for op, result in (("SUM", seen.any(0)), ("PRODUCT", seen.all(0)), ("MAX", seen.any(0)),
                       ("BXOR", seen.sum(0) % 2 == 1), ("BAND", seen.all(0))):
        y = x.clone()
        dist.all_reduce(y, getattr(ReduceOp, op))
        equal(y, result)


def everybodys(c: Context, x: torch.Tensor) -> list[torch.Tensor]:
    out = [None] * c.size
    dist.all_gather_object(out, x, group=c.gloo)
    return out


def case_int16_and_bits(c: Context) -> None:
    for op in ("BAND", "BOR", "BXOR"):
        for dtype in INTEGERS:
            c.both(lambda g, t: dist.all_reduce(t, getattr(ReduceOp, op), group=g),
                   c.tensor(1001, dtype).abs())
    x = c.tensor(1001, torch.int16)
    seen = torch.stack(everybodys(c, x))
    for op, result in (("SUM", seen.sum(0)), ("MAX", seen.max(0)[0]), ("MIN", seen.min(0)[0])):
        y = x.clone()
        dist.all_reduce(y, getattr(ReduceOp, op))
        equal(y, result.short())
    out = torch.empty(5, dtype=torch.int16)
    dist.reduce_scatter_tensor(out, x[:5 * c.size].clone())
    equal(out, seen.sum(0).short()[:5 * c.size].chunk(c.size)[c.rank])
    y = x.clone()
    dist.reduce(y, 1, ReduceOp.BOR)
    if c.rank == 1:
        equal(y, _bor(seen))
    dist.broadcast(y, 2)
    equal(y, seen[2])


def _bor(seen: torch.Tensor) -> torch.Tensor:
    total = seen[0]
    for part in seen[1:]:
        total = total | part
    return total


def case_averages(c: Context) -> None:
    x = c.tensor(1000)
    mean = torch.stack(everybodys(c, x)).mean(0)
    y = x.clone()
    dist.all_reduce(y, ReduceOp.AVG)
    assert torch.allclose(y, mean)
    out = torch.empty(10)
    dist.reduce_scatter_tensor(out, x[:10 * c.size].clone(), ReduceOp.AVG)
    assert torch.allclose(out, mean[:10 * c.size].chunk(c.size)[c.rank])
    factor = dist._make_nccl_premul_sum(0.5 * (c.rank + 1))
    total = sum(p * 0.5 * (q + 1) for q, p in enumerate(everybodys(c, x)))
    y = x.clone()
    dist.all_reduce(y, factor)
    equal(y, total)


def case_broadcast_and_reduce(c: Context) -> None:
    for root in range(c.size):
        for dtype in FLOATS + INTEGERS + [torch.bool]:
            c.both(lambda g, t: dist.broadcast(t, root, group=g), c.tensor(777, dtype))
        for count in COUNTS:
            def reduce(group, t):
                dist.reduce(t, root, group=group)
                if c.rank != root:
                    t.zero_()  # is undefined there
            c.both(reduce, c.tensor(count))


def case_all_gather(c: Context) -> None:
    for count in COUNTS:
        x = c.tensor(count)
        c.both(lambda g, o, t: dist.all_gather_into_tensor(o, t, group=g),
               torch.zeros(c.size * count), x)
        c.both(lambda g, t, *o: dist.all_gather(list(o), t, group=g), x,
               *[torch.zeros(count) for _ in range(c.size)])
    in_place = torch.zeros(c.size, 50)
    in_place[c.rank] = c.rank + 1
    dist.all_gather_into_tensor(in_place.view(-1), in_place[c.rank])
    equal(in_place, torch.arange(1., c.size + 1)[:, None].expand(c.size, 50).contiguous())
    uneven = [torch.zeros(3 * q, dtype=torch.int64) for q in range(c.size)]
    dist.all_gather(uneven, torch.full((3 * c.rank,), c.rank))
    for q, part in enumerate(uneven):
        equal(part, torch.full((3 * q,), q))


def case_gather_and_scatter(c: Context) -> None:
    for root, count in itertools.product(range(c.size), [0, 5, 30000]):
        def gather(group, t, *out):
            dist.gather(t, list(out) if c.rank == root else None, dst=root, group=group)

        def scatter(group, t, *parts):
            dist.scatter(t, list(parts) if c.rank == root else None, src=root, group=group)
        c.both(gather, c.tensor(count), *[torch.zeros(count) for _ in range(c.size)])
        c.both(scatter, torch.zeros(count), *[c.tensor(count) for _ in range(c.size)])


def case_gather_single(c: Context) -> None:
    backend = c.occl._get_backend(torch.device("cpu"))
    if not hasattr(backend, "gather_single"):
        return  # PyTorch is older
    options = dist.GatherOptions()
    options.rootRank = 1
    out = torch.empty(c.size * 3) if c.rank == 1 else torch.empty(0)
    backend.gather_single(out, torch.full((3,), float(c.rank)), options).wait()
    if c.rank == 1:
        equal(out, torch.arange(c.size).repeat_interleave(3).float())


def case_batches_of_threads(c: Context) -> None:
    """Coalesced collectives of a group beside messages of another thread."""
    def exchange() -> None:
        for i in range(50):
            works = [dist.isend(torch.full((10,), float(i)), (c.rank + 1) % c.size, tag=5),
                     dist.irecv(out, (c.rank - 1) % c.size, tag=5)]
            for work in works:
                work.wait()
            assert out[0] == i
    out = torch.empty(10)
    thread = threading.Thread(target=exchange)
    thread.start()
    for _ in range(50):
        xs = [torch.ones(n) for n in (1, 100)]
        with dist._coalescing_manager():
            for x in xs:
                dist.all_reduce(x)
        equal(xs[1], torch.full((100,), float(c.size)))
    thread.join()
    assert out[0] == 49


def case_reduce_scatter(c: Context) -> None:
    for count in COUNTS:
        x = c.tensor(count * c.size, torch.int64)
        total = sum(everybodys(c, x))
        out = torch.empty(count, dtype=torch.int64)
        dist.reduce_scatter_tensor(out, x)
        equal(out, total.chunk(c.size)[c.rank] if count else total)
    sizes = [7, 0, 300, 41][:c.size]
    for even in (True, False):
        counts = [9] * c.size if even else sizes
        parts = [c.tensor(n) for n in counts]
        totals = [sum(p) for p in zip(*everybodys(c, parts))]
        out = torch.empty(counts[c.rank])
        dist.reduce_scatter(out, parts)
        equal(out, totals[c.rank])
    whole = c.tensor(40 * c.size)
    expected = sum(everybodys(c, whole)).chunk(c.size)[c.rank]
    own = whole.chunk(c.size)[c.rank]  # the output is part of the input
    dist.reduce_scatter_tensor(own, whole)
    equal(own, expected)
    # The same of different sizes: it overlaps other ranks' parts, and mostly this rank's.
    whole = c.tensor(sum(sizes))
    expected = sum(everybodys(c, whole)).split(sizes)[c.rank]
    begin = min(sum(sizes[:c.rank]) + 41, sum(sizes) - sizes[c.rank])
    own = whole[begin:begin + sizes[c.rank]]
    dist.reduce_scatter(own, list(whole.split(sizes)))
    equal(own, expected)


def case_all_to_all(c: Context) -> None:
    for count in (0, 1, 5000):
        c.both(lambda g, o, t: dist.all_to_all_single(o, t, group=g),
               torch.zeros(count * c.size, 3), c.tensor(count * c.size * 3).view(-1, 3))
    splits = [[c.common.randrange(5) for _ in range(c.size)] for _ in range(c.size)]
    take = splits[c.rank]
    give = [row[c.rank] for row in splits]
    c.both(lambda g, o, t: dist.all_to_all_single(o, t, take, give, group=g),
           torch.zeros(sum(take), 2), c.tensor(sum(give) * 2).view(-1, 2))
    inputs = [torch.full((n,), float(c.rank * 10 + q)) for q, n in enumerate(give)]
    outputs = [torch.zeros(n) for n in take]
    dist.all_to_all(outputs, inputs)
    for q, part in enumerate(outputs):
        equal(part, torch.full((take[q],), float(q * 10 + c.rank)))
    # One rank gives its splits, though they are equal: the others' call is the same one.
    explicit = [2] * c.size if c.rank == 0 else None
    out = torch.zeros(2 * c.size)
    dist.all_to_all_single(out, torch.full((2 * c.size,), float(c.rank)), explicit, explicit)
    equal(out, torch.arange(c.size).repeat_interleave(2).float())


def case_objects(c: Context) -> None:
    for group in (c.occl, c.gloo):
        got = [None] * c.size
        dist.all_gather_object(got, {"rank": c.rank, "long": "x" * 1000 * c.rank}, group=group)
        assert [g["rank"] for g in got] == list(range(c.size))
        assert len(got[-1]["long"]) == 1000 * (c.size - 1)
        things = ["a", 5, None] if c.rank == 1 else [None] * 3
        dist.broadcast_object_list(things, src=1, group=group)
        assert things == ["a", 5, None]
        mine = [None]
        dist.scatter_object_list(mine, [f"to {q}" for q in range(c.size)] if c.rank == 0 else None,
                                 src=0, group=group)
        assert mine == [f"to {c.rank}"]
        all_of_them = [None] * c.size if c.rank == 2 else None
        dist.gather_object((c.rank,), all_of_them, dst=2, group=group)
        assert c.rank != 2 or all_of_them == [(q,) for q in range(c.size)]
        if c.rank == 0:
            dist.send_object_list(["to", 1], dst=1, group=group)
        elif c.rank == 1:
            objects = [None, None]
            dist.recv_object_list(objects, src=0, group=group)
            assert objects == ["to", 1]


def case_many_in_flight(c: Context) -> None:
    """More than are started at a time; results are right, and waits in another order than calls."""
    xs = [torch.full((100,), float(i)) for i in range(600)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    c.own.shuffle(order := list(range(600)))
    for i in order:
        works[i].wait()
        equal(xs[i], torch.full((100,), float(i * c.size)))


def case_random_orders(c: Context) -> None:
    """Groups in an order of each rank's own, kinds and sizes drawn."""
    groups = [dist.new_group() for _ in range(6)]
    for _ in range(5):
        plans = [(c.common.choice(["reduce", "gather", "scatter", "message"]),
                  c.common.choice([1, 100, 40000])) for _ in groups]
        c.own.shuffle(order := list(range(len(groups))))
        works, checks = [], []
        for i in order:
            started, check = _start(c, groups[i], *plans[i])
            works += started
            checks.append(check)
        c.own.shuffle(works)
        for work in works:
            work.wait()
        for check in checks:
            check()
    for group in groups:
        dist.destroy_process_group(group)


def _start(c: Context, group, kind: str, count: int):
    x = torch.full((count,), float(c.rank))
    if kind == "reduce":
        work = dist.all_reduce(x, group=group, async_op=True)
        return [work], lambda: equal(x, torch.full((count,), sum(range(c.size)) * 1.))
    if kind == "gather":
        out = torch.empty(count * c.size)
        work = dist.all_gather_into_tensor(out, x, group=group, async_op=True)
        return [work], lambda: equal(out, torch.arange(c.size).repeat_interleave(count).float())
    if kind == "scatter":
        out = torch.empty(count)
        work = dist.reduce_scatter_tensor(out, x.repeat(c.size), group=group, async_op=True)
        return [work], lambda: equal(out, torch.full((count,), sum(range(c.size)) * 1.))
    out, left = torch.empty(count), (c.rank - 1) % c.size
    works = [dist.isend(x, (c.rank + 1) % c.size, group=group), dist.irecv(out, left, group=group)]
    return works, lambda: equal(out, torch.full((count,), float(left)))


def case_coalesced(c: Context) -> None:
    for asynchronous in (False, True):
        xs = [torch.full((n,), float(n)) for n in (1, 10, 3000)]
        with dist._coalescing_manager(async_ops=asynchronous) as manager:
            for x in xs:
                dist.all_reduce(x)
        if asynchronous:
            manager.wait()
        for x in xs:
            equal(x, torch.full((x.numel(),), float(x.numel() * c.size)))
    outs = [torch.empty(c.size), torch.empty(c.size * 5)]
    with dist._coalescing_manager():
        for out in outs:
            dist.all_gather_into_tensor(out, torch.full((out.numel() // c.size,), float(c.rank)))
    equal(outs[1], torch.arange(c.size).repeat_interleave(5).float())
    outs = [torch.empty(3), torch.empty(4)]
    with dist._coalescing_manager():
        for out in outs:
            dist.reduce_scatter_tensor(out, torch.ones(out.numel() * c.size))
    equal(outs[1], torch.full((4,), float(c.size)))
    x = torch.ones(3)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        dist.broadcast(x, 0)
    manager.wait()


def case_groups(c: Context) -> None:
    """Some ranks, one rank, overlapping groups, in orders of each rank's own."""
    members = [[0, 1], [1, 2, 3], [2], [0, 3], list(range(c.size))]
    groups = [dist.new_group(m) for m in members]
    order = list(range(len(members)))
    c.own.shuffle(order)
    works = []
    for i in order:
        if c.rank in members[i]:
            x = torch.full((10,), float(c.rank))
            works.append((dist.all_reduce(x, group=groups[i], async_op=True), x, members[i]))
    for work, x, ranks in works:
        work.wait()
        equal(x, torch.full((10,), float(sum(ranks))))
    for i in order:
        if c.rank in members[i]:
            dist.destroy_process_group(groups[i])
    half = [0, 1] if c.rank < 2 else [2, 3]
    for _ in range(5):  # by the same name, so with the same keys of the store
        again = dist.new_group(half, use_local_synchronization=True)
        x = torch.full((3,), float(c.rank))
        dist.all_reduce(x, group=again)
        equal(x, torch.full((3,), float(sum(half))))
        dist.destroy_process_group(again)
    if not hasattr(dist.group.WORLD, "split_group"):
        return  # PyTorch is older
    # torch.distributed.split_group wants a group that is bound to a CUDA device; this is under it.
    split = dist.group.WORLD.split_group(half, timedelta(seconds=60), None, f"half{half[0]}", "")
    x = torch.full((3,), float(c.rank))
    split.allreduce([x]).wait()
    equal(x, torch.full((3,), float(sum(half))))
    assert split.size() == 2 and split.rank() == half.index(c.rank)
    split.shutdown()


def case_messages(c: Context) -> None:
    """Tags in another order than sent, sizes from 0 to 4 MiB, all before any is received."""
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    for group in (c.occl, c.gloo):
        sizes = [0, 1, 20, 70000, 1 << 20]
        sends = [dist.isend(torch.full((n,), float(c.rank * 100 + tag)), right, tag=tag,
                            group=group) for tag, n in enumerate(sizes)]
        outs = [torch.empty(n) for n in sizes]
        c.own.shuffle(order := list(range(len(sizes))))
        for tag in order:
            dist.recv(outs[tag], left, tag=tag, group=group)
            equal(outs[tag], torch.full((sizes[tag],), float(left * 100 + tag)))
        for send in sends:
            send.wait()
    c.meet()
    ops = []
    incoming = [torch.empty(200 + q) for q in range(c.size)]
    for q in range(c.size):
        if q != c.rank:
            ops.append(dist.P2POp(dist.isend, torch.full((200 + c.rank,), float(c.rank)), q))
            ops.append(dist.P2POp(dist.irecv, incoming[q], q))
    c.own.shuffle(ops)
    works = dist.batch_isend_irecv(ops)
    assert len(works) == len(ops)
    for work in works:
        work.wait()
    for q in range(c.size):
        if q != c.rank:
            equal(incoming[q], torch.full((200 + q,), float(q)))


def case_any_source(c: Context) -> None:
    for group in (c.occl, c.gloo):
        if c.rank == 0:
            seen = []
            for _ in range(3 * (c.size - 1)):
                x = torch.empty(50)
                sender = dist.recv(x, tag=9, group=group)
                assert int(x[0]) == sender, (x[0], sender)
                seen.append(sender)
            assert sorted(seen) == sorted(list(range(1, c.size)) * 3), seen
        else:
            for _ in range(3):
                dist.send(torch.full((50,), float(c.rank)), 0, tag=9, group=group)


def case_messages_beside_collectives(c: Context) -> None:
    """A message that is received after a collective that was called before, and the reverse."""
    x, y = torch.full((9,), 1.), torch.empty(70000)
    right, left = (c.rank + 1) % c.size, (c.rank - 1) % c.size
    outs = [torch.empty(9) for _ in range(c.size)]
    if c.rank % 2 == 0:
        send = dist.isend(torch.full((70000,), float(c.rank)), right)
        gather = dist.all_gather(outs, x, async_op=True)
        receive = dist.irecv(y, left)
    else:
        gather = dist.all_gather(outs, x, async_op=True)
        receive = dist.irecv(y, left)
        send = dist.isend(torch.full((70000,), float(c.rank)), right)
    for work in (gather, receive, send):
        work.wait()
    equal(y, torch.full((70000,), float(left)))


def case_futures(c: Context) -> None:
    x = torch.full((10,), float(c.rank))
    total = sum(range(c.size)) * 1.
    future = dist.all_reduce(x, async_op=True).get_future()
    chained = future.then(lambda f: f.value()[0] / c.size).then(lambda f: f.value() + 1)
    equal(chained.wait(), torch.full((10,), total / c.size + 1))
    equal(future.value()[0], x)
    # A hook that waits for another operation, whose hook must run meanwhile.
    def hook(f):
        y = f.value()[0].clone()
        return dist.all_reduce(y, async_op=True).get_future().then(lambda g: g.value()[0]).wait()
    nested = [dist.all_reduce(torch.ones(5), async_op=True).get_future() for _ in range(3)]
    works = []
    for f in nested:  # one after the other: their hooks' operations have an order
        works.append(f.then(hook).wait())
    for y in works:
        equal(y, torch.full((5,), float(c.size ** 2)))
    late = dist.barrier(async_op=True)
    late.wait()
    assert late.get_future().wait() == [] and late.is_completed() and late.is_success()
    polled = dist.all_reduce(x, async_op=True)
    while not polled.is_completed():
        pass
    equal(polled.result()[0], x)


def case_functional(c: Context) -> None:
    import torch.distributed._functional_collectives as functional
    x = torch.full((c.size * 2,), float(c.rank + 1))
    total = c.size * (c.size + 1) / 2
    equal(functional.all_reduce(x, "sum", c.occl).wait(), torch.full((c.size * 2,), total))
    equal(functional.reduce_scatter_tensor(x, "sum", 0, c.occl).wait(), torch.full((2,), total))
    gathered = functional.all_gather_tensor(torch.full((2,), float(c.rank)), 0, c.occl).wait()
    equal(gathered, torch.arange(c.size).repeat_interleave(2).float())
    swapped = functional.all_to_all_single(x, None, None, c.occl).wait()
    equal(swapped, torch.arange(1, c.size + 1).repeat_interleave(2).float())


def case_wrong_size_of_message(c: Context) -> None:
    if c.rank == 0:
        dist.send(torch.ones(10), 1)
        dist.send(torch.ones(10), 1, tag=3)
    elif c.rank == 1:
        text = raises(dist.DistBackendError, "40 bytes of Float, the tensor 80 bytes",
                      dist.recv, torch.empty(20), 0)
        assert "rank 0" in text
        raises(dist.DistBackendError, "of Int", dist.recv, torch.empty(10, dtype=torch.int32), 0,
               None, 3)
    group = dist.new_group()
    x = torch.ones(2)
    dist.all_reduce(x, group=group)  # only the two receives have failed
    dist.destroy_process_group(group)


def case_group_of_one(c: Context) -> None:
    groups = [dist.new_group([q]) for q in range(c.size)]
    g, x = groups[c.rank], c.tensor(50)
    y = x.clone()
    dist.all_reduce(y, group=g)
    dist.broadcast(y, c.rank, group=g)
    dist.barrier(g)
    out, outs = torch.empty(50), [torch.empty(50)]
    dist.all_gather_into_tensor(out, y, group=g)
    dist.all_gather(outs, y, group=g)
    dist.all_to_all_single(out, y, group=g)
    dist.reduce_scatter_tensor(y, out, group=g)
    for t in (y, out, outs[0]):
        equal(t, x)
    dist.destroy_process_group(g)


CASES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("case_")}

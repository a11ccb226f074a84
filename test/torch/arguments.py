"""Cases: what tensors may be, how they lie in memory, what is refused, and what is kept of them."""

from __future__ import annotations

import gc
import time
import weakref

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from operations import Context, equal, everybodys, raises

LAST = torch.channels_last


def images(c: Context, number: int = 2) -> torch.Tensor:
    """Whose elements lie in another order than their indices say."""
    return c.tensor(number * 60).view(number, 3, 4, 5).to(memory_format=LAST)


def case_memory_formats(c: Context) -> None:
    x = torch.full((2, 3, 4, 5), float(c.rank)).to(memory_format=LAST)
    dist.all_reduce(x)
    assert x.is_contiguous(memory_format=LAST)
    equal(x, torch.full_like(x, sum(range(c.size))))
    part = torch.arange(10.)[3:6]  # contiguous, and not at the begin of its memory
    dist.broadcast(part, 0)
    equal(part, torch.arange(3., 6.))
    for sizes in ([2] * c.size, range(1, c.size + 1)):
        parts = [images(c, n) for n in sizes]
        total = sum(seen[c.rank] for seen in everybodys(c, parts))
        out = torch.empty(total.shape, memory_format=LAST)
        dist.reduce_scatter(out, parts)
        equal(out, total)
    x = images(c)
    seen = everybodys(c, x)
    outs = [torch.empty(x.shape, memory_format=LAST) for _ in seen]
    dist.all_gather(outs, x)
    for got, sent in zip(outs, seen):
        equal(got, sent)
    whole = torch.empty((2 * c.size, 3, 4, 5), memory_format=LAST)
    dist.all_gather_into_tensor(whole, x)
    equal(whole, torch.cat(seen))
    out = torch.empty(x.shape, memory_format=LAST)
    dist.scatter(out, seen if c.rank == 0 else None)
    equal(out, seen[c.rank])


def case_mixed_memory_formats(c: Context) -> None:
    """What would arrive in another order than it was sent in."""
    x, plain = images(c), torch.empty(2, 3, 4, 5)
    empty = [torch.empty(2, 3, 4, 5) for _ in range(c.size)]
    for call in (lambda: dist.all_gather(empty, x),
                 lambda: dist.all_gather_into_tensor(torch.empty(2 * c.size, 3, 4, 5), x),
                 lambda: dist.all_gather_into_tensor(torch.empty(c.size, 2, 3, 4, 5), x),
                 lambda: dist.reduce_scatter(plain, [x] * c.size),
                 lambda: dist.reduce_scatter(images(c), [x] * (c.size - 1) + [plain]),
                 lambda: dist.reduce_scatter_tensor(plain, images(c, 2 * c.size)),
                 lambda: dist.all_to_all(empty, [x] * c.size),
                 lambda: dist.all_to_all_single(torch.empty(4, 3, 4, 5), images(c, 4))):
        raises(ValueError, "memory format", call)
    column = torch.ones(2, 1, 4, 5)  # of both formats
    dist.all_gather([torch.empty(2, 1, 4, 5, memory_format=LAST) for _ in range(c.size)], column)


def case_bad_tensors(c: Context) -> None:
    """Errors on all ranks alike; the group goes on."""
    raises(ValueError, "contiguous", dist.all_reduce, torch.ones(4, 4).t()[1:])
    raises(ValueError, "output tensor size", dist.all_gather_into_tensor, torch.empty(c.size),
           torch.empty(2))
    raises(ValueError, "world size", dist.reduce_scatter_tensor, torch.empty(3), torch.empty(5))
    raises((TypeError, ValueError), "type", dist.all_gather_into_tensor,
           torch.empty(c.size, dtype=torch.int32), torch.empty(1))
    raises(ValueError, "sparse", c.occl._get_backend(torch.device("cpu")).allreduce,
           [torch.ones(3).to_sparse()])
    twisted = torch.full((1,), 1 + 2j).conj()
    backend = c.occl._get_backend(torch.device("cpu"))
    for view in (twisted, twisted.imag):
        raises(ValueError, "conjugated or negated", backend.broadcast, [view], dist.BroadcastOptions())
    raises(ValueError, "BAND with Float", dist.all_reduce, torch.ones(3), ReduceOp.BAND)
    raises(ValueError, "MAX with Complex", c.occl._get_backend(torch.device("cpu")).allreduce,
           [torch.ones(3, dtype=torch.complex64)], _options(ReduceOp.MAX))
    raises(ValueError, "split", dist.all_to_all_single, torch.empty(4), torch.empty(4),
           [1] * (c.size - 1) + [9], None)
    # What a rank sends to itself it would not take.
    for out, given, splits in ((torch.empty(c.size), torch.empty(2 * c.size), None),
                               (torch.empty(c.size, 2), torch.empty(c.size, 3), None),
                               (torch.empty(c.size), torch.empty(2 * c.size), [2] * c.size)):
        raises(ValueError, "size of its input", dist.all_to_all_single, out, given, None, splits)
    raises(ValueError, "size of its input", dist.all_to_all, [torch.empty(1)] * c.size,
           [torch.empty(2)] * c.size)
    raises(ValueError, "size of its input", dist.all_gather, [torch.empty(1)] * c.size,
           torch.empty(2))
    x = torch.ones(3)
    dist.all_reduce(x)
    equal(x, torch.full((3,), float(c.size)))


def _options(op):
    options = dist.AllreduceOptions()
    options.reduceOp = op
    return options


def case_factors(c: Context) -> None:
    whole = torch.ones(3, dtype=torch.int32)
    for factor, text in ((0.5, "0.5"), (2. ** 40, "is no Int"), (float("nan"), "is no Int")):
        raises(ValueError, text, dist.all_reduce, whole, dist._make_nccl_premul_sum(factor))
    raises(ValueError, "is no Byte", dist.all_reduce, whole.byte(), dist._make_nccl_premul_sum(-1.))
    dist.all_reduce(whole, dist._make_nccl_premul_sum(3.))
    equal(whole, torch.full((3,), 3 * c.size, dtype=torch.int32))


def case_results_of_uneven_parts(c: Context) -> None:
    """The result of a work is what this rank gets."""
    parts = [c.tensor(3 + q) for q in range(c.size)]
    total = sum(seen[c.rank] for seen in everybodys(c, parts))
    out = torch.empty(3 + c.rank)
    work = dist.reduce_scatter(out, parts, async_op=True)
    future = work.get_future()
    work.wait()
    for result in (work.result(), future.wait()):
        assert [t.data_ptr() for t in result] == [out.data_ptr()], result
        equal(result[0], total)


def case_batch_left_open(c: Context) -> None:
    """As PyTorch leaves it when an exception comes in it: what is complete is not kept for ever."""
    group = dist.new_group()
    group._start_coalescing(torch.device("cpu"))
    seen = []
    for i in range(5000):
        x = torch.full((10,), float(i))
        dist.broadcast(x, 0, group=group)
        seen.append(weakref.ref(x))
        del x
    _until(lambda: _alive(seen) < 4500, lambda: f"{_alive(seen)} tensors are kept")
    dist.destroy_process_group(group)
    del group
    _until(lambda: not _alive(seen), lambda: f"{_alive(seen)} tensors are kept by no group")


def _alive(tensors: list) -> int:
    gc.collect()
    return sum(tensor() is not None for tensor in tensors)


def _until(is_so, text) -> None:
    until = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < until, text()
        time.sleep(0.02)


CASES = {name[5:]: function for name, function in list(globals().items())
         if name.startswith("case_")}

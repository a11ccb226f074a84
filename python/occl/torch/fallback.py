"""PyTorch's backend in Python, for CPU tensors of ranks of one machine: used where the compiled one
cannot be built. docs/torch.md says what it lacks.

torch.distributed takes a subclass of ProcessGroup in the place of a backend. Its C++ calls the methods
that DDP and functional collectives need; the others are called from Python.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C import _distributed_c10d as _c10d

import occl

from ._fallback import elements
from ._fallback.elements import check, flat, only, raw
from ._fallback.engine import Engine, seconds_of
from ._fallback.meeting import meet
from ._fallback.messages import ANY_SOURCE, REQUESTS, Messages, transfer
from ._fallback.work import OcclWork

_MOST_RANKS = 32
# Collectives may be executed in any order among each other: the k-th of a group has id k % _IDS.
_IDS = 32
_LARGE_BATCH = 4096  # works
_CPU = torch.device("cpu")
_open: weakref.WeakSet[Backend] = weakref.WeakSet()
Pieces = list[tuple[int, Tensor]]


def is_possible() -> bool:
    """Whether this PyTorch's C++ keeps the works that it gets from Python: older versions drop them,
    and then wait for ever. Its headers, which come with it, say so."""
    folder = Path(torch.__file__).parent / "include" / "torch" / "csrc" / "distributed" / "c10d"
    return any("PyWorkHolder" in path.read_text(errors="replace")
               for path in folder.rglob("PyProcessGroup.hpp"))


class _Batch:
    """PyTorch leaves one open for ever when an exception comes in it: so a large one does not keep
    what is complete."""

    def __init__(self, sweep_at: float):
        self.works: list[OcclWork] = []
        self._sweep_at = sweep_at

    def add(self, work: OcclWork) -> None:
        self.works.append(work)
        if len(self.works) >= self._sweep_at:
            self.works = [one for one in self.works if not one.is_success()]
            self._sweep_at = max(_LARGE_BATCH, 2 * len(self.works))


class Backend(dist.ProcessGroup):
    """Operations start and return; their order is that of the calls, on all ranks. Thread-safe where
    threads order their calls."""

    supports_splitting = True
    supports_coalescing = False
    supports_time_estimate = False
    supports_shrinking = False

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta):
        """Waits for the other ranks, at most the timeout."""
        if size > _MOST_RANKS:
            raise ValueError(f"occl: a process group of {size} ranks: this backend has groups of 1 to "
                             f"{_MOST_RANKS} ranks")
        super().__init__(rank, size)
        self._store, self._rank, self._size = store, rank, size
        self._timeout = timeout
        self._name = self._description = ""
        self._batches: dict[int, list[_Batch]] = {}  # that threads have open
        self._splits: dict[str, int] = {}
        self._next = self._number = 0
        seconds = seconds_of(timeout)
        name = meet(store, rank, size, seconds)
        try:
            comm = occl.init(rank=rank, size=size, name=name, timeout=seconds)
            self._engine = Engine(comm)
            self._messages = Messages(occl.init(rank=rank, size=size, name=name + "m",
                                                max_in_flight=REQUESTS))
        except occl.Error as error:
            raise dist.DistBackendError(f"occl: making a group of {size} ranks failed on rank {rank}: "
                                        f"{error}") from error
        _open.add(self)

    # --- What it is.

    def rank(self) -> int:
        return self._rank

    def size(self) -> int:
        return self._size

    def getBackendName(self) -> str:
        return "occl"

    name = _get_backend_name = getBackendName

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    def getGroupName(self) -> str:
        return self._name

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupDesc(self) -> str:
        return self._description

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name, group_desc = property(getGroupName), property(getGroupDesc)
    uid = group_name

    def _get_backend(self, device: torch.device) -> Backend:
        return self

    def eager_connect_single_device(self, device: torch.device) -> None:
        raise ValueError(f"occl: init_process_group: device_id is {device}; the backend in Python takes "
                         "tensors on CPUs")

    def get_group_store(self) -> dist.Store:
        return self._store

    def _set_sequence_number_for_group(self) -> None:
        pass

    def _get_sequence_number_for_group(self) -> int:
        return self._number

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    _set_default_timeout = set_timeout

    def failure(self) -> str:
        """Why it has failed, "" if it has not as far as this rank knows."""
        if not self._engine.is_of_this_process():
            return "this process was made by fork() after the process group"
        return self._engine.comm.failure() or ""

    # --- Its end.

    def abort(self) -> None:
        for engine in (self._engine, self._messages):
            if engine.is_of_this_process() and not engine.closed:
                engine.closed = f"rank {self._rank} has aborted the process group"
                engine.comm.abort()

    def shutdown(self, is_exit: bool = False) -> None:
        if not self._engine.is_of_this_process() or self not in _open:
            return
        _open.discard(self)
        # Somebody may still send to a rank whose header is waited for.
        if not self._messages.leave():
            self._messages.comm.abort()
        if is_exit and self._engine.has_running():
            self._engine.comm.abort()
        for engine in (self._messages, self._engine):
            engine.closed = engine.closed or "the process group was destroyed"
            ending = threading.Thread(target=_close, args=(engine.comm,), daemon=True)
            ending.start()
            ending.join(1)  # what is in flight may take longer

    def split_group(self, ranks: Sequence[int], timeout: timedelta | None = None,
                    opts: object = None, group_name: str | None = None,
                    group_desc: str | None = None) -> Backend | None:
        """All ranks of the new group come here; the others of this one may or may not."""
        self._engine.check_usable("split")
        key = group_name or ""
        count = self._splits[key] = self._splits.get(key, 0) + 1
        if self._rank not in ranks:
            return None
        store = dist.PrefixStore(f"occl/{key}/{count}/", self._store)
        group = Backend(store, list(ranks).index(self._rank), len(ranks), timeout or self._timeout)
        group.setGroupName(key)
        group.setGroupDesc(group_desc or "")
        return group

    # --- Works.

    def _work(self, name: str, outputs: Sequence[Tensor] = (), parts: int = 1) -> OcclWork:
        self._number += 1
        return OcclWork(self._engine, name, outputs, parts)

    def _started(self, work: OcclWork) -> OcclWork:
        """Into the innermost batch that this thread has open."""
        batches = self._batches.get(threading.get_ident())
        if batches:
            batches[-1].add(work)
        return work

    def _start_coalescing(self, device: torch.device = _CPU, sweep_at: float = _LARGE_BATCH) -> None:
        self._batches.setdefault(threading.get_ident(), []).append(_Batch(sweep_at))

    def _end_coalescing(self, device: torch.device = _CPU) -> OcclWork:
        batches = self._batches.get(threading.get_ident())
        if not batches:
            raise ValueError("occl: endCoalescing without startCoalescing")
        works = batches.pop().works
        if not batches:
            del self._batches[threading.get_ident()]
        outputs = [output for work in works for output in work.result()]
        whole = self._work("coalesced", outputs, len(works) + 1)
        for work in works:
            work.when_ended(whole.part_ended)
        whole.part_ended()
        return self._started(whole)

    def _coalesced(self, calls: Iterator[object]) -> OcclWork:
        """One work for all that `calls` starts."""
        self._start_coalescing(sweep_at=inf)
        try:
            for _ in calls:
                pass
        except BaseException:
            self._end_coalescing()
            raise
        return self._end_coalescing()

    def _seconds(self, options: Any) -> float:
        given = getattr(options, "timeout", None)
        if given is None or given < timedelta(0):
            given = self._timeout
        return seconds_of(given)

    def _start(self, work: OcclWork, kind: str, array: Any, out: Any, options: Any,
               then: Callable[[], None] | None = None, **more: Any) -> None:
        """A collective of OCCL's, and what is done with its output."""
        seconds = self._seconds(options)

        def start() -> occl.Request:
            request = self._engine.comm.start(kind, array, out=out, id=self._next % _IDS,
                                              timeout=seconds, name=work.name, **more)
            self._next += 1
            return request

        def ended(error: Exception | None) -> None:
            if error is None and then is not None:
                try:
                    then()
                except Exception as wrong:
                    error = wrong
            work.part_ended(error)

        self._engine.add(work.name, start, ended)

    def _reduce(self, work: OcclWork, kind: str, source: Tensor, output: Tensor, op: Any,
                options: Any, root: int = 0) -> None:
        reduction = elements.reduction_of(source.dtype, op)
        if reduction.op is not None:
            self._start(work, kind, raw(source), raw(output), options, op=reduction.op, root=root,
                        scale=reduction.scale)
            return
        target = flat(output)
        parts = torch.empty((self._size, target.numel()), dtype=source.dtype)
        is_mine = kind != "reduce" or root == self._rank
        self._start(work, "all_to_all" if kind == "reduce_scatter" else "all_gather", raw(source),
                    raw(parts), options,
                    lambda: elements.reduce_locally(parts, target, op) if is_mine else None)

    def _pieces(self, work: OcclWork, kind: str, sends: Pieces, receives: Pieces, options: Any,
                root: int = 0) -> None:
        """Transfers are matched by pair alone. So that ranks that call something else are told so, a
        collective of the kind, of a byte from each rank, goes with them."""
        one, all_of_them = torch.zeros(1, dtype=torch.uint8), torch.zeros(self._size, dtype=torch.uint8)
        is_root = self._rank == root
        array = one if kind in ("all_gather", "gather") else all_of_them
        out = one if kind == "scatter" else torch.zeros_like(all_of_them)
        if kind == "gather" and not is_root:
            out = None
        self._start(work, kind, None if kind == "scatter" and not is_root else array, out, options,
                    root=root)
        given = [(peer, raw(tensor)) for peer, tensor in sends]
        taken = [(peer, raw(tensor)) for peer, tensor in receives]
        self._engine.add(work.name, lambda: transfer(self._engine.comm, given, taken),
                         work.part_ended)

    def _begin(self, name: str, *tensors: Tensor) -> None:
        self._engine.check_usable(name)
        if tensors:
            check(tensors, name)

    def _check_root(self, root: int, name: str) -> None:
        if not 0 <= root < self._size:
            raise ValueError(f"occl: {name}: rank {root} is none of this group of {self._size}")

    # --- Collectives with a plan of their own.

    def broadcast(self, tensors: Any, opts: Any = _c10d.BroadcastOptions()) -> OcclWork:
        tensor = only(tensors, "broadcast")
        self._begin("broadcast", tensor)
        self._check_root(opts.rootRank, "broadcast")
        work = self._work("broadcast", [tensor])
        self._start(work, "broadcast", raw(tensor), None, opts, root=opts.rootRank)
        return self._started(work)

    def allreduce(self, tensors: Any, opts: Any = _c10d.AllreduceOptions()) -> OcclWork:
        tensor = only(tensors, "all_reduce")
        self._begin("all_reduce", tensor)
        elements.reduction_of(tensor.dtype, opts.reduceOp)
        work = self._work("all_reduce", [tensor])
        self._reduce(work, "all_reduce", tensor, tensor, opts.reduceOp, opts)
        return self._started(work)

    def allreduce_coalesced(self, tensors: list[Tensor],
                            opts: Any = _c10d.AllreduceCoalescedOptions()) -> OcclWork:
        self._begin("all_reduce_coalesced", *tensors[:1])
        if not tensors:
            raise ValueError("occl: all_reduce_coalesced: requires tensors")
        return self._coalesced(self.allreduce([tensor], opts) for tensor in tensors)

    def reduce(self, tensors: Any, opts: Any = _c10d.ReduceOptions()) -> OcclWork:
        tensor = only(tensors, "reduce")
        self._begin("reduce", tensor)
        self._check_root(opts.rootRank, "reduce")
        elements.reduction_of(tensor.dtype, opts.reduceOp)
        work = self._work("reduce", [tensor])
        self._reduce(work, "reduce", tensor, tensor, opts.reduceOp, opts, opts.rootRank)
        return self._started(work)

    def _allgather_base(self, output: Tensor, input: Tensor,
                        opts: Any = _c10d.AllgatherOptions()) -> OcclWork:
        name = "all_gather_into_tensor"
        self._begin(name, input, output)
        if output.numel() != input.numel() * self._size:
            raise ValueError(f"occl: {name}: output tensor size must be equal to world_size times "
                             "input tensor size")
        work = self._work(name, [output])
        self._start(work, "all_gather", raw(input), raw(output), opts)
        return self._started(work)

    def allgather_into_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                        opts: Any = _c10d.AllgatherOptions()) -> OcclWork:
        self._check_lists(outputs, inputs, "all_gather_into_tensor_coalesced")
        return self._coalesced(self._allgather_base(output, input, opts)
                               for output, input in zip(outputs, inputs))

    def _check_lists(self, outputs: list[Tensor], inputs: list[Tensor], name: str) -> None:
        self._engine.check_usable(name)
        if len(outputs) != len(inputs) or not inputs:
            raise ValueError(f"occl: {name}: requires as many outputs as inputs, one at least")

    def _reduce_scatter_base(self, output: Tensor, input: Tensor,
                             opts: Any = _c10d.ReduceScatterOptions()) -> OcclWork:
        name = "reduce_scatter_tensor"
        self._begin(name, input, output)
        if input.numel() != output.numel() * self._size:
            raise ValueError(f"occl: {name}: input tensor must be the same size as output size times "
                             "world size")
        elements.reduction_of(input.dtype, opts.reduceOp)
        source = input.detach().clone() if elements.overlap(input, output) else input
        work = self._work(name, [output])
        self._reduce(work, "reduce_scatter", source, output, opts.reduceOp, opts)
        return self._started(work)

    def reduce_scatter_tensor_coalesced(self, outputs: list[Tensor], inputs: list[Tensor],
                                        opts: Any = _c10d.ReduceScatterOptions()) -> OcclWork:
        self._check_lists(outputs, inputs, "reduce_scatter_tensor_coalesced")
        return self._coalesced(self._reduce_scatter_base(output, input, opts)
                               for output, input in zip(outputs, inputs))

    def reduce_scatter(self, outputs: Any, inputs: list[list[Tensor]],
                       opts: Any = _c10d.ReduceScatterOptions()) -> OcclWork:
        """The parts may have different sizes: then each is a reduction to its rank."""
        name = "reduce_scatter"
        output = only(outputs, name)
        if len(inputs) != 1 or len(inputs[0]) != self._size:
            raise ValueError(f"occl: {name}: requires a list of an input for each rank")
        parts = inputs[0]
        self._begin(name, *parts, output)
        if parts[self._rank].numel() != output.numel():
            raise ValueError(f"occl: {name}: the input of this rank's part must have the size of the "
                             "output")
        elements.reduction_of(output.dtype, opts.reduceOp)
        if all(part.numel() == output.numel() for part in parts):
            work = self._work(name, [output])
            whole = torch.cat([flat(part) for part in parts])
            self._reduce(work, "reduce_scatter", whole, output, opts.reduceOp, opts)
            return self._started(work)
        # Before the output is written, which may overlap any of them.
        own = [flat(part).clone() for part in parts]
        flat(output).copy_(own[self._rank])
        own[self._rank] = flat(output)

        def calls() -> Iterator[object]:
            for root, part in enumerate(own):
                work = self._work(name, [output] if root == self._rank else [])
                self._reduce(work, "reduce", part, part, opts.reduceOp, opts, root)
                yield self._started(work)

        return self._coalesced(calls())

    def gather_single(self, output: Tensor, input: Tensor,
                      opts: Any = _c10d.GatherOptions()) -> OcclWork:
        name = "gather_single"
        is_root = opts.rootRank == self._rank
        self._begin(name, input, *([output] if is_root else []))
        self._check_root(opts.rootRank, name)
        if is_root and output.numel() != input.numel() * self._size:
            raise ValueError(f"occl: {name}: output tensor size must be equal to world_size times "
                             "input tensor size")
        work = self._work(name, [output] if is_root else [])
        self._start(work, "gather", raw(input), raw(output) if is_root else None, opts,
                    root=opts.rootRank)
        return self._started(work)

    def barrier(self, opts: Any = None) -> OcclWork:
        self._engine.check_usable("barrier")
        work = self._work("barrier")
        self._start(work, "all_reduce", bytearray(1), bytearray(1), opts, op="max")
        return self._started(work)

    # --- Of lists of tensors, and of sizes that only two ranks agree in.

    def allgather(self, outputs: list[list[Tensor]], inputs: Any,
                  opts: Any = _c10d.AllgatherOptions()) -> OcclWork:
        name = "all_gather"
        input = only(inputs, name)
        if len(outputs) != 1 or len(outputs[0]) != self._size:
            raise ValueError(f"occl: {name}: requires a list of an output for each rank")
        self._begin(name, input, *outputs[0])
        _check_own(input, outputs[0][self._rank], name)
        work = self._work(name, outputs[0], 2)
        self._pieces(work, "all_gather", [(peer, input) for peer in range(self._size)],
                     list(enumerate(outputs[0])), opts)
        return self._started(work)

    def allgather_coalesced(self, outputs: list[list[Tensor]], inputs: list[Tensor],
                            opts: Any = _c10d.AllgatherOptions()) -> OcclWork:
        """outputs[rank][i] is inputs[i] of the rank."""
        name = "all_gather_coalesced"
        self._engine.check_usable(name)
        if len(outputs) != self._size or not inputs or any(len(o) != len(inputs) for o in outputs):
            raise ValueError(f"occl: {name}: requires a list of outputs for each rank, and inputs")
        return self._coalesced(self.allgather([[of_rank[i] for of_rank in outputs]], [input], opts)
                               for i, input in enumerate(inputs))

    def gather(self, outputs: list[list[Tensor]], inputs: Any,
               opts: Any = _c10d.GatherOptions()) -> OcclWork:
        name, root = "gather", opts.rootRank
        input = only(inputs, name)
        self._check_root(root, name)
        results = self._of_root(outputs, root, name, "outputs")
        self._begin(name, input, *results)
        if results:
            _check_own(input, results[root], name)
        work = self._work(name, results, 2)
        self._pieces(work, "gather", [(root, input)], list(enumerate(results)), opts, root)
        return self._started(work)

    def scatter(self, outputs: Any, inputs: list[list[Tensor]],
                opts: Any = _c10d.ScatterOptions()) -> OcclWork:
        name, root = "scatter", opts.rootRank
        output = only(outputs, name)
        self._check_root(root, name)
        given = self._of_root(inputs, root, name, "inputs")
        self._begin(name, output, *given)
        if given:
            _check_own(given[root], output, name)
        work = self._work(name, [output], 2)
        self._pieces(work, "scatter", list(enumerate(given)), [(root, output)], opts, root)
        return self._started(work)

    def _of_root(self, lists: list[list[Tensor]], root: int, name: str, what: str) -> list[Tensor]:
        if self._rank != root:
            if lists:
                raise ValueError(f"occl: {name}: only the root has {what}")
            return []
        if len(lists) != 1 or len(lists[0]) != self._size:
            raise ValueError(f"occl: {name}: the root requires a list of "
                             f"an {what.removesuffix('s')} for each rank")
        return lists[0]

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor],
                 opts: Any = _c10d.AllToAllOptions()) -> OcclWork:
        name = "all_to_all"
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(f"occl: {name}: requires lists of an input and an output for each rank")
        self._begin(name, *inputs, *outputs)
        _check_own(inputs[self._rank], outputs[self._rank], name)
        work = self._work(name, outputs, 2)
        self._pieces(work, "all_to_all", list(enumerate(inputs)), list(enumerate(outputs)), opts)
        return self._started(work)

    def alltoall_base(self, output: Tensor, input: Tensor, output_splits: list[int] | None = None,
                      input_splits: list[int] | None = None,
                      opts: Any = _c10d.AllToAllOptions()) -> OcclWork:
        name = "all_to_all_single"
        self._begin(name, input, output)
        given = _rows(input, input_splits or [], self._size, name)
        taken = _rows(output, output_splits or [], self._size, name)
        _check_own(given[self._rank], taken[self._rank], name)
        work = self._work(name, [output], 2)
        self._pieces(work, "all_to_all", list(enumerate(given)), list(enumerate(taken)), opts)
        return self._started(work)

    # --- Messages.

    def send(self, tensors: Any, peer: int, tag: int = 0) -> OcclWork:
        tensor = self._message(tensors, "send")
        self._check_root(peer, "send")
        return self._started(self._messages.send(tensor, peer, tag, seconds_of(self._timeout)))

    def recv(self, tensors: Any, peer: int, tag: int = 0) -> OcclWork:
        tensor = self._message(tensors, "recv")
        self._check_root(peer, "recv")
        return self._started(self._messages.receive(tensor, peer, tag, seconds_of(self._timeout)))

    def recv_anysource(self, tensors: Any, tag: int = 0) -> OcclWork:
        tensor = self._message(tensors, "recv")
        return self._started(self._messages.receive(tensor, ANY_SOURCE, tag, seconds_of(self._timeout)))

    def _message(self, tensors: Any, name: str) -> Tensor:
        tensor = only(tensors, name)
        self._begin(name, tensor)
        return tensor

    # As PyTorch calls some of them from 2.14 or 2.15 on.
    all_gather_single, all_gather_single_coalesced = _allgather_base, allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base


def _close(comm: occl.Communicator) -> None:
    with suppress(occl.Error):
        comm.close()


def _check_own(input: Tensor, output: Tensor, name: str) -> None:
    """Of a rank's part for itself. How much others take of theirs they alone know."""
    if input.numel() != output.numel():
        raise ValueError(f"occl: {name}: the output of this rank's part must have the size of its input")


def _rows(tensor: Tensor, splits: Sequence[int], size: int, name: str) -> list[Tensor]:
    """Views of the rows that go to, or come from, each rank."""
    rows = tensor.shape[0] if tensor.dim() else 1
    counts = list(splits)
    if not counts:
        if rows % size:
            raise ValueError(f"occl: {name}: Tensor's dim 0 does not divide equally across group size")
        counts = [rows // size] * size
    if len(counts) != size:
        raise ValueError(f"occl: {name}: Number of tensor splits not equal to group size")
    if any(count < 0 for count in counts):
        raise ValueError(f"occl: {name}: Split sizes must not be negative")
    if sum(counts) != rows:
        raise ValueError(f"occl: {name}: Split sizes doesn't match total dim 0 size")
    return list(tensor.detach().split(counts))


def close_all() -> None:
    """At the end of the process."""
    for group in list(_open):
        with suppress(occl.Error):
            group.shutdown(is_exit=True)


atexit.register(close_all)

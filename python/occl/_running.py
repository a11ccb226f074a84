"""occl.run: a plan on all its ranks, as threads of this process, timed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import _buffers, _dtypes
from ._calls import Options, of_plan, prepare
from ._config import natural
from ._cuda import streams
from ._cuda.driver import driver
from ._cuda.streams import Place
from ._errors import AbortedError, InvalidArgumentError
from ._plan import reference
from .communicator import Communicator, init_all
from .plan import Plan

_PART_OF_BUS = {"allreduce": 2.0, "allgather": 1.0, "reducescatter": 1.0, "alltoall": 1.0}
_UNITS = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
          "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True)
class Run:
    """What occl.run has seen."""

    plan: Plan
    outputs: list[Any] = field(repr=False)
    """Of each rank: its array, or None if the plan gives it nothing."""
    times: list[float] = field(repr=False)
    """Seconds of each iteration, on the rank that took longest."""
    bytes: int
    """Of the larger one of a rank's two buffers, as nccl-tests count."""
    checked: bool
    """Whether outputs were compared with what the collective is to compute."""

    @property
    def seconds(self) -> float:
        """The median of `times`."""
        ordered = sorted(self.times)
        return (ordered[len(ordered) // 2] + ordered[(len(ordered) - 1) // 2]) / 2

    @property
    def algbw(self) -> float:
        """bytes / seconds, in GB/s."""
        return self.bytes * 1e-9 / self.seconds

    @property
    def busbw(self) -> float | None:
        """The same as what each rank's link carries at least, as nccl-tests have it: GB/s. None for
        a collective of which nobody knows."""
        n, name = self.plan.ranks, self.plan.collective
        if name in ("broadcast", "reduce"):
            return self.algbw
        factor = _PART_OF_BUS.get(name)
        return None if factor is None else self.algbw * factor * (n - 1) / n

    def __str__(self) -> str:
        bus = "" if self.busbw is None else f", bus {self.busbw:.3f} GB/s"
        checked = "checked" if self.checked else "not checked"
        return (f"{self.plan.name} ({self.plan.collective}) on {self.plan.ranks} ranks, "
                f"{self.bytes} bytes: {self.seconds * 1e6:.1f} us (median of {len(self.times)}), "
                f"{self.algbw:.3f} GB/s{bus}; {checked}")


def run(plan: Plan | str | os.PathLike[str], inputs: Sequence[Any] | None = None, *,
        ranks: int | None = None, outputs: Sequence[Any] | None = None, count: int | None = None,
        bytes: int | str | None = None, dtype: Any = "float32", op: str = "sum",
        iterations: int | None = None, warmup: int | None = None, check: bool | None = None,
        timeout: float | None = 60.0) -> Run:
    """Executes a plan on all its ranks, as threads of this process, and times it. Of arrays on CUDA
    devices each rank is on the device of its own, and has a stream; all have ended when it returns.

    plan: one, or what occl.compile takes: then it is compiled for `ranks`.
    inputs, outputs: an array for each rank, or None on ranks that have none. Outputs are made where
    none are given. Without inputs, small numbers of `dtype` are made up: `count` elements a part,
    or `bytes` ('64KiB'), or 1 MiB.
    iterations, warmup: how often it is executed with and without being timed; 10 and 2, but once
    and not at all in place, where each works on the results of the one before.
    check: whether the outputs are compared with what the collective is to compute, which raises
    AssertionError; as a default they are for inputs that are made up.
    timeout: deadline of each call, in seconds; None: no deadline.
    """
    if not isinstance(plan, Plan):
        from .compiler import compile

        plan = compile(plan, ranks=ranks)
    if ranks is not None and ranks != plan.ranks:
        raise InvalidArgumentError(f"plan '{plan.name}' is for {plan.ranks} ranks, not for {ranks}")
    should_check = check if check is not None else (
        inputs is None and reference.can_check(plan))
    devices = _devices_of(inputs, plan.ranks)
    if devices is not None and check:
        raise InvalidArgumentError("check is for arrays in memory of the host; these are on CUDA "
                                   "devices: compare a copy of the outputs")
    is_in_place = _is_in_place(inputs, outputs, devices)
    timed = natural(iterations, "iterations") if iterations is not None else (
        1 if is_in_place else 10)
    untimed = natural(warmup, "warmup") if warmup is not None else (0 if is_in_place else 2)
    if timed == 0:
        raise InvalidArgumentError("iterations is 0; it can be 1 or more")
    if should_check and is_in_place and timed + untimed > 1:
        raise InvalidArgumentError("in place each iteration works on the results of the one before:"
                                   " only one can be checked (iterations=1, warmup=0)")
    if inputs is None:
        name = _dtypes.dtype_name(dtype)
        size = _dtypes.DTYPES[name][1]
        if count is None:
            count = parse_bytes("1MiB" if bytes is None else bytes) // size
        inputs = reference.made_up(plan, count, name, op)
    elif bytes is not None:
        raise TypeError("bytes is for inputs that are made up; these are given")
    job = _Job(plan, inputs, outputs, Options(op=op, count=count, timeout=timeout),
               untimed, timed, devices)
    expected = None
    if should_check:
        expected = reference.expected(plan, job.inputs, op, job.options.count or 0)
    job.execute()
    if expected is not None:
        reference.compare(plan, job.outputs, expected)
    return Run(plan, job.outputs, job.times, job.largest_bytes, should_check)


def _devices_of(inputs: Sequence[Any] | None, ranks: int) -> list[int] | None:
    """The CUDA device of each rank; None if the inputs are in memory of the host."""
    found = [] if inputs is None else [_buffers.device_of(array) for array in inputs]
    rank = next((r for r, device in enumerate(found) if device is not None), None)
    if rank is None:
        return None
    number = driver().device_count()
    devices = [((found[rank] or 0) + r - rank) % number for r in range(ranks)]
    for r, device in enumerate(found[:ranks]):
        if device is not None and device != devices[r]:
            raise InvalidArgumentError(f"input {rank} is on CUDA device {devices[rank]}, and input "
                                       f"{r} on {device}: rank r is on the device r further, going "
                                       f"around {number}")
    return devices


def _place_of(array: Any, device: int | None) -> Place | None:
    """Where the array's framework works now."""
    return None if device is None else Place(device, streams.current_of(array) or 0)


def _is_in_place(inputs: Sequence[Any] | None, outputs: Sequence[Any] | None,
                 devices: list[int] | None) -> bool:
    """Whether some input is, or shares memory with, its output."""
    if inputs is None or outputs is None:
        return False
    for rank, (source, target) in enumerate(zip(inputs, outputs)):
        if source is not None and target is not None:
            place = _place_of(source, None if devices is None else devices[rank])
            a, b = (_buffers.read(source, place=place), _buffers.read(target, "out", place))
            if a.pointer < b.pointer + b.bytes and b.pointer < a.pointer + a.bytes:
                return True
    return False


def parse_bytes(size: int | str) -> int:
    """65536, '64KiB', '1MiB'."""
    if isinstance(size, str):
        digits = size.strip().rstrip("BKMGibkmg ")
        unit = size.strip()[len(digits):].strip().lower()
        if not digits.isdecimal() or unit not in _UNITS:
            raise InvalidArgumentError(f"'{size}' is no number of bytes, such as 65536 or '64KiB'")
        return int(digits) * _UNITS[unit]
    return natural(size, "bytes")


class _Job:
    """The ranks' threads, and what they share."""

    def __init__(self, plan: Plan, inputs: Sequence[Any], outputs: Sequence[Any] | None,
                 options: Options, warmup: int, iterations: int, devices: list[int] | None):
        for name, arrays in (("inputs", inputs), ("outputs", outputs)):
            if arrays is not None and (not hasattr(arrays, "__len__") or len(arrays) != plan.ranks):
                raise InvalidArgumentError(f"{name} is one array for each of the {plan.ranks} "
                                           "ranks, in a list")
        self.plan = plan
        self.inputs = list(inputs)
        self.outputs: list[Any] = list(outputs) if outputs is not None else [None] * plan.ranks
        self.warmup, self.iterations = warmup, iterations
        self.devices = devices
        places = [_place_of(array, None if devices is None else devices[r])
                  for r, array in enumerate(self.inputs)]
        rank = next((r for r, array in enumerate(self.inputs) if array is not None), None)
        if rank is None:
            raise InvalidArgumentError("no rank has an input")
        self.model = _buffers.read(self.inputs[rank], f"input {rank}", places[rank])
        if options.count is None:
            options = replace(options, count=plan._of_rank(rank).count_of(
                self.model.elements, False, self.model.item_bytes))
        self.options = options
        # Bad arrays are seen here, before any rank waits for another one.
        prepared = [of_plan(plan, rank, plan.ranks, source, target, options, self.model,
                            places[rank])
                    for rank, (source, target) in enumerate(zip(self.inputs, self.outputs))]
        # Streams of the calling thread, which the ranks' threads wait for.
        self.before = [{buffer.current for buffer in one.buffers if buffer.current is not None}
                       for one in prepared]
        self.outputs = [one.value for one in prepared]
        self.largest_bytes = max(buffer.bytes for one in prepared for buffer in one.keep[:2]
                                 if buffer is not None)
        self.times: list[float] = []
        self.seconds = [[0.0] * iterations for _ in range(plan.ranks)]
        self.failures: list[BaseException | None] = [None] * plan.ranks

    def execute(self) -> None:
        comms = init_all(self.plan.ranks, device=self.devices[0] if self.devices else None)
        try:
            threads = [threading.Thread(target=self._rank, args=(rank, comm), daemon=True,
                                        name=f"occl-rank-{rank}")
                       for rank, comm in enumerate(comms)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except BaseException:
            comms[0].abort()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            raise
        finally:
            for comm in comms:
                comm.close()
        failures = [failure for failure in self.failures if failure is not None]
        if failures:  # the others' are its consequence
            raise next((f for f in failures if not isinstance(f, AbortedError)), failures[0])
        self.times = [max(self.seconds[rank][i] for rank in range(self.plan.ranks))
                      for i in range(self.iterations)]

    def _rank(self, rank: int, comm: Communicator) -> None:
        source, target, options = self.inputs[rank], self.outputs[rank], self.options
        seconds, clock = self.seconds[rank], time.perf_counter
        try:
            place = comm._own_place()
            if place is not None:
                for stream in self.before[rank]:
                    driver().order(place.device, stream, place.stream)
            prepared = prepare(self.plan, rank, comm.size, source, target, options, self.model,
                               place)
            for i in range(-self.warmup, self.iterations):
                begin = clock()
                comm._run(prepared)
                if place is not None:
                    comm._end(prepared)
                if i >= 0:
                    seconds[i] = clock() - begin
        except BaseException as failure:
            self.failures[rank] = failure
            comm.abort()

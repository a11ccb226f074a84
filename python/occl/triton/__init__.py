"""Partitioned requests inside kernels of Triton (docs/partitioned.md):

    import occl.triton

    @triton.jit
    def produce(field, send, SIZE: tl.constexpr):
        p = tl.program_id(0)
        at = p * SIZE + tl.arange(0, SIZE)
        tl.store(field + at, compute(at))
        occl.triton.ready(send, p)                 # the partition travels now

    produce[(64,)](field, send.device_pointer(), SIZE, extern_libs=occl.triton.extern_libs())

Each call is one of the whole program (thread block): all its threads make it, with scalars. All
that the program has stored before ready() arrives, and after a wait() that is ARRIVED the program may
load it. This needs compute capability 9.0, Triton 3.4 or newer, and num_ctas of 1; not inside what
`tl.range(warp_specialize=True)` divides among warps, where not all threads make the call, and wait()
not directly in a loop whose loads Triton pipelines (num_stages), which loads before it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._errors import InvalidArgumentError
from .._library import native_file

core: Any = import_module("triton.language.core")

ARRIVED: Any = core.constexpr(0)
"""Of wait() and flush(): it is there."""
NOT_YET: Any = core.constexpr(1)
"""The time has passed."""
FAILED: Any = core.constexpr(2)
"""The communicator has failed, or the other side has freed its request."""

_LEAST_CAPABILITY = 90


def extern_libs() -> dict[str, str]:
    """What kernels that call these functions are launched with, as the option of this name. LibraryError
    if occl_device.bc is not there: it is made where clang 19 is."""
    return {"occl": str(native_file("occl_device.bc", "OCCL_DEVICE_BITCODE",
                                    "runtime/cuda/bitcode/occl_device.bc"))}


def _ready(request: Any, partition: Any, _semantic: Any = None) -> Any:
    """Partition `partition` of a send, or of a collective's input, is complete. Never waits: a
    partition that cannot be sent, as the receiver has not started, is sent by a wait. request: device_pointer()."""
    return _call("occl_pready_block", [request, partition], _semantic)


def _ready_counted(request: Any, partition: Any, counter: Any, times: Any,
                   _semantic: Any = None) -> Any:
    """The same for a partition that several programs make: the call that is the `times`-th of its
    counter marks it. counter: a pointer to an int64 of the partition's own, 0 at first; it goes on
    counting in the next epochs."""
    return _call("occl_pready_counted_block", [request, partition, counter, times], _semantic)


def _wait(request: Any, partition: Any, nanoseconds: Any, _semantic: Any = None) -> Any:
    """Until partition `partition` of a receive, or of a collective's output, has arrived, or for about
    so many nanoseconds: ARRIVED, NOT_YET or FAILED. A program that waits holds its place on the
    device, so what it waits for must not need that place."""
    return _call("occl_pwait_block", [request, partition, nanoseconds], _semantic)


def _arrived(request: Any, partition: Any, _semantic: Any = None) -> Any:
    """One look: as wait() for no time."""
    return _call("occl_parrived_block", [request, partition], _semantic)


def _flush(request: Any, nanoseconds: Any, _semantic: Any = None) -> Any:
    """A send: stores what could not be when it was marked; ARRIVED once all is stored, else as wait().
    Only for kernels that depend on that before they end."""
    return _call("occl_pflush_block", [request, nanoseconds], _semantic)


def _start(request: Any, _semantic: Any = None) -> Any:
    """The next epoch of a send or receive, by one program; the last one has ended."""
    return _call("occl_pstart_block", [request], _semantic)


def _call(symbol: str, arguments: list[Any], semantic: Any) -> Any:
    """The function of occl_device.bc, by all threads, in its place among loads and stores."""
    options = semantic.builder.options
    if getattr(options, "num_ctas", 1) != 1:
        raise InvalidArgumentError(f"{symbol} in a kernel with num_ctas={options.num_ctas}: each "
                                   "thread block of a cluster would make the call; take 1")
    architecture = str(getattr(options, "arch", "")).removeprefix("sm").rstrip("af")
    if not architecture.isdecimal() or int(architecture) < _LEAST_CAPABILITY:
        raise InvalidArgumentError(f"{symbol} is for NVIDIA GPUs of compute capability 9.0 or newer, "
                                   f"and the kernel is compiled for '{architecture}'")
    numbers = [_scalar(symbol, argument, semantic) for argument in arguments]
    types = (core.int64,) * len(numbers)
    return core.extern_elementwise("occl", "", numbers, {types: (symbol, core.int32)}, is_pure=False,
                                   _semantic=semantic)


def _scalar(symbol: str, value: Any, semantic: Any) -> Any:
    """A number, or a pointer, in 64 bits."""
    scalar = semantic.to_tensor(value)
    kind = scalar.type
    if kind.is_block():
        raise InvalidArgumentError(f"{symbol} takes numbers, and is given a block of shape "
                                   f"{[int(length) for length in kind.shape]}")
    if not kind.is_ptr() and not kind.scalar.is_int():
        raise InvalidArgumentError(f"{symbol} takes integers and pointers, and is given a {kind}")
    return semantic.cast(scalar, core.int64)


ready, ready_counted = core.extern(_ready), core.extern(_ready_counted)
wait, arrived = core.extern(_wait), core.extern(_arrived)
flush, start = core.extern(_flush), core.extern(_start)

"""Streams as frameworks have them, and in which one a call is made."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from .._errors import InvalidArgumentError
from . import arrays, dlpack

LEGACY, PER_THREAD = 1, 2  # what frameworks say for default streams; CUDA has 0 for the first, too


class Place(NamedTuple):
    """Where a call is: of which device its arrays are, and in which stream it is made."""

    device: int
    stream: int


def handle_of(stream: Any) -> int:
    """The handle (cudaStream_t) of an int, or of what torch, CuPy, Numba or cuda-python have."""
    if hasattr(stream, "__cuda_stream__"):
        given = stream.__cuda_stream__
        handle = (given() if callable(given) else given)[1]
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif hasattr(stream, "ptr"):
        handle = stream.ptr
    elif hasattr(stream, "handle"):
        handle = getattr(stream.handle, "value", stream.handle) or 0
    else:
        handle = stream
    if isinstance(handle, bool) or not hasattr(handle, "__index__"):
        raise TypeError(f"stream is a {type(stream).__name__}; it can be a cudaStream_t as an int, "
                        "or something with __cuda_stream__, cuda_stream, ptr or handle")
    number = int(handle.__index__())
    if not 0 <= number < 1 << 64:
        raise InvalidArgumentError(f"stream is {number}, which is no address")
    return usable(number)


def usable(handle: int) -> int:
    if handle == PER_THREAD:
        raise InvalidArgumentError("the stream is the per-thread default stream, whose number is the"
                                   " same in all threads: give a stream of your own as stream=")
    return 0 if handle == LEGACY else handle


def learns_of_none(array: Any) -> bool:
    """Whether the array is one of DLPack's, on a device: its framework cannot be told that what it
    does next has to wait for a stream of others."""
    return not arrays.is_torch(array) and arrays.interface_of(array) is None and (
        dlpack.device_of(array) is not None)


def current_of(array: Any) -> int | None:
    """The stream in which the array's framework works now; None if it does not say."""
    if arrays.is_torch(array):
        if array.device.type != "cuda":
            return None
        index = array.device.index
        return int(sys.modules["torch"].cuda.current_stream(index).cuda_stream)
    described = arrays.interface_of(array)
    if described is None or described.get("stream") is None:
        return None
    stream = described["stream"]
    if isinstance(stream, bool) or not isinstance(stream, int) or stream == 0:
        raise InvalidArgumentError(f"__cuda_array_interface__ has the stream {stream!r}, which that "
                                   "does not allow: 1 is the legacy default stream")
    return 0 if stream == LEGACY else stream

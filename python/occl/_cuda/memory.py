"""Memory of occlMemAlloc, as an array."""

from __future__ import annotations

import ctypes
from math import prod
from typing import TYPE_CHECKING, Any

from .. import _dtypes, _library
from .._errors import ClosedError, Error, InvalidArgumentError

if TYPE_CHECKING:
    from .._core import Core


class DeviceArray:
    """An array in memory of a rank's CUDA device that all ranks can access, made by
    Communicator.empty: torch.as_tensor(array, device="cuda") and cupy.asarray(array) are views of
    it. It is freed when nothing refers to it and no call uses it, and ends with the communicator:
    views of it must not be used after close()."""

    __slots__ = ("_comm", "_pointer", "bytes", "shape", "dtype", "device", "__weakref__")

    def __init__(self, comm: Core, shape: tuple[int, ...], dtype: str):
        """Not to be called by programs."""
        self._pointer = 0
        self._comm = comm
        self.shape = shape
        """Its lengths; elements lie one after the other."""
        self.dtype = dtype
        """The name of its elements' type, 'bfloat16'."""
        assert comm._work is not None
        self.device: int = comm._work.device
        """The number of the CUDA device."""
        self.bytes: int = prod(shape) * _dtypes.SIZES[_dtypes.code_of(dtype)]
        """The size of all elements."""
        memory = ctypes.c_void_p()
        with comm._using():
            _library.check(_library.library().occlMemAlloc(comm._handle, max(1, self.bytes),
                                                           ctypes.byref(memory)))
            self._pointer = memory.value or 0
            comm._work.memories[self._pointer] = self

    @property
    def pointer(self) -> int:
        """Its address. ClosedError after the communicator's close()."""
        if self._comm.is_closed:
            raise ClosedError(f"the array's memory has ended with its communicator, {self._comm!r}")
        return self._pointer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        typestr = _dtypes.numpy_dtype(self.dtype).str
        return {"shape": self.shape, "typestr": typestr, "data": (self.pointer, False),
                "version": 3, "strides": None, "stream": None}

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", 0)
        if not pointer:
            return
        try:
            with self._comm._using():
                _library.library().occlMemFree(self._comm._handle, pointer)
        except (Error, AttributeError, TypeError):
            pass  # it has ended with the communicator, or Python ends

    def __repr__(self) -> str:
        return f"<occl.DeviceArray {self.dtype} {self.shape} on CUDA device {self.device}>"


def shape_of(shape: Any) -> tuple[int, ...]:
    """Of an int, or of several."""
    lengths = shape if isinstance(shape, tuple | list) else (shape,)
    numbers = []
    for length in lengths:
        if isinstance(length, bool) or not hasattr(length, "__index__"):
            raise TypeError(f"a length of the shape is a {type(length).__name__}; it is an int")
        if length.__index__() < 0:
            raise InvalidArgumentError(f"a length of the shape is {length}; it can be 0 or more")
        numbers.append(int(length))
    return tuple(numbers)

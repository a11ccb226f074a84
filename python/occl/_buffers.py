"""Where an array's elements lie: of numpy, of tensors of torch, of whatever has the buffer protocol
or __array_interface__, and on CUDA devices __cuda_array_interface__ or DLPack. Nothing is copied, and
neither numpy nor torch is imported unless the object needs it."""

from __future__ import annotations

from ctypes import addressof, c_char
from math import prod
from typing import Any

from . import _dtypes
from ._cuda import arrays, dlpack, streams
from ._cuda.arrays import is_torch
from ._cuda.driver import driver
from ._cuda.memory import DeviceArray
from ._cuda.streams import Place
from ._errors import InvalidArgumentError

_codes: dict[Any, tuple[int, int, str]] = {}  # by dtype objects of numpy and torch


class Buffer:
    """Elements in memory, which `array` owns."""

    __slots__ = ("array", "pointer", "elements", "code", "item_bytes", "dtype", "is_writable",
                 "shape", "described", "device", "current", "capsule")

    def __init__(self, array: Any, pointer: int, shape: tuple[int, ...], elements: int,
                 dtype: Any, is_writable: bool):
        self.device: int | None = None  # of CUDA; None: it is memory of the host
        self.current: int | None = None  # on devices the stream in which its framework works
        self.capsule: Any = None  # of DLPack: then its framework learns of no stream of ours
        self.array = array
        self.pointer = pointer
        self.shape = shape
        self.elements = elements
        known = _codes.get(dtype)
        if known is None:
            known = _codes[dtype] = _code_of(dtype)
        self.code, self.item_bytes, self.dtype = known
        self.is_writable = is_writable
        self.described = dtype  # as numpy or torch have it

    @property
    def bytes(self) -> int:
        return self.elements * self.item_bytes


def _code_of(dtype: Any) -> tuple[int, int, str]:
    name = _dtypes.dtype_name(dtype)
    code = _dtypes.code_of(name)
    return code, _dtypes.SIZES[code], name


def read(array: Any, what: str = "the array", place: Place | None = None) -> Buffer:
    """The buffer that a call at `place` reads; None: on hosts. On devices its stream waits for what
    the array's framework has put into its own so far. TypeError if it is no array,
    InvalidArgumentError if its memory cannot be used as it is, or is not where the call is."""
    if type(array).__module__ == "numpy" and type(array).__name__ == "ndarray":
        buffer = _of_numpy(array, what, array)
    elif isinstance(array, DeviceArray):
        buffer = _of_memory(array, what)
    elif is_torch(array):
        buffer = _of_tensor(array, what)
    elif arrays.is_on_device(array):
        buffer = _of_device(array, what, place)
    else:
        buffer = _of_exporter(array, what)
    if place is not None or buffer.device is not None:
        _check_place(buffer, what, place)
    return buffer


def device_of(array: Any) -> int | None:
    """The CUDA device that it is in memory of; None of what is in memory of the host, or no array."""
    if type(array).__module__ == "numpy":
        return None
    if isinstance(array, DeviceArray):
        return array.device
    if is_torch(array):
        return int(array.device.index) if array.device.type == "cuda" else None
    found = arrays.interface_of(array)
    if found is not None:
        return driver().device_of(int(found["data"][0] or 0))
    return dlpack.device_of(array)


def _check_place(buffer: Buffer, what: str, place: Place | None) -> None:
    if place is None:
        raise InvalidArgumentError(f"{what} is on CUDA device {buffer.device}, and the communicator's"
                                   " ranks are on CPUs: occl.init(device=...) makes one on devices")
    if buffer.device is None:
        raise InvalidArgumentError(f"{what} is in memory of the host, and this rank's is CUDA device "
                                   f"{place.device}: copy it there, or use a communicator without "
                                   "device=")
    if buffer.device != place.device:
        raise InvalidArgumentError(f"{what} is on CUDA device {buffer.device}, and this rank's is "
                                   f"CUDA device {place.device}")
    if buffer.current is not None and buffer.current != place.stream:
        driver().order(place.device, buffer.current, place.stream)


def write(array: Any, what: str = "out", place: Place | None = None) -> Buffer:
    """The same of a buffer that a call stores to."""
    buffer = read(array, what, place)
    if not buffer.is_writable:
        raise InvalidArgumentError(f"{what} is read-only, and the call stores to it")
    return buffer


def _of_numpy(array: Any, what: str, owner: Any) -> Buffer:
    flags = array.flags
    if not flags.c_contiguous:
        raise InvalidArgumentError(
            f"{what} is not contiguous (shape {array.shape}, strides {array.strides} bytes): "
            "numpy.ascontiguousarray(array) makes a copy that is")
    try:
        pointer = addressof(c_char.from_buffer(array))  # four times as fast as what always works
    except (TypeError, ValueError):
        pointer = array.__array_interface__["data"][0]
    return Buffer(owner, pointer, array.shape, array.size, array.dtype, flags.writeable)


def _of_tensor(tensor: Any, what: str) -> Buffer:
    if tensor.device.type not in ("cpu", "cuda"):
        raise InvalidArgumentError(f"{what} is on {tensor.device}; OCCL takes tensors of CPUs and of "
                                   "CUDA devices")
    if str(tensor.layout) != "torch.strided":
        raise InvalidArgumentError(f"{what} is {tensor.layout}; tensor.to_dense() makes a copy "
                                   "with one element after the other")
    if not tensor.is_contiguous():
        raise InvalidArgumentError(
            f"{what} is not contiguous (shape {tuple(tensor.shape)}, strides {tensor.stride()} "
            "elements): tensor.contiguous() makes a copy that is")
    if tensor.is_conj() or tensor.is_neg():
        raise InvalidArgumentError(f"{what} is a conjugated or negated view: tensor.resolve_conj()"
                                   ".resolve_neg() makes a copy that is none")
    buffer = Buffer(tensor, tensor.data_ptr(), tuple(tensor.shape), tensor.numel(), tensor.dtype,
                    True)
    if tensor.device.type == "cuda":
        buffer.device = int(tensor.device.index)
        buffer.current = streams.current_of(tensor)
    return buffer


def _of_memory(array: DeviceArray, what: str) -> Buffer:
    buffer = Buffer(array, array.pointer, array.shape, prod(array.shape), array.dtype, True)
    buffer.device = array.device
    return buffer


def _of_device(array: Any, what: str, place: Place | None) -> Buffer:
    if place is None:
        raise InvalidArgumentError(f"{what} is on a CUDA device, and the communicator's ranks are on "
                                   "CPUs: occl.init(device=...) makes one on devices")
    found = arrays.interface_of(array)
    if found is not None:
        pointer, shape, dtype, is_writable, capsule = arrays.of_interface(array, found, what)
    else:
        device = dlpack.device_of(array)
        if device != place.device:  # before its framework is asked to wait for a stream there
            raise InvalidArgumentError(f"{what} is on CUDA device {device}, and this rank's is CUDA "
                                       f"device {place.device}")
        pointer, shape, dtype, is_writable, capsule = arrays.of_dlpack(array, place.stream, what)
    buffer = Buffer(array, pointer, shape, prod(shape), dtype, is_writable)
    buffer.capsule = capsule
    if found is None or not buffer.elements:
        buffer.device = place.device
    else:
        buffer.device = driver().device_of(pointer)
        if buffer.device is None:
            raise InvalidArgumentError(f"{what} is no memory of one CUDA device; managed and pinned "
                                       "memory are not taken")
    if found is not None:
        buffer.current = streams.current_of(array)
    return buffer


def _of_exporter(array: Any, what: str) -> Buffer:
    import numpy

    if isinstance(array, numpy.ndarray | numpy.generic):
        view = numpy.asarray(array)
        if isinstance(array, numpy.generic):
            view.flags.writeable = False
        return _of_numpy(view, what, (array, view))
    try:
        if hasattr(array, "__array_interface__"):
            view = numpy.asarray(array)
        else:
            view = numpy.asarray(memoryview(array))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{what} is a {type(array).__name__}; it can be a numpy array, a tensor of torch, or "
            f"something with the buffer protocol or __array_interface__ ({error})") from None
    return _of_numpy(view, what, (array, view))


def empty_like(model: Buffer, shape: tuple[int, ...]) -> Any:
    """An array of the model's type and kind: a tensor if that is one, of its framework on devices,
    else of numpy."""
    array = model.array
    if is_torch(array):
        return array.new_empty(shape)
    if model.device is not None:
        return arrays.empty_like(array, model.described, model.device, shape)
    import numpy

    return numpy.empty(shape, model.described)

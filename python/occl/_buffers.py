"""Where an array's elements lie: of numpy, of CPU tensors of torch, of whatever has the buffer
protocol or __array_interface__. Nothing is copied, and neither numpy nor torch is imported unless
the object needs it."""

from __future__ import annotations

from ctypes import addressof, c_char
from typing import Any

from . import _dtypes
from ._errors import InvalidArgumentError

_codes: dict[Any, tuple[int, int, str]] = {}  # by dtype objects of numpy and torch


class Buffer:
    """Elements in memory, which `array` owns."""

    __slots__ = ("array", "pointer", "elements", "code", "item_bytes", "dtype", "is_writable",
                 "shape", "described")

    def __init__(self, array: Any, pointer: int, shape: tuple[int, ...], elements: int,
                 dtype: Any, is_writable: bool):
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
    code, size = _dtypes.DTYPES["uint8" if name == _dtypes.BOOL else name]
    return code, size, name


def is_torch(array: Any) -> bool:
    return type(array).__module__.partition(".")[0] == "torch" or (
        hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"))


def read(array: Any, what: str = "the array") -> Buffer:
    """The buffer that a call reads. TypeError if it is no array, InvalidArgumentError if its memory
    cannot be used as it is."""
    if type(array).__module__ == "numpy" and type(array).__name__ == "ndarray":
        return _of_numpy(array, what, array)
    if is_torch(array):
        return _of_tensor(array, what)
    return _of_exporter(array, what)


def write(array: Any, what: str = "out") -> Buffer:
    """The same of a buffer that a call stores to."""
    buffer = read(array, what)
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
    if tensor.device.type != "cpu":
        raise InvalidArgumentError(f"{what} is on {tensor.device}; this interface takes tensors of "
                                   "the CPU: tensor.cpu() makes a copy that is one")
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
    return Buffer(tensor, tensor.data_ptr(), tuple(tensor.shape), tensor.numel(), tensor.dtype,
                  True)


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
    """An array of the model's type and kind: a tensor if that is one, else of numpy."""
    array = model.array
    if is_torch(array):
        return array.new_empty(shape)
    import numpy

    return numpy.empty(shape, model.described)

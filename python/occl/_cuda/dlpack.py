"""DLPack, read only as far as it describes memory of a CUDA device."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple

from .._errors import InvalidArgumentError

_CUDA, _CUDA_HOST, _CUDA_MANAGED = 2, 3, 13  # of DLDeviceType
_TYPES = {(0, 8): "int8", (0, 32): "int32", (0, 64): "int64", (1, 8): "uint8", (1, 32): "uint32",
          (1, 64): "uint64", (2, 16): "float16", (2, 32): "float32", (2, 64): "float64",
          (4, 16): "bfloat16", (6, 8): "bool", (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2"}

_pointer_of = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


class _Tensor(Structure):
    """DLTensor, which a DLManagedTensor begins with."""

    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Found(NamedTuple):
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In elements; None: one after the other."""
    dtype: str
    """As OCCL names it."""


def device_of(array: Any) -> int | None:
    """The CUDA device that the array says it is on; None if it is on none."""
    ask = getattr(array, "__dlpack_device__", None)
    if ask is None or not hasattr(array, "__dlpack__"):
        return None
    try:
        kind, number = ask()
    except (BufferError, RuntimeError, ValueError, TypeError):
        return None
    if int(kind) in (_CUDA_HOST, _CUDA_MANAGED):
        raise InvalidArgumentError(f"the {type(array).__name__} is in pinned or managed memory; "
                                   "ranks on CUDA devices take memory of their device alone")
    return int(number) if int(kind) == _CUDA else None


def read(capsule: Any, what: str) -> Found:
    """What the capsule describes, which has to live as long as that is used: when it goes, the
    array's framework may free it."""
    try:
        address = _pointer_of(capsule, b"dltensor")
    except (ValueError, TypeError) as error:
        raise TypeError(f"{what} gives no capsule of DLPack: {error}") from None
    tensor = ctypes.cast(address, POINTER(_Tensor)).contents
    dtype = _TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise InvalidArgumentError(f"{what} has elements of a type that OCCL does not have (DLPack: "
                                   f"kind {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes)")
    dimensions = range(tensor.ndim)
    return Found((tensor.data or 0) + tensor.byte_offset,
                 tuple(tensor.shape[i] for i in dimensions),
                 tuple(tensor.strides[i] for i in dimensions) if tensor.strides else None, dtype)

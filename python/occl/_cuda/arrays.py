"""What arrays on devices say of themselves: torch's attributes, __cuda_array_interface__ (version 3
says the stream, too), or DLPack, as JAX has it."""

from __future__ import annotations

import sys
from typing import Any

from .._errors import InvalidArgumentError
from . import dlpack

Description = tuple[int, tuple[int, ...], Any, bool, Any]


def framework_of(array: Any) -> str:
    """torch, cupy, numba, jax: the package that the array's type is of."""
    name = type(array).__module__.partition(".")[0]
    return "jax" if name == "jaxlib" else name


def is_torch(array: Any) -> bool:
    return framework_of(array) == "torch" or (
        hasattr(array, "data_ptr") and hasattr(array, "is_contiguous"))


def interface_of(array: Any) -> dict[str, Any] | None:
    """Its __cuda_array_interface__, if it has one that counts: where there is DLPack, which orders
    streams, one that says nothing of streams (JAX's) does not."""
    try:
        found = getattr(array, "__cuda_array_interface__", None)
    except (RuntimeError, ValueError, TypeError):  # as of arrays on CPUs, or of several devices
        return None
    if not isinstance(found, dict):
        return None
    if "stream" not in found and dlpack.device_of(array) is not None:
        return None
    return found


def is_on_device(array: Any) -> bool:
    """Of anything but numpy's arrays, which never are."""
    return interface_of(array) is not None or dlpack.device_of(array) is not None


def of_interface(array: Any, found: dict[str, Any], what: str) -> Description:
    """Pointer, shape, type, whether it may be stored to, and what has to live beside the array."""
    import numpy

    try:
        shape = tuple(int(length) for length in found["shape"])
        pointer, is_read_only = found["data"]
        described = numpy.dtype(found["typestr"])
    except (KeyError, TypeError, ValueError) as error:
        raise TypeError(f"{what} has a __cuda_array_interface__ that is none: {error!r}") from None
    if found.get("mask") is not None:
        raise InvalidArgumentError(f"{what} has a mask, which elements are valid; OCCL has no such "
                                   "arrays")
    strides = found.get("strides")
    if strides is not None:
        _check_contiguous(what, shape, tuple(strides), described.itemsize, "bytes")
    if described.kind == "V":  # as of ml_dtypes
        described = getattr(array, "dtype", described)
    return int(pointer or 0), shape, described, not is_read_only, None


def of_dlpack(array: Any, stream: int, what: str) -> Description:
    """The same; the array's framework has stream `stream` wait for what makes the array."""
    try:
        capsule = array.__dlpack__(stream=stream or 1)
    except (BufferError, RuntimeError, ValueError, TypeError) as error:
        raise InvalidArgumentError(f"{what} cannot be had from {type(array).__name__} by DLPack: "
                                   f"{error}") from None
    found = dlpack.read(capsule, what)
    if found.strides is not None:
        _check_contiguous(what, found.shape, found.strides, 1, "elements")
    return found.pointer, found.shape, found.dtype, framework_of(array) != "jax", capsule


def _check_contiguous(what: str, shape: tuple[int, ...], strides: tuple[int, ...], item: int,
                      unit: str) -> None:
    if 0 in shape:
        return
    step = item
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length > 1 and stride != step:
            raise InvalidArgumentError(
                f"{what} is not contiguous (shape {shape}, strides {strides} {unit}): copy it into "
                "an array that is, as cupy.ascontiguousarray(array) does")
        step *= length


def empty_like(array: Any, dtype: Any, device: int, shape: tuple[int, ...]) -> Any:
    """A new array of the same framework, type and device. Its elements are anything."""
    framework = framework_of(array)
    if framework == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.empty(shape, dtype)
    if framework == "numba":
        cuda = sys.modules["numba.cuda"]
        with cuda.gpus[device]:
            return cuda.device_array(shape, dtype)
    if framework == "jax":
        return sys.modules["jax"].numpy.empty(shape, array.dtype, device=array.device)
    raise InvalidArgumentError(f"OCCL makes no arrays of the kind {type(array).__name__}: give out=,"
                               " the array to store to")

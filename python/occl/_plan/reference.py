"""What a plan's collective is to compute, written apart from the runtime that it checks."""

from __future__ import annotations

from typing import Any

from .. import _abi, _buffers, _dtypes
from .._cuda.arrays import is_torch
from .._errors import InvalidArgumentError
from ..plan import Plan
from .layout import Chunking

_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
            "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2}
# Of a rank: places of the output, what they are to be, and by how much they may differ.
_Segments = list[tuple[slice, Any, Any]]


def made_up(plan: Plan, count: int, dtype: str, op: str) -> list[Any]:
    """An input for each rank, of small numbers, the same each time; None where a rank has none."""
    import numpy

    kind = _dtypes.numpy_dtype(dtype)
    low, high = (0, 2) if dtype == _dtypes.BOOL else (1, 3) if op == "prod" else (0, 8)
    inputs = []
    for rank in range(plan.ranks):
        layout = plan._of_rank(rank)
        elements = layout.elements(layout.input_chunks, count, kind.itemsize)
        # Multiplied and shifted, so that neighbours, and the same places of two ranks, differ.
        words = numpy.arange(elements, dtype=numpy.uint32) + numpy.uint32(rank * 40503 + 1)
        values = low + (words * numpy.uint32(2654435761) >> 24) % (high - low)
        inputs.append(values.astype(kind) if layout.input_chunks else None)
    return inputs


def can_check(plan: Plan) -> bool:
    return plan.collective in _NAMED or bool(plan.document["requirements"])


def expected(plan: Plan, inputs: list[Any], op: str, count: int) -> list[_Segments]:
    """What each rank's output is to be, where the collective promises something. To be called
    before the run, which may be in place."""
    buffers = [None if array is None else _buffers.read(array) for array in inputs]
    dtype = next(buffer.dtype for buffer in buffers if buffer is not None)
    values = [None if buffer is None else _values(buffer.array) for buffer in buffers]
    if plan.collective in _NAMED:
        return [_standard(plan, rank, values, op, dtype) for rank in range(plan.ranks)]
    if not plan.document["requirements"]:
        raise InvalidArgumentError(f"nobody has said what plan '{plan.name}' computes, so that it "
                                   "cannot be checked")
    segments: list[_Segments] = [[] for _ in range(plan.ranks)]
    size = next(buffer.item_bytes for buffer in buffers if buffer is not None)
    cut = plan._of_rank(0).chunking(count, size)
    for rank, chunk, number, contributions in plan.document["requirements"]:
        for i in range(number):
            parts = [values[r][_range(cut, c + i)] for r, c in contributions]
            segments[rank].append((_range(cut, chunk + i), *_reduced(parts, op, dtype, plan.ranks)))
    return segments


def _range(cut: Chunking, chunk: int) -> slice:
    return slice(cut.begin_in_buffer(chunk), cut.begin_in_buffer(chunk + 1))


_NAMED = {name: definition for name, definition in _abi.DEFINITIONS.items()
          if definition.promise == "Named"}


def _standard(plan: Plan, rank: int, values: list[Any], op: str, dtype: str) -> _Segments:
    import numpy

    n, definition, root = plan.ranks, _NAMED[plan.collective], int(plan.document["root"])
    everything = slice(None)
    if definition.output_of == "Root" and rank != root:
        return []
    if definition.input == "Whole":
        values = [numpy.split(array, n)[rank] for array in values]
    if definition.result == "Reduced":
        return [(everything, *_reduced(values, op, dtype, n))]
    if definition.output == "Whole":
        return [(everything, numpy.concatenate(values), 0)]
    return [(everything, values[root], 0)]


def _values(array: Any) -> Any:
    """A flat copy in numpy, of a type that numpy can calculate with."""
    import numpy

    if isinstance(array, tuple):
        array = array[-1]
    if is_torch(array):
        array = array.detach()
        array = (array.double() if array.is_floating_point() else array).numpy()
    array = numpy.array(array).ravel()
    return array if array.dtype.kind in "iub" else array.astype(numpy.float64)


def _reduced(parts: list[Any], op: str, dtype: str, ranks: int) -> tuple[Any, Any]:
    """The reduction, and by how much a correct result may differ. Contributions of one rank are
    copied, whatever the operation, but for an average."""
    import numpy

    stack = numpy.stack(parts)
    if op in ("min", "max") or dtype == _dtypes.BOOL:
        return (stack.min(axis=0) if op == "min" else stack.max(axis=0)), 0
    if dtype not in _dtypes.FLOATS:
        total = (stack.prod if op == "prod" else stack.sum)(axis=0, dtype=stack.dtype)
        if op != "avg":
            return total, 0
        quotient = numpy.abs(total) // ranks
        return numpy.where(total < 0, -quotient, quotient), 0
    total = stack.prod(axis=0) if op == "prod" else stack.sum(axis=0)
    scale = numpy.abs(total) if op == "prod" else numpy.abs(stack).sum(axis=0)
    divisor = ranks if op == "avg" else 1
    return total / divisor, scale / divisor * _EPSILON[dtype] * (len(parts) + 1)


def compare(plan: Plan, outputs: list[Any], wanted: list[_Segments]) -> None:
    """AssertionError at the first element that differs."""
    import numpy

    for rank, segments in enumerate(wanted):
        if outputs[rank] is None and not any(value.size for _, value, _ in segments):
            continue
        got = _values(_buffers.read(outputs[rank]).array)
        for place, value, tolerance in segments:
            part = got[place]
            with numpy.errstate(invalid="ignore"):
                off = abs(part - value) if got.dtype.kind == "f" else part != value
                right = (off <= tolerance) | (part == value) if got.dtype.kind == "f" else ~off
            if got.dtype.kind == "f":
                right |= numpy.isnan(part) & numpy.isnan(value)
            if not right.all():
                at = int(numpy.argmin(right))
                raise AssertionError(
                    f"plan '{plan.name}': element {at + (place.start or 0)} of rank {rank} is "
                    f"{part[at]}, and the collective is to make it {value[at]} "
                    f"({int((~right).sum())} of {right.size} elements differ)")

"""Calls of the C interface, made of arrays and checked."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from math import prod
from typing import Any

from . import _abi, _buffers, _dtypes
from ._buffers import Buffer
from ._cuda.streams import Place
from ._config import natural, timeout_ms
from ._errors import InvalidArgumentError
from .plan import Plan

_SIZE = ctypes.sizeof(_abi.Call)
_PLAN = _abi.KINDS["plan"]


class Prepared:
    """A call, what it gives its caller, and what has to live until it has ended."""

    __slots__ = ("call", "value", "keep", "place")

    def __init__(self, call: _abi.Call, value: Any, keep: tuple[Any, ...],
                 place: Place | None = None):
        self.call, self.value, self.keep, self.place = call, value, keep, place

    @property
    def buffers(self) -> list[Buffer]:
        return [one for one in self.keep if isinstance(one, Buffer)]


@dataclass(frozen=True, slots=True)
class Options:
    """What any call may have beside its arrays."""

    op: str = "sum"
    root: int = 0
    count: int | None = None
    scale: float | None = None
    timeout: float | None = None
    name: str | None = None


def op_of(op: str, buffer: Buffer) -> int:
    """occlRedOp_t of a name, for elements of the buffer's type."""
    code = _abi.OPS.get(op)
    if code is None:
        raise InvalidArgumentError(f"there is no operation {op!r}; there are {', '.join(_abi.OPS)}")
    if buffer.dtype == _dtypes.BOOL and op in ("sum", "avg"):
        raise InvalidArgumentError(f"elements are bool, of which there is no {op}: 'max' is any "
                                   "and 'min' is all")
    return code


def standard(kind: str, rank: int, size: int, array: Any, out: Any, op: str = "sum",
             root: int = 0, place: Place | None = None) -> Prepared:
    """A call of a standard collective, by its name of _abi.KINDS. `value` is the output; None on
    ranks that have none."""
    prepared = _standard(kind, rank, size, array, out, op, root, place)
    prepared.place = place
    return prepared


def _standard(kind: str, rank: int, size: int, array: Any, out: Any, op: str, root: int,
              place: Place | None) -> Prepared:
    root = natural(root, "root", size)
    if kind == "scatter" and rank != root:
        if out is None:
            raise InvalidArgumentError(f"scatter on rank {rank}, which is not the root ({root}): "
                                       "give out=, the array to store to")
        target = _buffers.write(out, place=place)
        return _prepared(kind, None, target, target.elements, 0, root, out)
    source = _buffers.read(array, place=place)
    definition = _abi.DEFINITIONS[kind]
    op_code = op_of(op, source) if definition.result == "Reduced" else 0
    if kind == "broadcast":
        if rank != root and not source.is_writable and source.capsule is not None:
            value, made = output(source, None, source.shape, place)  # JAX has no others
            return _prepared(kind, made, made, made.elements, 0, root, value)
        if rank != root and not source.is_writable:
            raise InvalidArgumentError("the array is read-only, and the call stores to it")
        return _prepared(kind, source, source, source.elements, 0, root, array)
    if definition.output_of == "Root" and rank != root:
        return _prepared(kind, source, None, source.elements, op_code, root, None)
    shape, count = _shape_and_count(definition, source, size)
    out, target = output(source, out, shape, place)
    return _prepared(kind, source, target, count, op_code, root, out)


def _prepared(kind: str, source: Buffer | None, target: Buffer | None, count: int, op: int,
              root: int, value: Any) -> Prepared:
    model = source or target
    assert model is not None
    call = _abi.Call(_SIZE, _abi.KINDS[kind], None, source and source.pointer,
                     target and target.pointer, count, model.code, op, root)
    return Prepared(call, value, (source, target))


def _shape_and_count(definition: _abi.Definition, source: Buffer,
                     size: int) -> tuple[tuple[int, ...], int]:
    """The output's shape, and the elements of a part."""
    shape = source.shape
    if definition.input == "Part":
        if definition.output == "Part":
            return shape, source.elements
        return ((size * shape[0], *shape[1:]) if shape else (size,)), source.elements
    if not shape or shape[0] % size:
        raise InvalidArgumentError(f"an array of shape {tuple(shape)} cannot be divided among "
                                   f"{size} ranks along its first dimension")
    out = shape if definition.output == "Whole" else (shape[0] // size, *shape[1:])
    return out, source.elements // size


def output(source: Buffer, out: Any, shape: tuple[int, ...],
           place: Place | None = None) -> tuple[Any, Buffer]:
    """`out`, or a new array, as a buffer with so many elements of the source's type."""
    if out is None:
        out = _buffers.empty_like(source, shape)
        target = _buffers.read(out, "out", place)  # nobody else has it, be it one that is constant
    elif out is source.array and source.is_writable:
        target = source
    else:
        target = _buffers.write(out, place=place)
    if target.code != source.code:
        raise InvalidArgumentError(f"out has elements of {target.dtype}, the array of "
                                   f"{source.dtype}")
    elements = prod(shape)
    if target.elements != elements:
        raise InvalidArgumentError(f"out has {target.elements} elements (shape "
                                   f"{tuple(target.shape)}), and the result {elements} (shape "
                                   f"{tuple(shape)})")
    return out, target


def of_plan(plan: Plan, rank: int, size: int, array: Any, out: Any, options: Options,
            model: Buffer | None = None, place: Place | None = None) -> Prepared:
    """A call of a plan. The model says the type where neither array nor out does."""
    if plan.ranks != size:
        raise InvalidArgumentError(f"plan '{plan.name}' is for {plan.ranks} ranks, and the "
                                   f"communicator has {size}")
    if array is None and out is None and model is None:
        raise InvalidArgumentError("neither array nor out is given")
    layout = plan._of_rank(rank)
    source = None if array is None else _buffers.read(array, place=place)
    target = None if out is None else _buffers.write(out, place=place)
    model = source or target or model
    assert model is not None
    count = options.count
    if count is None:
        from_output = source is None or layout.input_chunks == 0
        buffer = target if from_output and target is not None else model
        count = layout.count_of(buffer.elements, from_output, model.item_bytes)
    count = natural(count, "count")
    needed = layout.elements(layout.input_chunks, count, model.item_bytes)
    made = layout.elements(layout.output_chunks, count, model.item_bytes)
    if needed and (source is None or source.elements != needed):
        has = "no array" if source is None else f"{source.elements} elements"
        raise InvalidArgumentError(f"plan '{plan.name}' reads {needed} elements on rank {rank} "
                                   f"with count {count}, and is given {has}")
    if made:
        out, target = output(model, out, model.shape if made == model.elements else (made,), place)
    call = _abi.Call(_SIZE, _PLAN, plan._native(), source.pointer if source and needed else None,
                     target.pointer if target and made else None, count, model.code,
                     op_of(options.op, model))
    return Prepared(call, out, (source, target, plan, model), place)


def prepare(what: Plan | str, rank: int, size: int, array: Any, out: Any,
            options: Options, model: Buffer | None = None,
            place: Place | None = None) -> Prepared:
    """A call of a plan, or of a standard collective by name."""
    if isinstance(what, Plan):
        prepared = of_plan(what, rank, size, array, out, options, model, place)
    elif isinstance(what, str):
        kind = what.replace("_", "")
        if kind not in _abi.DEFINITIONS:
            raise InvalidArgumentError(f"there is no collective '{what}'; there are "
                                       f"{', '.join(_abi.STANDARD)}, and plans of one's own")
        prepared = standard(kind, rank, size, array, out, options.op, options.root, place)
    else:
        raise TypeError(f"the plan is a {type(what).__name__}; occl.compile and occl.load make "
                        "plans")
    _set_options(prepared, options)
    return prepared


def _set_options(prepared: Prepared, options: Options) -> None:
    call = prepared.call
    if options.timeout is not None:
        call.timeoutMs = timeout_ms(options.timeout)
    if options.name is not None:
        call.name = options.name.encode()
    if options.scale is not None:
        element = _element(options.scale, (prepared.keep[0] or prepared.keep[1]).dtype)
        call.scalar = element.ctypes.data
        prepared.keep += (element,)


def _element(scale: float, dtype: str) -> Any:
    """The factor as an array of one element, which has its value."""
    import numpy

    try:
        with numpy.errstate(invalid="ignore"):
            element = numpy.array([scale], dtype=_dtypes.numpy_dtype(dtype))
    except (OverflowError, ValueError):
        element = None
    if element is None or dtype not in _dtypes.FLOATS and element[0] != scale:
        raise InvalidArgumentError(f"scale {scale} is no {dtype}")
    return element

"""Tensors as OCCL's arrays: their checks, their elements as they lie in memory, and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributed import ReduceOp

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_NUMBERS = {dtype: dtype for dtype in (
    torch.uint8, torch.int8, torch.int32, torch.int64, torch.uint32, torch.uint64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)} | {
        torch.bool: torch.uint8, torch.complex64: torch.float32, torch.complex128: torch.float64}
"""The types that OCCL calculates with."""
_BITS = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)
_NAMES = {ReduceOp.SUM: "sum", ReduceOp.AVG: "avg", ReduceOp.PRODUCT: "prod", ReduceOp.MIN: "min",
          ReduceOp.MAX: "max", ReduceOp.PREMUL_SUM: "sum"}
_FORMATS = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)


@dataclass(frozen=True)
class Reduction:
    """How a reduction is executed."""

    op: str | None
    """OCCL's operation; None: it has none, so inputs are collected and reduced by PyTorch."""
    scale: float | None = None


def type_name(dtype: torch.dtype) -> str:
    """As PyTorch's texts have it: Float."""
    return torch.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


def flat(tensor: Tensor) -> Tensor:
    """The elements as they lie in memory, of a tensor that check() has passed."""
    return tensor.detach().as_strided((tensor.numel(),), (1,))


def raw(tensor: Tensor) -> Tensor:
    """The same as elements that OCCL can move: bytes where it lacks the type."""
    elements = flat(tensor)
    return elements.view(_NUMBERS.get(tensor.dtype, torch.uint8))


def overlap(one: Tensor, other: Tensor) -> bool:
    return (one.data_ptr() < other.data_ptr() + other.nbytes
            and other.data_ptr() < one.data_ptr() + one.nbytes)


def only(tensors: Tensor | Sequence[Tensor], operation: str) -> Tensor:
    if isinstance(tensors, Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(f"occl: {operation}: requires one tensor for each rank, not {len(tensors)}")
    return tensors[0]


def check(tensors: Sequence[Tensor], operation: str) -> None:
    """Raises ValueError or TypeError, as torch.distributed does, unless all are dense tensors of
    CPUs, of one type, whose elements lie in one order of dimensions: data go from place to place
    in memory."""
    if not tensors:
        raise ValueError(f"occl: {operation}: requires tensors")
    formats = set(_FORMATS)
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(f"occl: {operation}: the tensor is on {tensor.device}; the backend in "
                             "Python takes tensors on CPUs, the compiled one others, too "
                             "(docs/torch.md)")
        if tensor.layout != torch.strided:
            raise ValueError(f"occl: {operation}: Tensors must be dense, not sparse")
        if tensor.is_conj() or tensor.is_neg():
            raise ValueError(f"occl: {operation}: a tensor is a view that is conjugated or negated when it "
                             "is read: use resolve_conj(), resolve_neg()")
        own = {one for one in _FORMATS if tensor.is_contiguous(memory_format=one)}
        if not own:
            raise ValueError(f"occl: {operation}: Tensors must be contiguous")
        if tensor.dtype != tensors[0].dtype:
            raise TypeError(f"occl: {operation}: Tensors must have identical type, not "
                            f"{type_name(tensors[0].dtype)} and {type_name(tensor.dtype)}")
        if tensor.numel() > 1:
            formats &= own
    if not formats:
        raise ValueError(f"occl: {operation}: Tensors must all be contiguous, or all of one memory "
                         "format such as channels_last")


def reduction_of(dtype: torch.dtype, op: ReduceOp) -> Reduction:
    """Raises ValueError if PyTorch has no such operation for the type, or a factor is no number of
    it."""
    kind, factor = _parts(op)
    if dtype == torch.bool:
        return _of_bool(kind)
    if kind in _BITS and dtype in _INTEGERS:
        return Reduction(None)
    if dtype == torch.int16 and kind in _NAMES and kind != ReduceOp.PREMUL_SUM:
        return Reduction(None)
    is_complex = dtype.is_complex
    if kind not in _NAMES or dtype not in _NUMBERS or (
            is_complex and kind not in (ReduceOp.SUM, ReduceOp.AVG)):
        raise _refusal(dtype, kind)
    if kind != ReduceOp.PREMUL_SUM:
        return Reduction(_NAMES[kind])
    if not dtype.is_floating_point and not _is_whole(factor, dtype):
        raise ValueError(f"occl: the factor {factor} of PREMUL_SUM is no {type_name(dtype)}")
    return Reduction("sum", factor)


def _parts(op: ReduceOp) -> tuple[ReduceOp.RedOpType, float]:
    """The operation, and the factor of PREMUL_SUM, which is to be had where it is pickled."""
    if isinstance(op, ReduceOp.RedOpType):
        return op, 1.0
    kind, factor = op.__getstate__()
    return kind, float(factor) if factor is not None else 1.0


def _is_whole(factor: float, dtype: torch.dtype) -> bool:
    numbers = torch.iinfo(dtype)
    return numbers.min <= factor <= numbers.max and factor == int(factor)


def _of_bool(kind: ReduceOp.RedOpType) -> Reduction:
    """Bytes of 0 and 1: sums are "or", products are "and"."""
    if kind in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.BOR):
        return Reduction("max")
    if kind in (ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.BAND):
        return Reduction("min")
    if kind == ReduceOp.BXOR:
        return Reduction(None)
    raise _refusal(torch.bool, kind)


def _refusal(dtype: torch.dtype, kind: ReduceOp.RedOpType) -> ValueError:
    return ValueError(f"occl: cannot use ReduceOp.{kind.name} with {type_name(dtype)} tensors")


@torch.no_grad()
def reduce_locally(parts: Tensor, output: Tensor, op: ReduceOp) -> None:
    """Reduces parts[0], parts[1] ... into `output`, which has so many elements."""
    kind, _ = _parts(op)
    step = {ReduceOp.PRODUCT: torch.mul, ReduceOp.MIN: torch.minimum, ReduceOp.MAX: torch.maximum,
            ReduceOp.BAND: torch.bitwise_and, ReduceOp.BOR: torch.bitwise_or,
            ReduceOp.BXOR: torch.bitwise_xor}.get(kind, torch.add)
    total = parts[0]
    for part in parts[1:]:
        total = step(total, part)
    if kind == ReduceOp.AVG:
        total = torch.div(total, len(parts), rounding_mode="trunc")
    output.copy_(total)

// What folding means, element by element, for every data type and operation; the targets supply the
// loops. Sources are folded from left to right.
//
// Integers wrap around. 8-bit and 16-bit floats accumulate in float over all sources of one
// instruction and are rounded once. Average sums, and divides at the instruction that completes a
// chunk (integers truncate); whoever has divided the inputs of an average before folds them as
// sums. If any source of minimum or maximum is a NaN, so is the result. Which of two zeros is the
// smaller one is not defined.
#pragma once

#include "runtime/base/data_type.h"
#include "runtime/base/host_device.h"
#include "runtime/exec/reduce/float8.h"
#include "runtime/exec/reduce/half.h"

#include <cstdint>
#include <type_traits>

namespace occl::interpreter {

/// How elements lie in memory (Storage) and in what they are folded (Accumulator).
template <class T> struct Plain {
  using Storage = T;
  using Accumulator = T;
  static OCCL_INLINE T load(T value) { return value; }
  static OCCL_INLINE T store(T value) { return value; }
};

/// Of 8 or 16 bits: folded as floats, and rounded by kRound.
template <class T, T (*kRound)(float)> struct SmallFloat {
  using Storage = T;
  using Accumulator = float;
  static OCCL_INLINE float load(T value) { return toFloat(value); }
  static OCCL_INLINE T store(float value) { return kRound(value); }
};
using Float16Element = SmallFloat<Half, toHalf>;
using Bfloat16Element = SmallFloat<Bfloat16, toBfloat16>;
using Float8E4m3Element = SmallFloat<Float8E4m3, toFloat8E4m3>;
using Float8E5m2Element = SmallFloat<Float8E5m2, toFloat8E5m2>;

namespace detail {
/// Integers are added and multiplied as unsigned: wrapping is defined there.
template <class T, bool = std::is_integral_v<T>> struct Wrapping {
  using Type = std::make_unsigned_t<T>;
};
template <class T> struct Wrapping<T, false> { using Type = T; };
} // namespace detail

struct Sum {
  template <class T> static OCCL_INLINE T apply(T a, T b) {
    using U = typename detail::Wrapping<T>::Type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};

struct Product {
  template <class T> static OCCL_INLINE T apply(T a, T b) {
    using U = typename detail::Wrapping<T>::Type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};

/// Two selections, so that compilers vectorise it: the first is b if either is a NaN.
struct Minimum {
  template <class T> static OCCL_INLINE T apply(T a, T b) {
    T ordered = a < b ? a : b;
    return a != a ? a : ordered;
  }
};

struct Maximum {
  template <class T> static OCCL_INLINE T apply(T a, T b) {
    T ordered = a > b ? a : b;
    return a != a ? a : ordered;
  }
};

/// Towards zero. The divisor, a number of ranks, may exceed a type of 8 bits.
template <class T> OCCL_INLINE T divide(T value, uint64_t divisor) {
  using Divisor = std::conditional_t<sizeof(T) == 1, int32_t, T>;
  return static_cast<T>(value / static_cast<Divisor>(divisor));
}

/// Calls visitor.template operator()<Element, Operation>() for the type and operation.
OCCL_CALLS_ARGUMENT
template <class Element, class Visitor>
OCCL_INLINE auto dispatchOperation(ReduceOp op, Visitor &&visitor) {
  switch (op) {
  case ReduceOp::Prod:
    return visitor.template operator()<Element, Product>();
  case ReduceOp::Min:
    return visitor.template operator()<Element, Minimum>();
  case ReduceOp::Max:
    return visitor.template operator()<Element, Maximum>();
  case ReduceOp::Sum:
  case ReduceOp::Avg:
    break;
  }
  return visitor.template operator()<Element, Sum>();
}

OCCL_CALLS_ARGUMENT
template <class Visitor>
OCCL_INLINE auto dispatchFold(DataType type, ReduceOp op, Visitor &&visitor) {
  switch (type) {
  case DataType::Uint8:
    return dispatchOperation<Plain<uint8_t>>(op, visitor);
  case DataType::Int8:
    return dispatchOperation<Plain<int8_t>>(op, visitor);
  case DataType::Uint32:
    return dispatchOperation<Plain<uint32_t>>(op, visitor);
  case DataType::Uint64:
    return dispatchOperation<Plain<uint64_t>>(op, visitor);
  case DataType::Int32:
    return dispatchOperation<Plain<int32_t>>(op, visitor);
  case DataType::Int64:
    return dispatchOperation<Plain<int64_t>>(op, visitor);
  case DataType::Float16:
    return dispatchOperation<Float16Element>(op, visitor);
  case DataType::Bfloat16:
    return dispatchOperation<Bfloat16Element>(op, visitor);
  case DataType::Float8E4m3:
    return dispatchOperation<Float8E4m3Element>(op, visitor);
  case DataType::Float8E5m2:
    return dispatchOperation<Float8E5m2Element>(op, visitor);
  case DataType::Float64:
    return dispatchOperation<Plain<double>>(op, visitor);
  case DataType::Float32:
    break;
  }
  return dispatchOperation<Plain<float>>(op, visitor);
}

} // namespace occl::interpreter

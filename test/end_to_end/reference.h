// What collectives must give, computed from their definitions by plain loops: shares no code with
// what it checks.
//
// Inputs are small integers, so that every sum and product is exact in every type and no order of
// reduction can be told from another; an average is then one correctly rounded division, whether
// the inputs are divided or their sum.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/exec/reduce/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace occl::test {

using Bytes = std::vector<uint8_t>;

inline size_t sizeOf(occlDataType_t type) {
  switch (type) {
  case occlUint8:
  case occlInt8:
  case occlFloat8E4m3:
  case occlFloat8E5m2:
    return 1;
  case occlFloat16:
  case occlBfloat16:
    return 2;
  case occlInt32:
  case occlUint32:
  case occlFloat32:
    return 4;
  case occlInt64:
  case occlUint64:
  case occlFloat64:
    return 8;
  }
  return 0;
}

/// Element `index` of rank `rank`'s input. Over 16 ranks products stay within the 11 bits of a half
/// and below the 448 of the smaller 8-bit float, sums of 8-bit floats within their integers up
/// to 8.
inline int64_t inputValue(uint32_t rank, uint64_t index, occlDataType_t type, occlRedOp_t op) {
  uint64_t mixed = (index * 2654435761u + rank * 40503u + 12345u) >> 7;
  if (op == occlProd)
    return rank < 8 && mixed % 3 == 0 ? 2 : 1;
  if (type == occlFloat8E4m3 || type == occlFloat8E5m2)
    return (rank + index) % 8 == 0 ? static_cast<int64_t>(mixed % 5) : 0;
  return static_cast<int64_t>(mixed % 15);
}

/// The same of an average of floats: what the number of ranks divides, or, in 8 bits, which have
/// no such numbers for some, one that only one rank gives.
inline int64_t averagedValue(uint32_t rank, uint64_t index, occlDataType_t type, uint32_t ranks) {
  if (type != occlFloat8E4m3 && type != occlFloat8E5m2)
    return inputValue(rank, index, type, occlAvg) * ranks;
  return index % ranks == rank ? int64_t{1} << index / ranks % 4 : 0;
}

/// A number from 0 to 448 as a float of 8 bits, rounded to nearest even; 0 is the pattern 0, and
/// the patterns go up with the numbers.
inline uint8_t float8Bits(double value, occlDataType_t type) {
  int mantissaBits = type == occlFloat8E4m3 ? 3 : 2, bias = type == occlFloat8E4m3 ? 7 : 15;
  int exponent = value == 0 ? 1 - bias : std::max(std::ilogb(value), 1 - bias);
  double units = std::nearbyint(std::ldexp(value, mantissaBits - exponent));
  return static_cast<uint8_t>(((exponent + bias - 1) << mantissaBits) + static_cast<int>(units));
}

/// The bytes of `value / divisor` (divisor 1: of an integer) in the given type, rounded to nearest
/// even; integers truncate.
inline void store(uint8_t *to, occlDataType_t type, int64_t value, int64_t divisor) {
  double quotient = static_cast<double>(value) / static_cast<double>(divisor);
  auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  switch (type) {
  case occlUint8:
    return put(static_cast<uint8_t>(static_cast<uint8_t>(value) / divisor));
  case occlInt8:
    return put(static_cast<int8_t>(static_cast<int8_t>(value) / divisor));
  case occlUint32:
    return put(static_cast<uint32_t>(value / divisor));
  case occlUint64:
  case occlInt32:
    return put(static_cast<int32_t>(value / divisor));
  case occlInt64:
    return put(static_cast<int64_t>(value / divisor));
  case occlFloat16:
    return put(static_cast<_Float16>(quotient));
  case occlFloat32:
    return put(static_cast<float>(quotient));
  case occlFloat64:
    return put(quotient);
  case occlBfloat16: {
    float wide = static_cast<float>(quotient);
    uint32_t bits;
    std::memcpy(&bits, &wide, 4);
    return put(static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
  }
  case occlFloat8E4m3:
  case occlFloat8E5m2:
    return put(float8Bits(quotient, type));
  }
}

/// One call of a collective: n ranks, `count` elements in a part; in a chunk, if parts differ in
/// size.
struct Case {
  std::string collective;
  uint32_t ranks;
  uint64_t count;
  occlDataType_t type = occlFloat32;
  occlRedOp_t op = occlSum;
  uint32_t root = 0;   // of rooted collectives; of a sendrecv, who sends
  uint32_t target = 1; // of a sendrecv
  /// Where parts differ in size: the chunks of each rank; of an alltoallv, those of each rank for
  /// each rank.
  std::vector<uint32_t> counts = {};

  /// Whether it is the collective `name`, or that with parts that differ in size.
  bool is(const std::string &name) const {
    return collective == name || (!counts.empty() && collective == name + "v");
  }

  /// Elements of a rank's buffers.
  uint64_t inputElements(uint32_t rank) const {
    if (is("broadcast") || is("sendrecv"))
      return rank == root ? count : 0;
    if (is("scatter"))
      return rank == root ? begin(ranks) : 0;
    if (is("alltoall"))
      return sentBefore(rank, ranks);
    if (is("reducescatter"))
      return begin(ranks);
    return is("allgather") || is("gather") ? part(rank) : count;
  }
  uint64_t outputElements(uint32_t rank) const {
    if (is("reduce"))
      return rank == root ? count : 0;
    if (is("sendrecv"))
      return rank == target ? count : 0;
    if (is("gather"))
      return rank == root ? begin(ranks) : 0;
    if (is("alltoall"))
      return receivedBefore(rank, ranks);
    if (is("allgather"))
      return begin(ranks);
    return is("reducescatter") || is("scatter") ? part(rank) : count;
  }

  bool hasInPlace() const { return !is("alltonext") && !is("sendrecv") && !is("alltoall"); }
  /// In place: where a rank's input begins, in elements from the begin of its output.
  int64_t inPlaceOffset(uint32_t rank) const {
    auto before = static_cast<int64_t>(begin(rank));
    if (is("allgather") || is("gather"))
      return before;
    return is("reducescatter") || is("scatter") ? -before : 0;
  }

  /// Whether the collective says what a rank's output holds; it may hold anything else.
  bool promisesOutput(uint32_t rank) const { return !is("alltonext") || rank > 0; }
  /// Whether its results can be averages: partial sums are none.
  bool hasAverage() const { return !is("scan"); }

  Bytes input(uint32_t rank) const {
    Bytes bytes(inputElements(rank) * sizeOf(type));
    for (uint64_t i = 0; i < inputElements(rank); ++i)
      store(&bytes[i * sizeOf(type)], type, value(rank, i), 1);
    return bytes;
  }

  Bytes output(uint32_t rank) const {
    Bytes bytes(outputElements(rank) * sizeOf(type));
    for (uint64_t i = 0; i < outputElements(rank); ++i)
      storeOutput(rank, i, &bytes[i * sizeOf(type)]);
    return bytes;
  }

private:
  int64_t value(uint32_t rank, uint64_t index) const {
    const bool isFloat = occlFloat16 <= type && type <= occlFloat8E5m2;
    return isFloat && op == occlAvg ? averagedValue(rank, index, type, ranks)
                                    : inputValue(rank, index, type, op);
  }

  /// Elements of a rank's part, and of the parts of all ranks before it.
  uint64_t part(uint32_t rank) const { return count * (counts.empty() ? 1 : counts[rank]); }
  uint64_t begin(uint32_t rank) const {
    uint64_t sum = 0;
    for (uint32_t before = 0; before < rank; ++before)
      sum += part(before);
    return sum;
  }

  /// Of an all-to-all: elements that `from` has for `to`, for all ranks before `to`, and that `to`
  /// gets from all before `from`.
  uint64_t part(uint32_t from, uint32_t to) const {
    return count * (counts.empty() ? 1 : counts[from * ranks + to]);
  }
  uint64_t sentBefore(uint32_t from, uint32_t to) const {
    uint64_t sum = 0;
    for (uint32_t before = 0; before < to; ++before)
      sum += part(from, before);
    return sum;
  }
  uint64_t receivedBefore(uint32_t to, uint32_t from) const {
    uint64_t sum = 0;
    for (uint32_t before = 0; before < from; ++before)
      sum += part(before, to);
    return sum;
  }

  void storeOutput(uint32_t rank, uint64_t i, uint8_t *to) const {
    if (is("allreduce") || is("reduce"))
      return storeReduction(i, ranks, to);
    if (is("reducescatter"))
      return storeReduction(begin(rank) + i, ranks, to);
    if (is("scan"))
      return storeReduction(i, rank + 1, to);
    auto [from, index] = origin(rank, i);
    store(to, type, value(from, index), 1);
  }

  /// The rank and the element of its input that element `i` of a rank's output is a copy of.
  std::pair<uint32_t, uint64_t> origin(uint32_t rank, uint64_t i) const {
    if (is("broadcast") || is("sendrecv"))
      return {root, i};
    if (is("scatter"))
      return {root, begin(rank) + i};
    if (is("alltonext"))
      return {rank ? rank - 1 : 0, i};
    uint32_t from = 0;
    if (is("alltoall")) {
      while (receivedBefore(rank, from + 1) <= i)
        ++from;
      return {from, sentBefore(from, rank) + i - receivedBefore(rank, from)};
    }
    while (begin(from + 1) <= i)
      ++from;
    return {from, i - begin(from)};
  }

  /// Over the first `contributors` ranks.
  void storeReduction(uint64_t index, uint32_t contributors, uint8_t *to) const {
    int64_t result = value(0, index);
    for (uint32_t rank = 1; rank < contributors; ++rank)
      result = reference::reduce(op, result, value(rank, index));
    store(to, type, result, op == occlAvg ? ranks : 1);
  }
};

} // namespace occl::test

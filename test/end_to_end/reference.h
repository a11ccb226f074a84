// What collectives must give, computed from their definitions by plain loops: shares no code with the compiler or the runtime.
//
// Inputs are small integers, so that every sum and product is exact in every type and no order of reduction can be told
// from another; an average is then one correctly rounded division.
#pragma once

#include "runtime/communicator/occl.h"

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
    return 1;
  case occlFloat16:
  case occlBfloat16:
    return 2;
  case occlInt32:
  case occlFloat32:
    return 4;
  case occlInt64:
  case occlFloat64:
    return 8;
  }
  return 0;
}

/// Element `index` of rank `rank`'s input. Products over 16 ranks stay within the 11 bits of a half.
inline int64_t inputValue(uint32_t rank, uint64_t index, occlRedOp_t op) {
  uint64_t mixed = (index * 2654435761u + rank * 40503u + 12345u) >> 7;
  return op == occlProd ? (rank < 8 && mixed % 3 == 0 ? 2 : 1) : static_cast<int64_t>(mixed % 15);
}

/// The bytes of `value / divisor` (divisor 1: of an integer) in the given type, rounded to nearest even; integers truncate.
inline void store(uint8_t *to, occlDataType_t type, int64_t value, int64_t divisor) {
  double quotient = static_cast<double>(value) / static_cast<double>(divisor);
  auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  switch (type) {
  case occlUint8:
    return put(static_cast<uint8_t>(static_cast<uint8_t>(value) / divisor));
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
  }
}

/// One call of a collective: n ranks, `count` elements in a part.
struct Case {
  std::string collective;
  uint32_t ranks;
  uint64_t count;
  occlDataType_t type = occlFloat32;
  occlRedOp_t op = occlSum;
  uint32_t root = 0;   // of rooted collectives; of a sendrecv, who sends
  uint32_t target = 1; // of a sendrecv

  bool is(const char *name) const { return collective == name; }

  /// Elements of a rank's buffers.
  uint64_t inputElements(uint32_t rank) const {
    if (is("broadcast") || is("sendrecv"))
      return rank == root ? count : 0;
    if (is("scatter"))
      return rank == root ? ranks * count : 0;
    return is("reducescatter") || is("alltoall") ? ranks * count : count;
  }
  uint64_t outputElements(uint32_t rank) const {
    if (is("reduce"))
      return rank == root ? count : 0;
    if (is("sendrecv"))
      return rank == target ? count : 0;
    if (is("gather"))
      return rank == root ? ranks * count : 0;
    return is("allgather") || is("alltoall") ? ranks * count : count;
  }

  bool hasInPlace() const { return !is("alltoall") && !is("alltonext") && !is("sendrecv"); }
  /// In place: where a rank's input begins, in elements from the begin of its output.
  int64_t inPlaceOffset(uint32_t rank) const {
    auto parts = static_cast<int64_t>(rank * count);
    if (is("allgather") || is("gather"))
      return parts;
    return is("reducescatter") || is("scatter") ? -parts : 0;
  }

  /// Whether the collective says what a rank's output holds; it may hold anything else.
  bool promisesOutput(uint32_t rank) const { return !is("alltonext") || rank > 0; }

  Bytes input(uint32_t rank) const {
    Bytes bytes(inputElements(rank) * sizeOf(type));
    for (uint64_t i = 0; i < inputElements(rank); ++i)
      store(&bytes[i * sizeOf(type)], type, inputValue(rank, i, op), 1);
    return bytes;
  }

  Bytes output(uint32_t rank) const {
    Bytes bytes(outputElements(rank) * sizeOf(type));
    for (uint64_t i = 0; i < outputElements(rank); ++i)
      storeOutput(rank, i, &bytes[i * sizeOf(type)]);
    return bytes;
  }

private:
  void storeOutput(uint32_t rank, uint64_t i, uint8_t *to) const {
    if (is("allreduce") || is("reduce"))
      return storeReduction(i, ranks, to);
    if (is("reducescatter"))
      return storeReduction(rank * count + i, ranks, to);
    if (is("scan"))
      return storeReduction(i, rank + 1, to);
    auto [from, index] = origin(rank, i);
    store(to, type, inputValue(from, index, op), 1);
  }

  /// The rank and the element of its input that element `i` of a rank's output is a copy of.
  std::pair<uint32_t, uint64_t> origin(uint32_t rank, uint64_t i) const {
    if (is("broadcast") || is("sendrecv"))
      return {root, i};
    if (is("scatter"))
      return {root, rank * count + i};
    if (is("alltonext"))
      return {rank ? rank - 1 : 0, i};
    uint64_t within = i % count;
    return {static_cast<uint32_t>(i / count), is("alltoall") ? rank * count + within : within};
  }

  /// Over the first `contributors` ranks.
  void storeReduction(uint64_t index, uint32_t contributors, uint8_t *to) const {
    int64_t result = inputValue(0, index, op);
    for (uint32_t rank = 1; rank < contributors; ++rank) {
      int64_t value = inputValue(rank, index, op);
      if (op == occlSum || op == occlAvg)
        result += value;
      else if (op == occlProd)
        result *= value;
      else
        result = (op == occlMin) == (value < result) ? value : result;
    }
    store(to, type, result, op == occlAvg ? ranks : 1);
  }
};

} // namespace occl::test

// What collectives are defined to do (plan/collectives), computed by plain loops in double or
// 64-bit integers. Shares no code with the interpreter.
#pragma once

#include "runtime/base/data_type.h"

#include <cstdint>
#include <string>
#include <vector>

namespace occl::interpreter::conformance {

/// One rank's buffer as numbers: every element of every data type is exact in one of the two, of
/// uint64 the bits as int64.
struct Numbers {
  std::vector<double> floats;
  std::vector<int64_t> integers;
};

/// Elements of buffers from and to bytes of the data type. Numbers that the type cannot hold are
/// rounded to nearest even (of 8 bits: to the largest if too large), or wrapped.
std::vector<char> encode(const Numbers &numbers, DataType type);
Numbers decode(const char *bytes, uint64_t elements, DataType type);

/// What rank `rank`'s output holds at the end; empty if it has none. Collectives: the
/// standard ones, and shift (the output is the input of the rank before). Folds in rank order;
/// exact only if all partial results are.
Numbers expectedOutput(const std::string &collective, const std::vector<Numbers> &inputs,
                       uint32_t rank, uint32_t root, uint64_t count, DataType type, ReduceOp op);

/// Each times a number, which is an integer for integers; they wrap.
Numbers multiplied(const Numbers &numbers, double by, DataType type);

/// Random inputs whose folds are exact in any order in every data type; of averages only
/// where the sum is divided. multiplied() by the number of ranks, averages are exact either way.
Numbers exactInput(uint64_t elements, DataType type, ReduceOp op, uint64_t seed);

} // namespace occl::interpreter::conformance

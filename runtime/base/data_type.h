// Element types and reduction operations, as the runtime calls them.
#pragma once

#include <cstdint>

namespace occl {

/// The values are those of occlDataType_t (the communicator asserts it).
enum class DataType : uint8_t {
  Uint8,
  Int32,
  Int64,
  Float16,
  Bfloat16,
  Float32,
  Float64,
  Float8E4m3,
  Float8E5m2,
  Int8,
  Uint32,
  Uint64
};
inline constexpr unsigned kNumDataTypes = 12;

/// The values are those of occlRedOp_t (the communicator asserts it).
enum class ReduceOp : uint8_t { Sum, Prod, Min, Max, Avg };
inline constexpr unsigned kNumReduceOps = 5;

/// Bytes of an element.
constexpr uint64_t sizeOf(DataType type) {
  constexpr uint8_t sizes[kNumDataTypes] = {1, 4, 8, 2, 2, 4, 8, 1, 1, 1, 4, 8};
  return sizes[static_cast<unsigned>(type)];
}

constexpr bool isFloat(DataType type) {
  return DataType::Float16 <= type && type <= DataType::Float8E5m2;
}

constexpr const char *nameOf(DataType type) {
  constexpr const char *names[kNumDataTypes] = {"uint8",       "int32",   "int64",   "float16",
                                                "bfloat16",    "float32", "float64", "float8_e4m3",
                                                "float8_e5m2", "int8",    "uint32",  "uint64"};
  return names[static_cast<unsigned>(type)];
}

constexpr const char *nameOf(ReduceOp op) {
  constexpr const char *names[kNumReduceOps] = {"sum", "prod", "min", "max", "avg"};
  return names[static_cast<unsigned>(op)];
}

} // namespace occl

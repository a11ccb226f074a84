// Element types and reduction operations, as the runtime calls them.
#pragma once

#include <cstdint>

namespace occl {

/// The values are those of occlDataType_t (the communicator asserts it).
enum class DataType : uint8_t {
#define OCCL_DATA_TYPE(enumerator, ...) enumerator,
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE
};
inline constexpr unsigned kNumDataTypes = 0
#define OCCL_DATA_TYPE(...) +1
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE
    ;

/// The values are those of occlRedOp_t (the communicator asserts it).
enum class ReduceOp : uint8_t {
#define OCCL_REDUCE_OP(enumerator, ...) enumerator,
#include "runtime/base/reduce_op.def"
#undef OCCL_REDUCE_OP
};
inline constexpr unsigned kNumReduceOps = 0
#define OCCL_REDUCE_OP(...) +1
#include "runtime/base/reduce_op.def"
#undef OCCL_REDUCE_OP
    ;

/// Bytes of an element.
constexpr uint64_t sizeOf(DataType type) {
  constexpr uint8_t sizes[kNumDataTypes] = {
#define OCCL_DATA_TYPE(enumerator, name, bytes) bytes,
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE
  };
  return sizes[static_cast<unsigned>(type)];
}

constexpr bool isFloat(DataType type) {
  return DataType::Float16 <= type && type <= DataType::Float8E5m2;
}

constexpr const char *nameOf(DataType type) {
  constexpr const char *names[kNumDataTypes] = {
#define OCCL_DATA_TYPE(enumerator, name, bytes) name,
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE
  };
  return names[static_cast<unsigned>(type)];
}

constexpr const char *nameOf(ReduceOp op) {
  constexpr const char *names[kNumReduceOps] = {
#define OCCL_REDUCE_OP(enumerator, name) name,
#include "runtime/base/reduce_op.def"
#undef OCCL_REDUCE_OP
  };
  return names[static_cast<unsigned>(op)];
}

} // namespace occl

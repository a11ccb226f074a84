// Buffers of any element type, seen as numbers. Written apart from the runtime's own conversions,
// which it checks.
#pragma once

#include "runtime/api/occl.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::run {

uint32_t elementBytes(occlDataType_t type);

/// Element `index` of a buffer. Every value of every type but large int64 and uint64 is a double.
double loadElement(occlDataType_t type, const std::byte *buffer, uint64_t index);
/// `value` must be one of the type.
void storeElement(occlDataType_t type, std::byte *buffer, uint64_t index, double value);

bool isFloating(occlDataType_t type);
bool isUnsigned(occlDataType_t type);

/// Whether `got` is the correct result `expected`, which was computed without rounding: integers
/// wrap, floating-point results may be off by one rounding.
bool isCorrect(occlDataType_t type, double expected, double got);

/// By the names of runtime/base/data_type.def, and half, float, double.
const std::vector<std::pair<std::string, occlDataType_t>> &dataTypes();
/// By the names of runtime/base/reduce_op.def: "sum", "prod", ...
const std::vector<std::pair<std::string, occlRedOp_t>> &operations();

} // namespace occl::run

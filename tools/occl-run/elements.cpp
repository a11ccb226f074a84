#include "tools/occl-run/elements.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace occl::run {
namespace {

/// The upper half of a float.
struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  explicit Bfloat16(double value)
      : bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16)) {}
  explicit operator double() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

/// Calls `action` with a value-initialised element of the type.
template <class Action> auto withType(occlDataType_t type, Action action) {
  switch (type) {
  case occlUint8:
    return action(uint8_t());
  case occlInt32:
    return action(int32_t());
  case occlInt64:
    return action(int64_t());
  case occlFloat16:
    return action(_Float16());
  case occlBfloat16:
    return action(Bfloat16());
  case occlFloat32:
    return action(float());
  case occlFloat64:
    return action(double());
  }
  __builtin_unreachable();
}

/// Half a unit in the last place, relative: what one rounding may change. 0 for integers.
double roundingOf(occlDataType_t type) {
  switch (type) {
  case occlFloat16:
    return 0x1p-11;
  case occlBfloat16:
    return 0x1p-8;
  case occlFloat32:
    return 0x1p-24;
  case occlFloat64:
    return 0x1p-53;
  default:
    return 0;
  }
}

} // namespace

uint32_t elementBytes(occlDataType_t type) {
  return withType(type, [](auto zero) { return static_cast<uint32_t>(sizeof zero); });
}

double loadElement(occlDataType_t type, const std::byte *buffer, uint64_t index) {
  return withType(type, [&](auto element) {
    std::memcpy(&element, buffer + index * sizeof element, sizeof element);
    return static_cast<double>(element);
  });
}

void storeElement(occlDataType_t type, std::byte *buffer, uint64_t index, double value) {
  withType(type, [&](auto zero) {
    auto element = static_cast<decltype(zero)>(value);
    std::memcpy(buffer + index * sizeof element, &element, sizeof element);
  });
}

bool isCorrect(occlDataType_t type, double expected, double got) {
  if (type == occlUint8)
    return got == static_cast<double>(static_cast<int64_t>(expected) & 0xff);
  return std::abs(got - expected) <= std::abs(expected) * roundingOf(type);
}

const std::vector<std::pair<std::string, occlDataType_t>> &dataTypes() {
  static const std::vector<std::pair<std::string, occlDataType_t>> types = {
      {"uint8", occlUint8},     {"int32", occlInt32},       {"int64", occlInt64},
      {"float16", occlFloat16}, {"bfloat16", occlBfloat16}, {"float32", occlFloat32},
      {"float64", occlFloat64}, {"half", occlFloat16},      {"float", occlFloat32},
      {"double", occlFloat64},
  };
  return types;
}

const std::vector<std::pair<std::string, occlRedOp_t>> &operations() {
  static const std::vector<std::pair<std::string, occlRedOp_t>> operations = {
      {"sum", occlSum}, {"prod", occlProd}, {"min", occlMin}, {"max", occlMax}, {"avg", occlAvg},
  };
  return operations;
}

} // namespace occl::run

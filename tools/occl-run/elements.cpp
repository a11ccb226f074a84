#include "tools/occl-run/elements.h"

#include <algorithm>
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

/// A float of 8 bits. Only numbers it holds exactly are stored.
template <int kMantissaBits, int kBias> struct Float8 {
  uint8_t bits = 0;

  Float8() = default;
  explicit Float8(double value) : bits(std::signbit(value) ? 0x80 : 0) {
    int exponent = value == 0 ? 1 - kBias : std::max(std::ilogb(value), 1 - kBias);
    auto units = static_cast<int>(std::ldexp(std::abs(value), kMantissaBits - exponent));
    bits = static_cast<uint8_t>(bits + ((exponent + kBias - 1) << kMantissaBits) + units);
  }
  explicit operator double() const {
    int exponent = (bits & 0x7f) >> kMantissaBits, mantissa = bits & ((1 << kMantissaBits) - 1);
    double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - kBias - kMantissaBits)
                                     : std::ldexp(mantissa + (1 << kMantissaBits),
                                                  exponent - kBias - kMantissaBits);
    return bits & 0x80 ? -magnitude : magnitude;
  }
};
using Float8E4m3 = Float8<3, 7>;
using Float8E5m2 = Float8<2, 15>;

/// Calls `action` with a value-initialised element of the type.
template <class Action> auto withType(occlDataType_t type, Action action) {
  // A function for each type at compile time: the callers' loops are instantiated once a type,
  // without a switch for each element.
  switch (type) {
  case occlUint8:
    return action(uint8_t());
  case occlInt8:
    return action(int8_t());
  case occlInt32:
    return action(int32_t());
  case occlUint32:
    return action(uint32_t());
  case occlInt64:
    return action(int64_t());
  case occlUint64:
    return action(uint64_t());
  case occlFloat16:
    return action(_Float16());
  case occlBfloat16:
    return action(Bfloat16());
  case occlFloat32:
    return action(float());
  case occlFloat64:
    return action(double());
  case occlFloat8E4m3:
    return action(Float8E4m3());
  case occlFloat8E5m2:
    return action(Float8E5m2());
  }
  __builtin_unreachable();
}

/// Half a unit in the last place, relative: what one rounding may change. 0 for integers.
double roundingOf(occlDataType_t type) {
  // Half of 2 to the power of minus the stored bits of the fraction: 10, 7, 23, 52, 3, 2.
  switch (type) {
  case occlFloat16:
    return 0x1p-11;
  case occlBfloat16:
    return 0x1p-8;
  case occlFloat32:
    return 0x1p-24;
  case occlFloat64:
    return 0x1p-53;
  case occlFloat8E4m3:
    return 0x1p-4;
  case occlFloat8E5m2:
    return 0x1p-3;
  default:
    return 0;
  }
}

} // namespace

bool isFloating(occlDataType_t type) { return roundingOf(type) != 0; }
bool isUnsigned(occlDataType_t type) {
  return type == occlUint8 || type == occlUint32 || type == occlUint64;
}

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
  if (type == occlInt8)
    return got == static_cast<double>(static_cast<int8_t>(static_cast<int64_t>(expected)));
  return std::abs(got - expected) <= std::abs(expected) * roundingOf(type);
}

const std::vector<std::pair<std::string, occlDataType_t>> &dataTypes() {
  static const std::vector<std::pair<std::string, occlDataType_t>> types = {
// The list of types that the runtime has, and names that people know from C.
#define OCCL_DATA_TYPE(enumerator, name, bytes) {name, occl##enumerator},
#include "runtime/base/data_type.def"
#undef OCCL_DATA_TYPE
      {"half", occlFloat16},
      {"float", occlFloat32},
      {"double", occlFloat64},
  };
  return types;
}

const std::vector<std::pair<std::string, occlRedOp_t>> &operations() {
  static const std::vector<std::pair<std::string, occlRedOp_t>> operations = {
#define OCCL_REDUCE_OP(enumerator, name) {name, occl##enumerator},
#include "runtime/base/reduce_op.def"
#undef OCCL_REDUCE_OP
  };
  return operations;
}

} // namespace occl::run

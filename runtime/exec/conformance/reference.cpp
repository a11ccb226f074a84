#include "runtime/exec/conformance/reference.h"

#include "plan/collectives/collectives.h"
#include "runtime/exec/reduce/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace occl::interpreter::conformance {

namespace {

/// The bits of `value` in a format of 1 sign bit, `exponentBits`, `mantissaBits`, rounded to
/// nearest even by counting in units of the last place.
uint16_t encodeSmallFloat(double value, int exponentBits, int mantissaBits) {
  int bias = (1 << (exponentBits - 1)) - 1, maxExponent = bias;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t infinity = static_cast<uint16_t>(((1 << exponentBits) - 1) << mantissaBits);
  if (std::isnan(value))
    return static_cast<uint16_t>(infinity | 1 << (mantissaBits - 1));
  double magnitude = std::abs(value);
  if (std::isinf(magnitude))
    return sign | infinity;
  if (magnitude == 0)
    return sign;
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  double units = std::nearbyint(std::scalbn(magnitude, mantissaBits - exponent));
  if (units == std::scalbn(2.0, mantissaBits)) {
    units /= 2;
    ++exponent;
  }
  if (exponent > maxExponent)
    return sign | infinity;
  int mantissa = static_cast<int>(units), implicitOne = 1 << mantissaBits;
  int bits = mantissa < implicitOne ? mantissa
                                    : (exponent + bias) << mantissaBits | (mantissa - implicitOne);
  return static_cast<uint16_t>(sign | bits);
}

double decodeSmallFloat(uint16_t bits, int exponentBits, int mantissaBits) {
  int bias = (1 << (exponentBits - 1)) - 1;
  int exponent = (bits & 0x7fff) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
  double magnitude;
  if (exponent == (1 << exponentBits) - 1)
    magnitude = mantissa != 0 ? NAN : INFINITY;
  else if (exponent == 0)
    magnitude = std::scalbn(mantissa, 1 - bias - mantissaBits);
  else
    magnitude = std::scalbn(mantissa + (1 << mantissaBits), exponent - bias - mantissaBits);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// e5m2 is a small float whose overflow is its largest number; e4m3 has, instead of infinity and
/// most of the NaNs, one more binade up to 448.
uint8_t encodeFloat8(double value, DataType type) {
  bool isE5m2 = type == DataType::Float8E5m2;
  double largest = isE5m2 ? 57344 : 448;
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return sign | 0x7f;
  double magnitude = std::min(std::abs(value), largest);
  if (isE5m2)
    return sign | static_cast<uint8_t>(std::min<int>(encodeSmallFloat(magnitude, 5, 2), 0x7b));
  if (magnitude < 248) // 240 is the largest of a small float of these widths
    return sign | static_cast<uint8_t>(encodeSmallFloat(magnitude, 4, 3));
  int eighths = static_cast<int>(std::nearbyint(magnitude / 32)); // of 256: 8 to 14
  return sign | static_cast<uint8_t>(0x78 + (eighths - 8));
}

double decodeFloat8(uint8_t bits, DataType type) {
  int magnitude = bits & 0x7f;
  double value;
  if (type == DataType::Float8E5m2)
    value = decodeSmallFloat(static_cast<uint16_t>(magnitude), 5, 2);
  else if (magnitude < 0x78)
    value = decodeSmallFloat(static_cast<uint16_t>(magnitude), 4, 3);
  else
    value = magnitude == 0x7f ? NAN : 256 + 32 * (magnitude - 0x78);
  return bits & 0x80 ? -value : value;
}

template <class T, class From> void append(std::vector<char> &bytes, From value) {
  T element = static_cast<T>(value);
  const char *begin = reinterpret_cast<const char *>(&element);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

template <class T> T read(const char *bytes, uint64_t index) {
  T element;
  std::memcpy(&element, bytes + index * sizeof(T), sizeof(T));
  return element;
}

int64_t wrapped(uint64_t value, DataType type) {
  switch (type) {
  case DataType::Uint8:
    return static_cast<uint8_t>(value);
  case DataType::Int8:
    return static_cast<int8_t>(static_cast<uint8_t>(value));
  case DataType::Int32:
    return static_cast<int32_t>(static_cast<uint32_t>(value));
  case DataType::Uint32:
    return static_cast<uint32_t>(value);
  default: // of uint64 the bits
    return static_cast<int64_t>(value);
  }
}

int64_t average(int64_t sum, uint64_t ranks, DataType type) {
  return type == DataType::Uint64 ? static_cast<int64_t>(static_cast<uint64_t>(sum) / ranks)
                                  : sum / static_cast<int64_t>(ranks);
}

/// As the interface has it, in the same order (runtime/base/reduce_op.def).
occlRedOp_t ofInterface(ReduceOp op) { return static_cast<occlRedOp_t>(op); }

int64_t reduceIntegers(int64_t a, int64_t b, ReduceOp op, DataType type) {
  if (type == DataType::Uint64)
    return static_cast<int64_t>(
        reference::reduce(ofInterface(op), static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  return wrapped(static_cast<uint64_t>(reference::reduce(ofInterface(op), a, b)), type);
}

/// Elements [first, first + count) of all ranks, folded in rank order.
Numbers foldAll(const std::vector<Numbers> &inputs, uint64_t first, uint64_t count, DataType type,
                ReduceOp op) {
  Numbers result;
  double ranks = static_cast<double>(inputs.size());
  for (uint64_t i = first; i < first + count; ++i) {
    if (isFloat(type)) {
      double value = inputs[0].floats[i];
      for (size_t r = 1; r < inputs.size(); ++r)
        value = reference::reduce(ofInterface(op), value, inputs[r].floats[i]);
      if (op == ReduceOp::Avg) // small types divide in float before they round
        value = type == DataType::Float64 ? value / ranks : double(float(value) / float(ranks));
      result.floats.push_back(value);
    } else {
      int64_t value = inputs[0].integers[i];
      for (size_t r = 1; r < inputs.size(); ++r)
        value = reduceIntegers(value, inputs[r].integers[i], op, type);
      result.integers.push_back(op == ReduceOp::Avg ? average(value, inputs.size(), type) : value);
    }
  }
  return result;
}

void appendRange(Numbers &to, const Numbers &from, uint64_t first, uint64_t count) {
  auto copy = [&](auto &target, const auto &source) {
    if (!source.empty())
      target.insert(target.end(), source.begin() + first, source.begin() + first + count);
  };
  copy(to.floats, from.floats);
  copy(to.integers, from.integers);
}

} // namespace

std::vector<char> encode(const Numbers &numbers, DataType type) {
  std::vector<char> bytes;
  for (double value : numbers.floats) {
    if (type == DataType::Float16)
      append<uint16_t>(bytes, encodeSmallFloat(value, 5, 10));
    else if (type == DataType::Bfloat16)
      append<uint16_t>(bytes, encodeSmallFloat(value, 8, 7));
    else if (sizeOf(type) == 1)
      append<uint8_t>(bytes, encodeFloat8(value, type));
    else if (type == DataType::Float32)
      append<float>(bytes, value);
    else
      append<double>(bytes, value);
  }
  for (int64_t value : numbers.integers) {
    if (sizeOf(type) == 1)
      append<uint8_t>(bytes, value);
    else if (sizeOf(type) == 4)
      append<uint32_t>(bytes, value);
    else
      append<int64_t>(bytes, value);
  }
  return bytes;
}

Numbers decode(const char *bytes, uint64_t elements, DataType type) {
  Numbers numbers;
  for (uint64_t i = 0; i < elements; ++i) {
    switch (type) {
    case DataType::Uint8:
      numbers.integers.push_back(read<uint8_t>(bytes, i));
      break;
    case DataType::Int8:
      numbers.integers.push_back(read<int8_t>(bytes, i));
      break;
    case DataType::Int32:
      numbers.integers.push_back(read<int32_t>(bytes, i));
      break;
    case DataType::Uint32:
      numbers.integers.push_back(read<uint32_t>(bytes, i));
      break;
    case DataType::Uint64:
    case DataType::Int64:
      numbers.integers.push_back(read<int64_t>(bytes, i));
      break;
    case DataType::Float16:
      numbers.floats.push_back(decodeSmallFloat(read<uint16_t>(bytes, i), 5, 10));
      break;
    case DataType::Bfloat16:
      numbers.floats.push_back(decodeSmallFloat(read<uint16_t>(bytes, i), 8, 7));
      break;
    case DataType::Float8E4m3:
    case DataType::Float8E5m2:
      numbers.floats.push_back(decodeFloat8(read<uint8_t>(bytes, i), type));
      break;
    case DataType::Float32:
      numbers.floats.push_back(read<float>(bytes, i));
      break;
    case DataType::Float64:
      numbers.floats.push_back(read<double>(bytes, i));
      break;
    }
  }
  return numbers;
}

Numbers expectedOutput(const std::string &collective, const std::vector<Numbers> &inputs,
                       uint32_t rank, uint32_t root, uint64_t count, DataType type, ReduceOp op) {
  if (collective == "shift")
    return rank > 0 ? inputs[rank - 1] : Numbers();
  Numbers result;
  const auto known = plan::collectiveOfName(collective);
  if (!known)
    return result;
  const plan::Parts parts = {static_cast<uint32_t>(inputs.size()), root, count};
  for (uint64_t begin = 0; begin < outputSize(*known, parts); begin += count) {
    const auto goal = goalOf(*known, parts, rank, begin);
    if (goal && goal->ofAllRanks)
      appendRange(result, foldAll(inputs, goal->index, count, type, op), 0, count);
    else if (goal)
      appendRange(result, inputs[goal->rank], goal->index, count);
  }
  return result;
}

Numbers multiplied(const Numbers &numbers, double by, DataType type) {
  Numbers result;
  for (double value : numbers.floats)
    result.floats.push_back(value * by);
  for (int64_t value : numbers.integers)
    result.integers.push_back(wrapped(
        static_cast<uint64_t>(value) * static_cast<uint64_t>(static_cast<int64_t>(by)), type));
  return result;
}

Numbers exactInput(uint64_t elements, DataType type, ReduceOp op, uint64_t seed) {
  std::mt19937_64 random(seed);
  Numbers numbers;
  for (uint64_t i = 0; i < elements; ++i) {
    int64_t value = static_cast<int64_t>(random() % 17) - 8;
    if (type == DataType::Float8E4m3 || type == DataType::Float8E5m2)
      value /= 8; // e5m2 has no 9: so seldom not 0 that 16 ranks hardly ever add up to that
    // Of 16 such numbers at most 2^16, which float16 rounds to infinity, and e4m3 to 448.
    if (op == ReduceOp::Prod)
      value = random() % 4 == 0 ? 2 : 1 - 2 * static_cast<int64_t>(random() % 2);
    if (isFloat(type))
      numbers.floats.push_back(static_cast<double>(value));
    else
      numbers.integers.push_back(op == ReduceOp::Prod ? value
                                                      : wrapped(random() * (random() % 2), type));
  }
  for (int64_t &value : numbers.integers)
    value = wrapped(static_cast<uint64_t>(value), type);
  return numbers;
}

} // namespace occl::interpreter::conformance

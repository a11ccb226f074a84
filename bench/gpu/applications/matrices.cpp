#include "bench/gpu/applications/matrices.h"

#include <bit>
#include <cstring>

namespace occl::bench {

namespace {

/// Of exact matrices: what is not zero in a row of the left one.
constexpr uint64_t kInRow = 8;

uint16_t bfloat16Of(float value) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); // exact, or cut off
}
float cutOff(float value) { return std::bit_cast<float>(uint32_t{bfloat16Of(value)} << 16); }

uint32_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<uint32_t>(x >> 32);
}
float denseAt(uint64_t i, uint64_t seed) {
  return cutOff(static_cast<float>(mixed(i, seed) % 2001) / 1000.f - 1.f);
}
/// Where the j-th of a row of the left matrix is that is not zero, and whether it is 1 or -1.
uint64_t placeOf(const Sizes &sizes, uint32_t rank, uint64_t row, uint64_t j) {
  return j * (sizes.inner / kInRow) + mixed(row * 64 + rank, j) % (sizes.inner / kInRow);
}
float signOf(uint32_t rank, uint64_t row, uint64_t j) {
  return mixed(row * 64 + rank, j) >> 31 ? 1.f : -1.f;
}

float leftAt(const Sizes &sizes, Values values, uint32_t rank, uint64_t row, uint64_t k) {
  if (values == Values::Dense)
    return denseAt(row * sizes.inner + k, rank);
  const uint64_t j = k / (sizes.inner / kInRow);
  return placeOf(sizes, rank, row, j) == k ? signOf(rank, row, j) : 0.f;
}
float rightAt(const Sizes &sizes, Values values, uint32_t rank, uint64_t k, uint64_t column) {
  if (values == Values::Dense)
    return denseAt(k * sizes.columns + column, rank + 64);
  return static_cast<float>(static_cast<int>(mixed(k * 64 + rank, column) % 5) - 2);
}

void store(std::vector<char> &matrix, uint64_t i, float value, Type type) {
  const uint16_t half = bfloat16Of(value);
  if (type == Type::Float32)
    std::memcpy(&matrix[4 * i], &value, 4);
  else
    std::memcpy(&matrix[2 * i], &half, 2);
}

} // namespace

std::vector<char> leftMatrix(const Sizes &sizes, Values values, uint32_t rank, Type type) {
  std::vector<char> matrix(sizes.rows * sizes.inner * sizeOf(type));
  for (uint64_t row = 0; row < sizes.rows; ++row)
    if (values == Values::Dense)
      for (uint64_t k = 0; k < sizes.inner; ++k)
        store(matrix, row * sizes.inner + k, leftAt(sizes, values, rank, row, k), type);
    else
      for (uint64_t j = 0; j < kInRow; ++j)
        store(matrix, row * sizes.inner + placeOf(sizes, rank, row, j), signOf(rank, row, j), type);
  return matrix;
}

std::vector<char> rightMatrix(const Sizes &sizes, Values values, uint32_t rank, Type type) {
  std::vector<char> matrix(sizes.inner * sizes.columns * sizeOf(type));
  for (uint64_t k = 0; k < sizes.inner; ++k)
    for (uint64_t column = 0; column < sizes.columns; ++column)
      store(matrix, k * sizes.columns + column, rightAt(sizes, values, rank, k, column), type);
  return matrix;
}

float elementOf(const char *matrix, uint64_t i, Type type) {
  float value = 0;
  uint16_t half = 0;
  if (type == Type::Float32) {
    std::memcpy(&value, matrix + 4 * i, 4);
    return value;
  }
  std::memcpy(&half, matrix + 2 * i, 2);
  return std::bit_cast<float>(uint32_t{half} << 16);
}

double productAt(const Sizes &sizes, Values values, uint32_t leftRank, uint32_t rightRank,
                 uint64_t row, uint64_t column) {
  double sum = 0;
  const auto add = [&](uint64_t k) {
    sum += double{leftAt(sizes, values, leftRank, row, k)} *
           double{rightAt(sizes, values, rightRank, k, column)};
  };
  if (values == Values::Dense)
    for (uint64_t k = 0; k < sizes.inner; ++k)
      add(k);
  else // the others are zero
    for (uint64_t j = 0; j < kInRow; ++j)
      add(placeOf(sizes, leftRank, row, j));
  return sum;
}

} // namespace occl::bench

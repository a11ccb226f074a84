// The matrices of products that are compared and timed: element by element, a function of rank and
// place, so that each rank's host knows those of all.
#pragma once

#include "bench/gpu/processes/nccl.h"

#include <cstdint>
#include <vector>

namespace occl::bench {

/// rows x inner times inner x columns. inner is a multiple of 8.
struct Sizes {
  uint64_t rows = 0, inner = 0, columns = 0;
};

/// Exact: few numbers that are not zero, all whole, so that sums in any order are the same, of
/// eight ranks in bfloat16, too. Dense: from -1 to 1, as bfloat16 has them.
enum class Values : uint8_t { Exact, Dense };

/// A rank's, row-major, as they lie in memory.
std::vector<char> leftMatrix(const Sizes &sizes, Values values, uint32_t rank, Type type);
std::vector<char> rightMatrix(const Sizes &sizes, Values values, uint32_t rank, Type type);
float elementOf(const char *matrix, uint64_t i, Type type);

/// One element of a product, in float64.
double productAt(const Sizes &sizes, Values values, uint32_t leftRank, uint32_t rightRank,
                 uint64_t row, uint64_t column);

} // namespace occl::bench

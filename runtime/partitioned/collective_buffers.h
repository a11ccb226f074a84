// A rank's buffers of a collective, divided into partitions.
#pragma once

#include "plan/cover.h"
#include "plan/model/aliasing.h"
#include "plan/model/plan.h"
#include "runtime/base/data_type.h"
#include "runtime/base/status.h"

#include <cstdint>
#include <optional>

namespace occl::partitioned {

/// A buffer of so many elements in partitions of ceil(elements / partitions) each, of which the
/// last ones may have fewer, or none.
struct Side {
  uint64_t elements = 0;
  uint64_t partitions = 0; // at least 1 if there are elements

  constexpr plan::UniformCut cut() const {
    return {elements, elements == 0 ? 0 : (elements - 1) / partitions + 1};
  }
  constexpr plan::Range elementsOf(uint64_t partition) const {
    return partition < cut().numUnits() ? cut().elementsOf(partition) : plan::Range{};
  }
};

struct CollectiveBuffers {
  Side input = {}, output = {};
  /// In place: the input begins so many elements behind the output's begin.
  std::optional<int64_t> inPlace = {};
  DataType type = DataType::Uint8;
  const char *data = nullptr; // of the input

  /// In place: what of the input lies where these elements of the output do.
  plan::Range inputOf(plan::Range output) const;
};

/// What the program says of a rank's buffers.
struct DividedBuffers {
  const void *input = nullptr;
  void *output = nullptr;
  uint64_t inputPartitions = 0, outputPartitions = 0;
};

/// What the rank has of the collective, cut as the program says; of so many bytes. The side that it
/// does not have counts as empty, however it is said to be cut. InvalidArgument: there are no such
/// buffers or numbers of partitions.
StatusOr<CollectiveBuffers> divide(const DividedBuffers &given, const plan::RankPlan &rank,
                                   const plan::Aliasing &aliasing, DataType type,
                                   uint64_t inputBytes, uint64_t outputBytes);

} // namespace occl::partitioned

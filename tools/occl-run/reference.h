// What a collective has to produce, straight from its definition (plan/collectives) or the plan's
// requirements: shares no code with compiler or runtime but the list of standard collectives, only
// the plan's data and the formula of chunk sizes.
#pragma once

#include "plan/collectives/collectives.h"
#include "plan/model/chunking_of.h"
#include "plan/model/plan.h"
#include "runtime/api/occl.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace occl::run {

class Reference {
public:
  /// `count` elements a part. Keeps the plan's address.
  Reference(const plan::Plan &plan, uint64_t count, occlDataType_t type, occlRedOp_t op,
            uint32_t seed);

  /// Elements of a rank's buffers.
  uint64_t inputElements(uint32_t rank) const;
  uint64_t outputElements(uint32_t rank) const;
  /// In place: where the input begins, in elements from the begin of the output; may be negative.
  int64_t inPlaceOffset(uint32_t rank) const;

  /// Small integers, by seed, rank and element; so small that no result of the collective is
  /// inexact before its last rounding, nor overflows where the type does not wrap.
  double input(uint32_t rank, uint64_t element) const;

  /// The output of `rank`; nothing where the collective leaves it open.
  std::vector<std::optional<double>> output(uint32_t rank) const;

private:
  double combine(const std::vector<double> &values) const;
  double averageOf(double sum) const;
  double overAllRanks(uint64_t element) const;
  std::optional<double> standardOutput(plan::StandardCollective collective, uint32_t rank,
                                       uint64_t element) const;
  std::vector<std::optional<double>> requiredOutput(uint32_t rank) const;

  const plan::Plan &plan;
  plan::Chunking chunking;
  uint64_t count;
  occlDataType_t type;
  occlRedOp_t op;
  uint32_t seed;
};

} // namespace occl::run

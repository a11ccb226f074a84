// Order policy: the larger priority first; equal ones as submitted.
#pragma once

#include "runtime/scheduler/policy.h"

namespace occl::scheduler {

class PriorityOrder final : public OrderPolicy {
public:
  size_t positionFor(int32_t priority, std::span<const int32_t> queued) const override {
    size_t position = queued.size();
    while (position > 0 && queued[position - 1] < priority)
      --position;
    return position;
  }
};

} // namespace occl::scheduler

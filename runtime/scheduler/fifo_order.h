// Order policy: first submitted, first in the queue.
#pragma once

#include "runtime/scheduler/policy.h"

namespace occl::scheduler {

class FifoOrder final : public OrderPolicy {
public:
  size_t positionFor(int32_t, std::span<const int32_t> queued) const override {
    return queued.size();
  }
};

} // namespace occl::scheduler

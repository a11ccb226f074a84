// Order policy: first submitted, first in the queue, whatever the priorities.
#pragma once

#include "runtime/scheduler/policy.h"

namespace occl::scheduler {

class FifoOrder final : public OrderPolicy {
public:
  bool goesBefore(const Standing &left, const Standing &right) const override {
    return left.arrival < right.arrival;
  }
};

} // namespace occl::scheduler

// Order policy: the larger priority first; equal ones as submitted.
#pragma once

#include "runtime/scheduler/policy.h"

namespace occl::scheduler {

class PriorityOrder final : public OrderPolicy {
public:
  bool goesBefore(const Standing &left, const Standing &right) const override {
    if (left.priority != right.priority)
      return left.priority > right.priority;
    return left.arrival < right.arrival;
  }
};

} // namespace occl::scheduler

// Order policy: the larger priority first; equal ones as submitted.
#pragma once

#include "runtime/sched/policy/policy.h"

namespace occl::scheduler {

class PriorityOrder final : public OrderPolicy {
private:
  bool isPreferred(const Standing &left, const Standing &right) const override {
    if (left.priority != right.priority)
      return left.priority > right.priority;
    return isOlder(left, right);
  }
};

} // namespace occl::scheduler

// Order policy: first submitted, first in the queue, whatever the priorities.
#pragma once

#include "runtime/sched/policy/policy.h"

namespace occl::scheduler {

class FifoOrder final : public OrderPolicy {
private:
  bool isPreferred(const Standing &left, const Standing &right) const override {
    return isOlder(left, right);
  }
};

} // namespace occl::scheduler

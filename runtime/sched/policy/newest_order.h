// Order policy: the newest first, as gradients want it that come last and are needed first.
#pragma once

#include "runtime/sched/policy/policy.h"

namespace occl::scheduler {

class NewestOrder final : public OrderPolicy {
private:
  bool isPreferred(const Standing &left, const Standing &right) const override {
    return isOlder(right, left);
  }
};

} // namespace occl::scheduler

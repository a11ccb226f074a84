// Order policy: the newest first, as gradients want it that come last and are needed first.
#pragma once

#include "runtime/scheduler/policy.h"

namespace occl::scheduler {

class NewestOrder final : public OrderPolicy {
public:
  bool goesBefore(const Standing &left, const Standing &right) const override {
    return left.arrival > right.arrival;
  }
};

} // namespace occl::scheduler

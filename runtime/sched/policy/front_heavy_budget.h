// Budget policy: the cap at the front of the queue, then halved from position to position, twice as
// much for a task that has just moved, never below the floor. The first task is the one that most
// ranks have submitted by now, so it is worth waiting for; and all ranks concentrate on the same
// one.
#pragma once

#include "runtime/sched/policy/policy.h"

#include <algorithm>

namespace occl::scheduler {

class FrontHeavyBudget final : public BudgetPolicy {
public:
  explicit FrontHeavyBudget(BudgetLimits limits) : limits(limits) {}

  Nanoseconds budgetFor(const Visit &visit) const override {
    constexpr size_t kMaxHalvings = 32;
    Nanoseconds budget{limits.cap.count() >> std::min(visit.position, kMaxHalvings)};
    if (visit.movedLast)
      budget *= 2;
    return std::clamp(budget, limits.floor, std::max(limits.floor, limits.cap));
  }

private:
  BudgetLimits limits;
};

} // namespace occl::scheduler

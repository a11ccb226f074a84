// Budget policy: the cap for every task, wherever it stands and whatever it did. What the others
// are compared with.
#pragma once

#include "runtime/sched/policy/policy.h"

namespace occl::scheduler {

class FlatBudget final : public BudgetPolicy {
public:
  explicit FlatBudget(BudgetLimits limits) : limits(limits) {}

  Nanoseconds budgetFor(const Visit &) const override { return limits.cap; }

private:
  BudgetLimits limits;
};

} // namespace occl::scheduler

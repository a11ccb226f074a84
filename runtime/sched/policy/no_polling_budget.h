// Budget policy: one look, then the next task, or the processor to somebody else. For more ranks
// than processors: the peer that is waited for most likely does not run, and polling keeps it from
// it.
#pragma once

#include "runtime/sched/policy/policy.h"

namespace occl::scheduler {

class NoPollingBudget final : public BudgetPolicy {
public:
  Nanoseconds budgetFor(const Visit &) const override { return Nanoseconds(0); }
};

} // namespace occl::scheduler

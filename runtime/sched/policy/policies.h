// The policies by name.
#pragma once

#include "runtime/sched/policy/policy.h"

#include <cstdint>
#include <memory>

namespace occl::scheduler {

/// The values are those of occlOrderPolicy_t and occlBudgetPolicy_t (the communicator asserts it).
enum class OrderKind : uint32_t { Priority = 1, Fifo = 2, Newest = 3 };
enum class BudgetKind : uint32_t { FrontHeavy = 1, Flat = 2, NoPolling = 3 };

std::unique_ptr<OrderPolicy> makeOrder(OrderKind kind);
std::unique_ptr<BudgetPolicy> makeBudget(BudgetKind kind, const BudgetLimits &limits);

} // namespace occl::scheduler

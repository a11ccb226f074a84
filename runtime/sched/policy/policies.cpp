#include "runtime/sched/policy/policies.h"

#include "runtime/sched/policy/fifo_order.h"
#include "runtime/sched/policy/flat_budget.h"
#include "runtime/sched/policy/front_heavy_budget.h"
#include "runtime/sched/policy/newest_order.h"
#include "runtime/sched/policy/no_polling_budget.h"
#include "runtime/sched/policy/priority_order.h"

namespace occl::scheduler {

std::unique_ptr<OrderPolicy> makeOrder(OrderKind kind) {
  switch (kind) {
  case OrderKind::Fifo:
    return std::make_unique<FifoOrder>();
  case OrderKind::Newest:
    return std::make_unique<NewestOrder>();
  case OrderKind::Priority:
    break;
  }
  return std::make_unique<PriorityOrder>();
}

std::unique_ptr<BudgetPolicy> makeBudget(BudgetKind kind, const BudgetLimits &limits) {
  switch (kind) {
  case BudgetKind::Flat:
    return std::make_unique<FlatBudget>(limits);
  case BudgetKind::NoPolling:
    return std::make_unique<NoPollingBudget>();
  case BudgetKind::FrontHeavy:
    break;
  }
  return std::make_unique<FrontHeavyBudget>(limits);
}

} // namespace occl::scheduler

#include "runtime/scheduler/policies.h"

#include "runtime/scheduler/fifo_order.h"
#include "runtime/scheduler/flat_budget.h"
#include "runtime/scheduler/front_heavy_budget.h"
#include "runtime/scheduler/newest_order.h"
#include "runtime/scheduler/no_polling_budget.h"
#include "runtime/scheduler/priority_order.h"

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

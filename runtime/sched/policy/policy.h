// Which task an executor turns to, and how long it polls one that does not move before it preempts
// it: one definition for executors of hosts and of devices. Values and plain functions: no clocks,
// no threads, no virtual calls.
//
// A policy is a name and a case: of an order in ruleOf(), of a budget in budgetOf(). What goes
// before what follows from that in two forms: goesBefore() compares two tasks, for a queue that is
// kept in order; order_key.h makes a number of a task, for who looks for the smallest of many.
#pragma once

#include "runtime/base/host_device.h"

#include <cstdint>

namespace occl::scheduler {

/// The values are those of occlOrderPolicy_t (policy_test compares them). kLastOrder is the last.
enum class OrderPolicy : uint32_t { Priority = 1, Fifo = 2, Newest = 3 };
inline constexpr OrderPolicy kLastOrder = OrderPolicy::Newest;

/// The values are those of occlBudgetPolicy_t, likewise.
enum class BudgetPolicy : uint32_t { FrontHeavy = 1, Flat = 2, NoPolling = 3 };
inline constexpr BudgetPolicy kLastBudget = BudgetPolicy::NoPolling;

/// What an order goes by. Tasks of one invocation have the same, those of others another.
struct Standing {
  int32_t priority = 0;
  /// When it came into this queue.
  uint64_t arrival = 0;
  /// All ranks have announced it. Then `priority` is the highest that any of them gave it and
  /// `turn` when the lowest one submitted it: the same on all ranks. Turns wrap around.
  bool isAnnounced = false;
  uint32_t turn = 0;
};

/// What an order looks at. What all ranks have announced goes first under every order, for it can
/// complete, and in an order that all ranks compute alike: all ranks of a communicator use the same
/// policy.
struct OrderRule {
  bool byPriority;   // the larger first; among equal ones, or else, by age
  bool isNewerFirst; // else the older
};

OCCL_INLINE constexpr OrderRule ruleOf(OrderPolicy order) {
  switch (order) {
  case OrderPolicy::Fifo:
    return {false, false};
  case OrderPolicy::Newest: // gradients come last that are needed first
    return {false, true};
  case OrderPolicy::Priority:
    break;
  }
  return {true, false};
}

/// Whether `left` was submitted before `right`; both are announced or both are not. Turns that wrap
/// around are compared as on a circle: those in the queue are close together.
OCCL_INLINE constexpr bool isOlder(const Standing &left, const Standing &right) {
  if (left.turn != right.turn)
    return static_cast<int32_t>(left.turn - right.turn) < 0;
  return left.arrival < right.arrival;
}

/// Whether `left` goes before `right`: a strict order, if turns are less than half a circle apart.
OCCL_INLINE constexpr bool goesBefore(OrderPolicy order, const Standing &left,
                                      const Standing &right) {
  if (left.isAnnounced != right.isAnnounced)
    return left.isAnnounced;
  const OrderRule rule = ruleOf(order);
  if (rule.byPriority && left.priority != right.priority)
    return left.priority > right.priority;
  return rule.isNewerFirst ? isOlder(right, left) : isOlder(left, right);
}

/// A task that is about to be visited.
struct Visit {
  uint32_t position = 0;    // in the pass
  uint32_t queueLength = 1; // tasks
  /// At its last visit the task moved. Executors of devices do not know that.
  bool movedLast = false;
};

/// What every budget keeps to, in nanoseconds. The floor lets a running peer answer; the cap bounds
/// the time in which every open task is visited once: queue length times (cap + one quantum of
/// slices).
struct BudgetLimits {
  uint64_t floor = 0, cap = 0;
};

/// How long to poll a task that does not move while there are others, in nanoseconds; 0: one look.
OCCL_INLINE constexpr uint64_t budgetOf(BudgetPolicy policy, const BudgetLimits &limits,
                                        const Visit &visit) {
  // Most ranks have come to the first task by now, so it is worth waiting for, and all ranks
  // concentrate on the same one.
  constexpr uint32_t kMaxHalvings = 32;
  uint64_t budget = 0;
  switch (policy) {
  case BudgetPolicy::Flat:
    return limits.cap;
  case BudgetPolicy::NoPolling: // with more ranks than processors polling keeps the peer from one
    return 0;
  case BudgetPolicy::FrontHeavy:
    budget = limits.cap >> (visit.position < kMaxHalvings ? visit.position : kMaxHalvings);
    budget = visit.movedLast ? budget * 2 : budget;
    budget = budget < limits.cap ? budget : limits.cap;
    break;
  }
  return budget > limits.floor ? budget : limits.floor;
}

} // namespace occl::scheduler

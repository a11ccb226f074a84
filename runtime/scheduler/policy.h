// Stickiness: where a new task goes in the task queue, and how long an executor polls a task that
// does not move before it preempts it. Both are small objects behind one interface: a new policy is
// one file. Pure: no clocks, no threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace occl::scheduler {

using Nanoseconds = std::chrono::nanoseconds;

/// What an order goes by. Tasks of one invocation have the same, those of others another.
struct Standing {
  int32_t priority = 0;
  /// When it came into this queue.
  uint64_t arrival = 0;
};

/// All ranks of a communicator use the same. Called under the queue's lock: a few instructions.
class OrderPolicy {
public:
  virtual ~OrderPolicy() = default;
  /// Whether `left` goes before `right`: a strict order.
  virtual bool goesBefore(const Standing &left, const Standing &right) const = 0;
};

/// A task that is about to be visited.
struct Visit {
  size_t position = 0;    // in the queue
  size_t queueLength = 1; // tasks
  /// At its last visit the task moved.
  bool movedLast = false;
};

class BudgetPolicy {
public:
  virtual ~BudgetPolicy() = default;
  /// How long to poll a task that does not move while there are others.
  virtual Nanoseconds budgetFor(const Visit &visit) const = 0;
};

/// What every budget policy keeps to. The floor lets a running peer answer; the cap bounds the time
/// in which every open task is visited once: queue length times (cap + one quantum of slices).
struct BudgetLimits {
  Nanoseconds floor{0};
  Nanoseconds cap{0};
};

} // namespace occl::scheduler

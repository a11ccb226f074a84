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
  /// All ranks have announced it. Then `priority` is the highest that any of them gave it and
  /// `turn` when the lowest one submitted it: the same on all ranks. Turns wrap around.
  bool isAnnounced = false;
  uint32_t turn = 0;
};

/// Whether `left` was submitted before `right`; both are announced or both are not. Turns that wrap
/// around are compared as on a circle: those in the queue are close together.
inline bool isOlder(const Standing &left, const Standing &right) {
  if (left.turn != right.turn)
    return static_cast<int32_t>(left.turn - right.turn) < 0;
  return left.arrival < right.arrival;
}

/// What all ranks have announced goes first, for it can complete, and in an order that all ranks
/// compute alike. All ranks of a communicator use the same policy. Called under the queue's lock: a
/// few instructions.
class OrderPolicy {
public:
  virtual ~OrderPolicy() = default;
  /// Whether `left` goes before `right`: a strict order.
  bool goesBefore(const Standing &left, const Standing &right) const {
    if (left.isAnnounced != right.isAnnounced)
      return left.isAnnounced;
    return isPreferred(left, right);
  }

private:
  /// The same for two of which both are announced or neither is.
  virtual bool isPreferred(const Standing &left, const Standing &right) const = 0;
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

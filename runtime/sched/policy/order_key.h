// An order as numbers, for who finds the first of many tasks as the smallest of their keys: the
// lanes of a warp, each with some of them (runtime/cuda/resident/executor/choosing.h).
//
// From the highest bit on a key says: some rank has not announced it; it is another executor's; its
// priority, inverted; its age is not rank 0's number; its age; which submission; which thread
// block. So what policy.h compares stands before what tells tasks apart, and the key names the
// task.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/sched/policy/policy.h"

#include <cstdint>

namespace occl::scheduler {

/// The layout of a key.
struct OrderKey {
  static constexpr uint64_t kNone = ~0ull; // there is no task
  static constexpr uint64_t kUnannounced = 1ull << 55, kOthers = 1ull << 54;
  static constexpr uint64_t kUnaged = 1ull << 38;
  static constexpr uint32_t kPriorityShift = 46, kAgeShift = 14, kNumberShift = 6;
  static constexpr uint64_t kAges = 1u << 24, kNumbers = 1u << 8, kBlocks = 1u << 6;
};

/// Ages and numbers of submissions, whose bits are inverted where the newer goes first.
OCCL_INLINE constexpr uint64_t inverted(OrderPolicy order) {
  constexpr uint64_t kBits = (OrderKey::kAges * OrderKey::kNumbers - 1) << OrderKey::kNumberShift;
  return ruleOf(order).isNewerFirst ? kBits : 0;
}

/// Where a submission stands: what of its key stays from pass to pass. `age`: if all ranks have
/// announced it, its number on rank 0; `priority` is the highest that any of them is known to give
/// it.
OCCL_INLINE constexpr uint64_t standingKey(OrderPolicy order, uint8_t priority, bool isAnnounced,
                                           uint64_t age) {
  const uint64_t urgency = ruleOf(order).byPriority ? 255u - priority : 0;
  return urgency << OrderKey::kPriorityShift |
         (isAnnounced ? age << OrderKey::kAgeShift : OrderKey::kUnannounced | OrderKey::kUnaged);
}

/// A task's key. `number`: of its submission, counted from the oldest that is open, less than 256.
/// Ages repeat themselves after 2^24: they count from `agedFrom` on, less than half of that before
/// what was visited last.
OCCL_INLINE constexpr uint64_t keyOf(OrderPolicy order, uint64_t standing, uint32_t agedFrom,
                                     bool isOthers, uint64_t number, uint32_t block) {
  constexpr uint64_t kAgeMask = OrderKey::kAges - 1;
  const uint64_t age = (standing & OrderKey::kUnaged) != 0
                           ? number
                           : ((standing >> OrderKey::kAgeShift) - agedFrom) & kAgeMask;
  const uint64_t key = (standing & ~(kAgeMask << OrderKey::kAgeShift)) |
                       (isOthers ? OrderKey::kOthers : 0) | age << OrderKey::kAgeShift |
                       number << OrderKey::kNumberShift | block;
  return key ^ inverted(order);
}

/// What keyOf() was told.
struct KeyedTask {
  uint32_t number, block;
  uint32_t age; // of a submission that is aged
  bool isAnnounced, isAged, isOthers;
};
OCCL_INLINE constexpr KeyedTask taskOf(OrderPolicy order, uint64_t key, uint32_t agedFrom) {
  const uint64_t plain = key ^ inverted(order);
  return {
      static_cast<uint32_t>(plain >> OrderKey::kNumberShift & (OrderKey::kNumbers - 1)),
      static_cast<uint32_t>(plain & (OrderKey::kBlocks - 1)),
      static_cast<uint32_t>(((plain >> OrderKey::kAgeShift) + agedFrom) & (OrderKey::kAges - 1)),
      (plain & OrderKey::kUnannounced) == 0,
      (plain & OrderKey::kUnaged) == 0,
      (plain & OrderKey::kOthers) != 0};
}

} // namespace occl::scheduler

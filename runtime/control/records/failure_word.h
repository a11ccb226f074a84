// How the first failure of a communicator becomes known to all its ranks, also when the rank that
// saw it is gone.
#pragma once

#include "runtime/base/status.h"
#include "runtime/sync/atomic.h"

#include <cstddef>
#include <cstdint>

namespace occl::transport {

/// Lies in the segment of every rank. Written at most once, by the segment's owner; which rank's
/// counts is in SharedWords::failedBy.
struct FailureCause {
  static constexpr size_t kTextBytes = 2048;

  alignas(64) Atomic<uint32_t> causeState{0}; // 0 none, 1 being written, 2 valid
  uint32_t code = 0;
  char text[kTextBytes] = {};

  /// Owner only, any thread: the cause as this rank sees it. Only the first call has an effect; the
  /// text is cut to fit.
  void writeCause(const Status &cause);
  /// Success if no cause is (completely) written; InternalError where the code is none of an error,
  /// Again and InProgress included.
  Status readCause() const;
};

} // namespace occl::transport

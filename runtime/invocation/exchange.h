// The transfers of a call or a group on one rank, from their begin to their common end.
#pragma once

#include "runtime/invocation/open_invocation.h"
#include "runtime/sync/atomic.h"
#include "runtime/transfer/transfer.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace occl::daemon {

/// An invocation for each direction of a pair. Either a thread waits for it, and keeps it until it
/// is over; or it has a request, and goes with its last part (Core::endPart).
class Exchange {
public:
  struct Direction {
    transfer::Parts parts;
    OpenInvocation invocation;
    BlockTask task;
  };

  /// Before it begins: so many parts are to end.
  void expect(size_t parts) { left.store(parts, std::memory_order_relaxed); }
  /// One has. Whether it was the last; else others may end the exchange from here on.
  bool endPart(StatusCode code) {
    if (code != StatusCode::Success)
      failure.store(static_cast<uint32_t>(code), std::memory_order_relaxed);
    return left.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// Of who waits for it.
  bool isOver() const { return left.load(std::memory_order_acquire) == 0; }
  /// Once it is over: why a part failed, if one did. A communicator fails for one cause.
  StatusCode result() const {
    return static_cast<StatusCode>(failure.load(std::memory_order_relaxed));
  }

  std::vector<std::unique_ptr<Direction>> directions;
  RequestId request = 0; // 0: a thread waits for it
  bool hasCallback = false;
  bool callbackNeverBlocks = false;

private:
  Atomic<uint64_t> left{0};
  Atomic<uint32_t> failure{static_cast<uint32_t>(StatusCode::Success)};
};

} // namespace occl::daemon

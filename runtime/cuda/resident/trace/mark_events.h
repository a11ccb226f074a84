// What executors have recorded, as events of the host's traces, with the host's clock.
#pragma once

#include "runtime/control/records/wait_edges.h"
#include "runtime/cuda/resident/executor/marks.h"
#include "runtime/cuda/resident/submission/tenant.h"
#include "runtime/cuda/resident/trace/device_clock.h"
#include "runtime/observe/trace/trace_event.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace occl::cuda::resident {

/// A submission, as the host knows it.
struct TracedRequest {
  uint64_t sequence = 0;
  InvocationName invocation;
  Ticks submitted = 0, ended = 0; // ended: was seen to have ended; 0: it has not
  StatusCode outcome = StatusCode::Success;
  /// When the daemon got it, and a rank that it waited for until then, if any.
  Ticks entered = 0;
  std::optional<uint32_t> awaited = std::nullopt;
};

transport::WaitReason waitReasonOf(interpreter::BlockReason reason);

/// Of those submissions alone, by begin. marks: by executor, of each oldest first. rank: whose they
/// are. firstExecutor: the first one's number in events.
std::vector<insight::TraceEvent> eventsOf(std::span<const std::vector<MarkView>> marks,
                                          std::span<const TracedRequest> requests,
                                          const DeviceClock &clock, uint32_t rank,
                                          uint16_t firstExecutor);

} // namespace occl::cuda::resident

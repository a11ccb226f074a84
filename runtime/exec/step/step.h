// How far executing a thread block has come and what it waits for: what its drivers report, on
// hosts (StepDriver) and on devices (ReadyBlock).
//
// A step is a transaction: poll everything that it needs; if anything is missing, leave with
// nothing stored; else fold, store, publish, advance. Nothing in it waits, so a thread block can be
// left between any two steps and resumed by another executor.
//
// Memory order. A tail or head is stored with release after everything that it stands for, and
// loaded with acquire before anything that relies on it: so a receiver that sees a tail sees the
// slice's data, and a source that sees a head may overwrite what its receiver has finished reading.
// The same holds for progress words between thread blocks of a rank, and for signals, whose tail
// stands for all that came before. The lines of protocols LL and LL128 have no tail: how a line's
// flag and data come together is the target's business.
//
// Thread safety: one executor at a time runs a block of an invocation; handing a block over needs
// release and acquire on the saved context. Different blocks and ranks run concurrently.
#pragma once

#include "runtime/base/host_device.h"
#include "runtime/exec/step/invocation.h"

#include <cstdint>

namespace occl::interpreter {

/// What a blocked step waits for; each is a stable condition: once true, true until the step is
/// done.
struct Obstacle {
  BlockReason reason = BlockReason::None;
  uint32_t what = 0; // the connection in the plan, or the thread block
  uint32_t peer = 0; // rank

  bool operator==(const Obstacle &) const = default;
};

/// What Obstacle::what is of a step that waits for a partition of its rank's input, with the reason
/// Dependency: more than any thread block.
inline constexpr uint32_t kFirstPartition = 1u << 31;
OCCL_HOST_DEVICE constexpr bool isPartition(const Obstacle &obstacle) {
  return obstacle.reason == BlockReason::Dependency && obstacle.what >= kFirstPartition;
}

/// PeerLost: memory of a peer cannot be read any more, or the peer has failed, so that what was
/// read may be something else. The step has published nothing.
enum class StepStatus : uint8_t { Progressed, Finished, Blocked, PeerLost };

struct StepResult {
  StepStatus status = StepStatus::Progressed;
  /// If Blocked (of the asking thread's operands on targets with many threads) or PeerLost.
  Obstacle obstacle;
  /// Slices done before that.
  uint32_t slices = 0;
};

} // namespace occl::interpreter

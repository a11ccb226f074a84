// One slice of one instruction as a transaction: poll everything that it needs; if anything is
// missing, leave with nothing stored; else fold, store, publish, advance. Nothing here waits, so a
// thread block can be left between any two steps and resumed by another executor.
//
// Target is HostTarget (target_host.h) or CudaTarget (target_cuda.cuh): see docs/interpreter.md for
// what a target supplies. All threads of a target's block call these functions together, each with
// its own equal copy of the context.
//
// Thread safety: one executor at a time runs a block of an invocation; handing a block over needs
// release and acquire on the saved context. Different blocks and ranks run concurrently.
#pragma once

#include "plan/chunking.h"
#include "runtime/interpreter/invocation.h"

#include <cstdint>

namespace occl::interpreter {

enum class StepStatus : uint8_t { Progressed, Finished, Blocked };

enum class BlockReason : uint8_t {
  None,
  Announce,   // rank `peer` has not announced this invocation
  Data,       // the next slice of connection `what` from rank `peer`
  Credit,     // a free slot of connection `what`: its destination `peer` lags behind
  Dependency, // thread block `what` of this rank
};

/// What a blocked step waits for; each is a stable condition: once true, true until the step is
/// done.
struct Obstacle {
  BlockReason reason = BlockReason::None;
  uint32_t what = 0; // the connection in the plan, or the thread block
  uint32_t peer = 0; // rank
};

struct StepResult {
  StepStatus status = StepStatus::Progressed;
  Obstacle obstacle; // if Blocked; of the asking thread's operands on targets with many threads
  /// runBlock: slices done before that.
  uint32_t slices = 0;
};

/// Executes at most one slice. Finished if the block had nothing left: then nothing was done.
template <class Target>
OCCL_HOST_DEVICE StepResult stepBlock(const Invocation &invocation, uint32_t block,
                                      BlockContext &context, Target &target);

/// Steps until the block is finished or blocked, or `maxSlices` are done (then Progressed).
template <class Target>
OCCL_HOST_DEVICE StepResult runBlock(const Invocation &invocation, uint32_t block,
                                     BlockContext &context, Target &target, uint32_t maxSlices);

} // namespace occl::interpreter

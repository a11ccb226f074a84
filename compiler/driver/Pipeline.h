// Which passes turn chunks into a scheduled program, in which order.
#pragma once

#include "compiler/analysis/StepWeights.h"
#include "mlir/IR/BuiltinOps.h"
#include "plan/model/limits.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace occl::driver {

struct PipelineOptions {
  /// Each can be left out without changing what the program computes.
  bool multicast = true;
  bool fuse = true;
  bool aggregate = true;
  /// Whether local instructions of neighbouring chunks are joined, too, and whether they are
  /// distributed over thread blocks like messages. Where nobody says: those of instances that have
  /// several thread blocks are apart and distributed, as joined they would be one thread block's
  /// work; others are joined and stay with the message before them.
  std::optional<bool> aggregateLocal, spreadLocal;
  bool joinsLocal() const { return aggregateLocal.value_or(!areInstancesSpread()); }
  bool spreadsLocal() const { return spreadLocal.value_or(areInstancesSpread()); }
  /// Whether what arrives is reduced as it arrives, instead of stored first.
  bool foldArrivals = true;
  /// Values that go on in more messages are passed on apart from what computes them.
  uint32_t maxFanOut = plan::limits::kMaxOperands;
  /// Into how many parts every copy and reduction is cut, more than the source asks for.
  uint32_t instances = 1;
  /// Leaves these parts on the channels asked for, instead of giving each its own.
  bool shareChannels = false;
  /// What a rank may use. 0: as many thread blocks as the source asks for, and one if it does not.
  uint32_t maxThreadBlocks = 0;
  uint32_t maxChannels = plan::limits::kMaxChannels;
  /// What thread blocks share, and over how many of them flows are spread (0: as a schedule says);
  /// see inst-assign-thread-blocks.
  std::string layout = "auto";
  uint32_t colors = 0;
  /// Leaves out dependencies that follow from messages through other ranks. The connections of
  /// these messages are marked as ordered: the transport must fence them.
  bool orderThroughRanks = false;
  /// The depth may be raised up to this where the program needs it.
  uint32_t maxDepth = 64;
  /// Lets a chain of reductions be one, and one be divided, which changes how often 16-bit floats
  /// are rounded. No other option changes a bit of a result.
  bool reassociate = false;
  /// Ranks that access each other's memory: rank r is of group r / directGroupSize. 0: none do.
  uint32_t directGroupSize = 0;
  /// Of each rank, the number of its group, in place of directGroupSize unless it is empty.
  std::vector<uint32_t> directGroups = {};
  /// What schedules are compared by; nothing: as on GPUs at a switch.
  std::optional<analysis::StepWeights> weights = {};
  /// Prints the time of each pass to standard error.
  bool printTiming = false;
  /// Runs the dialects' verifiers after each pass.
  bool verifyEach = false;

private:
  /// Without a number, a rank has a thread block for each channel.
  bool areInstancesSpread() const {
    return instances > 1 && (maxThreadBlocks == 0 ? !shareChannels : maxThreadBlocks > 1);
  }
};

/// Runs the phases on a module of one chunk.program:
///   chunks        chunk-parallelize, chunk-mark-final
///   instructions  lower-chunks, inst-propagate-copies, inst-merge-multicast, inst-fuse,
///                 inst-aggregate
///   schedule      inst-assign-thread-blocks, inst-schedule, inst-synchronize,
///                 inst-use-direct-access
/// Errors are emitted as MLIR diagnostics.
mlir::LogicalResult runPipeline(mlir::ModuleOp module, const PipelineOptions &options);

} // namespace occl::driver

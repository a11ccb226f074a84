// A plan on a group of devices, executed by the interpreter's kernel.
#pragma once

#include "bench/gpu/kernels/device_group.h"
#include "bench/gpu/kernels/kernel_arguments.h"
#include "plan/model/plan.h"
#include "runtime/base/status.h"
#include "runtime/exec/bind/bind.h"

#include <memory>
#include <string>
#include <vector>

namespace occl::bench {

/// Each rank's input and output.
struct UserBuffers {
  std::vector<char *> inputs, outputs;
};

struct RunOptions {
  uint64_t count = 0;
  DataType type = DataType::Float32;
  ReduceOp op = ReduceOp::Sum;
  interpreter::Placement placement = interpreter::Placement::AtSource;
  interpreter::TilePolicy tiles;
  /// As in BindRequest.
  uint32_t stepOperands = kMaxStepOperands;
  /// With the kernel for all types and operations, even where a special one exists.
  bool anyFold = false;
};

/// Cycles after which a block that makes no progress gives up: about a second.
inline constexpr uint64_t kPatience = 2'000'000'000;

/// Nanoseconds that the slowest block needed for an invocation, or what went wrong.
StatusOr<double> readReports(DeviceGroup &group, const std::vector<char *> &reports,
                             uint32_t blocks, uint32_t measuredInvocations);

class InterpreterRun {
public:
  /// Takes memory from the group's pools. Again: they have no more. InvalidArgument: the plan does
  /// not suit the kernel (see interpreter_kernel.cuh), or bind()'s reasons.
  static StatusOr<std::unique_ptr<InterpreterRun>> make(DeviceGroup &group, const plan::Plan &plan,
                                                        const UserBuffers &buffers,
                                                        const RunOptions &options);

  /// Runs warmUp and then `measured` invocations in one launch, waits, and returns nanoseconds for
  /// one. Each launch must be over before the next one's.
  StatusOr<double> loop(uint32_t warmUp, uint32_t measured);
  /// The same with the account of one thread of rank 0's first block. Floats and sum only.
  StatusOr<PhaseAccount> account(uint32_t warmUp, uint32_t measured, uint32_t observer);
  /// One invocation a launch, in a graph: microseconds for one.
  StatusOr<double> inGraph(uint32_t repetitions, uint32_t replays);

private:
  InterpreterRun(DeviceGroup &group, const RunOptions &options) : group(group), options(options) {}
  Status prepare(const plan::Plan &plan, const UserBuffers &buffers);
  bool takeMemory(const UserBuffers &buffers);
  bool takeDirectMemory();
  bool isDirect() const { return !bindings[0]->directRanks().empty(); }
  bool uploadControls();
  Status uploadImages();
  LoopArguments argumentsFor(uint32_t device) const;
  using Launch = int (*)(const LoopArguments &, uint32_t blocks, uint32_t localRanks, void *stream);
  Launch kernel() const;
  StatusOr<double> loopWith(Launch launch, uint32_t warmUp, uint32_t measured, uint32_t observer);

  DeviceGroup &group;
  const RunOptions options;
  std::vector<std::shared_ptr<const interpreter::Binding>> bindings; // by rank
  std::vector<RankArguments> ranks;
  std::vector<char *> reports, accounts; // by rank
  uint32_t blocks = 0;
  uint64_t imageStride = 0, controlsStride = 0;
  uint32_t nextInvocation = 0; // a multiple of kArenaRing
};

} // namespace occl::bench

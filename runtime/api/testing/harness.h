// For the end-to-end tests: ranks that are threads, collectives on random data, and a reference.
#pragma once

#include "plan/model/plan.h"
#include "runtime/api/occl.h"
#include "runtime/api/occl_insight.h"
#include "runtime/base/data_type.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace occl::communicator::testing {

/// Thread sanitizer makes everything some ten times slower; tests divide their iterations by this.
#ifdef __SANITIZE_THREAD__
inline constexpr uint32_t kSlowness = 10;
#else
inline constexpr uint32_t kSlowness = 1;
#endif

/// Ranks of one process; destroyed with it, in rank order.
class Ranks {
public:
  explicit Ranks(uint32_t numRanks, occlConfig_t config = OCCL_CONFIG_INITIALIZER);
  ~Ranks();
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  uint32_t size() const { return static_cast<uint32_t>(comms.size()); }
  occlComm_t operator[](uint32_t rank) const { return comms[rank]; }
  /// Destroys one rank early.
  void destroy(uint32_t rank);

  /// Runs body(rank) on a thread of its own for every rank, and fails the test (it ends the
  /// process) if they take longer than `limit`: then something hangs.
  void run(const std::function<void(uint32_t)> &body,
           std::chrono::seconds limit = std::chrono::seconds(180)) const;

private:
  std::vector<occlComm_t> comms;
};

/// A plan's handle, destroyed with it.
using PlanHandle = std::shared_ptr<occlPlan>;
PlanHandle handleOf(plan::Plan plan);

enum class CallbackKind { MayBlock, NeverBlocks };

/// One collective with the buffers of all ranks and what must be in the outputs.
class Job {
public:
  /// `plan` must be what the handle was made of. Inputs are random from the seed, and such that
  /// results are exact.
  Job(uint64_t id, PlanHandle handle, uint64_t count, DataType type = DataType::Float32,
      ReduceOp op = ReduceOp::Sum);

  const std::string &name() const { return label; }
  uint64_t id() const { return collective; }
  /// Before the first call; at first they may block.
  void setCallbackKind(CallbackKind kind) { callbackKind = kind; }
  /// New inputs from a seed, outputs cleared; for all ranks, by one thread.
  void fill(uint64_t seed);
  const void *input(uint32_t rank) const { return inputs[rank].data(); }
  void *output(uint32_t rank) { return outputs[rank].data(); }
  /// Starts it under its id, without callback unless one is given.
  occlResult_t submit(occlComm_t comm, uint32_t rank, occlRequest_t *request,
                      occlCallback_t callback = nullptr, void *user = nullptr);
  /// Executes it in the communicator's sequence of calls.
  occlResult_t run(occlComm_t comm, uint32_t rank);
  /// What both call.
  occlCall_t call(uint32_t rank) { return callOn(input(rank), output(rank)); }
  /// The same on other buffers.
  occlCall_t callOn(const void *input, void *output) const;
  occlResult_t submitOn(occlComm_t comm, const void *input, void *output, occlRequest_t *request,
                        occlCallback_t callback = nullptr, void *user = nullptr) const;
  occlResult_t runOn(occlComm_t comm, const void *input, void *output) const;
  /// Rank's output is what nothing leaves there.
  void clear(uint32_t rank);
  /// "" if rank's output is right, else what is wrong.
  std::string check(uint32_t rank) const;

private:
  uint64_t collective;
  PlanHandle handle;
  uint64_t count;
  DataType type;
  ReduceOp op;
  CallbackKind callbackKind = CallbackKind::MayBlock;
  std::string label;
  std::vector<std::vector<char>> inputs, outputs, expected; // by rank
};

/// Order in which rank `rank` of `numJobs` submits in iteration `iteration`: a row of a Latin
/// square, so that no two ranks (up to numJobs of them) have the same job at the same place.
std::vector<uint32_t> latinOrder(uint32_t numJobs, uint32_t rank, uint32_t iteration);

} // namespace occl::communicator::testing

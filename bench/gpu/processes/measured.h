// One rank's measurements.
#pragma once

#include "bench/gpu/processes/nccl.h"
#include "bench/gpu/processes/together.h"
#include "runtime/api/occl.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace occl::bench {

/// Ends the process if `error` is one.
void require(int error, const char *what);

/// " 12.3 |", or " - |" for nothing.
std::string cell(double microseconds);

/// Microseconds for one operation; 0: nothing was measured.
struct Times {
  double stream = 0, graph = 0, blocking = 0;
  std::string extra; // further cells

  std::string text() const { return cell(stream) + cell(graph) + cell(blocking) + extra; }
};

/// From now on this process's rank is as on a machine of its own, for OCCL and for NCCL: data goes
/// over TCP, by 127.0.0.1. Before both join.
void standOnOwnMachine(uint32_t rank);

/// Calls of a graph that is timed.
inline constexpr uint32_t kInGraph = 10;

/// Microseconds for each of `repetitions` that are enqueued in the stream, of the rank that takes
/// the longest, after so many that are not timed. All ranks call it.
double timeInStream(Together &together, uint32_t rank, cudaStream_t stream, uint32_t before,
                    uint32_t repetitions, const std::function<void()> &enqueue);
/// The same of each of kInGraph in a graph that is replayed.
double timeInGraph(Together &together, uint32_t rank, cudaStream_t stream, uint32_t before,
                   uint32_t replays, const std::function<void()> &enqueue);

/// A communicator of this process's rank, on the GPU with the rank's number. asUsual: with the
/// library's own sizes of memory, and no buffers of its own. daemonBlocks: thread blocks of its
/// resident daemon; 0: as many as the library takes.
class Occl {
public:
  static std::unique_ptr<Occl> join(Together &together, uint32_t rank,
                                    const std::string &collective,
                                    const std::vector<std::string> &plans, bool asUsual = false,
                                    uint32_t daemonBlocks = 0);
  ~Occl();

  Kind kind() const { return measured; }
  size_t numPlans() const { return plans.size(); }
  void *allocate(size_t bytes);
  /// What calls `count` elements with the first of these plans that serves them; nothing if none
  /// does.
  std::optional<occlCall_t> callWith(size_t count, size_t firstPlan, size_t numPlans,
                                     Type type = Type::Float32) const;
  /// With a plan that the library chooses.
  occlCall_t callOfKind(size_t count, Type type) const;
  /// Whether it can be called on all ranks, which ask together. From then on there may be graphs.
  bool fits(occlCall_t call, const void *input, void *output, cudaStream_t stream);
  void enqueue(occlCall_t call, const void *input, void *output, cudaStream_t stream);
  /// By the resident daemon. The request, to be waited for once.
  uint64_t start(uint64_t id, occlCall_t call, const void *input, void *output);
  void wait(uint64_t request);

private:
  Together *together = nullptr;
  uint32_t rank = 0;
  occlComm_t comm = nullptr;
  std::vector<occlPlan_t> plans;
  Kind measured = Kind::AllReduce;
};

/// What buffers are.
struct Given {
  bool inPlace = false;    // as nccl-tests does it, a rank's part of the larger one is the smaller
  bool isOrdinary = false; // of cudaMalloc; else of occlMemAlloc and ncclMemAlloc
  bool isStarted = false;  // ours by the persistent kernel; for eachPlan()
  Type type = Type::Float32;
};

/// The buffers, and what is done with them.
class Stage {
public:
  Stage(Together &together, uint32_t rank, Occl &ours, Nccl *nccl, size_t maxBytes,
        const Given &given);

  /// OCCL, NCCL, NCCL with symmetric memory.
  std::vector<Times> compared(size_t bytes);
  /// OCCL with each plan by itself, 0 where it does not fit; NCCL, NCCL with symmetric memory. What
  /// is started is one at a time, until it has been waited for; the library's choice comes first.
  std::vector<Times> eachPlan(size_t bytes);

private:
  using Enqueue = std::function<void(const void *input, void *output)>;
  struct Buffers {
    char *input = nullptr, *output = nullptr;
  };

  bool fits(const occlCall_t &call, size_t count);
  std::optional<occlCall_t> callFor(size_t count) const;
  Enqueue theirs(size_t count) const;
  size_t countFor(size_t bytes) const;
  /// The root is rank 0.
  plan::Parts partsOf(size_t part) const { return {together.size(), 0, part}; }
  /// Where input and output lie for parts of `count` elements.
  Buffers placed(const Buffers &buffers, size_t count) const;
  Times measure(const Buffers &buffers, size_t count, const Enqueue &enqueue, bool graphOnly);
  void verify(const Buffers &buffers, size_t count, const Enqueue &enqueue, const char *what);
  double blocking(uint32_t repetitions, const std::function<void()> &enqueue);
  Times started(const occlCall_t &call, size_t count);
  void synchronize();

  Together &together;
  const uint32_t rank;
  Occl &ours;
  Nccl *nccl;
  const Given given;
  std::vector<char> data; // what an input of any size begins with
  cudaStream_t stream = nullptr;
  Buffers own, plain, symmetric;
};

} // namespace occl::bench

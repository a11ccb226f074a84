// DeviceRank where there is CUDA.
#pragma once

#include "plan/aliasing.h"
#include "runtime/base/mutex.h"
#include "runtime/cuda/arena_space.h"
#include "runtime/cuda/awaited_ends.h"
#include "runtime/cuda/bound.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/held_streams.h"
#include "runtime/cuda/host_watch.h"
#include "runtime/cuda/in_stream.h"
#include "runtime/cuda/ordered_calls.h"
#include "runtime/cuda/registration.h"
#include "runtime/cuda/resident_rank.h"
#include "runtime/cuda/standby.h"
#include "runtime/cuda/stream_steps.h"
#include "runtime/cuda/stream_turns.h"

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace occl::cuda {

class CudaRank : public DeviceRank {
public:
  static StatusOr<std::unique_ptr<DeviceRank>> make(daemon::Fabric &fabric,
                                                    const DeviceRankOptions &options);
  ~CudaRank() override;

  void drain() override;
  Status connect() override;
  Status add(const daemon::CollectiveSpec &spec, std::chrono::microseconds stay) override;
  Status remove(uint64_t id) override;
  Status enqueue(uint64_t id, const void *input, void *output, void *stream) override;
  Status enqueueAndWait(uint64_t id, const void *input, void *output, void *stream) override;
  Status callInStream(const daemon::CollectiveSpec &spec, const void *input, void *output,
                      void *stream) override;
  Status call(uint64_t id, const void *input, void *output) override;
  StatusOr<daemon::RequestId> submit(uint64_t id, const void *input, void *output,
                                     const daemon::Callback &callback) override {
    return residents->submit(id, input, output, {}, callback);
  }
  StatusOr<daemon::RequestId> submitOnStream(uint64_t id, const void *input, void *output,
                                             void *stream,
                                             const daemon::Callback &callback) override;
  Status wait(daemon::RequestId request) override { return residents->wait(request); }
  Status test(daemon::RequestId request) override { return residents->test(request); }
  bool isCallingBack() const override { return residents->isCallingBack(); }
  std::string report() override { return residents->report(); }
  std::string nameOf(uint64_t id) override { return residents->nameOf(id); }
  std::vector<uint64_t> registered() override { return residents->registered(); }
  StatusOr<CollectiveCounts> counts(uint64_t id) override { return residents->counts(id); }
  RankCounts totals() override { return residents->totals(); }
  insight::KnownCollective lookUp(uint64_t id) override { return residents->lookUp(id); }
  Status startTrace() override { return residents->startTrace(); }
  StatusOr<insight::Trace::Recording> stopTrace() override { return residents->stopTrace(); }
  void *allocate(uint64_t bytes) override;
  bool release(void *block) override;
  const DeviceRankOptions &settings() const override { return options; }

private:
  struct FreeHost {
    void operator()(uint64_t *words) const { cudaFreeHost(words); }
  };
  /// Where the kernel of a collective may stay. They are kept for other collectives, since giving
  /// them back would wait for what runs.
  struct Seat {
    ~Seat() { cudaStreamDestroy(stream); }
    std::unique_ptr<uint64_t, FreeHost> memory;
    std::unique_ptr<Standby> standby;
    cudaStream_t stream = nullptr;
  };
  /// One registered id.
  struct Known {
    daemon::CollectiveSpec spec;
    plan::Aliasing aliasing;
    /// Held by whoever enqueues it, or deregisters it, inside calls of CUDA, too, which may take as
    /// long as what runs on the device: invocations are launched in the order of their numbers.
    /// Guards all below.
    Mutex calls;
    bool isGone = false; // deregistered meanwhile
    std::unique_ptr<Registration> eager;
    /// Captured calls: of each graph node its own.
    std::vector<std::unique_ptr<Registration>> captured;
    /// Made for a captured call that then failed: the next one's. So the k-th one that succeeds is
    /// the k-th on all ranks.
    std::unique_ptr<Registration> reserved;
    StreamTurns copies;         // not of captured ones
    uint64_t numEnqueued = 0;   // not captured
    std::unique_ptr<Seat> seat; // of one that stays
    std::chrono::microseconds stay{0};
  };
  /// One whose calls are this thread's alone for as long.
  struct Held {
    std::shared_ptr<Known> known;
    std::unique_lock<Mutex> lock;
    Known &operator*() const { return *known; }
  };

  using Buffers = std::array<char *, 2>; // input and output
  /// One invocation to be put into a stream.
  struct Call {
    Known &known;
    Registration *registration;
    uint64_t number;
    Buffers buffers;
    cudaStream_t stream;
    EndWords ended;
  };
  /// What whoever waits for such an invocation needs of it.
  struct Awaited {
    uint64_t id = 0;
    EndWords ended;
    uint32_t numWords = 0; // 0: it is over
    std::chrono::milliseconds timeout{0};
  };
  CudaRank(daemon::Fabric &fabric, const DeviceRankOptions &options)
      : fabric(fabric), options(options) {}
  Status start();
  void abandon();
  int device() const { return static_cast<int>(options.device); }
  ShapeContext context();
  std::chrono::milliseconds timeoutOf(const Known &known) const {
    return known.spec.timeout.count() != 0 ? known.spec.timeout : options.timeout;
  }
  StatusOr<Held> hold(uint64_t id);
  Status checkOver(const Known &known) const;
  Status checkBuffers(const Known &known, const Buffers &buffers, bool isCaptured) const;
  Status startAwaiting();
  StatusOr<std::unique_ptr<Seat>> takeSeat();
  Status awaitLeaving(const Known &known);
  Status put(uint64_t id, const Buffers &buffers, cudaStream_t stream, Awaited *awaited);
  Status putHeld(Known &known, const Buffers &buffers, cudaStream_t stream, Awaited *awaited);
  Status reserveCapture(Known &known);
  StatusOr<std::optional<Buffers>> stagingOf(const Call &call);
  void launchAll(const Call &call, const std::optional<Buffers> &staged, StreamSteps &steps);
  Status lendEnd(Call &call, uint32_t behind, Awaited &awaited);
  InStreamArguments argumentsOf(const Call &call) const;
  Status launchToStay(const Call &call);
  Status launchCounted(const Call &call);
  Status launch(const Call &call);
  void launchStaged(Call call, const Buffers &staged, StreamSteps &steps);
  Status awaitEnd(const Awaited &awaited);
  std::string describe(const GivingUp &where);
  std::string describeSlot(uint32_t slot);
  const Known *withSlot(uint32_t slot) const;

  daemon::Fabric &fabric;
  const DeviceRankOptions options;
  uint32_t maxBlocks = 0;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<SlotTable> slots;
  std::unique_ptr<ArenaSpace> space;
  std::unique_ptr<uint64_t, FreeHost> endMemory;
  std::unique_ptr<AwaitedEnds> ends;
  std::unique_ptr<HostWatch> watch;
  std::unique_ptr<ResidentRank> residents;
  std::unique_ptr<OrderedCalls> ordered;
  /// One thread registers at a time.
  Mutex registering;
  /// Guards all below, and what `captured` holds, against changes; no call of CUDA is made with it,
  /// so that others can enqueue and failures can be described whatever the device does.
  Mutex table;
  std::map<uint64_t, std::shared_ptr<Known>> collectives; // by id
  std::vector<std::unique_ptr<Seat>> freeSeats;
};

} // namespace occl::cuda

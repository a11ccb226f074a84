// DeviceRank where there is CUDA.
#pragma once

#include "runtime/base/mutex.h"
#include "runtime/cuda/arena_space.h"
#include "runtime/cuda/awaited_ends.h"
#include "runtime/cuda/bound.h"
#include "runtime/cuda/device_memory.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/held_streams.h"
#include "runtime/cuda/host_watch.h"
#include "runtime/cuda/in_stream.h"
#include "runtime/cuda/registration.h"
#include "runtime/cuda/resident_rank.h"
#include "runtime/cuda/standby.h"

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
    std::unique_ptr<Registration> eager;
    /// Captured calls: of each graph node its own.
    std::vector<std::unique_ptr<Registration>> captured;
    uint64_t numEnqueued = 0;   // not captured
    std::unique_ptr<Seat> seat; // of one that stays
    std::chrono::microseconds stay{0};
  };

  using Buffers = std::array<char *, 2>; // input and output
  /// One invocation to be put into a stream.
  struct Call {
    const Known &known;
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
  int device() const { return static_cast<int>(options.device); }
  RegistrationContext context();
  std::chrono::milliseconds timeoutOf(const Known &known) const {
    return known.spec.timeout.count() != 0 ? known.spec.timeout : options.timeout;
  }
  StatusOr<Known *> find(uint64_t id);
  Status startAwaiting();
  StatusOr<std::unique_ptr<Seat>> takeSeat(uint32_t numBlocks);
  Status awaitLeaving(const Known &known);
  Status put(uint64_t id, const Buffers &buffers, cudaStream_t stream, Awaited *awaited);
  StatusOr<Registration *> captureOf(Known &known);
  Status launchReachable(Call &call, Awaited *awaited);
  Status lendEnd(Call &call, uint32_t behind, Awaited &awaited);
  InStreamArguments argumentsOf(const Call &call) const;
  Status launchToStay(const Call &call);
  Status launchHeld(cudaStream_t stream, const std::function<Status()> &launch);
  Status launchCounted(const Call &call);
  Status launch(const Call &call);
  Status launchStaged(Call call, const Buffers &staged);
  Status awaitEnd(const Awaited &awaited);
  std::string describe(const GivingUp &where);

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
  /// Held by whoever registers, deregisters or enqueues, inside calls of CUDA too, which may take
  /// as long as what runs on the device.
  Mutex calls;
  /// Guards `collectives` against their changes; no call of CUDA is made with it, so that failures
  /// can be described whatever the device does.
  Mutex table;
  std::map<uint64_t, Known> collectives; // by id
  std::vector<std::unique_ptr<Seat>> freeSeats;
};

} // namespace occl::cuda

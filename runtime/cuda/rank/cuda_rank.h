// DeviceRank where there is CUDA.
#pragma once

#include "runtime/cuda/calls/ordered_calls.h"
#include "runtime/cuda/device/arena_space.h"
#include "runtime/cuda/device_rank.h"
#include "runtime/cuda/lanes/resident_rank.h"
#include "runtime/cuda/memory/device_memory.h"
#include "runtime/cuda/memory/later_memory.h"
#include "runtime/cuda/net/device_crossing.h"
#include "runtime/cuda/partitioned/cuda_collectives.h"
#include "runtime/cuda/partitioned/cuda_parts.h"
#include "runtime/cuda/scaling/scaled_inputs.h"
#include "runtime/cuda/transfer/stream_transfers.h"
#include "runtime/cuda/watch/host_watch.h"
#include "runtime/sync/atomic.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
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
  bool isBusy() override;
  Status connect() override;
  Status callInStream(const daemon::CollectiveSpec &spec, const Buffers &buffers,
                      void *stream) override {
    return ordered->call(spec,
                         {static_cast<char *>(const_cast<void *>(buffers.input)),
                          static_cast<char *>(buffers.output)},
                         buffers.factor, static_cast<cudaStream_t>(stream));
  }
  Status callPacked(const daemon::CollectiveSpec &spec, const PackedCalls &calls,
                    void *stream) override {
    return ordered->callPacked(spec, calls, static_cast<cudaStream_t>(stream));
  }
  StatusOr<daemon::RequestId> start(const Start &call) override;
  Status holdStream(void *stream, daemon::RequestId request) override;
  Status wait(daemon::RequestId request) override { return residents->wait(request); }
  Status test(daemon::RequestId request) override { return residents->test(request); }
  bool isCallingBack() const override { return residents->isCallingBack(); }
  std::string report() override { return residents->report() + describePath(); }
  Status mayHaveParts(const daemon::CollectiveSpec &spec, uint32_t mostBlocks) const override {
    const Status hasMemory = checkTakesAll();
    return hasMemory.ok() ? residents->fits(spec, mostBlocks) : hasMemory;
  }
  uint32_t mostStartedBlocks() const override;
  StatusOr<DevicePart *> makePart(const partitioned::Terms &terms) override {
    const Status hasMemory = checkTakesAll();
    return hasMemory.ok() ? partitioned->make(terms) : hasMemory;
  }
  StatusOr<DevicePart *> makePart(const CollectiveTerms &terms) override {
    const Status hasMemory = checkTakesAll();
    return hasMemory.ok() ? collectives->make(terms) : hasMemory;
  }
  bool hasRegisteredBuffers() const override {
    return options.registeredBuffers && memory->throughHost().empty();
  }
  bool isAcrossMachines() const override { return crossing != nullptr; }
  std::string nameOf(uint64_t id) override { return residents->nameOf(id); }
  std::vector<uint64_t> ids() override { return residents->ids(); }
  StatusOr<CollectiveCounts> counts(uint64_t id) override { return residents->counts(id); }
  RankCounts totals() override { return residents->totals(); }
  insight::KnownCollective lookUp(uint64_t id) override { return residents->lookUp(id); }
  Status startTrace() override { return residents->startTrace(); }
  StatusOr<insight::Trace::Recording> stopTrace() override { return residents->stopTrace(); }
  void *allocate(uint64_t bytes) override;
  bool release(void *block) override;
  const DeviceRankOptions &settings() const override { return options; }
  void failIfGivenUp() override { watch->failIfGivenUp(); }
  StreamTransfers &streamTransfers() { return *transfers; }
  /// Kernels of this rank are about to store something, perhaps for other machines.
  void expectStores() {
    if (crossing)
      crossing->expect();
  }

private:
  CudaRank(daemon::Fabric &fabric, const DeviceRankOptions &options)
      : fabric(fabric), options(options) {}
  Status start();
  Status checkTakesAll() const;
  uint64_t wholeBytes() const;
  uint64_t bytesAtOnce() const;
  OrderedGeometry geometryIn(uint64_t bytes, bool hasWideLines, bool isApart) const;
  std::optional<ArenaSpace::Piece> takeMore(uint64_t bytes);
  PairGeometry pairsWith(uint64_t arenaBytes, bool hasLines) const;
  Status divide(const PairGeometry &pairs);
  Status startCalls(const PairGeometry &pairs);
  void abandon();
  int device() const { return static_cast<int>(options.device); }
  ShapeContext context();
  Status checkNotCaptured(cudaStream_t stream) const;
  std::string describePath() const;
  std::string describe(const GivingUp &where);
  std::string describeShape(uint32_t place);

  daemon::Fabric &fabric;
  const DeviceRankOptions options;
  uint32_t maxBlocks = 0;
  bool startsEarly = false;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<LaterMemory> later;       // null: all is taken at once
  std::unique_ptr<DeviceCrossing> crossing; // null: all ranks are of this machine
  std::unique_ptr<ArenaSpace> deviceSpace;
  std::unique_ptr<ArenaSpace> hostSpace; // null: arenas are device memory
  /// ShapeContext::room of calls in streams and of lanes.
  std::unique_ptr<std::byte[]> rooms[2];
  std::unique_ptr<ScaledInputs> scaledInputs;
  std::unique_ptr<HostWatch> watch;
  std::unique_ptr<ResidentRank> residents;
  std::unique_ptr<UploadRing> uploads;
  std::unique_ptr<OrderedCalls> ordered;
  std::unique_ptr<StreamTransfers> transfers;
  std::unique_ptr<CudaParts> partitioned;
  std::unique_ptr<CudaCollectives> collectives;
  Atomic<CudaParts *> tended{nullptr}; // `partitioned`, to the watch's thread
};

} // namespace occl::cuda

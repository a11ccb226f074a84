// What a communicator's rank has on a CUDA device: its memory, its calls in the user's streams, and
// those that the device's resident daemon executes. No CUDA in this header: where the library was
// built without a CUDA toolkit, makeDeviceRank() says so.
#pragma once

#include "runtime/base/status.h"
#include "runtime/control/fabric.h"
#include "runtime/cuda/device/device_code.h"
#include "runtime/cuda/device_parts.h"
#include "runtime/cuda/kernels/early_start.h"
#include "runtime/cuda/packing/packed_calls.h"
#include "runtime/cuda/scaling/input_scale.h"
#include "runtime/invocation/collective.h"
#include "runtime/observe/report/known_collective.h"
#include "runtime/observe/trace/trace.h"
#include "runtime/queue/request_table.h"
#include "runtime/rank/transfers.h"
#include "runtime/sched/device.h"
#include "runtime/sync/deadline.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace occl::cuda {

struct DeviceRankOptions {
  uint32_t device = 0; // as CUDA numbers them in this process
  /// Of device memory, for connectors and allocate(); the same on all ranks.
  uint64_t bytes = 0;
  /// Of these, what allocate() does not get: calls divide it among themselves. The same on all
  /// ranks.
  uint64_t arenaBytes = 0;
  /// Of these, calls in streams get what they need when they first do, small ones at the beginning,
  /// and no others are made. The same on all ranks.
  bool asNeeded = false;
  /// Of collectives without a timeout of their own.
  std::chrono::milliseconds timeout = kNoDeadline;
  /// Thread blocks of the device that its resident daemon takes; 0: what it has, or the default.
  uint32_t executors = 0;
  /// Whether those leave the device altogether while streams are held; nothing: as they do, or not.
  std::optional<bool> isStrict;
  /// The number of the first call: for tests of what happens after very many.
  uint64_t firstCall = 0;
  /// Nanoseconds after which thread blocks of calls make way, for tests; 0: as their data say.
  uint64_t leaveAfter = 0;
  /// All buffers of calls are memory of allocate(); the same on all ranks.
  bool registeredBuffers = false;
  /// Of a call in a stream whose plan the library chooses; the same on all ranks.
  uint32_t mostBlocks = ~0u;
  /// In how many streams of the device this process has calls at a time; positive (early_start.h).
  uint32_t streams = kDefaultStreams;
  /// Of the host: communicators that share it share the resident daemon, which preempts if it does,
  /// by the same policies, and its threads run callbacks.
  std::shared_ptr<daemon::Device> scheduler;
};

/// Counters of an id on a device, over what was started. Times are nanoseconds.
struct CollectiveCounts {
  std::string name; // "'grad3' (id 3)"
  uint64_t submitted = 0, completed = 0, failed = 0;
  uint64_t finishNs = 0, longestFinishNs = 0; // from submission until it was seen to be complete
  /// From when the device took it in until it began, and until it saw that all ranks had announced
  /// it. These and what thread blocks count are of the lane that the id has had last, over all ids
  /// that have had it.
  uint64_t startNs = 0, announceNs = 0;
  struct Block {
    uint64_t visits = 0, moves = 0, preemptions = 0, slices = 0, runningNs = 0;
    uint64_t queueLengths = 0, longestQueue = 0;
    uint64_t bytesSent = 0, bytesReceived = 0;
    std::array<uint64_t, transport::kNumWaitReasons> waits{}, waitNs{};
  };
  std::vector<Block> blocks; // by thread block
};

/// Of a rank, since its start.
struct RankCounts {
  uint64_t submitted = 0, completed = 0, failed = 0;
  uint64_t preemptions = 0, visits = 0, moves = 0;
  uint64_t bytesSent = 0, bytesReceived = 0;
  uint64_t queueLengths = 0, longestQueue = 0;
  uint64_t quits = 0, starts = 0; // of the device's resident daemon
};

/// InvalidArgument if this process has no such device, or the library no CUDA.
Status checkDevice(uint32_t device);
/// The code for devices that the library has; none without CUDA.
DeviceCode deviceCode();
/// Of this process; only if some device passed the check.
uint32_t numDevices();
/// Bytes of the arena of each rank's segment that devices need.
uint64_t hostBytesForDevices();
/// Bytes of the heap of each rank's segment, for so many of messages: touched only where devices do
/// not access each other's memory.
uint64_t hostBytesForMessages(uint64_t arenaBytes);

/// Thread safety: any, but for connect().
class DeviceRank {
public:
  virtual ~DeviceRank() = default;
  /// Waits for what is in flight, no longer than its timeouts.
  virtual void drain() = 0;
  /// Whether something of it may be in flight; also if the device does not say, while another
  /// thread makes a call, and while so many kernels wait that the device may not answer.
  virtual bool isBusy() = 0;

  /// Maps the memory of the other ranks, which all have been made, and makes what calls need.
  virtual Status connect() = 0;

  /// Of a call: device memory, and what the input is multiplied by, if by anything.
  struct Buffers {
    const void *input = nullptr;
    void *output = nullptr;
    InputFactor factor;
  };
  /// One call, as the next work of a CUDA stream (a CUstream_st*) of the rank's device, or as a
  /// node of the graph that captures it: calls of a communicator are paired in the order in which
  /// ranks make them, whatever they are (ordered_calls.h). spec.id is ignored. InvalidArgument, and
  /// nothing was done; Again if there is no device memory for it; why the communicator has failed.
  virtual Status callInStream(const daemon::CollectiveSpec &spec, const Buffers &buffers,
                              void *stream) = 0;
  /// Several calls of one collective as one of `spec`, whose parts are as large as the packed ones;
  /// no larger than PackedCalls::kMostBytes. As callInStream() otherwise.
  virtual Status callPacked(const daemon::CollectiveSpec &spec, const PackedCalls &calls,
                            void *stream) = 0;

  /// A call that is executed by the device's resident daemon.
  struct Start {
    const daemon::CollectiveSpec &spec;
    uint8_t kind = 0; // the API's value
    uint32_t root = 0;
    /// Device memory.
    const void *input = nullptr;
    void *output = nullptr;
    InputFactor factor;
    /// Else what writes the input is complete: it begins when this CUDA stream (a CUstream_st*) of
    /// the rank's device, which is not captured, has come so far.
    std::optional<void *> after;
    daemon::Callback callback;
  };
  /// Errors are those of occlStart.
  virtual StatusOr<daemon::RequestId> start(const Start &call) = 0;
  /// What follows in the stream waits for a request that was started after a stream. Errors are
  /// those of occlStreamWait.
  virtual Status holdStream(void *stream, daemon::RequestId request) = 0;
  /// Until the request is complete; its result.
  virtual Status wait(daemon::RequestId request) = 0;
  /// InProgress, or as wait().
  virtual Status test(daemon::RequestId request) = 0;
  /// Whether the calling thread is inside a callback of this rank.
  virtual bool isCallingBack() const = 0;

  /// The communicator fails if a kernel of a stream has given up: once a stream has come behind it,
  /// that is known here.
  virtual void failIfGivenUp() = 0;

  /// Who waits for whom on all ranks, as daemon::RankInsight::report().
  virtual std::string report() = 0;
  /// "'grad3' (id 3)".
  virtual std::string nameOf(uint64_t id) = 0;
  /// Ids of what was started, but for those that have ended long ago; ascending.
  virtual std::vector<uint64_t> ids() = 0;
  /// InvalidArgument if it is none of them.
  virtual StatusOr<CollectiveCounts> counts(uint64_t id) = 0;
  virtual RankCounts totals() = 0;
  virtual insight::KnownCollective lookUp(uint64_t id) = 0;

  /// The resident daemon records what it does with what is submitted from now on, until
  /// stopTrace(). Not both at a time, nor twice. Timeout or SystemError if the device does not
  /// react.
  virtual Status startTrace() = 0;
  /// With the times of the host. Errors as startTrace(); nothing is recorded any more in any case.
  virtual StatusOr<insight::Trace::Recording> stopTrace() = 0;

  /// Whether a collective's plan can be executed in parts, with at most so many thread blocks on
  /// any rank: the same on all. InvalidArgument.
  virtual Status mayHaveParts(const daemon::CollectiveSpec &spec, uint32_t mostBlocks) const = 0;
  /// Thread blocks that the persistent kernels of all ranks execute at once: the same on all.
  virtual uint32_t mostStartedBlocks() const = 0;
  /// A partitioned send or receive, or a collective. It lives until it is released, or as long as
  /// the rank. Errors are those of occlPsendInit and occlPcollInit.
  virtual StatusOr<DevicePart *> makePart(const partitioned::Terms &terms) = 0;
  virtual StatusOr<DevicePart *> makePart(const CollectiveTerms &terms) = 0;

  /// Whether plans may access other ranks' buffers: DeviceRankOptions::registeredBuffers, where
  /// devices access each other's memory.
  virtual bool hasRegisteredBuffers() const = 0;

  /// Whether some ranks are on other machines.
  virtual bool isAcrossMachines() const = 0;

  /// Device memory that all ranks can access whose devices can, aligned to 128 bytes; null if there
  /// is none.
  virtual void *allocate(uint64_t bytes) = 0;
  /// False if it is nothing of allocate(), or released already.
  virtual bool release(void *memory) = 0;
  /// What it was made with.
  virtual const DeviceRankOptions &settings() const = 0;
};

/// What a group of transfers has of a rank: one or more, and streams (CUstream_st*) of its device,
/// each once.
struct DeviceTransfers {
  DeviceRank *rank;
  std::span<const daemon::Transfer> transfers;
  std::span<void *const> streams;
};
/// What became of them.
struct StreamedTransfers {
  /// InvalidArgument, SystemError; why a communicator has failed.
  Status status;
  /// Some are in streams, or were left out as their communicator has failed. Else nothing was done.
  bool haveBegun = false;
};
/// A group, one rank or more of this process, as the next work of the streams or as nodes of the
/// graph that captures them: behind what all streams of a rank have, and what follows in each waits
/// for the end. Buffers are device memory.
StreamedTransfers transferInStreams(std::span<const DeviceTransfers> groups);

/// Takes the device memory of fabric's rank. The fabric is connected and outlives the result. All
/// ranks do it, then all meet, then all connect(). InvalidArgument without such a device; with
/// more ranks than kMaxRanks; or without CUDA. SystemError.
StatusOr<std::unique_ptr<DeviceRank>> makeDeviceRank(daemon::Fabric &fabric,
                                                     const DeviceRankOptions &options);

} // namespace occl::cuda

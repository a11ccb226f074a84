// A rank's calls in streams that need no registration: any plan, count, type, operation and
// buffers, in the order in which they are made. See ordered_connectors.h for what they share.
#pragma once

#include "plan/model/aliasing.h"
#include "runtime/base/status.h"
#include "runtime/cuda/calls/ordered_connectors.h"
#include "runtime/cuda/calls/stream_turns.h"
#include "runtime/cuda/net/device_crossing.h"
#include "runtime/cuda/packing/packed_calls.h"
#include "runtime/cuda/packing/packing_memory.h"
#include "runtime/cuda/scaling/scaled_inputs.h"
#include "runtime/cuda/watch/held_streams.h"
#include "runtime/cuda/watch/host_watch.h"
#include "runtime/sync/mutex.h"

#include <cuda_runtime.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace occl::cuda {

/// Thread safety: any.
class OrderedCalls {
public:
  struct Settings {
    int device;
    uint32_t streams; // as DeviceRankOptions
    std::chrono::milliseconds timeout;
    uint64_t firstCall;  // its number
    uint64_t leaveAfter; // as DeviceRankOptions
    bool mayStartEarly;  // the device can (early_start.h)
    OrderedGeometry geometry;
    /// Taken for the connectors; nothing: they take theirs with the first call.
    std::optional<OrderedConnectors::Pieces> reserved = {};
    /// Outlives it; null: all ranks are of this machine.
    DeviceCrossing *crossing = nullptr;
  };
  /// All outlive it, with what the context has for uploads.
  OrderedCalls(daemon::Fabric &fabric, const ShapeContext &context, const HostWatch &watch,
               ScaledInputs &inputs, const Settings &settings)
      : fabric(fabric), context(context), watch(watch), settings(settings), inputs(inputs),
        scaledInputs(inputs), packing(inputs), held(heldStreamsOn(settings.device)),
        numCalls(settings.firstCall) {}

  /// As the stream's next work, or a node of the graph that captures it, behind the call before in
  /// that capture. Replays take part in the order when they run, so nothing else of the
  /// communicator may run beside them but what their stream or events of the caller order.
  /// InvalidArgument: nothing was done.
  Status call(const daemon::CollectiveSpec &spec, const std::array<char *, 2> &buffers,
              const InputFactor &factor, cudaStream_t stream);
  /// Several calls of one collective, which are one of `spec`: of parts as large as the packed
  /// ones, and no larger buffers than PackingMemory has room for. As call() otherwise.
  Status callPacked(const daemon::CollectiveSpec &spec, const PackedCalls &calls,
                    cudaStream_t stream);
  /// Kernels may still access what is of them: it is never freed.
  void abandon() {
    scaledInputs.abandon();
    packing.abandon();
  }

  /// Whether nothing of them is in flight that the host or the device knows of.
  StatusOr<bool> isOver();
  /// The same, but false at once while another thread makes a call.
  StatusOr<bool> isOverNow();
  /// Of all calls so far that have a deadline; 0: none has.
  std::chrono::milliseconds longestTimeout();
  /// What kernels execute that call themselves by that place; null: nothing.
  std::shared_ptr<const daemon::CollectiveSpec> reported(uint32_t place);

private:
  /// What the ranks must call alike, as far as this rank knows it.
  struct Key {
    uint64_t planHash, count;
    DataType type;
    ReduceOp op;

    bool operator==(const Key &) const = default;
  };
  struct HashOfKey {
    size_t operator()(const Key &key) const {
      return hashOfShape(key.planHash, key.count, key.type, key.op);
    }
  };
  struct Known {
    std::shared_ptr<const daemon::CollectiveSpec> spec;
    plan::Aliasing aliasing;
    std::unique_ptr<OrderedShape> shape;
    uint32_t place = 0;
    uint64_t lastCall = 0; // its number
    bool isCaptured = false;
  };

  /// What the kernel of a call accesses, and what its stream has before and behind the kernel.
  struct Passage {
    std::array<char *, 2> buffers;
    Scaling copied = {}; // of no elements: nothing
    std::vector<DeviceCopy> before = {}, behind = {};

    bool usesSharedMemory() const {
      return copied.elements != 0 || !before.empty() || !behind.empty();
    }
  };
  template <class PassageOf>
  Status callBy(const PassageOf &passageOf, const daemon::CollectiveSpec &spec,
                cudaStream_t stream);
  Status prepare(bool isCaptured);
  Status takeNeeded(const OrderedShape &shape) const;
  StatusOr<Known *> shapeFor(const daemon::CollectiveSpec &spec);
  StatusOr<std::unique_ptr<OrderedShape>> makeShape(const daemon::CollectiveSpec &spec);
  Status enterCrossing(const daemon::CollectiveSpec &spec, uint32_t place);
  bool forgetOldest();
  void forget(const Key &key);
  Status checkBuffers(const Known &known, const std::array<char *, 2> &buffers,
                      bool isCaptured) const;
  StatusOr<Passage> passageOf(const Known &known, const std::array<char *, 2> &buffers,
                              const InputFactor &factor, bool isCaptured);
  StatusOr<Passage> passageOf(const Known &known, const PackedCalls &calls, bool isCaptured);
  Status addScaling(Passage &passage, const Known &known, const InputFactor &factor,
                    bool isCaptured);
  StatusOr<uint64_t> numFinished() const;
  StatusOr<uint64_t> numOver();
  StatusOr<bool> areOver();
  Status awaitNumbered();
  /// How a call comes behind the one before.
  struct Turn {
    const bool isCaptured;
    unsigned long long stream = 0;
    bool waitsOnDevice = false;
  };
  Status takeTurn(cudaStream_t stream, Turn &turn);
  Status takeCapturedTurn(cudaStream_t stream);
  Status checkConnections(bool isSameStream) const;
  Status endTurn(cudaStream_t stream, const Turn &turn);
  Status put(const Known &known, const Passage &passage, std::chrono::milliseconds timeout,
             Turn &turn, cudaStream_t stream);
  Status failHalfway(const Status &why);
  std::chrono::milliseconds timeoutOf(const daemon::CollectiveSpec &spec) const {
    return spec.timeout.count() != 0 ? spec.timeout : settings.timeout;
  }
  Status launch(const Known &known, const std::array<char *, 2> &buffers,
                std::chrono::milliseconds timeout, const Turn &turn, cudaStream_t stream) const;

  daemon::Fabric &fabric;
  const ShapeContext context;
  const HostWatch &watch;
  const Settings settings;
  ScaledInputs &inputs;
  OrderedScaledInputs scaledInputs; // of one call after the other; under the lock
  PackingMemory packing;            // likewise
  HeldStreams &held;

  /// Held by whoever makes a call, inside calls of CUDA, too: calls are launched in one order.
  Mutex calls;
  std::unique_ptr<OrderedConnectors> connectors; // from the first call on
  std::unique_ptr<OrderedConnectors> unfinished; // see OrderedConnectors::make()
  std::unordered_map<Key, Known, HashOfKey> shapes;
  std::vector<uint32_t> freePlaces;
  /// Calls have numbers that the host gives, as long as no replay takes some of its own. From the
  /// first captured one on they take numbers on the device.
  uint64_t numCalls;
  bool hasGraphs = false;
  uint64_t graphsSince = 0;             // their first number, with graphs
  uint64_t numEagerOver = 0;            // with graphs: eager calls below that number are over
  std::chrono::milliseconds longest{0}; // timeout
  /// Eager calls have been made in several streams: from then on, or with graphs, each leaves an
  /// event behind.
  bool hasStreams = false;
  bool hasEvent = false;             // the last one has
  unsigned long long lastStream = 0; // the last one's
  StreamTurns turns;
  CapturedTurns captured;
  /// Guards the reports, which no call of CUDA is to hold up.
  Mutex reporting;
  std::vector<std::shared_ptr<const daemon::CollectiveSpec>> reports =
      std::vector<std::shared_ptr<const daemon::CollectiveSpec>>(kMaxShapes);
};

} // namespace occl::cuda

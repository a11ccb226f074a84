// CUDA's streams.
#include "nccl/comm/comm.h"
#include "nccl/fallback/pass_on.h"
#include "nccl/streams/cuda_driver.h"
#include "nccl/streams/joined_streams.h"
#include "nccl/streams/streams.h"
#include "runtime/api/occl_coalesced.h"
#include "runtime/api/occl_transfer.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace occl::nccl {

namespace {

class CudaStreams : public StreamKind {
public:
  /// A thread that has chosen none has device 0, as for the runtime.
  Outcome currentDevice(int &device) override {
    device = 0;
    void *context = nullptr;
    Outcome outcome = driver.call("cuInit", [&] { return driver.init(0); });
    if (outcome.ok())
      outcome = driver.call("cuCtxGetCurrent", [&] { return driver.currentContext(&context); });
    if (!outcome.ok() || !context)
      return outcome;
    return driver.call("cuCtxGetDevice", [&] { return driver.currentDevice(&device); });
  }
  Outcome numDevices(int &number) override {
    Outcome outcome = driver.call("cuInit", [&] { return driver.init(0); });
    if (!outcome.ok())
      return outcome;
    return driver.call("cuDeviceGetCount", [&] { return driver.deviceCount(&number); });
  }
  Outcome makeCurrent(int device) override {
    Outcome outcome = driver.call("cuInit", [&] { return driver.init(0); });
    int number = 0;
    if (outcome.ok())
      outcome = driver.call("cuDeviceGet", [&] { return driver.deviceOf(&number, device); });
    return outcome.ok() ? setPrimaryContext(number) : outcome;
  }
  void configure(occlConfig_t &config, int device) override {
    config.deviceKind = occlDeviceCuda;
    config.device = static_cast<uint32_t>(device);
  }
  /// CUDA finds out, when the call becomes work of the stream.
  Outcome check(cudaStream_t) override { return {}; }

  /// Of every communicator, also where another one's fails: peers wait for them.
  Outcome launch(std::span<Batch> batches) override {
    std::vector<Connected> own;
    const Ends ends{own};
    Outcome first = launchOthers(batches, own);
    launchCollectives(own);
    std::vector<Connected *> withTransfers;
    for (Connected &connected : own) {
      if (!connected.outcome.ok())
        fail(connected, connected.outcome);
      else if (!connected.batch.transfers.empty())
        withTransfers.push_back(&connected);
    }
    Outcome ofTransfers = launchTransfers(withTransfers);
    for (Connected &connected : own) {
      if (const Outcome joined = connected.streams.end(); !joined.ok()) {
        fail(connected, joined);
        ofTransfers = ofTransfers.ok() ? joined : ofTransfers;
      }
      if (first.ok())
        first = connected.outcome;
    }
    return first.ok() ? ofTransfers : first;
  }

  Outcome allocate(void *&memory, size_t bytes) override {
    if (Outcome outcome = makeContextCurrent(); !outcome.ok())
      return outcome;
    uint64_t address = 0;
    Outcome outcome = driver.call("cuMemAlloc", [&] { return driver.allocate(&address, bytes); });
    memory = reinterpret_cast<void *>(address);
    return outcome;
  }
  Outcome release(void *memory) override {
    if (Outcome outcome = makeContextCurrent(); !outcome.ok())
      return outcome;
    return driver.call("cuMemFree",
                       [&] { return driver.release(reinterpret_cast<uint64_t>(memory)); });
  }

private:
  /// Of the current device, as the runtime does at a thread's first call that needs one.
  Outcome makeContextCurrent() {
    void *context = nullptr;
    Outcome outcome = driver.call("cuInit", [&] { return driver.init(0); });
    if (outcome.ok())
      outcome = driver.call("cuCtxGetCurrent", [&] { return driver.currentContext(&context); });
    if (!outcome.ok() || context)
      return outcome;
    return setPrimaryContext(0);
  }

  Outcome setPrimaryContext(int device) {
    void *context = nullptr;
    Outcome outcome = driver.call("cuDevicePrimaryCtxRetain",
                                  [&] { return driver.retainContext(&context, device); });
    if (!outcome.ok())
      return outcome;
    return driver.call("cuCtxSetCurrent", [&] { return driver.setContext(context); });
  }

  /// A kernel's access to anything else is the end of the process's work on the device.
  static Outcome checkAlignment(const occlCall_t &call) {
    for (const void *buffer : {call.sendBuffer, static_cast<const void *>(call.recvBuffer)})
      if (reinterpret_cast<uintptr_t>(buffer) % sizeOf(call.dataType) != 0)
        return invalidArgument("buffers on CUDA devices are aligned to their elements, here of " +
                               std::to_string(sizeOf(call.dataType)) + " bytes");
    return {};
  }

  static occlCall_t callOf(const Operation &operation) {
    occlCall_t call = operation.call;
    if (operation.hasScalar && operation.deviceScalar)
      call.deviceScalar = operation.deviceScalar;
    else if (operation.hasScalar)
      call.scalar = operation.scalar.data();
    return call;
  }

  struct Connected {
    Batch &batch;
    occlComm_t comm;
    JoinedStreams streams;
    size_t numLaunched = 0; // of the collectives
    Outcome outcome;        // of the next one, if that is in no stream
  };
  /// As long as they are launched they are in flight: who aborts ends them.
  struct Ends {
    std::vector<Connected> &own;
    ~Ends() {
      for (const Connected &connected : own)
        connected.batch.comm->operationsEnd();
    }
  };

  static void fail(const Connected &connected, const Outcome &outcome) {
    if (!connected.batch.comm->isAborted())
      connected.batch.comm->fail(outcome);
  }

  /// Those of the other library's communicators, in one group of it; the rest into `own`.
  Outcome launchOthers(std::span<Batch> batches, std::vector<Connected> &own) {
    std::vector<const Batch *> others;
    others.reserve(batches.size());
    own.reserve(batches.size());
    Outcome first;
    for (Batch &batch : batches) {
      Executor executor;
      Outcome outcome = batch.comm->beginOperations(executor);
      if (!outcome.ok() && !batch.comm->isAborted())
        batch.comm->fail(outcome);
      if (first.ok())
        first = outcome;
      if (outcome.ok() && executor.other)
        others.push_back(&batch);
      else if (outcome.ok())
        own.push_back({batch, executor.own, JoinedStreams(driver), 0, {}});
    }
    Outcome outcome = passOn(others);
    return first.ok() ? outcome : first;
  }

  /// OCCL orders the calls of a communicator over its streams. A call that is refused for now, as
  /// the device's connections are held by calls that wait, may wait for those of the group that
  /// come after it: so they are launched first.
  static void launchCollectives(std::vector<Connected> &all) {
    for (Connected &connected : all) // before any of them: they may have streams in common
      connected.outcome = connected.streams.begin(connected.batch, connected.batch.comm->device);
    std::vector<Connected *> refused;
    for (Connected &connected : all)
      if (connected.outcome.ok() && launchOf(connected) == occlAgain)
        refused.push_back(&connected);
    if (!refused.empty())
      launchAgain(std::move(refused));
  }

  /// Those that were refused for now, until none is left, or none has gone and kPatience is over.
  static void launchAgain(std::vector<Connected *> refused) {
    constexpr auto kPatience = std::chrono::seconds(30);
    constexpr auto kPause = std::chrono::microseconds(50);
    const auto late = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      bool hasMoved = false;
      std::erase_if(refused, [&](Connected *connected) {
        const size_t before = connected->numLaunched;
        const bool isRefused = launchOf(*connected) == occlAgain;
        hasMoved |= connected->numLaunched != before;
        return !isRefused;
      });
      if (refused.empty() || (!hasMoved && std::chrono::steady_clock::now() > late))
        return; // the outcomes say why
      if (!hasMoved)
        std::this_thread::sleep_for(kPause);
    }
  }

  /// As many as can be; occlSuccess, or why the next one cannot, which is its outcome. By now all
  /// are of one stream, and OCCL makes one of those that it can.
  static occlResult_t launchOf(Connected &connected) {
    const auto rest = std::span(connected.batch.collectives).subspan(connected.numLaunched);
    std::vector<occlCall_t> calls;
    calls.reserve(rest.size());
    Outcome aligned;
    for (const Operation &operation : rest)
      if (aligned = checkAlignment(operation.call); aligned.ok())
        calls.push_back(callOf(operation));
      else
        break;
    // What comes before one that is refused is launched all the same.
    size_t number = 0;
    const occlResult_t result = launchAll(connected.comm, calls, rest, number);
    connected.numLaunched += number;
    connected.outcome = result == occlSuccess ? aligned : outcomeOf(result);
    return result == occlSuccess && !aligned.ok() ? occlInvalidArgument : result;
  }

  /// number: of those that are in the stream.
  static occlResult_t launchAll(occlComm_t comm, std::span<const occlCall_t> calls,
                                std::span<const Operation> operations, size_t &number) {
    // One alone is the usual case, and needs no list.
    if (calls.size() == 1) {
      const occlResult_t result = occlCall(comm, calls.data(), operations.front().stream);
      number = result == occlSuccess ? 1 : 0;
      return result;
    }
    std::vector<const occlCall_t *> list;
    list.reserve(calls.size());
    for (const occlCall_t &call : calls)
      list.push_back(&call);
    return list.empty() ? occlSuccess
                        : occlCallCoalesced(comm, list.data(), list.size(),
                                            operations.front().stream, &number);
  }

  static bool hasFailed(const Connected *member) { return !member->batch.comm->asyncError().ok(); }

  /// All communicators' together: none may wait in its stream for another's. What is left out is of
  /// those that have failed.
  static Outcome launchTransfers(std::vector<Connected *> members) {
    Outcome first;
    if (members.size() > 1)
      std::erase_if(members, [&](const Connected *member) {
        const bool isOut = hasFailed(member);
        if (isOut && first.ok())
          first = member->batch.comm->asyncError();
        return isOut;
      });
    if (members.empty())
      return first;
    const Connected *refusedBy = nullptr;
    Outcome outcome = outcomeOf(occlGroupStart());
    for (const Connected *member : members)
      if (outcome.ok()) {
        outcome = addTransfers(member->comm, member->batch.transfers);
        refusedBy = outcome.ok() ? nullptr : member;
      }
    const Outcome ended = outcomeOf(occlGroupEnd());
    if (outcome.ok())
      outcome = ended;
    // If one has failed meanwhile the others' are in their streams, unless one was refused; then,
    // and if none has, nothing is.
    if (!outcome.ok() && (refusedBy || std::ranges::none_of(members, hasFailed)))
      for (const Connected *member : members)
        fail(*member, !refusedBy || member == refusedBy ? outcome : besideRefused(outcome));
    return first.ok() ? outcome : first;
  }

  const CudaDriver driver = CudaDriver::load();
};

} // namespace

StreamKind &cudaStreams() {
  static CudaStreams *streams = new CudaStreams;
  return *streams;
}

} // namespace occl::nccl

// Operations on hosts: put into streams, and executed there by OCCL's calls that block.
#include "nccl/base/per_process.h"
#include "nccl/comm/comm.h"
#include "nccl/fallback/pass_on.h"
#include "nccl/streams/host_streams.h"
#include "nccl/streams/streams.h"

#include "runtime/api/occl_transfer.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <set>

namespace occl::nccl {

namespace {

Outcome executeCollective(occlComm_t comm, const Operation &operation) {
  occlCall_t call = operation.call;
  if (operation.hasScalar)
    call.scalar = operation.deviceScalar ? operation.deviceScalar : operation.scalar.data();
  return outcomeOf(occlCall(comm, &call, nullptr));
}

Outcome executeCollectives(occlComm_t comm, const std::vector<Operation> &operations) {
  for (const Operation &operation : operations)
    if (Outcome outcome = executeCollective(comm, operation); !outcome.ok())
      return outcome;
  return {};
}

void fail(Batch &batch, const Outcome &outcome) {
  if (!batch.comm->isAborted()) // then nobody asks
    batch.comm->fail(outcome);
}

/// A group's result is the first error, of whichever communicator; the others have ended well.
void failThoseOf(const Outcome &ended, const std::vector<Batch *> &taking) {
  // OCCL says which error, not whose: a communicator that has failed knows it, and the others are
  // left as they are.
  bool isKnown = false;
  for (Batch *batch : taking) {
    const Outcome seen = batch->comm->asyncError();
    if (seen.ok())
      continue;
    isKnown = true;
    fail(*batch, ended.text.find(seen.text) != std::string::npos ? ended : seen);
  }
  // No communicator has failed, so that the group itself was refused: all members hear of it.
  if (!isKnown)
    for (Batch *batch : taking)
      fail(*batch, ended);
}

/// All transfers of the batches progress together, whatever their communicators.
void executeTransfers(std::vector<Batch> &batches) {
  std::vector<Batch *> taking;
  const Batch *refusedBy = nullptr;
  Outcome refused;
  // One group over all communicators, since a send in one may be what a receive in another one
  // waits for on some rank.
  occlGroupStart();
  for (Batch &batch : batches) {
    for (Operation &each : batch.transfers)
      each.stream = nullptr; // its turn has come: for OCCL it is of no stream
    Executor executor;
    if (Outcome outcome = batch.comm->connected(executor); !outcome.ok()) {
      fail(batch, outcome); // the others' peers know nothing of it
      continue;
    }
    taking.push_back(&batch);
    if (refused.ok())
      refused = addTransfers(executor.own, batch.transfers);
    if (!refused.ok() && !refusedBy)
      refusedBy = &batch;
  }
  // Ended in any case: the group is the thread's.
  const Outcome ended = outcomeOf(occlGroupEnd());
  for (Batch *batch : taking)
    if (refusedBy) // OCCL begins nothing of such a group
      fail(*batch, batch == refusedBy ? refused : besideRefused(refused));
  if (!refusedBy && !ended.ok())
    failThoseOf(ended, taking);
}

/// Those of the other library's communicators, in one group of it; they are then gone from
/// `batches`. It is told of no stream: their turn has come.
void executeOthers(std::vector<Batch> &batches) {
  // A communicator of the other library is known only when ranks have come together, which this
  // thread, and not the program's, waits for.
  auto isOther = [](const Batch &batch) {
    Executor executor;
    return batch.comm->connected(executor).ok() && executor.other;
  };
  std::vector<Batch> others;
  std::copy_if(batches.begin(), batches.end(), std::back_inserter(others), isOther);
  if (others.empty())
    return;
  std::erase_if(batches, isOther);
  std::vector<const Batch *> members;
  for (Batch &batch : others) {
    for (auto *operations : {&batch.collectives, &batch.transfers})
      for (Operation &each : *operations)
        each.stream = nullptr;
    members.push_back(&batch);
  }
  if (Outcome outcome = passOn(members); !outcome.ok())
    for (Batch &batch : others)
      fail(batch, outcome);
}

void execute(std::vector<Batch> batches) {
  // Collectives before transfers, as the program's group is without order, and batch after batch in
  // an order that all ranks have.
  executeOthers(batches);
  std::vector<Batch> going;
  for (Batch &batch : batches) {
    Executor executor;
    Outcome outcome = batch.comm->connected(executor);
    if (outcome.ok())
      outcome = executeCollectives(executor.own, batch.collectives);
    if (outcome.ok())
      going.push_back(batch);
    else
      fail(batch, outcome);
  }
  // Only those whose collectives have succeeded: the others' peers have been told that they failed.
  std::erase_if(going, [](const Batch &batch) { return batch.transfers.empty(); });
  if (!going.empty())
    executeTransfers(going);
}

/// Those whose first stream is the same.
struct Launch {
  std::shared_ptr<HostStream> stream;
  std::vector<std::shared_ptr<HostStream>> others;
  std::vector<Batch> batches;
};

class HostStreams : public StreamKind {
public:
  Outcome currentDevice(int &device) override {
    device = 0;
    return {};
  }
  Outcome numDevices(int &number) override {
    number = INT_MAX;
    return {};
  }
  Outcome makeCurrent(int) override { return {}; }
  void configure(occlConfig_t &, int) override {}
  Outcome check(cudaStream_t stream) override {
    if (!stream || HostStream::find(stream))
      return {};
    return invalidArgument("stream must be NULL: with OCCL_NCCL_HOST=1 there are no other streams");
  }

  Outcome launch(std::span<Batch> batches) override {
    std::vector<std::shared_ptr<Comm>> waitedFor;
    std::vector<std::shared_ptr<HostEvent>> ends;
    {
      // One at a time: so a stream only ever waits for what was put into streams before, and no
      // streams wait for each other.
      // The lock is held while everything is put into the streams, and never while anything is
      // waited for.
      std::lock_guard lock(mutex);
      std::vector<Launch> launches;
      for (Batch &batch : batches) {
        // A call with the NULL stream returns when it has ended, as CUDA's synchronous calls do.
        if (usesNull(batch))
          waitedFor.push_back(batch.comm);
        if (Outcome outcome = add(launches, batch); !outcome.ok())
          return outcome;
      }
      for (Launch &launch : launches) {
        auto end = begin(launch);
        if (std::any_of(waitedFor.begin(), waitedFor.end(),
                        [&](const auto &comm) { return comm->latest == end; }))
          ends.push_back(end);
      }
    }
    // Outside of the lock: other threads go on meanwhile.
    for (const auto &end : ends)
      end->await();
    for (const auto &comm : waitedFor)
      if (Outcome outcome =
              comm->isAborted() ? invalidUsage("the communicator was aborted") : comm->asyncError();
          !outcome.ok())
        return outcome;
    return {};
  }

  Outcome allocate(void *&memory, size_t bytes) override {
    constexpr size_t kAlignment = 4096; // as of NCCL's windows
    if (posix_memalign(&memory, kAlignment, bytes) != 0) {
      memory = nullptr;
      return {ncclSystemError, "there are no " + std::to_string(bytes) + " bytes of memory"};
    }
    // The addresses are known, so that what is released was allocated here.
    std::lock_guard lock(mutex);
    allocated.insert(memory);
    return {};
  }
  Outcome release(void *memory) override {
    std::lock_guard lock(mutex);
    if (allocated.erase(memory) == 0)
      return invalidArgument("the memory is not of ncclMemAlloc");
    std::free(memory);
    return {};
  }

private:
  static bool usesNull(const Batch &batch) {
    auto isNull = [](const Operation &operation) { return operation.stream == nullptr; };
    return std::any_of(batch.collectives.begin(), batch.collectives.end(), isNull) ||
           std::any_of(batch.transfers.begin(), batch.transfers.end(), isNull);
  }
  static std::shared_ptr<HostStream> streamOf(Comm &comm, cudaStream_t stream) {
    return stream ? HostStream::find(stream) : comm.ownStream;
  }

  /// To the launch of its first stream.
  static Outcome add(std::vector<Launch> &launches, Batch &batch) {
    // All streams of the batch, each once, the first one first: it executes, the others wait.
    std::vector<std::shared_ptr<HostStream>> used;
    for (const auto *operations : {&batch.collectives, &batch.transfers})
      for (const Operation &operation : *operations) {
        auto stream = streamOf(*batch.comm, operation.stream);
        if (!stream)
          return invalidArgument("a stream of the group is there no longer");
        if (std::find(used.begin(), used.end(), stream) == used.end())
          used.push_back(stream);
      }
    // Batches with the same first stream are executed together, in one task.
    auto found = std::find_if(launches.begin(), launches.end(),
                              [&](const Launch &launch) { return launch.stream == used[0]; });
    if (found == launches.end())
      found = launches.insert(launches.end(), Launch{used[0], {}, {}});
    found->others.insert(found->others.end(), used.begin() + 1, used.end());
    found->batches.push_back(std::move(batch));
    return {};
  }

  /// All streams of the launch wait for each other, as those of a group do, and for what its
  /// communicators have in other streams. Returns its end.
  static std::shared_ptr<HostEvent> begin(Launch &launch) {
    HostStream &stream = *launch.stream;
    // Fork: the executing stream begins when all others have come so far.
    for (const auto &other : launch.others)
      stream.waitFor(other->record());
    for (Batch &batch : launch.batches) {
      if (batch.comm->latest && batch.comm->latestStream.lock() != launch.stream)
        stream.waitFor(batch.comm->latest);
      batch.comm->operationsBegin();
    }
    // What is executed holds its communicators, and they may be the last to do so.
    auto batches = std::make_shared<std::vector<Batch>>(std::move(launch.batches));
    auto end = std::make_shared<HostEvent>();
    for (Batch &batch : *batches) {
      batch.comm->latest = end;
      batch.comm->latestStream = launch.stream;
    }
    stream.push([batches, end]() mutable {
      execute(*batches);
      for (Batch &batch : *batches)
        batch.comm->operationsEnd();
      batches.reset();
      end->happen();
    });
    // Join: the others go on when it has ended.
    for (const auto &other : launch.others)
      other->waitFor(end);
    return end;
  }

  std::mutex mutex;
  std::set<void *> allocated;
};

} // namespace

StreamKind &hostStreams() {
  static constinit PerProcess<HostStreams> streams;
  return streams.get();
}

} // namespace occl::nccl

#include "nccl/calls/group.h"

#include "nccl/abi/exports.h"
#include "nccl/streams/streams.h"
#include "support/nvtx/ranges.h"

#include <algorithm>
#include <span>

namespace occl::nccl {

namespace {

/// By communicator, in the order in which the group has first named them.
using Batches = std::vector<Batch>;

struct Group {
  uint32_t depth = 0;
  ncclResult_t error = ncclSuccess;
  Batches batches;
};

thread_local Group group;

void add(Batches &batches, const std::shared_ptr<Comm> &comm, const Operation &operation) {
  // A thread that has many ranks goes round and round, so what comes next was mostly just there.
  auto found = std::find_if(batches.rbegin(), batches.rend(),
                            [&](const Batch &batch) { return batch.comm == comm; });
  if (found == batches.rend()) {
    batches.push_back({comm, {}, {}});
    found = batches.rbegin();
  }
  found->add(operation);
}

/// What a rank sends to itself waits for ever if nothing of the same group receives it.
Outcome checkSelf(const Batch &batch, uint32_t rank) {
  // Sends and receives to oneself must be as many: the difference tells.
  int64_t open = 0;
  for (const Operation &operation : batch.transfers)
    if (operation.peer == rank)
      open += operation.kind == OperationKind::Send ? 1 : -1;
  return open == 0 ? Outcome()
                   : invalidUsage("a rank that sends to itself, or receives from itself, does both "
                                  "in one group");
}

/// The ranks that operations name: that a split or shrunk communicator has them is not known when
/// they are called. One that could not be made says so where it is used.
Outcome checkRanks(const Batch &batch) {
  uint32_t numRanks = 0, rank = 0;
  // Batches whose communicator has failed are not checked: launching them says why.
  if (!batch.comm->shape(numRanks, rank).ok())
    return {};
  const auto refuse = [&](const char *what, uint32_t number) {
    return invalidArgument(std::string(what) + " is " + std::to_string(number) +
                           ", the communicator has " + std::to_string(numRanks) + " ranks");
  };
  for (const Operation &operation : batch.collectives)
    if (operation.call.root >= numRanks)
      return refuse("root", operation.call.root);
  for (const Operation &operation : batch.transfers)
    if (operation.peer >= numRanks)
      return refuse("peer", operation.peer);
  return checkSelf(batch, rank);
}

/// As for occlGroupEnd, with what collectives have of each rank.
uint64_t bytesOf(const Batches &batches) {
  uint64_t sent = 0, received = 0;
  const auto count = [&](const Operation &operation) {
    (operation.kind == OperationKind::Receive ? received : sent) +=
        operation.call.count * sizeOf(operation.call.dataType);
  };
  for (const Batch &batch : batches) {
    std::ranges::for_each(batch.collectives, count);
    std::ranges::for_each(batch.transfers, count);
  }
  return sent != 0 ? sent : received;
}

/// Ranks may name communicators in different orders, and what they have in one stream waits for
/// each other: so all begin them in one order, by what only ranks of a communicator have in common.
Outcome launch(std::span<Batch> batches) {
  // Everything is checked before anything begins, so a refused group has executed nothing.
  for (const Batch &batch : batches)
    if (Outcome checked = checkRanks(batch); !checked.ok())
      return checked;
  // The name of a communicator is the same on its ranks and differs from others': a common order
  // without a message. Stable, so that equal names, which do not occur, would not shuffle calls.
  if (batches.size() > 1)
    std::ranges::stable_sort(batches, {},
                             [](const Batch &batch) { return batch.comm->lineage.name; });
  return batches.empty() ? Outcome() : streams().launch(batches);
}

} // namespace

Outcome submit(const std::shared_ptr<Comm> &comm, const Operation &operation) {
  if (group.depth > 0) {
    add(group.batches, comm, operation);
    return {};
  }
  // A call outside of a group is a group of one.
  Batch alone{comm, {}, {}};
  alone.add(operation);
  return launch({&alone, 1});
}

bool isInGroup() { return group.depth > 0; }

size_t placesInGroup(const std::shared_ptr<Comm> &comm) {
  return static_cast<size_t>(
      std::ranges::count(group.batches, comm, [](const Batch &batch) { return batch.comm; }));
}

ncclResult_t inGroup(ncclResult_t result) {
  if (group.depth > 0 && group.error == ncclSuccess && result != ncclInProgress)
    group.error = result;
  return result;
}

} // namespace occl::nccl

using namespace occl::nccl;

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}
OCCL_NCCL_SECOND_NAME(ncclGroupStart);

ncclResult_t ncclGroupEnd() {
  return guarded("ncclGroupEnd", []() -> Outcome {
    // NCCL's groups nest, and only the outermost end executes.
    if (group.depth == 0)
      return invalidUsage("there is no ncclGroupStart for it");
    if (--group.depth > 0)
      return {};
    // Taken out before anything can fail: whatever happens now, the thread is outside of the group.
    Group ended = std::exchange(group, Group());
    // One refused call spoils the whole group: executing the others could leave peers waiting.
    if (ended.error != ncclSuccess)
      return {ended.error, std::string("a call in the group has failed, so nothing of it is "
                                       "executed: ") +
                               ncclGetLastError(nullptr)};
    Batches &batches = ended.batches;
    const occl::nvtx::Range range([&]() -> occl::nvtx::Named {
      return {"ncclGroupEnd", batches.size() == 1 ? batches[0].comm->category() : 0,
              bytesOf(batches)};
    });
    return launch(batches);
  });
}
OCCL_NCCL_SECOND_NAME(ncclGroupEnd);

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *) {
  return guarded("ncclGroupSimulateEnd", []() -> Outcome {
    if (group.depth == 0)
      return invalidUsage("there is no ncclGroupStart for it");
    if (--group.depth == 0)
      group = Group();
    return invalidUsage("OCCL does not estimate times; the group is over, and nothing of it is "
                        "executed");
  });
}
OCCL_NCCL_SECOND_NAME(ncclGroupSimulateEnd);

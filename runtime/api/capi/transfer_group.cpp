// Groups of sends and receives: one for each thread, which its outermost end runs.
#include "runtime/api/capi/transfer_group.h"

#include "runtime/sync/atomic.h"
#include "runtime/sync/per_thread.h"
#include "support/nvtx/ranges.h"

#include <algorithm>
#include <memory>
#include <new>

namespace occl::communicator {

namespace {

struct Groups; // of this file alone, so the pointer is no symbol of the library

TransferGroup *&ofThisThread() { return pointerOfThisThread<Groups, TransferGroup>(); }

/// The group in which this process was forked. Not looked at: so that no search for leaks takes it
/// for one.
Atomic<const TransferGroup *> ofParent{nullptr};

} // namespace

TransferGroup *TransferGroup::current() {
  TransferGroup *&group = ofThisThread();
  if (group && !group->process.isThisProcess()) {
    ofParent.store(group, std::memory_order_relaxed);
    group = nullptr;
  }
  return group;
}

TransferGroup::Outside::Outside() : before(std::exchange(ofThisThread(), nullptr)) {}

TransferGroup::Outside::~Outside() {
  hasLeftOne();
  ofThisThread() = before;
}

bool TransferGroup::Outside::hasLeftOne() {
  std::unique_ptr<TransferGroup> left(std::exchange(ofThisThread(), nullptr));
  return left != nullptr;
}

void TransferGroup::enter() {
  if (!current())
    ofThisThread() = new TransferGroup;
  ++ofThisThread()->depth;
}

Status TransferGroup::leave() {
  TransferGroup *group = current();
  if (!group)
    return {StatusCode::InvalidArgument, "occlGroupEnd: there is no group; call occlGroupStart"};
  // Inner levels add their calls to the outermost group.
  if (--group->depth != 0)
    return {};
  // Detached first: what runs meanwhile on this thread is outside of the group.
  std::unique_ptr<TransferGroup> last(std::exchange(ofThisThread(), nullptr));
  return last->run();
}

StatusOr<daemon::RequestId> TransferGroup::leaveAsync(occlComm &comm,
                                                      const daemon::Callback &callback,
                                                      bool callbackNeverBlocks) {
  TransferGroup *group = current();
  if (!group)
    return Status(StatusCode::InvalidArgument, "there is no group; call occlGroupStart");
  if (--group->depth != 0) {
    group->refuse(StatusCode::InvalidArgument, "occlGroupEndAsync was called inside of the group");
    return Status(StatusCode::InvalidArgument,
                  "the group is inside of another one; only the outermost ends so");
  }
  std::unique_ptr<TransferGroup> last(std::exchange(ofThisThread(), nullptr));
  return last->start(comm, callback, callbackNeverBlocks);
}

void TransferGroup::add(occlComm &comm, std::span<const daemon::Transfer> transfers, void *stream) {
  auto member = std::ranges::find(members, &comm, &Member::comm);
  // A communicator keeps the place of its first call.
  if (member == members.end())
    member = members.insert(members.end(), {&comm, {}, {}});
  member->transfers.insert(member->transfers.end(), transfers.begin(), transfers.end());
  if (std::ranges::find(member->streams, stream) == member->streams.end())
    member->streams.push_back(stream);
}

void TransferGroup::refuse(StatusCode code, const char *why) noexcept {
  if (!refused.ok())
    return;
  try {
    refused = {code, why};
  } catch (const std::bad_alloc &) {
    refused = outOfMemory();
  }
}

Status TransferGroup::check() const {
  if (!refused.ok())
    return refused;
  for (const auto &member : members)
    if (!member.comm->process.isThisProcess())
      return {StatusCode::InvalidArgument,
              "the group has calls of the process that forked this one"};
  return {};
}

StatusOr<daemon::RequestId> TransferGroup::start(occlComm &comm, const daemon::Callback &callback,
                                                 bool callbackNeverBlocks) {
  if (Status checked = check(); !checked.ok())
    return checked;
  // A group without calls has no member, and ends at once.
  std::span<const daemon::Transfer> transfers;
  for (const auto &member : members) {
    if (member.comm != &comm)
      return Status(StatusCode::InvalidArgument,
                    "the group has calls of another communicator; occlGroupEnd ends such a group");
    transfers = member.transfers;
  }
  const nvtx::Range range([&] { return nvtx::Named{"occlGroupEndAsync", comm.category, bytes()}; });
  return comm.daemon->start(transfers, callback, callbackNeverBlocks);
}

/// What its ranks send; if they send nothing, what they receive.
uint64_t TransferGroup::bytes() const {
  uint64_t sent = 0, received = 0;
  for (const Member &member : members)
    for (const daemon::Transfer &transfer : member.transfers)
      (transfer.isSend ? sent : received) += transfer.part.bytes();
  return sent != 0 ? sent : received;
}

/// Those on devices become work of their streams. Of the others all are begun before one is waited
/// for.
Status TransferGroup::run() {
  if (Status checked = check(); !checked.ok())
    return checked;
  const nvtx::Range range([&] {
    return nvtx::Named{"occlGroupEnd", members.size() == 1 ? members[0].comm->category : 0,
                       bytes()};
  });
  // Sort by where the communicators are.
  std::vector<cuda::DeviceTransfers> onDevices;
  std::vector<const Member *> onHosts;
  for (const Member &member : members)
    if (member.comm->gpu)
      onDevices.push_back({member.comm->gpu.get(), member.transfers, member.streams});
    else
      onHosts.push_back(&member);
  // The usual group: one communicator, begun and waited for in one go.
  if (onHosts.size() == 1 && onDevices.empty())
    return onHosts[0]->comm->daemon->run(onHosts[0]->transfers);
  // What needs memory comes first: without any, nothing on a host has begun.
  std::vector<daemon::Exchange> exchanges(onHosts.size());
  for (size_t i = 0; i < onHosts.size(); ++i)
    onHosts[i]->comm->daemon->prepare(exchanges[i], onHosts[i]->transfers);
  Status first;
  if (!onDevices.empty()) {
    auto streamed = cuda::transferInStreams(onDevices);
    first = std::move(streamed.status);
    if (!first.ok() && !streamed.haveBegun) // then nothing of the group has
      return first;
  }
  const auto keepFirst = [&](const daemon::Daemon &daemon) {
    try {
      first = first.ok() ? daemon.failure() : first;
    } catch (const std::bad_alloc &) { // for its text
      first = outOfMemory();
    }
  };
  // All begin before one is waited for, as peers may end them in any order.
  for (size_t i = 0; i < onHosts.size(); ++i)
    if (!onHosts[i]->comm->daemon->begin(exchanges[i]))
      keepFirst(*onHosts[i]->comm->daemon);
  // Wait also after an error: executors still access the exchanges on this stack.
  for (size_t i = 0; i < onHosts.size(); ++i)
    if (!onHosts[i]->comm->daemon->end(exchanges[i]))
      keepFirst(*onHosts[i]->comm->daemon);
  return first;
}

} // namespace occl::communicator

// Divides a communicator: all ranks tell their colours, then each colour forms a group.
#include "runtime/control/membership/split.h"

#include "runtime/control/bootstrap/list_ranks.h"
#include "runtime/net/network.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace occl::daemon {

namespace {

using transport::SplitRecord;

constexpr auto kPoll = std::chrono::microseconds(50);
/// Polls between two looks whether the others still live.
constexpr uint32_t kPollsPerLook = 400;

Status peerFailed(uint32_t rank, const char *what) {
  return {StatusCode::PeerFailed, "dividing the communicator: rank " + std::to_string(rank) + what};
}

Status timeout(const std::vector<uint32_t> &missing, uint32_t numRanks) {
  return {StatusCode::Timeout, "dividing the communicator: " + bootstrap::listRanks(missing) +
                                   " of " + std::to_string(numRanks) +
                                   " did not call occlCommSplit in time"};
}

} // namespace

Status Splitter::checkAlive(uint32_t rank) const {
  if (fabric.hasLeft(rank))
    return peerFailed(rank, " has destroyed its communicator");
  if (fabric.isDead(rank))
    return peerFailed(rank, " is gone: its process has ended");
  return {};
}

Status Splitter::awaitAll(const Atomic<uint64_t> SplitRecord::*counter, uint64_t atLeast,
                          const Deadline &deadline) const {
  for (uint32_t polls = 1;; ++polls) {
    if (fabric.failed())
      return fabric.failure();
    std::vector<uint32_t> missing;
    std::optional<uint32_t> gaveUp;
    for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
      const SplitRecord &record = recordOf(r);
      if (record.hasGivenUp(number))
        gaveUp = r;
      if ((record.*counter).load(std::memory_order_acquire) < atLeast)
        missing.push_back(r);
    }
    // Ranks that give up from now on do so for other reasons, which each finds for itself.
    if (missing.empty())
      return {};
    if (gaveUp)
      return peerFailed(*gaveUp, " has given up");
    if (polls % kPollsPerLook == 0)
      for (uint32_t r : missing)
        if (Status alive = checkAlive(r); !alive.ok())
          return alive;
    if (deadline.passed())
      return timeout(missing, fabric.numRanks());
    sleepFor(kPoll);
  }
}

/// The ranks of this rank's colour in their new order.
StatusOr<std::vector<uint32_t>> Splitter::membersOf(const SplitRequest &request) const {
  std::vector<uint32_t> members;
  std::vector<int32_t> keys(fabric.numRanks());
  // The records are stable: `published` was acquired, and they change only once all are done.
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    const SplitRecord &record = recordOf(r);
    if (record.colour.load(std::memory_order_relaxed) != request.colour)
      continue;
    members.push_back(r);
    keys[r] = record.key.load(std::memory_order_relaxed);
    const uint64_t bytes = record.segmentBytes.load(std::memory_order_relaxed);
    if (bytes != request.segmentBytes)
      return Status(StatusCode::Mismatch, "dividing the communicator: rank " + std::to_string(r) +
                                              " wants a segment of " + std::to_string(bytes) +
                                              " bytes, rank " + std::to_string(fabric.rank()) +
                                              " one of " + std::to_string(request.segmentBytes) +
                                              "; use the same arenaBytes and heapBytes");
  }
  // A stable sort keeps the order of the parent among equal keys.
  std::stable_sort(members.begin(), members.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return members;
}

/// Executors wake it by themselves; this thread is none.
void Splitter::tellOtherMachines() const {
  if (fabric.network())
    fabric.network()->wakeSender();
}

void Splitter::publish(const SplitRequest &request, const bootstrap::OfferHandle &handle) {
  SplitRecord &own = recordOf(fabric.rank());
  own.colour.store(request.colour, std::memory_order_relaxed);
  own.key.store(request.key, std::memory_order_relaxed);
  own.segmentBytes.store(request.segmentBytes, std::memory_order_relaxed);
  own.offer.store(handle.place, std::memory_order_relaxed);
  own.offerNonce.store(handle.nonce, std::memory_order_relaxed);
  own.published.store(number + 1, std::memory_order_release);
  tellOtherMachines();
}

StatusOr<std::unique_ptr<bootstrap::Group>> Splitter::form(const std::vector<uint32_t> &ranks,
                                                           GroupOffer offer,
                                                           const Deadline &deadline) const {
  std::vector<bootstrap::SubgroupMember> members;
  for (uint32_t r : ranks)
    members.push_back({r,
                       {recordOf(r).offer.load(std::memory_order_relaxed),
                        recordOf(r).offerNonce.load(std::memory_order_relaxed)}});
  // The records of the others are read, so they may be written again.
  recordOf(fabric.rank()).done.store(number + 1, std::memory_order_release);
  tellOtherMachines();
  return std::move(offer).form(fabric, members, "division " + std::to_string(number), deadline,
                               [this](uint32_t r) { return recordOf(r).hasGivenUp(number); });
}

StatusOr<std::unique_ptr<Fabric>> Splitter::run(const SplitRequest &request,
                                                const Deadline &deadline) {
  // Prepare the memory or the port before anybody is told.
  std::optional<GroupOffer> offer;
  if (request.colour >= 0) {
    auto made = GroupOffer::make(fabric, {request.segmentBytes, request.heapBytes});
    if (!made.ok())
      return made.status();
    offer = std::move(*made);
  }
  // Whoever still reads the last division's records is not far behind.
  Status status = awaitAll(&SplitRecord::done, number, deadline);
  if (!status.ok())
    return status;
  publish(request, offer ? offer->handle() : bootstrap::OfferHandle());
  status = awaitAll(&SplitRecord::published, number + 1, deadline);
  if (!status.ok())
    return status;
  allHaveCome = true;
  if (request.colour < 0)
    return std::unique_ptr<Fabric>();
  auto ranks = membersOf(request);
  if (!ranks.ok())
    return ranks.status();
  auto group = form(*ranks, std::move(*offer), deadline);
  if (!group.ok())
    return group.status();
  return makeFabric(std::move(*group), fabric.own().header().orderPolicy, deadline,
                    request.heapBytes);
}

StatusOr<std::unique_ptr<Fabric>> Splitter::split(const SplitRequest &request,
                                                  const Deadline &deadline) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock())
    return Status(StatusCode::InvalidArgument,
                  "another thread is dividing this communicator; the ranks could not tell the two "
                  "divisions apart. Call occlCommSplit one after another, in the same order on all "
                  "ranks");
  allHaveCome = false;
  auto formed = run(request, deadline);
  SplitRecord &own = recordOf(fabric.rank());
  // Else the others see all come, too, be it later: from another machine that is not said in order.
  if (!formed.ok() && !allHaveCome)
    own.giveUp(number);
  own.done.store(number + 1, std::memory_order_release);
  tellOtherMachines();
  ++number;
  return formed;
}

} // namespace occl::daemon

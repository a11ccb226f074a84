#include "runtime/control/membership/split.h"

#include "runtime/control/bootstrap/subgroup.h"
#include "runtime/sync/read_once.h"
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
  std::string text = missing.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < missing.size(); ++i)
    text += (i ? ", " : "") + std::to_string(missing[i]);
  return {StatusCode::Timeout, "dividing the communicator: " + text + " of " +
                                   std::to_string(numRanks) +
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
      if (record.abandoned.load(std::memory_order_acquire) == number + 1)
        gaveUp = r;
      if ((record.*counter).load(std::memory_order_acquire) < atLeast)
        missing.push_back(r);
    }
    // If all have come, what a rank did before it gave up counts: all find the same mismatch.
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
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    const SplitRecord &record = recordOf(r);
    if (readOnce(record.colour) != request.colour)
      continue;
    members.push_back(r);
    keys[r] = readOnce(record.key);
    const uint64_t bytes = readOnce(record.segmentBytes);
    if (bytes != request.segmentBytes)
      return Status(StatusCode::Mismatch, "dividing the communicator: rank " + std::to_string(r) +
                                              " wants a segment of " + std::to_string(bytes) +
                                              " bytes, rank " + std::to_string(fabric.rank()) +
                                              " one of " + std::to_string(request.segmentBytes) +
                                              "; use the same arenaBytes and heapBytes");
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return members;
}

StatusOr<std::unique_ptr<Fabric>> Splitter::run(const SplitRequest &request,
                                                const Deadline &deadline) {
  bool takesPart = request.colour >= 0;
  std::unique_ptr<bootstrap::SubgroupOffer> offer;
  if (takesPart) {
    auto made = bootstrap::SubgroupOffer::make(fabric.ranks(), request.segmentBytes);
    if (!made.ok())
      return made.status();
    offer = std::move(*made);
  }
  // Whoever still reads the last division's records is not far behind.
  Status status = awaitAll(&SplitRecord::done, number, deadline);
  if (!status.ok())
    return status;
  SplitRecord &own = recordOf(fabric.rank());
  own.colour = request.colour;
  own.key = request.key;
  own.segmentBytes = request.segmentBytes;
  const auto handle = offer ? offer->handle() : bootstrap::OfferHandle();
  own.offer = handle.place;
  own.offerNonce = handle.nonce;
  own.published.store(number + 1, std::memory_order_release);
  status = awaitAll(&SplitRecord::published, number + 1, deadline);
  if (!status.ok())
    return status;
  if (!takesPart)
    return std::unique_ptr<Fabric>();
  auto ranks = membersOf(request);
  if (!ranks.ok())
    return ranks.status();
  std::vector<bootstrap::SubgroupMember> members;
  for (uint32_t r : *ranks)
    members.push_back({r, {recordOf(r).offer, recordOf(r).offerNonce}});
  own.done.store(number + 1, std::memory_order_release);
  auto group = bootstrap::formSubgroup(fabric.ranks(), members, *offer, deadline);
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
  auto formed = run(request, deadline);
  SplitRecord &own = recordOf(fabric.rank());
  if (!formed.ok())
    own.abandoned.store(number + 1, std::memory_order_release);
  own.done.store(number + 1, std::memory_order_release);
  ++number;
  return formed;
}

} // namespace occl::daemon

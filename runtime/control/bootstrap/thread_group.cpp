// Groups whose ranks are threads of one process.
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/bootstrap/name.h"
#include "runtime/control/shm/mapping.h"
#include "runtime/sync/mutex.h"

#include <mutex>

namespace occl::bootstrap {
namespace {

/// What the ranks of a group of threads have in common.
struct Shared {
  std::vector<Mapping> segments;
  std::vector<std::shared_ptr<SharedBell>> bells; // by rank
  Mutex mutex;
  ConditionVariable changed;
  std::vector<uint64_t> barriers; // entered, by rank
  std::vector<bool> left;         // by rank
};

class ThreadGroup final : public Group {
public:
  ThreadGroup(std::shared_ptr<Shared> common, uint32_t rank) : shared(std::move(common)) {
    ownRank = rank;
    bells = shared->bells;
    for (const Mapping &segment : shared->segments)
      mapped.push_back(segment.get());
    members.assign(mapped.size(), ownProcess());
  }
  ~ThreadGroup() override {
    {
      std::lock_guard lock(shared->mutex);
      shared->left[ownRank] = true;
    }
    shared->changed.notify_all();
  }

  Status barrier(const Deadline &deadline) override;

private:
  std::shared_ptr<Shared> shared;
};

Status ThreadGroup::barrier(const Deadline &deadline) {
  std::unique_lock lock(shared->mutex);
  uint64_t entered = ++shared->barriers[ownRank];
  shared->changed.notify_all();
  for (uint32_t rank = 0; rank < numRanks(); ++rank) {
    // A rank that is ahead has entered this barrier, too.
    auto settled = [&] { return shared->barriers[rank] >= entered || shared->left[rank]; };
    if (!shared->changed.wait_for(lock, deadline.remaining(), settled))
      return {StatusCode::Timeout,
              "rank " + std::to_string(rank) + " did not reach the barrier in time"};
    // A rank that has entered before it left counts.
    if (shared->barriers[rank] < entered)
      return {StatusCode::PeerFailed, "rank " + std::to_string(rank) + " has left its group"};
  }
  return {};
}

} // namespace

StatusOr<std::vector<std::unique_ptr<Group>>>
formThreadGroup(const std::vector<std::shared_ptr<SharedBell>> &bells, uint64_t segmentBytes) {
  auto numRanks = static_cast<uint32_t>(bells.size());
  if (Status status = checkGroup(numRanks, 0); !status.ok())
    return status;
  auto size = wholePages(segmentBytes);
  if (!size.ok())
    return size.status();
  // All ranks hold one object, which ends with the last of them.
  auto shared = std::make_shared<Shared>();
  shared->bells = bells;
  shared->barriers.resize(numRanks);
  shared->left.resize(numRanks);
  for (uint32_t rank = 0; rank < numRanks; ++rank) {
    auto segment = Mapping::anonymous(*size);
    if (!segment.ok())
      return segment.status();
    shared->segments.push_back(std::move(*segment));
  }
  // Nothing can fail once all segments are there.
  std::vector<std::unique_ptr<Group>> groups;
  for (uint32_t rank = 0; rank < numRanks; ++rank)
    groups.push_back(std::make_unique<ThreadGroup>(shared, rank));
  return groups;
}

} // namespace occl::bootstrap

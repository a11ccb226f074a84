// Forms a group of processes of one machine by a control object.
#include "runtime/control/bootstrap/bootstrap.h"
#include "runtime/control/bootstrap/control_object.h"
#include "runtime/control/bootstrap/name.h"
#include "runtime/control/shm/mapping.h"

#include <new>

namespace occl::bootstrap {
namespace {

class ProcessGroup final : public Group {
public:
  ProcessGroup(ControlObject joined, uint32_t rank, std::shared_ptr<SharedBell> bell)
      : control(std::move(joined)), ownBell(std::move(bell)) {
    ownRank = rank;
    processes = true;
    meeting = control.heldFile();
  }
  ~ProcessGroup() override { control.leave(ownRank); }

  /// Waits for all ranks, then maps their segments of `segmentBytes` bytes.
  Status connect(uint64_t segmentBytes, const ProcessGroupOptions &options,
                 const Deadline &deadline);
  Status barrier(const Deadline &deadline) override;

private:
  Status mapRank(uint32_t rank, uint64_t segmentBytes);
  Status notMapped(uint32_t rank, const Status &why) const;

  ControlObject control;
  std::shared_ptr<SharedBell> ownBell;
  std::vector<Mapping> segments;
};

/// A rank that has ended or given up has taken its descriptors along.
Status ProcessGroup::notMapped(uint32_t rank, const Status &why) const {
  const bool isOther = control.slot(rank).process != ownProcess();
  const bool isGone = why.code() == StatusCode::PeerFailed || control.isGone(rank) ||
                      (isOther && meeting->isLetGoSoon(rank));
  return isGone ? control.peerFailed(rank) : why;
}

Status ProcessGroup::mapRank(uint32_t rank, uint64_t segmentBytes) {
  // The descriptors of a rank are good until all ranks have mapped its memory.
  const RankSlot &slot = control.slot(rank);
  std::string whose =
      " of rank " + std::to_string(rank) + " (process " + std::to_string(slot.process.pid) + ")";
  auto pathOf = [&](int descriptor) { return descriptorPath(slot.thread, descriptor); };
  auto segment =
      Mapping::ofPath(pathOf(slot.segmentDescriptor), segmentBytes, "the segment" + whose,
                      rank == ownRank ? Access::ReadWrite : Access::ReadOnly);
  if (!segment.ok())
    return notMapped(rank, segment.status());
  // The own bell is mapped, all others are opened.
  if (rank != ownRank) {
    auto bell = SharedBell::open(pathOf(slot.bellDescriptor), "the doorbell" + whose);
    if (!bell.ok())
      return notMapped(rank, bell.status());
    bells.push_back(std::move(*bell));
  } else {
    bells.push_back(ownBell);
  }
  segments.push_back(std::move(*segment));
  mapped.push_back(segments.back().get());
  members.push_back(slot.process);
  meetingRanks.push_back(rank);
  return {};
}

Status ProcessGroup::connect(uint64_t segmentBytes, const ProcessGroupOptions &options,
                             const Deadline &deadline) {
  // A rank that is gone before all have joined will never map anything, whatever it reached.
  auto joined = [](const RankSlot &slot) {
    return slot.state.load(std::memory_order_acquire) != RankState::Missing &&
           !slot.left.load(std::memory_order_acquire);
  };
  if (Status status = control.awaitAll(joined, "did not start", deadline, options.whyGone);
      !status.ok())
    return status;
  for (uint32_t rank = 0; rank < options.numRanks; ++rank)
    if (Status status = mapRank(rank, segmentBytes); !status.ok())
      return status;
  // The group is complete once all ranks have said this.
  control.slot(ownRank).state.store(RankState::Mapped, std::memory_order_release);
  control.announceChange();
  auto hasMapped = [](const RankSlot &slot) {
    return slot.state.load(std::memory_order_acquire) == RankState::Mapped;
  };
  return control.awaitAll(hasMapped, "did not map all segments", deadline);
}

Status ProcessGroup::barrier(const Deadline &deadline) {
  // Release: what a rank stored before the barrier is seen by all after it.
  uint32_t entered = control.slot(ownRank).barriers.fetch_add(1, std::memory_order_acq_rel) + 1;
  control.announceChange();
  return control.awaitAll(
      [entered](const RankSlot &slot) {
        return static_cast<int32_t>(slot.barriers.load(std::memory_order_acquire) - entered) >= 0;
      },
      "did not reach the barrier", deadline);
}

} // namespace

Status Group::allowStores(uint32_t rank, std::span<std::byte> pages) const {
  return processes && rank != ownRank ? bootstrap::allowStores(pages) : Status();
}

StatusOr<std::unique_ptr<Group>> formProcessGroup(const ProcessGroupOptions &options) {
  // Check all arguments before anything is made.
  if (Status status = checkGroup(options.numRanks, options.rank); !status.ok())
    return status;
  if (Status status = checkName(options.name); !status.ok())
    return status;
  if (!options.bell || options.bell->descriptor() < 0)
    return Status(StatusCode::InvalidArgument,
                  "a rank of a group of processes needs a shared bell");
  auto segmentBytes = wholePages(options.segmentBytes);
  if (!segmentBytes.ok())
    return segmentBytes.status();

  Deadline deadline(options.timeout);
  ControlObject::removeStale(deadline);
  // Kept open until all have mapped it.
  auto segment = createSealedFile("occl-segment", *segmentBytes);
  if (!segment.ok())
    return segment.status();
  auto control = ControlObject::join(options.name,
                                     {.rank = options.rank,
                                      .numRanks = options.numRanks,
                                      .segmentBytes = *segmentBytes,
                                      .job = options.job,
                                      .segment = segment->get(),
                                      .bell = options.bell->descriptor()},
                                     deadline);
  if (!control.ok())
    return control.status();
  std::unique_ptr<ProcessGroup> group;
  try {
    group = std::make_unique<ProcessGroup>(std::move(*control), options.rank, options.bell);
  } catch (const std::bad_alloc &) { // the others are told at once
    control->leave(options.rank);
    throw;
  }
  if (Status status = group->connect(*segmentBytes, options, deadline); !status.ok())
    return status;
  return std::unique_ptr<Group>(std::move(group));
}

} // namespace occl::bootstrap

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/control_object.h"
#include "runtime/bootstrap/mapping.h"
#include "runtime/bootstrap/name.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::bootstrap {
namespace {

class ProcessGroup final : public Group {
public:
  ProcessGroup(ControlObject control, uint32_t rank) : control(std::move(control)) {
    ownRank = rank;
    processes = true;
  }
  ~ProcessGroup() override { control.leave(ownRank); }

  /// Waits for all ranks, then maps their segments of `segmentBytes` bytes.
  Status connect(uint32_t numRanks, uint64_t segmentBytes, const Deadline &deadline);
  Status barrier(const Deadline &deadline) override;

private:
  Status mapSegment(uint32_t rank, uint64_t segmentBytes);

  ControlObject control;
  std::vector<Mapping> segments;
};

Status ProcessGroup::mapSegment(uint32_t rank, uint64_t segmentBytes) {
  const RankSlot &slot = control.slot(rank);
  std::string what = "the segment of rank " + std::to_string(rank) + " (process " +
                     std::to_string(slot.process.pid) + ")";
  std::string path =
      "/proc/" + std::to_string(slot.process.pid) + "/fd/" + std::to_string(slot.segmentDescriptor);
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid() && isGone(slot))
    return control.peerFailed(rank);
  if (!file.valid())
    return systemError("cannot open " + what + ", " + path, errno);
  struct stat info;
  if (fstat(file.get(), &info) != 0 || static_cast<uint64_t>(info.st_size) != segmentBytes)
    return {StatusCode::Mismatch, what + " is not of " + std::to_string(segmentBytes) + " bytes"};
  auto mapping = Mapping::ofFile(file.get(), segmentBytes, what.c_str());
  if (!mapping.ok())
    return mapping.status();
  segments.push_back(std::move(*mapping));
  mapped.push_back(segments.back().get());
  members.push_back(slot.process);
  return {};
}

Status ProcessGroup::connect(uint32_t numRanks, uint64_t segmentBytes, const Deadline &deadline) {
  // A rank that is gone before all have joined will never map anything, whatever it reached.
  auto joined = [](const RankSlot &slot) {
    return slot.state.load(std::memory_order_acquire) != RankState::Missing && !isGone(slot);
  };
  if (Status status = control.awaitAll(joined, "did not start", deadline); !status.ok())
    return status;
  for (uint32_t rank = 0; rank < numRanks; ++rank)
    if (Status status = mapSegment(rank, segmentBytes); !status.ok())
      return status;
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

/// A segment that lives as long as someone has it open or mapped. Sealed: no rank can shrink it
/// under another's feet.
StatusOr<Descriptor> createSegment(uint64_t bytes) {
  Descriptor file(memfd_create("occl-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return systemError("cannot create a segment of " + std::to_string(bytes) + " bytes", errno);
  return file;
}

} // namespace

StatusOr<std::unique_ptr<Group>> formProcessGroup(const ProcessGroupOptions &options) {
  if (Status status = checkGroup(options.numRanks, options.rank); !status.ok())
    return status;
  if (Status status = checkName(options.name); !status.ok())
    return status;
  auto segmentBytes = wholePages(options.segmentBytes);
  if (!segmentBytes.ok())
    return segmentBytes.status();

  Deadline deadline(options.timeout);
  ControlObject::removeStale();
  // Kept open until all have mapped it.
  auto segment = createSegment(*segmentBytes);
  if (!segment.ok())
    return segment.status();
  auto control = ControlObject::join(options.name, options.numRanks, options.rank, *segmentBytes,
                                     segment->get(), deadline);
  if (!control.ok())
    return control.status();
  auto group = std::make_unique<ProcessGroup>(std::move(*control), options.rank);
  if (Status status = group->connect(options.numRanks, *segmentBytes, deadline); !status.ok())
    return status;
  return std::unique_ptr<Group>(std::move(group));
}

} // namespace occl::bootstrap

// Forms groups of some ranks of a group by memory that each member offers.
#include "runtime/control/bootstrap/subgroup.h"

#include "runtime/base/nonce.h"
#include "runtime/base/process_identity.h"
#include "runtime/control/bootstrap/name.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/thread.h"

#include <map>
#include <mutex>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>

namespace occl::bootstrap {

namespace {

/// Behind every segment of a subgroup, in a page of its own, which its owner alone writes.
struct Meeting {
  Atomic<uint32_t> barriers{0}; // entered
  Atomic<uint32_t> left{0};     // 1: the rank gave up, or its group was destroyed
  uint64_t nonce = 0;           // OfferHandle::nonce
};
constexpr uint64_t kMeetingBytes = 4096;

Meeting &meetingIn(const Mapping &memory) {
  return *reinterpret_cast<Meeting *>(memory.get().data() + memory.get().size() - kMeetingBytes);
}

std::span<std::byte> segmentIn(const Mapping &memory) {
  return memory.get().first(memory.get().size() - kMeetingBytes);
}

/// Offers of ranks of this process, which share addresses and need no descriptors.
struct Offers {
  Mutex mutex;
  std::map<uint64_t, std::shared_ptr<Mapping>> byNumber;
  uint64_t next = 1;
};

Offers &offers() {
  static constinit PerProcess<Offers> instance;
  return instance.get();
}

class Subgroup final : public Group {
public:
  Subgroup(const Group &parent, const std::vector<SubgroupMember> &joined) {
    processes = parent.acrossProcesses();
    for (const SubgroupMember &member : joined) {
      parentRanks.push_back(member.parentRank);
      members.push_back(parent.process(member.parentRank));
      bells.push_back(parent.sharedBell(member.parentRank));
    }
    joinMeeting(parent, parentRanks);
  }
  ~Subgroup() override {
    if (ownMemory)
      meetingIn(*ownMemory).left.store(1, std::memory_order_release);
  }

  Status mapAll(const std::vector<SubgroupMember> &joined, const SubgroupOffer &own);
  Status barrier(const Deadline &deadline) override;

private:
  StatusOr<std::shared_ptr<Mapping>> map(uint32_t rank, const OfferHandle &offer,
                                         uint64_t bytes) const;
  Status gone(uint32_t rank) const {
    return {StatusCode::PeerFailed, "rank " + std::to_string(parentRanks[rank]) +
                                        " of the communicator that is divided has ended or given "
                                        "up"};
  }

  std::vector<uint32_t> parentRanks;
  std::shared_ptr<Mapping> ownMemory;
  std::vector<std::shared_ptr<Mapping>> memory; // by rank
};

StatusOr<std::shared_ptr<Mapping>> Subgroup::map(uint32_t rank, const OfferHandle &offer,
                                                 uint64_t bytes) const {
  // Threads find the mapping by its number in their process.
  if (!processes) {
    std::lock_guard lock(offers().mutex);
    auto found = offers().byNumber.find(offer.place);
    if (found == offers().byNumber.end())
      return gone(rank);
    return found->second;
  }
  auto thread = static_cast<int>(offer.place >> 32), file = static_cast<int>(offer.place);
  auto mapping = Mapping::ofPath(descriptorPath(thread, file), bytes,
                                 "the segment of rank " + std::to_string(parentRanks[rank]) +
                                     " (process " + std::to_string(members[rank].pid) + ")",
                                 rank == ownRank ? Access::ReadWrite : Access::ReadOnly);
  if (!mapping.ok() && mapping.status().code() == StatusCode::SystemError &&
      (members[rank] == ownProcess() || !meeting->isLetGoSoon(meetingRanks[rank])))
    return mapping.status();
  // A rank that has given up has taken its descriptor along; another may have its number.
  if (!mapping.ok() || meetingIn(*mapping).nonce != offer.nonce)
    return gone(rank);
  return std::make_shared<Mapping>(std::move(*mapping));
}

Status Subgroup::mapAll(const std::vector<SubgroupMember> &joined, const SubgroupOffer &own) {
  ownMemory = own.memory();
  // The own offer tells which member this rank is.
  for (uint32_t rank = 0; rank < joined.size(); ++rank)
    if (joined[rank].offer.nonce == own.handle().nonce)
      ownRank = rank;
  for (uint32_t rank = 0; rank < joined.size(); ++rank) {
    auto mapping = map(rank, joined[rank].offer, own.memory()->get().size());
    if (!mapping.ok())
      return mapping.status();
    memory.push_back(std::move(*mapping));
    mapped.push_back(segmentIn(*memory.back()));
  }
  return {};
}

Status Subgroup::barrier(const Deadline &deadline) {
  constexpr auto kPoll = std::chrono::microseconds(50);
  constexpr uint32_t kPollsPerLook = 400; // at whether the process lives
  // Release, as stores before the barrier are seen after it.
  uint32_t entered = meetingIn(*ownMemory).barriers.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (uint32_t rank = 0; rank < numRanks(); ++rank) {
    const Meeting &meeting = meetingIn(*memory[rank]);
    auto hasEntered = [&] {
      return static_cast<int32_t>(meeting.barriers.load(std::memory_order_acquire) - entered) >= 0;
    };
    for (uint32_t polls = 1; !hasEntered(); ++polls) {
      bool isGone = meeting.left.load(std::memory_order_acquire) != 0 ||
                    (polls % kPollsPerLook == 0 && !isAlive(rank));
      if (isGone && !hasEntered()) // what it did before it went counts
        return gone(rank);
      if (deadline.passed())
        return {StatusCode::Timeout, "rank " + std::to_string(parentRanks[rank]) +
                                         " of the communicator that is divided did not join its "
                                         "new one in time"};
      sleepFor(kPoll);
    }
  }
  return {};
}

} // namespace

void Group::joinMeeting(const Group &parent, const std::vector<uint32_t> &ranks) {
  meeting = parent.meeting;
  for (uint32_t rank : ranks)
    if (meeting)
      meetingRanks.push_back(parent.meetingRanks[rank]);
}

StatusOr<std::unique_ptr<SubgroupOffer>> SubgroupOffer::make(const Group &parent,
                                                             uint64_t segmentBytes) {
  auto size = wholePages(segmentBytes);
  if (!size.ok())
    return size.status();
  std::unique_ptr<SubgroupOffer> offer(new SubgroupOffer);
  StatusOr<Mapping> memory = Status(StatusCode::InternalError, "no memory yet");
  // Other processes open the file by its descriptor; threads share the mapping itself.
  if (parent.acrossProcesses()) {
    auto file = createSealedFile("occl-segment", *size + kMeetingBytes);
    if (!file.ok())
      return file.status();
    offer->file = std::move(*file);
    offer->place = static_cast<uint64_t>(gettid()) << 32 | static_cast<uint64_t>(offer->file.get());
    memory = Mapping::ofFile(offer->file.get(), *size + kMeetingBytes, "a segment");
  } else {
    memory = Mapping::anonymous(*size + kMeetingBytes);
  }
  if (!memory.ok())
    return memory.status();
  offer->mapping = std::make_shared<Mapping>(std::move(*memory));
  // The nonce lies in the memory before any other rank can find it.
  offer->nonce = drawNonce();
  (new (&meetingIn(*offer->mapping)) Meeting)->nonce = offer->nonce;
  // Threads look the offer up in a list of their process.
  if (!parent.acrossProcesses()) {
    std::lock_guard lock(offers().mutex);
    offer->place = offers().next++;
    offers().byNumber[offer->place] = offer->mapping;
    offer->isListed = true;
  }
  return offer;
}

SubgroupOffer::~SubgroupOffer() {
  // Members that have mapped the memory see that this rank has given up.
  if (mapping && !isFormed)
    meetingIn(*mapping).left.store(1, std::memory_order_release);
  if (!isListed)
    return;
  std::lock_guard lock(offers().mutex);
  offers().byNumber.erase(place);
}

StatusOr<std::unique_ptr<Group>> formSubgroup(const Group &parent,
                                              const std::vector<SubgroupMember> &members,
                                              SubgroupOffer &own, const Deadline &deadline) {
  if (Status status = checkGroup(static_cast<uint32_t>(members.size()), 0); !status.ok())
    return status;
  auto group = std::make_unique<Subgroup>(parent, members);
  Status status = group->mapAll(members, own);
  if (status.ok())
    status = group->barrier(deadline);
  if (!status.ok())
    return status;
  // From here on the group says when this rank leaves.
  own.isFormed = true;
  return std::unique_ptr<Group>(std::move(group));
}

} // namespace occl::bootstrap

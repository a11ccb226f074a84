#include "runtime/cuda/slot_table.h"

#include "runtime/base/thread.h"

#include <string>

namespace occl::cuda {

namespace {

constexpr auto kPatience = std::chrono::milliseconds(5000);

bool isFree(const SlotBoard::Entry &entry) {
  return (entry.registered | entry.retired | entry.isClearing) == 0;
}

std::string describe(const SlotKey &key) {
  std::string text = "the collective with id " + std::to_string(key.id);
  return text + (key.instance == 0 ? "" : ", captured call " + std::to_string(key.instance));
}

} // namespace

Status SlotTable::take() {
  Deadline deadline(kPatience);
  for (uint32_t owner = 0;
       !board.lock.compare_exchange_strong(owner, rank + 1, std::memory_order_acquire); owner = 0) {
    if (Status failed = failure(); !failed.ok())
      return failed;
    if (deadline.passed())
      return {StatusCode::Timeout, "rank " + std::to_string(owner - 1) +
                                       " has not finished registering a collective; is it dead?"};
    sleepFor(std::chrono::microseconds(20));
  }
  return {};
}

class SlotTable::Lock {
public:
  explicit Lock(SlotTable &table) : board(table.board), taken(table.take()) {}
  ~Lock() {
    if (taken.ok())
      board.lock.store(0, std::memory_order_release);
  }
  const Status &status() const { return taken; }

private:
  SlotBoard &board;
  const Status taken;
};

Status SlotTable::checkTraits(const SlotBoard::Entry &entry,
                              const transport::CollectiveTraits &traits) const {
  const transport::CollectiveTraits &first = entry.traits;
  auto differ = [&](const char *what, uint64_t theirs, uint64_t ours) -> Status {
    return {StatusCode::Mismatch, "collective " + std::to_string(entry.id) + ": rank " +
                                      std::to_string(entry.traitsOf) + " has registered it with " +
                                      what + " " + std::to_string(theirs) + ", rank " +
                                      std::to_string(rank) + " with " + std::to_string(ours)};
  };
  if (first.planHash != traits.planHash)
    return differ("a plan with hash", first.planHash, traits.planHash);
  if (first.count != traits.count)
    return differ("count", first.count, traits.count);
  if (first.dataType != traits.dataType)
    return differ("dataType", first.dataType, traits.dataType);
  if (first.op != traits.op)
    return differ("op", first.op, traits.op);
  return {};
}

StatusOr<uint32_t> SlotTable::claim(SlotKey key, const transport::CollectiveTraits &traits) {
  Lock lock(*this);
  if (!lock.status().ok())
    return lock.status();
  uint32_t self = 1u << rank, firstFree = kSlots;
  for (uint32_t slot = 0; slot < kSlots; ++slot) {
    SlotBoard::Entry &entry = board.entries[slot];
    if (isFree(entry)) {
      firstFree = firstFree < slot ? firstFree : slot;
      continue;
    }
    if (entry.id != key.id || entry.instance != key.instance)
      continue;
    if (entry.isClearing != 0 || (entry.retired & self) != 0)
      return Status(StatusCode::Again,
                    describe(key) + " is deregistered here and not yet on all other ranks");
    if (Status same = checkTraits(entry, traits); !same.ok())
      return same;
    entry.registered |= self;
    return slot;
  }
  if (firstFree == kSlots)
    return Status(StatusCode::Again, "no more than " + std::to_string(kSlots) +
                                         " collectives and captured calls at once on devices");
  board.entries[firstFree] = {key.id, key.instance, self, 0, 0, traits, rank};
  return firstFree;
}

StatusOr<bool> SlotTable::retire(uint32_t slot) {
  Lock lock(*this);
  if (!lock.status().ok())
    return lock.status();
  SlotBoard::Entry &entry = board.entries[slot];
  entry.registered &= ~(1u << rank);
  entry.retired |= 1u << rank;
  bool isLast = entry.retired == (1u << numRanks) - 1;
  entry.isClearing = isLast;
  return isLast;
}

Status SlotTable::release(uint32_t slot) {
  Lock lock(*this);
  if (!lock.status().ok())
    return lock.status();
  board.entries[slot] = {};
  board.generations[slot].fetch_add(1, std::memory_order_release);
  return {};
}

} // namespace occl::cuda

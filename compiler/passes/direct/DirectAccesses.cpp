#include "compiler/passes/direct/DirectAccesses.h"

#include "compiler/analysis/Dependences.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

namespace occl::passes {

using namespace analysis;
using inst::Instruction;
using inst::Place;

namespace {

/// An access of a range of chunks. The keys order accesses before and after the change: four a
/// step, for its reads, its writes, and reads of its result.
struct Access {
  uint32_t owner, space;
  int64_t begin, end;
  uint64_t oldKey, newKey;
  uint32_t rank; // that performs it
  bool isWrite;
  uint32_t message; // that moves it, or kFixed

  bool isOfSameMemory(const Access &other) const {
    return owner == other.owner && space == other.space;
  }
};

constexpr uint32_t kFixed = ~0u;
constexpr uint64_t kReads = 0, kWrites = 1, kReadsOfResult = 2;

bool isSpoilt(const Access &a, const Access &b) {
  bool isMoved = a.message != kFixed || b.message != kFixed;
  if (!isMoved || (!a.isWrite && !b.isWrite))
    return false;
  return a.newKey >= b.newKey || (b.isWrite && a.rank != b.rank);
}

/// Marks the messages that cannot stay as they are because of a piece of memory, given all
/// accesses of it in their old order.
void findSpoilt(llvm::ArrayRef<Access> piece, std::vector<bool> &isSpoiltMessage) {
  // Both messages of a pair are at fault, if both are direct.
  auto check = [&](const Access &a, const Access &b) {
    if (isSpoilt(a, b))
      for (const Access *access : {&a, &b})
        if (access->message != kFixed)
          isSpoiltMessage[access->message] = true;
  };
  // Reads, of which there may be many, do not disturb each other.
  for (size_t write = 0; write < piece.size(); ++write) {
    if (!piece[write].isWrite)
      continue;
    for (size_t before = 0; before < write; ++before)
      check(piece[before], piece[write]);
    for (size_t after = write + 1; after < piece.size(); ++after)
      check(piece[write], piece[after]);
  }
}

/// Likewise where ranges overlap in part: piece by piece, cut where accesses begin or end.
void findSpoiltInPieces(llvm::ArrayRef<Access> cluster, std::vector<bool> &isSpoiltMessage) {
  // Accesses that are open at `at`, in their old order; the next cut is where one begins or ends.
  std::vector<Access> open; // in their old order
  size_t next = 0;
  for (int64_t at = cluster.front().begin; next < cluster.size() || !open.empty();) {
    llvm::erase_if(open, [&](const Access &access) { return access.end <= at; });
    size_t numOld = open.size();
    for (; next < cluster.size() && cluster[next].begin == at; ++next)
      open.push_back(cluster[next]);
    std::inplace_merge(open.begin(), open.begin() + static_cast<ptrdiff_t>(numOld), open.end(),
                       [](const Access &a, const Access &b) {
                         return std::tuple(a.oldKey, a.newKey) < std::tuple(b.oldKey, b.newKey);
                       });
    findSpoilt(open, isSpoiltMessage);
    int64_t end = next < cluster.size() ? cluster[next].begin : INT64_MAX;
    for (const Access &access : open)
      end = std::min(end, access.end);
    at = end;
  }
}

/// All accesses of a program whose messages go the way that they have now.
class Accesses {
public:
  Accesses(const DirectMessages &messages, llvm::ArrayRef<StepRef> order)
      : messages(messages), position(messages.numSteps()) {
    // The old order of each step, by which accesses are sorted within a piece of memory.
    for (uint32_t i = 0; i < order.size(); ++i)
      position[messages.flat(order[i])] = i;
    messages.forEachStep([&](StepRef ref) { addAccesses(ref); });
    // By memory and begin, so that overlapping accesses are neighbours.
    llvm::sort(accesses, [](const Access &a, const Access &b) {
      return std::tuple(a.owner, a.space, a.begin, a.oldKey, a.newKey) <
             std::tuple(b.owner, b.space, b.begin, b.oldKey, b.newKey);
    });
  }

  std::vector<bool> spoiltMessages() const {
    std::vector<bool> isSpoiltMessage(messages.size(), false);
    // Clusters of accesses that overlap, directly or through others.
    for (size_t begin = 0, end; begin < accesses.size(); begin = end) {
      // What overlaps one of them, however far that goes on.
      int64_t last = accesses[begin].end;
      bool isOneRange = true;
      for (end = begin + 1;
           end < accesses.size() && accesses[end].isOfSameMemory(accesses[begin]) &&
           accesses[end].begin < last;
           ++end) {
        isOneRange &= accesses[end].begin == accesses[begin].begin && accesses[end].end == last;
        last = std::max(last, accesses[end].end);
      }
      llvm::ArrayRef<Access> cluster = llvm::ArrayRef(accesses).slice(begin, end - begin);
      // Mostly all are of the same range, and need no cutting.
      if (isOneRange)
        findSpoilt(cluster, isSpoiltMessage);
      else
        findSpoiltInPieces(cluster, isSpoiltMessage);
    }
    return isSpoiltMessage;
  }

private:
  void addAccess(uint32_t owner, Place place, uint32_t count, Access access) {
    Range range = rangeOf(messages.program, messages.program.ranks[owner], place, count);
    access.owner = owner;
    access.space = range.space;
    access.begin = range.begin;
    access.end = range.end;
    accesses.push_back(access);
  }

  void addFixed(StepRef ref, Place place, bool isWrite) {
    uint64_t key = uint64_t{position[messages.flat(ref)]} * 4 + (isWrite ? kWrites : kReads);
    addAccess(ref.rank, place, messages.at(ref).count,
              {0, 0, 0, 0, key, key, ref.rank, isWrite, kFixed});
  }

  void addLoad(StepRef receiver, uint32_t index) {
    StepRef sender = messages[index].sender;
    uint64_t oldKey = uint64_t{position[messages.flat(sender)]} * 4 +
                      (isPlainSend(messages.at(sender)) ? kReads : kReadsOfResult);
    addAccess(sender.rank, *valueOf(messages.at(sender)), messages.at(sender).count,
              {0, 0, 0, 0, oldKey, uint64_t{position[messages.flat(receiver)]} * 4 + kReads,
               receiver.rank, false, index});
  }

  void addStore(StepRef receiver, uint32_t index) {
    StepRef sender = messages[index].sender;
    addAccess(receiver.rank, *messages.at(receiver).localDestination(), messages.at(receiver).count,
              {0, 0, 0, 0, uint64_t{position[messages.flat(receiver)]} * 4 + kWrites,
               uint64_t{position[messages.flat(sender)]} * 4 + kWrites, sender.rank, true, index});
  }

  void addAccesses(StepRef ref) {
    // What a step accesses now: local sources as before, unless it has become part of its receiver;
    // loads at the sender's memory; stores at the receiver's.
    const Instruction &instruction = messages.at(ref);
    auto ways = messages.waysOf(ref);
    size_t message = 0;
    bool isGone =
        isPlainSend(instruction) && llvm::all_of(ways, [](Way way) { return way == Way::Load; });
    for (Place source : instruction.sources) {
      if (source.isLocal()) {
        if (!isGone)
          addFixed(ref, source, false);
        continue;
      }
      if (ways[message] == Way::Load)
        addLoad(ref, messages.of(ref)[message]);
      ++message;
    }
    const Place *destination = instruction.localDestination();
    // A plain receive whose value is stored directly has nothing to do any more: the sender writes.
    if (destination && isPlainReceive(instruction) && ways[0] == Way::Store)
      addStore(ref, messages.of(ref)[0]);
    else if (destination)
      addFixed(ref, *destination, true);
  }

  const DirectMessages &messages;
  std::vector<uint32_t> position; // of each step in the order
  std::vector<Access> accesses;
};

} // namespace

std::vector<bool> spoiltMessages(const DirectMessages &messages, llvm::ArrayRef<StepRef> order) {
  return Accesses(messages, order).spoiltMessages();
}

} // namespace occl::passes

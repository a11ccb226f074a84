#include "runtime/cuda/lanes/lane_table.h"

#include "runtime/cuda/lanes/board_lock.h"

#include <algorithm>
#include <array>
#include <vector>

namespace occl::cuda {

namespace {

/// Calls that an id makes in a lane before it makes room for one that lacks a lane.
constexpr uint64_t kTurn = 16;

uint64_t packed(const LaneSignature &signature) {
  return uint64_t{signature.root} << 32 | uint64_t{signature.op} << 16 |
         uint64_t{signature.type} << 8 | signature.kind;
}

LaneSignature unpacked(uint64_t planHash, uint64_t count, uint64_t rest) {
  return {planHash,
          count,
          static_cast<uint32_t>(rest >> 32),
          static_cast<uint8_t>(rest),
          static_cast<uint8_t>(rest >> 8),
          static_cast<uint8_t>(rest >> 16)};
}

void write(LaneBoard::Call &call, uint64_t number, const LaneSignature &signature) {
  call.number.store(0, std::memory_order_relaxed);
  threadFence(std::memory_order_release);
  call.planHash.store(signature.planHash, std::memory_order_relaxed);
  call.count.store(signature.count, std::memory_order_relaxed);
  call.rest.store(packed(signature), std::memory_order_relaxed);
  call.number.store(number + 1, std::memory_order_release);
}

/// Nothing: it is not that call's, or is another's meanwhile.
std::optional<LaneSignature> read(const LaneBoard::Call &call, uint64_t number) {
  if (call.number.load(std::memory_order_acquire) != number + 1)
    return {};
  const LaneSignature signature = unpacked(call.planHash.load(std::memory_order_relaxed),
                                           call.count.load(std::memory_order_relaxed),
                                           call.rest.load(std::memory_order_relaxed));
  threadFence(std::memory_order_acquire);
  if (call.number.load(std::memory_order_relaxed) != number + 1)
    return {};
  return signature;
}

const LaneBoard::Call &callOf(const LaneBoard::Lane &lane, uint32_t rank, uint64_t number) {
  return lane.members[rank].calls[number % kLaneHistory];
}

uint64_t startedBy(const LaneBoard::Lane &lane, uint32_t rank) {
  return lane.members[rank].started.load(std::memory_order_acquire);
}

bool isOpen(const LaneBoard::Lane &lane) {
  return lane.openFor.load(std::memory_order_relaxed) != 0;
}
bool isOpenFor(const LaneBoard::Lane &lane, uint64_t id) {
  return lane.openFor.load(std::memory_order_relaxed) == id + 1;
}

/// What the two sides have that is not the same: "count 100", say.
std::array<std::string, 2> difference(const LaneSignature &a, const LaneSignature &b) {
  const auto both = [](const char *what, uint64_t first, uint64_t second) {
    return std::array{std::string(what) + " " + std::to_string(first),
                      std::string(what) + " " + std::to_string(second)};
  };
  if (a.kind != b.kind)
    return both("kind", a.kind, b.kind);
  if (a.count != b.count)
    return both("count", a.count, b.count);
  if (a.type != b.type)
    return both("dataType", a.type, b.type);
  if (a.op != b.op)
    return both("op", a.op, b.op);
  if (a.root != b.root)
    return both("root", a.root, b.root);
  return both("a plan with hash", a.planHash, b.planHash);
}

} // namespace

LaneBoard::Lane *LaneTable::findOpen(uint32_t kernel, uint64_t id) const {
  for (uint32_t l = 0; l < lanes; ++l)
    if (LaneBoard::Lane &lane = board.lanes[kernel][l]; isOpenFor(lane, id))
      return &lane;
  return nullptr;
}

/// That which the id has had, where its tables are; else the one that has been free the longest.
LaneBoard::Lane *LaneTable::findFree(uint32_t kernel, uint64_t id) const {
  LaneBoard::Lane *best = nullptr;
  const bool othersWant = (wantedBy(kernel) & ~(1u << rank)) != 0;
  for (uint32_t l = 0; l < lanes; ++l) {
    LaneBoard::Lane &lane = board.lanes[kernel][l];
    if (isOpen(lane))
      continue;
    if (lane.wasYielded && lane.id == id && othersWant)
      continue;
    if (lane.id == id && lane.left != 0)
      return &lane;
    if (!best || lane.left < best->left)
      best = &lane;
  }
  return best;
}

StatusOr<std::optional<LaneName>> LaneTable::join(uint32_t kernel, uint64_t id) {
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  LaneBoard::Lane *lane = findOpen(kernel, id);
  // Who has left it for others does not come back before they do.
  if (lane && shouldYield(nameOf(kernel, *lane)))
    return std::optional<LaneName>();
  if (!lane) {
    lane = findFree(kernel, id);
    if (!lane)
      return std::optional<LaneName>();
    lane->id = id;
    lane->wasYielded = false;
    lane->from = startedBy(*lane, rank); // as of all ranks
    lane->openFor.store(id + 1, std::memory_order_relaxed);
    noteSiblings(id);
  }
  lane->joined |= 1u << rank;
  return std::optional(nameOf(kernel, *lane));
}

std::unordered_set<uint64_t> LaneTable::openIds(uint32_t kernel) const {
  std::unordered_set<uint64_t> ids;
  for (uint32_t l = 0; l < lanes; ++l)
    if (uint64_t open = board.lanes[kernel][l].openFor.load(std::memory_order_relaxed); open != 0)
      ids.insert(open - 1);
  return ids;
}

/// With the lock.
void LaneTable::noteSiblings(uint64_t id) const {
  std::vector<LaneBoard::Lane *> open;
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel)
    if (LaneBoard::Lane *lane = findOpen(kernel, id))
      open.push_back(lane);
  for (LaneBoard::Lane *lane : open)
    lane->hasSibling.store(open.size() > 1, std::memory_order_seq_cst);
}

Status LaneTable::leave(LaneName name) {
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  LaneBoard::Lane &lane = at(name);
  lane.joined &= ~(1u << rank);
  const uint64_t made = startedBy(lane, rank);
  bool isOver = lane.joined == 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    isOver &= startedBy(lane, r) == made;
  if (!isOver)
    return {};
  lane.openFor.store(0, std::memory_order_relaxed);
  lane.left = ++board.clock;
  lane.wasYielded = isWanted(name.kernel);
  lane.hasSibling.store(0, std::memory_order_relaxed);
  noteSiblings(lane.id);
  return {};
}

uint64_t LaneTable::next(LaneName lane) const {
  return at(lane).members[rank].started.load(std::memory_order_relaxed);
}

/// All ranks stop at the same call, or none: whoever finds that another has made it goes on.
bool LaneTable::shouldYield(LaneName name) const {
  if (!isWanted(name.kernel))
    return false;
  const LaneBoard::Lane &lane = at(name);
  const uint64_t number = next(name);
  if (number == lane.from || (number - lane.from) % kTurn != 0)
    return false;
  for (uint32_t r = 0; r < numRanks; ++r)
    if (startedBy(lane, r) > number)
      return false;
  return true;
}

Status LaneTable::announce(LaneName name, const LaneSignature &signature) {
  LaneBoard::Lane &lane = at(name);
  LaneBoard::Member &own = lane.members[rank];
  const uint64_t number = own.started.load(std::memory_order_relaxed);
  write(own.calls[number % kLaneHistory], number, signature);
  own.started.store(number + 1, std::memory_order_release);
  // Of two ranks that have come so far one sees what the other has stored.
  threadFence(std::memory_order_seq_cst);
  return compare(name, number, signature);
}

Status LaneTable::compare(LaneName name, uint64_t number, const LaneSignature &signature) const {
  const LaneBoard::Lane &lane = at(name);
  for (uint32_t r = 0; r < numRanks; ++r)
    if (const auto theirs = read(callOf(lane, r, number), number);
        theirs && r != rank && *theirs != signature)
      return differs(lane.id, r, *theirs, signature);
  return {};
}

/// A rank that has made a call in the other lane which this one has not made, and has not made this
/// one here, calls something else.
Status LaneTable::compareSiblings(LaneName name, uint64_t number, const LaneSignature &signature) {
  const LaneBoard::Lane &lane = at(name);
  if (lane.hasSibling.load(std::memory_order_seq_cst) == 0)
    return {};
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel) {
    const LaneBoard::Lane *other = kernel == name.kernel ? nullptr : findOpen(kernel, lane.id);
    for (uint32_t r = 0; other && r < numRanks; ++r) {
      // The other lane first: what a rank makes here afterwards does not count.
      const uint64_t mine = startedBy(*other, rank);
      if (startedBy(*other, r) <= mine || startedBy(lane, r) > number)
        continue;
      const auto theirs = read(callOf(*other, r, mine), mine);
      return differs(lane.id, r, theirs.value_or(LaneSignature()), signature);
    }
  }
  return {};
}

Status LaneTable::compareWithout(uint64_t id, uint32_t kernel, const LaneSignature &signature) {
  for (uint32_t k = 0; k < kLaneKernels; ++k) {
    if (k == kernel || !openIds(k).contains(id))
      continue;
    BoardLock lock(board.lock, rank, failure, waits);
    if (!lock.status().ok())
      return lock.status();
    const LaneBoard::Lane *other = findOpen(k, id);
    if (!other || findOpen(kernel, id))
      continue;
    const uint64_t mine = startedBy(*other, rank);
    for (uint32_t r = 0; r < numRanks; ++r)
      if (startedBy(*other, r) > mine)
        return differs(id, r, read(callOf(*other, r, mine), mine).value_or(LaneSignature()),
                       signature);
  }
  return {};
}

uint32_t LaneTable::missing(LaneName name, uint64_t number) const {
  uint32_t ranks = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    ranks |= uint32_t{startedBy(at(name), r) <= number} << r;
  return ranks;
}

uint32_t LaneTable::notBefore(uint64_t id, uint32_t kernel) const {
  const LaneBoard::Lane *lane = findOpen(kernel, id);
  const uint32_t all = (1u << numRanks) - 1;
  return lane ? missing(nameOf(kernel, *lane), startedBy(*lane, rank)) & ~(1u << rank)
              : all & ~(1u << rank);
}

void LaneTable::forget(uint32_t gone) {
  for (uint32_t kernel = 0; kernel < kLaneKernels; ++kernel)
    if (const uint32_t bit = 1u << (kernel * kMaxRanks + gone);
        (board.wanted.load(std::memory_order_relaxed) & bit) != 0)
      board.wanted.fetch_and(~bit, std::memory_order_relaxed);
}

Status LaneTable::differs(uint64_t id, uint32_t other, const LaneSignature &theirs,
                          const LaneSignature &ours) const {
  const auto [their, our] = difference(theirs, ours);
  return {StatusCode::Mismatch, "the calls of id " + std::to_string(id) + ": rank " +
                                    std::to_string(other) + " has started one with " + their +
                                    ", rank " + std::to_string(rank) + " with " + our};
}

void LaneTable::want(uint32_t kernel, bool lacks) {
  const uint32_t bit = 1u << (kernel * kMaxRanks + rank);
  const bool isSet = (board.wanted.load(std::memory_order_relaxed) & bit) != 0;
  if (lacks && !isSet)
    board.wanted.fetch_or(bit, std::memory_order_relaxed);
  else if (!lacks && isSet)
    board.wanted.fetch_and(~bit, std::memory_order_relaxed);
}

uint32_t LaneTable::wantedBy(uint32_t kernel) const {
  constexpr uint32_t kAll = (1u << kMaxRanks) - 1;
  return board.wanted.load(std::memory_order_relaxed) >> (kernel * kMaxRanks) & kAll;
}

std::string LaneTable::holders(uint32_t kernel) {
  constexpr uint32_t kShown = 8;
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return "unknown";
  std::string text;
  uint32_t open = 0;
  for (uint32_t l = 0; l < lanes; ++l)
    if (const LaneBoard::Lane &lane = board.lanes[kernel][l]; isOpen(lane) && ++open <= kShown)
      text += (open == 1 ? "" : ", ") + std::to_string(lane.id);
  return open <= kShown ? text : text + " and " + std::to_string(open - kShown) + " more";
}

} // namespace occl::cuda

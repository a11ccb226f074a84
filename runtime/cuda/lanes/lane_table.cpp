// One rank's view of the board: records of ids, lanes with their holders, and the order of calls
// that all ranks have made.
#include "runtime/cuda/lanes/lane_table.h"

#include "runtime/base/data_type.h"
#include "runtime/control/records/pair_id.h"
#include "runtime/invocation/collective.h"
#include "runtime/sync/clock.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <utility>

namespace occl::cuda {

namespace {

using namespace std::chrono_literals;

/// Calls by which an id extends its hold of a lane while somebody lacks one.
constexpr uint64_t kTurn = 16;
/// Who lacks a lane says so again within that time.
constexpr std::chrono::nanoseconds kWish = 100ms;
/// Who is in a small lane for want of a large one likes to know for that time what is complete.
constexpr std::chrono::nanoseconds kLargeWish = 1s;
/// Records that are looked at for one that can be another id's.
constexpr uint32_t kLooks = 64;

constexpr uint32_t kKernelShift = 32, kLaneShift = 40;

uint64_t packed(uint32_t record, LaneName lane) {
  return record | uint64_t{lane.kernel} << kKernelShift | uint64_t{lane.number} << kLaneShift;
}

uint32_t hashOf(uint64_t id) {
  static_assert(std::has_single_bit(kMostIds));
  const uint64_t mixed = id * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> 32) % kMostIds;
}

LaneBoard::Call &callOf(LaneBoard::Record &record, uint64_t call) {
  return record.calls[call % kMostAhead];
}

int64_t nowNs() { return SteadyClock::now().time_since_epoch() / 1ns; }
bool isWished(const Atomic<int64_t> &until) {
  const int64_t end = until.load(std::memory_order_relaxed);
  return end != 0 && nowNs() < end;
}
void wish(Atomic<int64_t> &until, std::chrono::nanoseconds time) {
  until.store(nowNs() + time.count(), std::memory_order_relaxed);
}

/// Not 0.
uint16_t packed(LaneName lane) {
  return static_cast<uint16_t>(1 + lane.kernel * kMaxLanes + lane.number);
}
LaneName unpacked(uint16_t lane) { return {(lane - 1u) / kMaxLanes, (lane - 1u) % kMaxLanes}; }

/// Of values that another process has stored: they may be anything.
std::string nameOfType(uint8_t type) {
  return type < kNumDataTypes ? nameOf(static_cast<DataType>(type)) : "unknown";
}
std::string nameOfOp(uint8_t op) {
  return op < kNumReduceOps ? nameOf(static_cast<ReduceOp>(op)) : "unknown";
}

std::string nameOf(uint64_t id) {
  return transport::partitionedCollectiveOf(id) ? transport::describeSequence(id)
                                                : std::to_string(id);
}

/// What the two sides have that is not the same: "count 100", say.
std::array<std::string, 2> difference(const LaneSignature &a, const LaneSignature &b,
                                      bool isPartitioned) {
  const auto both = [](const char *what, uint64_t first, uint64_t second) {
    return std::array{std::string(what) + " " + std::to_string(first),
                      std::string(what) + " " + std::to_string(second)};
  };
  if (a.kind != b.kind)
    return both("kind", a.kind, b.kind);
  if (a.count != b.count)
    return both("count", a.count, b.count);
  if (a.type != b.type)
    return {"dataType " + nameOfType(a.type), "dataType " + nameOfType(b.type)};
  if (a.op != b.op)
    return {"op " + nameOfOp(a.op), "op " + nameOfOp(b.op)};
  if (a.root != b.root)
    return both("root", a.root, b.root);
  // The user's arguments agree, so the plans differ.
  const uint64_t rounds[] = {daemon::roundsOf(a.planHash), daemon::roundsOf(b.planHash)};
  if (isPartitioned && rounds[0] != rounds[1])
    return both("rounds", rounds[0], rounds[1]);
  return both("a plan with hash", a.planHash, b.planHash);
}

} // namespace

// --- records: with the lock ---

uint64_t LaneTable::least(const Atomic<uint64_t> (&counts)[kMaxRanks]) const {
  uint64_t least = ~0ull;
  for (uint32_t r = 0; r < numRanks; ++r)
    least = std::min(least, counts[r].load(std::memory_order_acquire));
  return least;
}

/// Whatever somebody has made is complete everywhere. A rank may still have to go past it.
bool LaneTable::isIdle(const Record &record) const {
  for (uint32_t r = 0; r < numRanks; ++r)
    if (madeBy(record, r) != record.ordered)
      return false;
  return least(record.done) == record.ordered;
}

LaneTable::Record *LaneTable::find(uint64_t id) const {
  for (uint32_t next = board.heads[hashOf(id)]; next != 0;) {
    Record &record = board.records[next - 1];
    if (record.id == id)
      return &record;
    next = record.chained;
  }
  return nullptr;
}

/// One that no id has, or needs; null: none was found.
LaneTable::Record *LaneTable::unusedRecord() {
  // Records that were never used come first, then those of ids that need none.
  if (board.numUsed < kMostIds)
    return &board.records[board.numUsed++];
  for (uint32_t look = 0; look < kLooks; ++look) {
    Record &record = board.records[board.hand++ % kMostIds];
    if (!isIdle(record))
      continue;
    // It leaves the chain of its old id.
    uint32_t *link = &board.heads[hashOf(record.id)];
    while (*link != indexOf(record) + 1)
      link = &board.records[*link - 1].chained;
    *link = record.chained;
    return &record;
  }
  wish(board.recordsWanted, kWish);
  return nullptr;
}

LaneTable::Record *LaneTable::findOrMake(uint64_t id) {
  if (Record *known = find(id))
    return known;
  Record *record = unusedRecord();
  if (!record)
    return nullptr;
  // The record counts on over all ids that have had it: only lanes are forgotten.
  record->id = id;
  record->numberedIn = record->orderedIn = 0;
  record->wantsLarge = 0;
  for (auto &ofKernel : record->lanes)
    std::ranges::fill(ofKernel, uint8_t{0});
  uint32_t &head = board.heads[hashOf(id)];
  record->chained = head;
  head = indexOf(*record) + 1;
  return record;
}

// --- lanes: with the lock ---

/// Ids take lanes of each size by turns. Nothing: there are none of that size.
std::optional<uint32_t> LaneTable::usualLane(Record &record, uint32_t kernel, bool isLarge) {
  uint8_t &usual = record.lanes[kernel][isLarge];
  const Range range = rangeOf(isLarge);
  if (range.number == 0)
    return {};
  if (usual == 0)
    usual =
        static_cast<uint8_t>(1 + range.begin + board.nextLane[kernel][isLarge]++ % range.number);
  return usual - 1u;
}

/// Who holds it lets go of it when its calls there are complete on all ranks.
bool LaneTable::isHeldByOther(LaneName name, const Record &record) {
  LaneBoard::Lane &lane = at(name.kernel, name.number);
  if (lane.holder != 0 && least(board.records[lane.holder - 1].done) >= lane.until)
    lane.holder = 0;
  return lane.holder != 0 && lane.holder != indexOf(record) + 1;
}

/// That of the call before, unless that is known to be complete on all ranks: in another lane the
/// next one would have to wait for it.
std::optional<uint32_t> LaneTable::laneToStayIn(const Record &record, uint32_t kernel) {
  if (record.numberedIn == 0 ||
      least(record.done) >= record.numbered.load(std::memory_order_relaxed))
    return {};
  const LaneName last = unpacked(record.numberedIn);
  return last.kernel == kernel && !isHeldByOther(last, record) ? std::optional(last.number)
                                                               : std::nullopt;
}

/// Another id holds it, or has calls in it that are not complete: there are few large lanes, so
/// what would be held could stand behind others for long.
bool LaneTable::isOthersNow(LaneName name, const Record &record) {
  const LaneBoard::Lane &lane = at(name.kernel, name.number);
  return isHeldByOther(name, record) ||
         (name.isLarge() && lane.lastOf != 0 && lane.lastOf != indexOf(record) + 1 &&
          least(board.records[lane.lastOf - 1].done) < lane.lastEnds);
}

/// The id's usual lane of that size, or another one, that no other id holds.
std::optional<uint32_t> LaneTable::freeLane(Record &record, uint32_t kernel, bool isLarge,
                                            bool isToHold) {
  const auto isFree = [&](uint32_t lane) {
    const LaneName name = {kernel, lane};
    return isToHold ? !isOthersNow(name, record) : !isHeldByOther(name, record);
  };
  const std::optional<uint32_t> usual = usualLane(record, kernel, isLarge);
  if (!usual || isFree(*usual))
    return usual;
  // Of others the next one; to be held, that whose last hold began the longest ago.
  const Range range = rangeOf(isLarge);
  std::optional<uint32_t> best;
  for (uint32_t i = 1; i < range.number && (isToHold || !best); ++i) {
    const uint32_t lane = range.begin + (*usual - range.begin + i) % range.number;
    if (isFree(lane) && (!best || at(kernel, lane).heldAt < at(kernel, *best).heldAt))
      best = lane;
  }
  if (best && isToHold)
    record.lanes[kernel][isLarge] = static_cast<uint8_t>(1 + *best);
  return best;
}

/// For the record's next call. Ids with large calls take small lanes when others hold the large
/// ones, as they may be waiting for this call. Nothing: other ids hold all.
std::optional<uint32_t> LaneTable::laneFor(Record &record, uint32_t kernel, bool isToHold) {
  const bool isLarge = wantsLarge(record, kernel);
  std::optional<uint32_t> lane = laneToStayIn(record, kernel);
  if (!lane && isLarge)
    lane = freeLane(record, kernel, true, isToHold);
  if (!lane)
    lane = freeLane(record, kernel, false, isToHold);
  // Others say what is complete, so that it may be another lane's turn.
  for (bool size : {false, true})
    if (!lane && (!size || isLarge))
      wish(board.lanesWanted[kernel][size], kWish);
  if (isLarge && lane && !LaneName{kernel, *lane}.isLarge())
    wish(board.largeWanted, kLargeWish);
  return lane;
}

/// For the id alone until its call is complete on all ranks. Nothing: other ids hold all lanes, or
/// are to have this one.
std::optional<uint32_t> LaneTable::laneToHold(Record &record, uint32_t kernel) {
  const std::optional<uint32_t> lane = laneFor(record, kernel, true);
  if (!lane)
    return {};
  // It is free, or the id's own; but others may be waiting for a turn.
  const LaneBoard::Lane &its = at(kernel, *lane);
  const bool mustStop = its.holder != 0 && its.next - its.from >= kTurn &&
                        isWished(board.lanesWanted[kernel][LaneName{kernel, *lane}.isLarge()]);
  return mustStop ? std::nullopt : lane;
}

// --- making calls ---

StatusOr<std::optional<LaneName>> LaneTable::laneOf(uint64_t id, uint32_t kernel, bool isLarge) {
  // The record and the usual lane are made under the lock, so that all ranks find the same.
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  Record *record = findOrMake(id);
  if (!record)
    return std::optional<LaneName>();
  const std::optional<uint32_t> large = isLarge || wantsLarge(*record, kernel)
                                            ? usualLane(*record, kernel, true)
                                            : std::optional<uint32_t>();
  return std::optional(LaneName{kernel, large ? *large : *usualLane(*record, kernel, false)});
}

/// With the lock. The first rank that makes a call says what it is.
StatusOr<bool> LaneTable::mayMake(Record &record, uint32_t kernel,
                                  const LaneSignature &signature) const {
  const uint64_t call = madeBy(record, rank);
  // The record has room for so many calls that are not in the order.
  if (call - record.ordered >= kMostAhead)
    return false;
  const LaneBoard::Call &known = callOf(record, call);
  // Another rank was first: this one must make the same call.
  for (uint32_t r = 0; r < numRanks; ++r)
    if (madeBy(record, r) > call)
      return known.signature == signature
                 ? StatusOr<bool>(true)
                 : differs(record.id, known.by, known.signature, signature);
  // This rank is first, and says what the call is.
  LaneBoard::Call &mine = callOf(record, call);
  mine = {};
  mine.signature = signature;
  mine.by = rank;
  mine.kernel = static_cast<uint8_t>(kernel);
  if (signature.isLarge)
    record.wantsLarge |= static_cast<uint8_t>(1u << kernel);
  return true;
}

/// With the lock.
CallName LaneTable::noteMade(Record &record) {
  const uint64_t call = madeBy(record, rank);
  record.made[rank].store(call + 1, std::memory_order_release);
  // Those before it come first.
  if (!record.isHeldUp && least(record.made) > record.ordered && !order(record))
    holdUp(record);
  return {indexOf(record), call};
}

StatusOr<std::optional<CallName>> LaneTable::make(uint64_t id, uint32_t kernel,
                                                  const LaneSignature &signature) {
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  Record *record = findOrMake(id);
  if (!record)
    return std::optional<CallName>();
  auto may = mayMake(*record, kernel, signature);
  if (!may.ok() || !*may)
    return may.ok() ? StatusOr<std::optional<CallName>>(std::nullopt) : may.status();
  return std::optional(noteMade(*record));
}

StatusOr<std::optional<CallName>> LaneTable::makeEarly(uint64_t id, uint32_t kernel,
                                                       const LaneSignature &signature,
                                                       const Enter &enter) {
  const std::optional<CallName> notNow;
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  Record *record = next() ? nullptr : findOrMake(id);
  if (!record)
    return notNow;
  auto may = mayMake(*record, kernel, signature);
  if (!may.ok() || !*may)
    return may.ok() ? StatusOr<std::optional<CallName>>(notNow) : may.status();
  // Where another rank has it, or where this one gives it its number.
  const uint64_t call = madeBy(*record, rank);
  const LaneBoard::Call &known = callOf(*record, call);
  const uint64_t numbered = record->numbered.load(std::memory_order_relaxed);
  // Calls before it of the id have no lane yet.
  if (numbered < call)
    return notNow;
  // A call without a number gets the lane's next one here.
  const bool isNew = numbered == call;
  const std::optional<uint32_t> lane =
      isNew ? laneToHold(*record, kernel) : std::optional<uint32_t>(known.lane);
  if (!lane)
    return notNow;
  LaneBoard::Lane &its = at(kernel, *lane);
  auto entered = enter({kernel, *lane}, isNew ? its.next : known.number);
  if (!entered.ok() || !*entered)
    return entered.ok() ? StatusOr<std::optional<CallName>>(notNow) : entered.status();
  // The hold begins with this call, and lasts until the call is complete on all ranks.
  if (isNew && its.holder == 0) {
    its.holder = indexOf(*record) + 1;
    its.from = its.next;
    its.heldAt = ++board.clock;
  }
  if (isNew) {
    its.until = call + 1;
    // Others see the number before they see that the call is made.
    giveNumber(*record, {kernel, *lane});
  }
  return std::optional(noteMade(*record));
}

/// With the lock, to the first of the record's calls that has none.
void LaneTable::giveNumber(Record &record, LaneName name) {
  const uint64_t numbered = record.numbered.load(std::memory_order_relaxed);
  // Numbers of a lane are given under the lock: all ranks have them in one order.
  LaneBoard::Call &call = callOf(record, numbered);
  call.lane = static_cast<uint8_t>(name.number);
  LaneBoard::Lane &lane = at(name.kernel, name.number);
  call.number = lane.next++;
  lane.lastOf = indexOf(record) + 1;
  lane.lastEnds = numbered + 1;
  record.numberedIn = packed(name);
  record.numbered.store(numbered + 1, std::memory_order_relaxed);
}

// --- the order ---

/// With the lock: the record's calls that all ranks have made. False: something is lacking for one.
bool LaneTable::order(Record &record) {
  while (record.ordered < least(record.made))
    if (!orderNext(record))
      return false;
  return true;
}

/// With the lock: the next of the record's calls gets a lane, unless it has one, and a place.
bool LaneTable::orderNext(Record &record) {
  const LaneBoard::Call &call = callOf(record, record.ordered);
  const bool isNew = record.numbered.load(std::memory_order_relaxed) == record.ordered;
  // A call that entered early has its lane already.
  const std::optional<uint32_t> lane =
      isNew ? laneFor(record, call.kernel, false) : std::optional<uint32_t>(call.lane);
  if (!lane || !hasPlace())
    return false;
  // In another lane nobody orders it behind the call before.
  const LaneName name = {call.kernel, *lane};
  if (record.orderedIn != 0 && record.orderedIn != packed(name) &&
      least(record.done) < record.ordered)
    return false;
  if (isNew)
    giveNumber(record, name);
  record.orderedIn = packed(name);
  // The place is complete before the tail says so.
  const uint64_t tail = board.tail.load(std::memory_order_relaxed);
  LaneBoard::Place &place = board.order[tail % kOrderPlaces];
  place.where.store(packed(indexOf(record), name), std::memory_order_relaxed);
  place.call.store(record.ordered, std::memory_order_relaxed);
  place.number.store(call.number, std::memory_order_relaxed);
  board.tail.store(tail + 1, std::memory_order_release);
  // Last: of what counts as ordered, and is not there as this rank has died, nobody finds out.
  record.ordered.fetch_add(1, std::memory_order_release);
  return true;
}

/// With the lock. A place is free once all ranks have gone past what was there.
bool LaneTable::hasPlace() {
  const uint64_t tail = board.tail.load(std::memory_order_relaxed);
  // The slowest rank is looked for only when the known room is used up.
  if (tail == board.freeUntil) {
    uint64_t least = tail;
    for (uint32_t r = 0; r < numRanks; ++r)
      least = std::min(least, board.read[r].value.load(std::memory_order_acquire));
    board.freeUntil = least + kOrderPlaces;
  }
  return tail != board.freeUntil;
}

/// With the lock.
void LaneTable::holdUp(Record &record) {
  record.isHeldUp = true;
  record.nextHeldUp = 0;
  (board.lastHeldUp == 0 ? board.firstHeldUp : board.records[board.lastHeldUp - 1].nextHeldUp) =
      indexOf(record) + 1;
  board.lastHeldUp = indexOf(record) + 1;
  board.numHeldUp.fetch_add(1, std::memory_order_relaxed);
}

Status LaneTable::orderHeldUp() {
  if (board.numHeldUp.load(std::memory_order_relaxed) == 0)
    return {};
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return lock.status();
  // The whole list is taken: records that lack something still are appended again.
  uint32_t next = std::exchange(board.firstHeldUp, 0);
  board.lastHeldUp = 0;
  board.numHeldUp.store(0, std::memory_order_relaxed);
  while (next != 0) {
    Record &record = board.records[next - 1];
    next = record.nextHeldUp;
    record.isHeldUp = false;
    if (!order(record))
      holdUp(record);
  }
  return {};
}

bool LaneTable::isDoneWanted() const {
  const auto isAny = [](const auto &sizes) { return std::ranges::any_of(sizes, isWished); };
  return board.numHeldUp.load(std::memory_order_relaxed) != 0 || isWished(board.recordsWanted) ||
         isWished(board.largeWanted) || std::ranges::any_of(board.lanesWanted, isAny);
}

std::optional<LaneTable::Ordered> LaneTable::next() const {
  // The tail is acquired, so the place is complete.
  const uint64_t read = board.read[rank].value.load(std::memory_order_relaxed);
  if (read == board.tail.load(std::memory_order_acquire))
    return {};
  const LaneBoard::Place &place = board.order[read % kOrderPlaces];
  const uint64_t where = place.where.load(std::memory_order_relaxed);
  return Ordered{{static_cast<uint32_t>(where), place.call.load(std::memory_order_relaxed)},
                 {static_cast<uint32_t>(where >> kKernelShift & 0xff),
                  static_cast<uint32_t>(where >> kLaneShift)},
                 place.number.load(std::memory_order_relaxed)};
}

void LaneTable::pass() {
  Atomic<uint64_t> &read = board.read[rank].value;
  read.store(read.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// --- what is missing ---

uint32_t LaneTable::missing(CallName name) const {
  uint32_t ranks = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    ranks |=
        uint32_t{board.records[name.record].made[r].load(std::memory_order_acquire) <= name.call}
        << r;
  return ranks;
}

/// What is not in the order a rank that is gone will not execute.
uint32_t LaneTable::without(CallName name) const {
  const Record &record = board.records[name.record];
  return record.ordered.load(std::memory_order_acquire) <= name.call ? others() : missing(name);
}

uint32_t LaneTable::notBefore(uint64_t id) {
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return 0;
  const Record *record = find(id);
  return record ? missing({indexOf(*record), madeBy(*record, rank)}) & others() : others();
}

uint32_t LaneTable::refusing(uint64_t id, uint32_t kernel) {
  uint32_t ranks = notBefore(id);
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return ranks;
  for (const LaneBoard::Lane &lane : board.lanes[kernel])
    for (uint32_t r = 0; lane.holder != 0 && r < numRanks; ++r)
      ranks |= uint32_t{board.records[lane.holder - 1].done[r].load(std::memory_order_acquire) <
                        lane.until}
               << r;
  return ranks & others();
}

Status LaneTable::differs(uint64_t id, uint32_t other, const LaneSignature &theirs,
                          const LaneSignature &ours) const {
  const auto [their, our] =
      difference(theirs, ours, transport::partitionedCollectiveOf(id).has_value());
  return {StatusCode::Mismatch, "the calls of " + transport::describeSequence(id) + ": rank " +
                                    std::to_string(other) + " has started one with " + their +
                                    ", rank " + std::to_string(rank) + " with " + our};
}

std::string LaneTable::holders(uint32_t kernel) {
  constexpr uint32_t kShown = 8;
  BoardLock lock(board.lock, rank, failure, waits);
  if (!lock.status().ok())
    return "unknown";
  std::string text;
  uint32_t held = 0;
  for (uint32_t l = 0; l < kMaxLanes; ++l)
    if (const uint32_t holder = at(kernel, l).holder; holder != 0 && ++held <= kShown)
      text += (held == 1 ? "" : ", ") + nameOf(board.records[holder - 1].id);
  if (held == 0)
    return "none";
  return held <= kShown ? text : text + " and " + std::to_string(held - kShown) + " more";
}

} // namespace occl::cuda

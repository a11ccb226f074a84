// The part of admission that reserves what an invocation needs and takes it back.
#include "runtime/rank/admission.h"

#include "runtime/base/cache_line.h"
#include "runtime/control/records/pair_id.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace occl::daemon {

namespace {

using transport::AnnounceCell;
using transport::PrepostedRing;

/// Of the sequence, as far as rank r says.
uint64_t finishedBy(IdState &id, const Fabric &fabric, uint32_t r) {
  const AnnounceCell *cell = peerCell(id, fabric, r);
  return std::max(id.settledBelow, cell ? cell->done.load(std::memory_order_acquire) : 0);
}

/// Of these ranks the first that is gone and has not finished `atLeast` invocations, or nothing.
const uint32_t *firstGoneBehind(IdState &id, const Fabric &fabric,
                                const std::vector<uint32_t> &ranks, uint64_t atLeast) {
  const auto isBehind = [&](uint32_t r) { return finishedBy(id, fabric, r) < atLeast; };
  for (const uint32_t &r : ranks)
    if (isBehind(r) && fabric.isGone(r) && isBehind(r)) // it may have finished, then gone
      return &r;
  return nullptr;
}

/// The first reader that has not finished the invocation, or nothing.
const uint32_t *firstReaderBehind(const OpenInvocation &invocation, const Fabric &fabric) {
  for (const uint32_t &reader : *invocation.collective->recordReaders)
    if (finishedBy(*invocation.id, fabric, reader) <= invocation.ordinal)
      return &reader;
  return nullptr;
}

} // namespace

std::string Admission::describe(const IdState &id) {
  if (id.id == kCallSequence)
    return "the communicator's calls";
  if (!id.plan)
    return transport::describeSequence(id.id);
  return "collective " + id.describe();
}

/// The next one of the sequence, which there may not have been one of yet.
std::string Admission::describeNext(uint64_t sequence, const IdState *id) {
  if (!id)
    return transport::describeSequence(sequence);
  if (sequence == kCallSequence)
    return "call " + std::to_string(id->nextOrdinal);
  return describe(*id) + ", " + transport::describeInvocation(sequence, id->nextOrdinal);
}

std::string Admission::noRecord(const IdState &id) {
  return "a record: " + std::to_string(AnnounceCell::kRecords) + " invocations of " + describe(id) +
         " are under way";
}

bool Admission::canReclaim(const OpenInvocation &invocation) const {
  return invocation.finished.load(std::memory_order_acquire) && invocation.own.isNobodys() &&
         (invocation.usesRing || !firstReaderBehind(invocation, *core.fabric));
}

void Admission::reclaim(OpenInvocation &invocation) {
  const Collective &collective = *invocation.collective;
  uint64_t bytes = collective.binding->arenaBytes(core.fabric->rank());
  // Blocks of a ring belong to the sequence.
  if (bytes != 0 && !invocation.usesRing)
    giveBlock(invocation, bytes);
  forget(invocation);
}

void Admission::forget(OpenInvocation &invocation) {
  giveBack(invocation.scaled);
  invocation.lane.forget();
  workspaces.release(invocation.workspace,
                     workspaceBytes(*invocation.collective, core.fabric->numRanks()));
  invocation.id->unreclaimed[invocation.ordinal % AnnounceCell::kRecords] = nullptr;
  if (invocation.id->named == &invocation)
    invocation.id->named = nullptr;
  --invocation.collective->unreclaimed;
  // Take it out of the list, and the sweep past it.
  if (nextToSweep == &invocation)
    nextToSweep = invocation.next;
  (invocation.previous ? invocation.previous->next : oldest) = invocation.next;
  (invocation.next ? invocation.next->previous : newest) = invocation.previous;
  idle.push_back(&invocation);
}

bool Admission::reclaimAll() {
  bool any = false;
  for (OpenInvocation *invocation = oldest; invocation;) {
    OpenInvocation *next = invocation->next;
    if (canReclaim(*invocation)) {
      reclaim(*invocation);
      any = true;
    }
    invocation = next;
  }
  return any;
}

/// Those of the sequence that can be had back; but the last one that was such as the next one will
/// be stays as it is, for that to take over: its memory is still warm, unless that is in a home
/// that was lent. And so do those for the lane, which hold little: their shapes may come again, up
/// to where the next one has its record.
OpenInvocation *Admission::reclaimBefore(IdState &id, const Collective &shape, bool usesRing) {
  OpenInvocation *kept = nullptr;
  for (uint64_t back = 1; back <= AnnounceCell::kRecords; ++back) {
    OpenInvocation *invocation = id.unreclaimed[(id.nextOrdinal - back) % AnnounceCell::kRecords];
    if (!invocation || !canReclaim(*invocation))
      continue;
    if (!kept && invocation->collective == &shape && invocation->usesRing == usesRing &&
        !isInLentHome(*invocation))
      kept = invocation;
    else if (invocation->lane.isKnown(id) && back != AnnounceCell::kRecords)
      giveBack(invocation->scaled);
    else
      reclaim(*invocation);
  }
  return kept;
}

/// Two for each one that comes in, once there are more than a few: so what is complete and not
/// reclaimed stays few, however many collectives are used in turn. Of a few, most are in flight,
/// and looking at what executors work on is slow.
void Admission::reclaimSome() {
  constexpr size_t kFew = 64;
  if (invocations.size() - idle.size() <= kFew)
    return;
  for (int i = 0; i < 2; ++i) {
    OpenInvocation *invocation = nextToSweep ? nextToSweep : oldest;
    if (!invocation)
      return;
    nextToSweep = invocation->next;
    if (canReclaim(*invocation))
      reclaim(*invocation);
  }
}

OpenInvocation *Admission::takeInvocation() {
  if (idle.empty()) {
    idle.reserve(invocations.size() + 1); // so that none needs memory to be given back
    invocations.push_back(std::make_unique<OpenInvocation>());
    return invocations.back().get();
  }
  OpenInvocation *invocation = idle.back();
  idle.pop_back();
  return invocation;
}

/// Calls come into the homes of others last, and go first.
std::optional<uint64_t> Admission::takeBlock(uint64_t bytes, transport::Home *home) {
  if (!home) {
    if (!homes.recall() && reclaimAll()) // what is over may be there
      homes.recall();
    return arena.allocate(bytes);
  }
  return homes.enter(*home) ? std::optional(home->offset) : std::nullopt;
}

/// When there is no other.
std::optional<uint64_t> Admission::takeLentBlock(uint64_t bytes) {
  return homes.lend() ? arena.allocate(bytes) : std::nullopt;
}

void Admission::giveBlock(const OpenInvocation &invocation, uint64_t bytes) {
  if (invocation.home)
    homes.leave(*invocation.home);
  else
    arena.release(invocation.arenaOffset, bytes);
}

Status Admission::reserveMemory(OpenInvocation &invocation, transport::Home *home) {
  const Collective &collective = *invocation.collective;
  const uint64_t bytes =
      invocation.usesRing ? 0 : collective.binding->arenaBytes(core.fabric->rank());
  invocation.arenaOffset = 0;
  // The arena block, if need be after all that is over has been given back.
  invocation.home = bytes != 0 ? home : nullptr;
  if (bytes != 0) {
    auto offset = takeBlock(bytes, home);
    if (!offset && reclaimAll())
      offset = takeBlock(bytes, home);
    if (!offset && !home)
      offset = takeLentBlock(bytes);
    if (!offset)
      return again(
          std::to_string(bytes) + " bytes of the arena, of which " +
          (home ? "those that are its own"
                : std::to_string(arena.bytesInUse()) + " of " + std::to_string(arena.size())) +
          " are in use");
    invocation.arenaOffset = *offset;
  }
  // Private memory for places, progress words, tasks and scratch.
  uint64_t privateBytes = workspaceBytes(collective, core.fabric->numRanks());
  invocation.workspace = workspaces.acquire(privateBytes);
  if (invocation.workspace)
    return {};
  // All or nothing: the block goes back.
  if (bytes != 0)
    giveBlock(invocation, bytes);
  return {StatusCode::SystemError,
          "collective " + collective.describe(invocation.id->id, invocation.name) +
              ": no memory for " + std::to_string(privateBytes) + " bytes of scratch"};
}

/// With blocks for `needed` bytes, and at most so many bytes in all. A ring of calls, which have
/// shapes of many sizes, has as large ones as there is room for, and small ones, too.
PrepostedRing Admission::sizesOf(uint64_t needed, uint64_t mostBytes, bool isOfCalls) {
  constexpr uint64_t kLargestBlock = 8 << 10;
  const auto hasRoom = [&](uint64_t smallest, uint64_t largest) {
    const PrepostedRing ring{0, smallest, largest};
    return transport::Arena::roundToClass(ring.bytes()) <= mostBytes;
  };
  // 256 and 1,024 bytes of data in lines fill them well: gaps cost what is prefetched.
  constexpr uint64_t kSmallest = 3 * PrepostedRing::kAlignment;
  PrepostedRing ring;
  ring.smallest = isOfCalls ? kSmallest : alignUp(needed, PrepostedRing::kAlignment);
  ring.largest = ring.blockBytes(needed);
  while (isOfCalls && 2 * ring.largest <= kLargestBlock && hasRoom(kSmallest, 2 * ring.largest))
    ring.largest *= 2;
  while (ring.smallest < ring.largest && !hasRoom(ring.smallest, ring.largest))
    ring.smallest *= 2;
  return ring.largest <= kLargestBlock && hasRoom(ring.smallest, ring.largest) ? ring
                                                                               : PrepostedRing();
}

/// Gives the sequence a ring, if the shape needs one that it may have, and there are few enough
/// already: memory is to grow with what is in flight.
void Admission::makeRing(IdState &id, const Collective &shape) {
  const uint64_t needed = shape.binding->arenaBytes(core.fabric->rank());
  if (id.ring.largest != 0 || !shape.mayUseRing || needed == 0)
    return;
  // Of the rings' part some is kept for calls, which are to have theirs whenever they begin.
  constexpr uint64_t kMostOfCalls = 96 << 10;
  const bool isOfCalls = id.id == kCallSequence;
  const uint64_t ofCalls = std::min(kMostOfCalls, rings.size() / 2);
  const uint64_t room = rings.size() - rings.bytesInUse();
  const uint64_t most = isOfCalls ? std::min(kMostOfCalls, room) : room - std::min(room, ofCalls);
  id.ring = sizesOf(needed, most, isOfCalls);
  if (id.ring.largest == 0)
    return;
  const auto offset = rings.allocate(id.ring.bytes());
  if (!offset) {
    id.ring = {};
    return;
  }
  id.ring.arenaOffset = arena.size() + *offset;
  // An earlier ring of a sequence with this id may have left its flags there.
  std::memset(core.fabric->own().arena() + id.ring.arenaOffset, 0, id.ring.bytes());
  id.cell->ring.store(id.ring.packed(), std::memory_order_release);
}

/// Whether the next record is free, and the ring's block with it: whatever the invocation before it
/// there was that used the ring, its readers have to be through with it. Looks at counts only when
/// it does not know: then at those of all readers, for the next few times.
Status Admission::checkRing(IdState &id) const {
  if (id.nextOrdinal < id.finishedByReaders + AnnounceCell::kRecords)
    return {};
  uint64_t least = id.nextOrdinal;
  const std::vector<uint32_t> *seen = nullptr;
  for (uint64_t next = id.nextOrdinal; next < id.nextOrdinal + AnnounceCell::kRecords; ++next) {
    const std::vector<uint32_t> *readers = id.ringReaders[next % AnnounceCell::kRecords].get();
    if (!readers || readers == seen) // mostly they are the same
      continue;
    for (uint32_t reader : *readers) {
      const uint64_t done = finishedBy(id, *core.fabric, reader);
      if (next == id.nextOrdinal && done + AnnounceCell::kRecords <= next)
        return nothingFree(noRecord(id),
                           describe(id) + ", " + transport::describeInvocation(id.id, done) +
                               " (rank " + std::to_string(reader) + " has not finished it)");
      least = std::min(least, done);
    }
    seen = readers;
  }
  id.finishedByReaders = least;
  return {};
}

void Admission::setOptions(OpenInvocation &invocation, const Submission &submission) {
  const CallOptions &options = *submission.options;
  invocation.priority = options.priority;
  invocation.timeout = options.timeout;
  invocation.callbacksNeverBlock = options.callbacksNeverBlock;
  const std::string_view name = options.name ? options.name : "";
  const bool isRenamed = invocation.name != name; // mostly it is that of the one before
  if (isRenamed)
    invocation.name = name;
  IdState &id = *invocation.id;
  if (isRenamed || id.named != &invocation) {
    id.name = name;
    id.plan = invocation.collective->spec.plan;
    id.rounds = invocation.collective->spec.rounds;
    id.named = &invocation;
  }
}

/// What an invocation has taken before it is one; given back unless it becomes one.
struct Admission::Taken {
  Admission &of;
  IdState &id;
  RequestId request = 0;
  OpenInvocation *fresh = nullptr;

  ~Taken() {
    if (request != 0)
      of.core.requests.cancel(request);
    if (!fresh)
      return;
    id.named = nullptr;
    of.idle.push_back(fresh);
  }
  void keep() {
    request = 0;
    fresh = nullptr;
  }
};

StatusOr<OpenInvocation *> Admission::reserve(IdState &id, Collective &shape,
                                              const Submission &submission) {
  if (!id.isActive)
    if (Status cell = ensureCell(id); !cell.ok())
      return cell;
  cells.use(id);
  // A ring decides whether the invocation needs a block of the arena.
  makeRing(id, shape);
  reclaimSome();
  const bool usesRing = shape.fits(id.ring, core.fabric->rank());
  // Give back what is over, but for one of the same shape to take over.
  OpenInvocation *kept = reclaimBefore(id, shape, usesRing);
  const OpenInvocation *holder = id.unreclaimed[id.nextOrdinal % AnnounceCell::kRecords];
  if (holder && holder != kept)
    return again(noRecord(id));
  if (Status ring = checkRing(id); !ring.ok())
    return ring;
  std::optional<RequestId> request = 0;
  if (!submission.isOwn) // else there are no more than records of the calls' sequence
    request = core.requests.open(submission.callback, {id.id, id.nextOrdinal});
  if (!request)
    return again(core.requests.describeFull());
  Taken taken{*this, id, *request};
  OpenInvocation *invocation = kept ? kept : taken.fresh = takeInvocation();
  invocation->core = &core;
  invocation->place = &core.place;
  invocation->collective = &shape;
  invocation->id = &id;
  invocation->usesRing = usesRing;
  setOptions(*invocation, submission);
  // Only an invocation from scratch needs memory; without any nothing stays taken.
  if (Status memory = kept ? Status() : reserveMemory(*invocation, submission.home); !memory.ok())
    return memory;
  taken.keep();
  // The kept one leaves the place of its old ordinal, and brings its memory along.
  if (kept) {
    id.unreclaimed[kept->ordinal % AnnounceCell::kRecords] = nullptr;
    giveBack(kept->scaled);
  }
  invocation->ordinal = id.nextOrdinal;
  invocation->partitions = submission.partitions;
  // The shape may be gone when the readers of this block are asked for.
  RankList &ringReaders = id.ringReaders[id.nextOrdinal % AnnounceCell::kRecords];
  ringReaders = usesRing ? shape.recordReaders : nullptr;
  if (usesRing)
    invocation->arenaOffset =
        id.ring.offsetOf(invocation->ordinal, shape.binding->arenaBytes(core.fabric->rank()));
  invocation->request = *request;
  if (submission.isOwn)
    invocation->own.expect();
  invocation->hasCallback = static_cast<bool>(submission.callback);
  invocation->finished.store(false, std::memory_order_relaxed);
  invocation->announcedBelow.store(0, std::memory_order_relaxed);
  invocation->highestPriority.store(invocation->priority, std::memory_order_relaxed);
  invocation->nextLook.store(0, std::memory_order_relaxed);
  id.unreclaimed[id.nextOrdinal++ % AnnounceCell::kRecords] = invocation;
  if (kept)
    return invocation;
  invocation->previous = newest;
  invocation->next = nullptr;
  (newest ? newest->next : oldest) = invocation;
  newest = invocation;
  ++invocation->collective->unreclaimed;
  return invocation;
}

bool Admission::isInLentHome(const OpenInvocation &invocation) const {
  const uint64_t bytes = invocation.collective->binding->arenaBytes(core.fabric->rank());
  return bytes != 0 && homes.isLent(invocation.arenaOffset, bytes);
}

/// Whether some of it is what the invocation has.
bool Admission::isIn(const transport::Home &home, const OpenInvocation &invocation) const {
  const uint64_t bytes = invocation.collective->binding->arenaBytes(core.fabric->rank());
  return !invocation.usesRing && invocation.arenaOffset < home.offset + home.bytes &&
         home.offset < invocation.arenaOffset + bytes;
}

/// Whether it can be taken now.
bool Admission::hasBlock(uint64_t bytes, transport::Home *home) {
  auto offset = takeBlock(bytes, home);
  if (!offset && !home)
    offset = takeLentBlock(bytes);
  if (!offset)
    return false;
  if (home)
    homes.leave(*home);
  else
    arena.release(*offset, bytes);
  return true;
}

Status Admission::checkHolders(const Submission &submission, bool hasWaited) {
  std::lock_guard lock(mutex);
  const Fabric &fabric = *core.fabric;
  const auto goneBehind = [&](const OpenInvocation &invocation) {
    return firstGoneBehind(*invocation.id, fabric, *invocation.collective->recordReaders,
                           invocation.ordinal + 1);
  };
  IdState *id = find(submission.id);
  const std::string waiting = describeNext(submission.id, id);
  const auto error = [&](uint32_t rank, const std::string &unfinished) -> Status {
    return {StatusCode::PeerFailed, fabric.describeGone(rank) + "; it has not finished " +
                                        unfinished + ", which holds what " + waiting +
                                        " needs on rank " + std::to_string(fabric.rank())};
  };
  if (id && !id->isActive) // then peers' cells are not to be looked at
    id = nullptr;
  // All announce cells are held.
  if (const uint32_t *rank = id ? nullptr : cells.whoKeepsAll())
    return error(*rank, "or not called what others have");
  // The sequence's own records and blocks are held.
  if (const OpenInvocation *holder =
          id ? id->unreclaimed[id->nextOrdinal % AnnounceCell::kRecords] : nullptr)
    if (const uint32_t *rank = goneBehind(*holder))
      return error(*rank, holder->describe());
  if (id && id->nextOrdinal >= id->finishedByReaders + AnnounceCell::kRecords)
    if (const RankList &readers = id->ringReaders[id->nextOrdinal % AnnounceCell::kRecords])
      if (const uint32_t *rank =
              firstGoneBehind(*id, fabric, *readers, id->nextOrdinal - AnnounceCell::kRecords + 1))
        return error(*rank, "earlier invocations of " + describe(*id));
  // The arena that all share is full, and nobody will give any of it back.
  const Collective *shape = shapes.find(*submission.signature);
  const bool usesRing = shape && id && shape->fits(id->ring, fabric.rank());
  const uint64_t bytes = shape && !usesRing ? shape->binding->arenaBytes(fabric.rank()) : 0;
  if (bytes == 0)
    return {};
  if (hasBlock(bytes, submission.home))
    return {};
  const uint32_t *gone = nullptr;
  for (const OpenInvocation *invocation = oldest; invocation; invocation = invocation->next) {
    if (submission.home && !isIn(*submission.home, *invocation))
      continue;
    const uint32_t *rank =
        invocation->finished.load(std::memory_order_acquire) ? goneBehind(*invocation) : nullptr;
    if (!rank && !hasWaited)
      return {};
    gone = rank ? rank : gone;
  }
  return gone ? error(*gone, "earlier collectives") : Status();
}

Status Admission::again(const std::string &what) const {
  constexpr int kMostNamed = 4;
  std::string text;
  int named = 0;
  // Name a few that hold something, each with the rank that is behind.
  for (const OpenInvocation *invocation = oldest; invocation; invocation = invocation->next) {
    if (canReclaim(*invocation))
      continue;
    if (++named > kMostNamed) {
      text += " and others";
      break;
    }
    const uint32_t *reader = firstReaderBehind(*invocation, *core.fabric);
    text += (named > 1 ? "; " : "") + invocation->describe();
    if (!invocation->finished.load(std::memory_order_acquire))
      text += " (in flight here)";
    else if (reader)
      text += " (rank " + std::to_string(*reader) + " has not finished it)";
  }
  return nothingFree(what, text);
}

Status Admission::nothingFree(const std::string &what, const std::string &holders,
                              const std::string &remedy) {
  return {StatusCode::Again, "nothing free now: " + what +
                                 (holders.empty() ? "" : "; held by " + holders) + ". " + remedy +
                                 ", then call again"};
}

} // namespace occl::daemon

// Parts of device memory, asked for and told of on the ranks' cards.
#include "runtime/cuda/memory/later_memory.h"

#include "runtime/base/long_wait.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/background_thread.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

namespace occl::cuda {

namespace {

constexpr LaterPart kParts[] = {LaterPart::Lines, LaterPart::Messages, LaterPart::Slots};
static_assert(std::size(kParts) == kNumLaterParts);

std::string nameOf(uint32_t rank) { return "rank " + std::to_string(rank); }

} // namespace

LaterMemory::LaterMemory(daemon::Fabric &fabric, DeviceMemory &memory, const Bytes &bytes,
                         Patience patience)
    : fabric(fabric), memory(memory), bytes(bytes), patience(patience) {}

LaterMemory::~LaterMemory() {
  if (worker.joinable())
    worker.join();
  OnDevice on(memory.device());
  mapped.unmap();
}

void LaterMemory::abandon() {
  isAbandoned.store(true, std::memory_order_release);
  std::lock_guard lock(mapping);
  mapped.abandon();
}

// --- what this rank takes ---

bool LaterMemory::isToBeTaken(LaterPart part) const {
  uint32_t wanted = 0;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    wanted |= card(part, r).isWanted.load(std::memory_order_acquire);
  return (wanted >> fabric.rank() & 1) != 0 && isMissing(part, fabric.rank());
}

/// Somebody needs that of all ranks, which have got it, and this one has not mapped it. Of a rank
/// that is gone nothing can be mapped, and it is for those that need it to say so.
bool LaterMemory::isToBeMapped(LaterPart part) const {
  bool isWanted = false;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    isWanted |= card(part, r).isWanted.load(std::memory_order_acquire) == all();
    if (card(part, r).state.load(std::memory_order_acquire) != DeviceCard::Ready)
      return false;
  }
  return isWanted && card(part, fabric.rank()).hasMapped.load(std::memory_order_relaxed) == 0 &&
         !findGone(all());
}

std::optional<uint32_t> LaterMemory::findGone(uint32_t ranks) const {
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    if ((ranks >> r & 1) != 0 && fabric.isGone(r))
      return r;
  return {};
}

bool LaterMemory::isDue(LaterPart part) const { return isToBeTaken(part) || isToBeMapped(part); }

void LaterMemory::tend() {
  if (std::ranges::none_of(kParts, [this](LaterPart part) { return isDue(part); }))
    return;
  // Another thread that starts it is enough.
  std::unique_lock lock(starting, std::try_to_lock);
  if (!lock || isWorking.load(std::memory_order_acquire) || fabric.failed() ||
      isAbandoned.load(std::memory_order_acquire))
    return;
  // The last one has nothing left to do.
  if (worker.joinable())
    worker.join();
  isWorking.store(true, std::memory_order_relaxed);
  // Who tends must not be held up, as calls of CUDA may be.
  try {
    worker = startInBackground([this] { work(); });
  } catch (const std::bad_alloc &) {
    isWorking.store(false, std::memory_order_relaxed);
    throw;
  } catch (const std::system_error &error) {
    isWorking.store(false, std::memory_order_relaxed);
    fabric.fail({StatusCode::SystemError, nameOf(fabric.rank()) +
                                              ": starting a thread that takes memory for larger "
                                              "calls: " +
                                              error.what()});
  }
}

/// Waits for nobody.
void LaterMemory::work() {
  for (const LaterPart part : kParts)
    fabric.failUnless([&] { return doDue(part); });
  isWorking.store(false, std::memory_order_release);
}

Status LaterMemory::doDue(LaterPart part) {
  if (isToBeTaken(part))
    tell(part, take(part));
  if (!isToBeMapped(part))
    return {};
  // Others go on with the part, so without it this rank cannot. If one has left meanwhile, none
  // goes on.
  Status mapped = map(part, all());
  return mapped.ok() || findGone(all()) ? Status() : mapped;
}

/// Once.
void LaterMemory::tell(LaterPart part, const Status &taken) {
  why[index(part)] = taken.message();
  card(part, fabric.rank())
      .state.store(taken.ok() ? DeviceCard::Ready : DeviceCard::Failed, std::memory_order_release);
}

/// Nobody hears of it before it is clear.
Status LaterMemory::take(LaterPart part) {
  OnDevice on(memory.device());
  if (!on.status().ok())
    return on.status();
  auto taken =
      takeShared(memory.device(), bytes[index(part)], "allocating device memory for larger calls");
  if (!taken.ok()) {
    (void)cudaGetLastError(); // it is no error of what the program does next
    return taken.status();
  }
  Status status = memory.clear((*taken)->begin, bytes[index(part)]);
  // The device may be about to clear it: then it is nobody else's any more.
  if (!status.ok())
    (*taken)->isLeft = true;
  if (status.ok())
    status = fillIn(card(part, fabric.rank()).handle, **taken, memory.hasProcesses());
  if (status.ok())
    memory.keep(std::move(*taken));
  return status;
}

// --- what this rank needs ---

Status LaterMemory::need(LaterPart part, uint32_t ranks) {
  Atomic<uint32_t> &there = areThere[index(part)];
  if ((ranks & ~there.load(std::memory_order_acquire)) == 0)
    return {};
  card(part, fabric.rank()).isWanted.fetch_or(ranks, std::memory_order_release);
  Status status;
  for (uint32_t r = 0; r < fabric.numRanks() && status.ok(); ++r)
    if ((ranks >> r & 1) != 0)
      status = await(part, r, 1u << r, [&] { return !isMissing(part, r); });
  for (uint32_t r = 0; r < fabric.numRanks() && status.ok(); ++r)
    if ((ranks >> r & 1) != 0 &&
        card(part, r).state.load(std::memory_order_acquire) != DeviceCard::Ready)
      status = refusal(part, r);
  if (status.ok())
    if (status = map(part, ranks); !status.ok()) {
      const auto gone = findGone(ranks);
      fabric.fail(gone ? goneWhenNeeded(part, *gone) : status);
      return fabric.failure();
    }
  // Who finds that a rank has left maps nothing any more.
  for (uint32_t r = 0; r < fabric.numRanks() && status.ok() && ranks == all(); ++r)
    status = await(part, r, all(),
                   [&] { return card(part, r).hasMapped.load(std::memory_order_acquire) != 0; });
  if (status.ok())
    there.fetch_or(ranks, std::memory_order_release);
  return status;
}

std::string LaterMemory::neededBy(LaterPart part) const {
  return ", and " + nameOf(fabric.rank()) + " needs " + std::to_string(bytes[index(part)] >> 20) +
         " MiB more of its device for larger calls";
}

Status LaterMemory::goneWhenNeeded(LaterPart part, uint32_t rank) const {
  return {StatusCode::PeerFailed, fabric.describeGone(rank) + neededBy(part)};
}

/// No other rank's program can hold that up, so a rank that does not come to it is not well. This
/// one's worker is started here as well; calls of CUDA may hold it up, and this wait ends with the
/// communicator all the same.
template <class Condition>
Status LaterMemory::await(LaterPart part, uint32_t rank, uint32_t whom, const Condition &isThere) {
  const Deadline deadline(patience), reported(longWait());
  bool isReported = false;
  for (; !isThere(); sleepFor(std::chrono::microseconds(50))) {
    if (fabric.failed())
      return fabric.failure();
    tend();
    if (!isReported && reported.passed()) {
      isReported = true;
      std::fprintf(stderr, "occl: %s has not answered in %lld ms%s\n", nameOf(rank).c_str(),
                   static_cast<long long>(longWait().count()), neededBy(part).c_str());
    }
    // A rank that has left may have done it before.
    if (const auto gone = findGone(whom); gone && !isThere())
      fabric.fail(goneWhenNeeded(part, *gone));
    else if (!gone && deadline.passed())
      fabric.fail({StatusCode::Timeout, nameOf(rank) + " has not answered in " +
                                            std::to_string(patience.count()) + " ms" +
                                            neededBy(part)});
  }
  return {};
}

Status LaterMemory::refusal(LaterPart part, uint32_t rank) {
  std::string text = nameOf(rank) + " has not got the " + std::to_string(bytes[index(part)] >> 20) +
                     " MiB more of its device that this call of " + nameOf(fabric.rank()) +
                     " needs of it; calls that are small enough go on";
  // Why it is is said once, before the state.
  return {StatusCode::SystemError,
          rank == fabric.rank() ? text + ": " + why[index(part)] : text + "; see its error"};
}

Status LaterMemory::map(LaterPart part, uint32_t ranks) {
  const bootstrap::Group &group = fabric.ranks();
  OnDevice on(memory.device());
  std::lock_guard lock(mapping);
  if (isAbandoned.load(std::memory_order_relaxed))
    return {StatusCode::Aborted, "the communicator has been destroyed"};
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    char *&begin = at[index(part)][r];
    if ((ranks >> r & 1) == 0 || begin)
      continue;
    auto made = mapped.map(card(part, r).handle, group.process(r) == group.process(group.rank()),
                           memory.device(), nameOf(r));
    if (!made.ok()) {
      (void)cudaGetLastError(); // it is no error of what the program does next
      return {made.status().code(),
              nameOf(fabric.rank()) + ": for larger calls: " + made.status().message()};
    }
    begin = *made;
  }
  if (ranks == all())
    card(part, fabric.rank()).hasMapped.store(1, std::memory_order_release);
  return {};
}

} // namespace occl::cuda

// Parts of device memory, asked for and told of on the ranks' cards.
#include "runtime/cuda/memory/later_memory.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/background_thread.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <mutex>
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

// --- what this rank takes ---

bool LaterMemory::isWanted(LaterPart part) const {
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    if (card(part, r).isWanted.load(std::memory_order_acquire) != 0)
      return true;
  return false;
}

/// All ranks have got it, and this one has not mapped it.
bool LaterMemory::mayBeMapped(LaterPart part) const {
  for (uint32_t r = 0; r < fabric.numRanks(); ++r)
    if (card(part, r).state.load(std::memory_order_acquire) != DeviceCard::Ready)
      return false;
  return card(part, fabric.rank()).hasMapped.load(std::memory_order_relaxed) == 0;
}

bool LaterMemory::isDue(LaterPart part) const {
  return isWanted(part) && (isMissing(part, fabric.rank()) || mayBeMapped(part));
}

void LaterMemory::tend() {
  if (std::ranges::none_of(kParts, [this](LaterPart part) { return isDue(part); }) ||
      isWorking.load(std::memory_order_acquire) || fabric.failed())
    return;
  // The last one has nothing left to do.
  if (worker.joinable())
    worker.join();
  isWorking.store(true, std::memory_order_relaxed);
  // Who tends must not be held up, as calls of CUDA may be.
  try {
    worker = startInBackground([this] { doDue(); });
  } catch (const std::system_error &error) {
    isWorking.store(false, std::memory_order_relaxed);
    fabric.fail({StatusCode::SystemError, nameOf(fabric.rank()) +
                                              ": starting a thread that takes memory for larger "
                                              "calls: " +
                                              error.what()});
  }
}

/// Waits for nobody.
void LaterMemory::doDue() {
  for (const LaterPart part : kParts) {
    if (isDue(part) && isMissing(part, fabric.rank()))
      take(part);
    if (isDue(part) && mayBeMapped(part))
      (void)map(part, all());
  }
  isWorking.store(false, std::memory_order_release);
}

void LaterMemory::take(LaterPart part) {
  std::lock_guard lock(taking);
  if (isMissing(part, fabric.rank()))
    tell(part, takeNow(part));
}

/// Once, with the lock.
void LaterMemory::tell(LaterPart part, const Status &taken) {
  why[index(part)] = taken.message();
  card(part, fabric.rank())
      .state.store(taken.ok() ? DeviceCard::Ready : DeviceCard::Failed, std::memory_order_release);
}

/// Nobody hears of it before it is clear.
Status LaterMemory::takeNow(LaterPart part) {
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
  card(part, fabric.rank()).isWanted.store(1, std::memory_order_release);
  take(part);
  const auto awaitEach = [&](const auto &isThere) {
    Status status;
    for (uint32_t r = 0; r < fabric.numRanks() && status.ok(); ++r)
      if ((ranks >> r & 1) != 0)
        status = await(part, r, [&] { return isThere(r); });
    return status;
  };
  Status status = awaitEach([&](uint32_t r) { return !isMissing(part, r); });
  for (uint32_t r = 0; r < fabric.numRanks() && status.ok(); ++r)
    if ((ranks >> r & 1) != 0 &&
        card(part, r).state.load(std::memory_order_acquire) != DeviceCard::Ready)
      status = refusal(part, r);
  if (status.ok())
    status = map(part, ranks);
  if (status.ok() && ranks == all())
    status = awaitEach(
        [&](uint32_t r) { return card(part, r).hasMapped.load(std::memory_order_acquire) != 0; });
  if (status.ok())
    there.fetch_or(ranks, std::memory_order_release);
  return status;
}

/// No other rank's program can hold that up, so a rank that does not come to it is not well.
template <class Condition>
Status LaterMemory::await(LaterPart part, uint32_t rank, const Condition &isThere) {
  const auto isNeeded = [&] {
    return ", and " + nameOf(fabric.rank()) + " needs " + std::to_string(bytes[index(part)] >> 20) +
           " MiB more of its device for larger calls";
  };
  for (const Deadline deadline(patience); !isThere(); sleepFor(std::chrono::microseconds(50))) {
    if (fabric.failed())
      return fabric.failure();
    if (fabric.isGone(rank))
      fabric.fail({StatusCode::PeerFailed, fabric.describeGone(rank) + isNeeded()});
    else if (deadline.passed())
      fabric.fail({StatusCode::Timeout, nameOf(rank) + " has not answered in " +
                                            std::to_string(patience.count()) + " ms" + isNeeded()});
  }
  return {};
}

Status LaterMemory::refusal(LaterPart part, uint32_t rank) {
  std::string text = nameOf(rank) + " has not got the " + std::to_string(bytes[index(part)] >> 20) +
                     " MiB more of its device that this call of " + nameOf(fabric.rank()) +
                     " needs of it; calls that are small enough go on";
  std::lock_guard lock(taking);
  return {StatusCode::SystemError,
          rank == fabric.rank() ? text + ": " + why[index(part)] : text + "; see its error"};
}

/// Others go on with the part, so without it this rank cannot.
Status LaterMemory::map(LaterPart part, uint32_t ranks) {
  const bootstrap::Group &group = fabric.ranks();
  OnDevice on(memory.device());
  std::lock_guard lock(mapping);
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    char *&begin = at[index(part)][r];
    if ((ranks >> r & 1) == 0 || begin)
      continue;
    auto made = mapped.map(card(part, r).handle, group.process(r) == group.process(group.rank()),
                           memory.device(), nameOf(r));
    if (!made.ok()) {
      fabric.fail({made.status().code(),
                   nameOf(fabric.rank()) + ": for larger calls: " + made.status().message()});
      return fabric.failure();
    }
    begin = *made;
  }
  if (ranks == all())
    card(part, fabric.rank()).hasMapped.store(1, std::memory_order_release);
  return {};
}

} // namespace occl::cuda

// Partitioned sends and receives: words in device memory that the program's kernels and the
// library's share, and kernels that wait for them.
#include "runtime/cuda/partitioned/cuda_parts.h"

#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/partitioned/part_layout.h"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/partitioned/requests.h"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace occl::cuda {

using partitioned::Party;
using partitioned::Shape;

namespace {

/// Of words of arrival: 131,072, for 16 GiB in large messages.
constexpr uint64_t kArrivalBytes = 1 << 20;
constexpr uint64_t kPinnedBytes = 16 << 10;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

} // namespace

CudaParts::CudaParts(daemon::Fabric &fabric, DeviceMemory &memory, ArenaSpace &space,
                     const HostWatch &watch, Doorbell &bell, std::chrono::milliseconds timeout)
    : fabric(fabric), memory(memory), space(space), watch(watch), timeout(timeout),
      held(heldStreamsOn(memory.device())), matching(fabric, bell) {}

CudaParts::~CudaParts() {
  OnDevice on(memory.device());
  if (!isAbandoned)
    for (void *each : pinned)
      cudaFreeHost(each);
}

// --- requests are made ---

Status CudaParts::check(const partitioned::Terms &terms) const {
  const Shape &shape = terms.shape;
  // The sender's kernels store at the receiver, which needs access between devices.
  if (memory.isAcrossMachines())
    return invalid("this communicator spans machines, between which there are no partitioned "
                   "transfers yet; use one within a machine");
  if (!memory.throughHost().empty())
    return invalid("partitioned transfers need devices that access each other's memory, and here "
                   "data go through the host: " +
                   memory.throughHost());
  if (Status checked = partitioned::checkTerms(terms, fabric.numRanks()); !checked.ok())
    return checked;
  // A word of arrival at the receiver for each piece of a send.
  const uint64_t bytes = shape.bytes();
  const uint64_t units = cutOf(shape).units();
  if (terms.isSend && units > kArrivalBytes / sizeof(uint64_t))
    return invalid(shape.describe() + " are sent in " + std::to_string(units) +
                   " pieces, and there is room for " +
                   std::to_string(kArrivalBytes / sizeof(uint64_t)) +
                   ": set config->partitionsPerMessage, or take fewer partitions");
  // A send's buffer is read here; that of a receive is stored to by another device.
  if (terms.isSend)
    return checkOnDevice({{"buffer", terms.buffer, bytes}}, memory.device(), false);
  if (bytes != 0 && !memory.offsetOf(terms.buffer, bytes))
    return invalid("the buffer of a partitioned receive has to be of occlMemAlloc of this "
                   "communicator, and large enough for " +
                   shape.describe() + ": the sender's kernels store there");
  return {};
}

/// What all requests share.
Status CudaParts::prepareFirst() {
  if (sends)
    return {};
  if (!first) {
    // Both pieces are taken, or none is.
    const auto table = space.allocate(sizeof(device::Sends));
    const auto arrivals = space.allocate(kArrivalBytes);
    if (table && arrivals)
      first = {*table, *arrivals};
    else
      for (const auto &piece : {table, arrivals})
        if (piece)
          space.release(*piece);
  }
  if (!first)
    return {StatusCode::Again, "there is no room for the words of partitioned transfers, 1 MiB: "
                               "set arenaBytes higher, or free memory of occlMemAlloc"};
  // Words of arrival are zero until they are taken. What could not be cleared in time is cleared
  // later, and stays taken for the next try.
  char *const begin = memory.onDevice();
  Status status = memory.clear(begin + first->table.offset, sizeof(device::Sends));
  if (status.ok())
    status = memory.clear(begin + first->arrivals.offset, kArrivalBytes);
  if (!status.ok())
    return status;
  std::lock_guard lock(mutex);
  sends = reinterpret_cast<device::Sends *>(begin + first->table.offset);
  wordsPiece = first->arrivals;
  words = std::make_unique<ArrivalWords>(kArrivalBytes);
  return {};
}

/// Words of arrival that were given back. Several threads may be at it, each with words of its own.
Status CudaParts::clearWords() {
  for (;;) {
    std::optional<ArrivalWords::Range> dirty;
    {
      std::lock_guard lock(mutex);
      dirty = words->takeUsed();
    }
    if (!dirty)
      return {};
    const Status status =
        memory.clear(memory.onDevice() + wordsPiece.offset + dirty->offset, dirty->bytes);
    std::lock_guard lock(mutex);
    if (status.ok()) {
      words->cleared(*dirty);
      continue;
    }
    // It is tried again, behind what the device has been given of it.
    words->giveBack(*dirty);
    return status;
  }
}

/// Takes what freed requests had, if no kernel can be at it: kernels that look for what sends have
/// left count themselves, and are seldom there.
Status CudaParts::recycle() {
  constexpr int kLooks = 8;
  std::list<Remains> gone;
  {
    std::lock_guard lock(mutex);
    gone.swap(remains);
  }
  Status status = clearWords();
  // Kernels inside the table may hold states of sends that have left it.
  uint64_t scanners = gone.empty() ? 0 : 1;
  for (int i = 0; i < kLooks && status.ok() && scanners != 0; ++i)
    status = memory.download(&scanners, reinterpret_cast<const char *>(&sends->scanners),
                             sizeof scanners);
  std::lock_guard lock(mutex);
  // Some kernel may still look: the next request tries again.
  if (!status.ok() || scanners != 0) {
    remains.splice(remains.end(), gone);
    return status;
  }
  for (const Remains &each : gone) {
    space.release(each.piece);
    freePeers.push_back(each.peer);
  }
  return {};
}

Status CudaParts::prepare() {
  Status status = toStatus(static_cast<cudaError_t>(loadParts()), "loading partitioned transfers");
  return status.ok() ? morePinned() : status;
}

Status CudaParts::morePinned() {
  {
    std::lock_guard lock(mutex);
    if (!freePeers.empty())
      return {};
  }
  constexpr uint64_t kStride = 128;
  static_assert(sizeof(PinnedWords) <= kStride);
  // Room for all that there will be, so that none needs memory to come back.
  pinned.reserve(pinned.size() + 1);
  {
    std::lock_guard lock(mutex);
    freePeers.reserve((pinned.size() + 1) * (kPinnedBytes / kStride));
  }
  void *memory = nullptr;
  Status status = toStatus(cudaHostAlloc(&memory, kPinnedBytes, cudaHostAllocPortable),
                           "allocating pinned memory");
  if (!status.ok())
    return status;
  pinned.push_back(memory);
  std::lock_guard lock(mutex);
  for (uint64_t at = 0; at < kPinnedBytes; at += kStride)
    freePeers.push_back(reinterpret_cast<PinnedWords *>(static_cast<char *>(memory) + at));
  return {};
}

/// Among all, with nothing yet.
PairPart &CudaParts::keep(const partitioned::Terms &terms) {
  auto made = std::make_unique<PairPart>(*this, terms);
  PairPart &part = *made;
  part.cut = cutOf(terms.shape);
  std::lock_guard lock(mutex);
  all.emplace(&part, std::move(made));
  return part;
}

/// Memory for its words, and for what its peer says. False: there is none now.
bool CudaParts::takePiece(PairPart &part, uint64_t bytes) {
  part.party.kept.reserve(2);
  std::lock_guard lock(mutex);
  std::list<Remains> mine(1);
  const auto piece = space.allocate(bytes);
  if (!piece)
    return false;
  // Goes to the remains when nobody has it any more: this rank, and the peer. Both drop it under
  // the lock alone, so nothing else here has it.
  const auto each = mine.begin();
  *each = {*piece, freePeers.back()};
  freePeers.pop_back();
  inUse.splice(inUse.end(), mine);
  part.party.kept.push_back(std::shared_ptr<const void>(
      &part, [this, each](const void *) { remains.splice(remains.end(), inUse, each); }));
  part.onDevice = reinterpret_cast<device::State *>(memory.onDevice() + piece->offset);
  part.peer = new (each->peer) PinnedWords{};
  part.party.onDevice.words = piece->offset + 1;
  return true;
}

/// The request gets words on the device; kernels find a send from here on.
Status CudaParts::place(PairPart &part, char *buffer) {
  const Party &party = part.party;
  const PartLayout layout(party.isSend, part.cut, party.shape.partitions);
  part.buffer = buffer;
  if (!takePiece(part, layout.bytes))
    return {StatusCode::Again, "there is no room for the words of " + party.shape.describe() +
                                   ": free other requests, on both sides, or memory of "
                                   "occlMemAlloc, or set arenaBytes higher"};
  if (!party.isSend && party.shape.bytes() != 0)
    part.party.onDevice.buffer = *memory.offsetOf(buffer, party.shape.bytes()) + 1;
  const auto wordsAt = [&](uint64_t offset) {
    return reinterpret_cast<uint64_t *>(reinterpret_cast<char *>(part.onDevice) + offset);
  };
  device::State state{};
  state.side = party.isSend ? device::Side::Send : device::Side::Receive;
  state.partitions = party.shape.partitions;
  state.partitionBytes = party.shape.count * sizeOf(party.shape.type);
  state.peerRank = party.peer;
  state.buffer = buffer;
  state.host = part.peer;
  const WaitBound bound = watch.bound(kPartPlace, 0);
  state.watch = hostSideOf(bound);
  state.sends = sends;
  if (party.isSend) {
    state.cut = part.cut;
    state.marked = wordsAt(layout.marked);
    state.counted = part.cut.perMessage > 1 ? wordsAt(layout.counted) : nullptr;
    state.units = wordsAt(layout.units);
  }
  return put(part, state, layout.bytes);
}

device::HostSide CudaParts::hostSideOf(const WaitBound &bound) {
  return {&bound.host->abort, &bound.host->waitsFor, &bound.host->waiting[bound.place],
          bound.hasGivenUp};
}

/// The words of a request, `bytes` in all, of which those behind the state are zero; and a send
/// into the table that kernels look through.
Status CudaParts::put(PairPart &part, const device::State &state, uint64_t bytes) {
  char *const block = reinterpret_cast<char *>(part.onDevice);
  std::vector<DeviceMemory::Change> changes = {{block, nullptr, bytes},
                                               {block, &state, sizeof state}};
  if (!part.party.isSend)
    return memory.change(changes);
  const auto found = std::ranges::find(entries, nullptr);
  // A free entry, or one behind the last.
  if (found == entries.end() && entries.size() == device::Sends::kMost)
    return {StatusCode::Again,
            "there are " + std::to_string(entries.size()) +
                " partitioned sends on the device, which is the most: free some"};
  part.entry = static_cast<uint32_t>(found - entries.begin());
  if (found == entries.end())
    entries.push_back(nullptr);
  // The words before the entry, and that before the number: kernels read entries below it alone.
  const auto address = reinterpret_cast<uint64_t>(part.onDevice);
  const uint64_t number = entries.size();
  changes.push_back({reinterpret_cast<char *>(&sends->of[part.entry]), &address, sizeof address});
  changes.push_back({reinterpret_cast<char *>(&sends->number), &number, sizeof number});
  // Kernels may find it whatever becomes of the copies: one may come late.
  entries[part.entry] = &part;
  part.mayBeInTable = true;
  return memory.change(changes);
}

/// Out of it.
Status CudaParts::leave(PairPart &part) {
  constexpr uint64_t none = 0;
  Status status =
      memory.upload(reinterpret_cast<char *>(&sends->of[part.entry]), &none, sizeof none);
  if (!status.ok())
    return status;
  entries[part.entry] = nullptr;
  part.mayBeInTable = false;
  return status;
}

/// The peer hears of it here, and may be matched with it at once.
Status CudaParts::add(PairPart &part) {
  std::lock_guard lock(mutex);
  Status added = matching.add(part.party);
  return added.ok() || added.code() == StatusCode::Again ? added : failed(added);
}

/// What has come to nothing: out of the matching, the table, the memory.
void CudaParts::takeBack(PairPart &part) noexcept {
  // Nobody finds it any more: what it was matched with is gone.
  std::unique_ptr<PairPart> taken;
  {
    std::lock_guard lock(mutex);
    if (part.party.serial != 0)
      matching.remove(part.party);
    const auto found = all.find(&part);
    taken = std::move(found->second);
    all.erase(found);
  }
  try {
    if (part.mayBeInTable)
      (void)leave(part).ok();
  } catch (const std::bad_alloc &) { // the entry stays taken
  }
  std::lock_guard lock(mutex);
  part.party.kept.clear();
}

StatusOr<DevicePart *> CudaParts::make(const partitioned::Terms &terms) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  std::lock_guard makes(making);
  Status status = check(terms);
  if (status.ok())
    status = prepareFirst();
  if (status.ok())
    status = recycle();
  if (status.ok())
    status = morePinned();
  if (!status.ok())
    return status;
  // Taken back whatever fails or throws, until it is made.
  const auto undo = [this](PairPart *refused) { takeBack(*refused); };
  std::unique_ptr<PairPart, decltype(undo)> part(&keep(terms), undo);
  status = place(*part, terms.buffer);
  if (!status.ok())
    return status;
  // Others may store to a receive from here on.
  if (!terms.isSend)
    hasReceives.store(true, std::memory_order_relaxed);
  status = add(*part);
  if (!status.ok())
    return status;
  std::lock_guard lock(mutex);
  connect();
  return static_cast<DevicePart *>(part.release());
}

StatusOr<device::Sends *> CudaParts::sendsOfAll() {
  OnDevice on(memory.device());
  std::lock_guard makes(making);
  if (Status status = prepareFirst(); !status.ok())
    return status;
  return sends;
}

Status CudaParts::failed(const Status &cause) const {
  fabric.fail(cause);
  return fabric.failure();
}

// --- ends ---

StatusOr<CudaParts::Epochs> CudaParts::epochsOf(const device::State *state) {
  Epochs epochs{};
  static_assert(offsetof(device::State, done) == offsetof(device::State, epoch) + 8);
  Status status =
      memory.download(&epochs, reinterpret_cast<const char *>(&state->epoch), sizeof epochs);
  if (!status.ok())
    return status;
  return epochs;
}

Status CudaParts::release(PairPart &part) {
  OnDevice on(memory.device());
  std::lock_guard makes(making);
  const auto epochs = epochsOf(part.onDevice);
  // After a failure no epoch ends any more.
  if (epochs.ok() && epochs->started != epochs->ended && !fabric.failed())
    return invalid(describe(part) + ", epoch " + std::to_string(epochs->started) +
                   ", has not ended: its wait ends before it is freed");
  Status status = epochs.status();
  // Out of the table first, so that no kernel finds it.
  if (part.party.isSend && status.ok())
    status = leave(part);
  if (!status.ok())
    return status;
  {
    std::lock_guard lock(mutex);
    matching.remove(part.party);
    all.erase(&part);
  }
  // Some request may lack them. It is freed, whatever comes of that: who needs them tries again.
  try {
    (void)clearWords().ok();
  } catch (const std::bad_alloc &) {
  }
  return {};
}

StatusOr<bool> CudaParts::isOver() {
  std::lock_guard makes(making);
  return areEpochsOver();
}

StatusOr<bool> CudaParts::isOverNow() {
  const std::unique_lock makes(making, std::try_to_lock);
  return makes.owns_lock() ? areEpochsOver() : StatusOr<bool>(false);
}

StatusOr<bool> CudaParts::areEpochsOver() {
  OnDevice on(memory.device());
  // `making` keeps the requests there while the device is asked.
  std::vector<const PairPart *> parts;
  {
    std::lock_guard lock(mutex);
    for (const auto &[key, part] : all)
      parts.push_back(part.get());
  }
  for (const PairPart *part : parts) {
    const auto epochs = epochsOf(part->onDevice);
    if (!epochs.ok())
      return epochs.status();
    // An epoch is open, and a wait for it is in a stream, or may be, by a replay.
    if (epochs->started > epochs->ended &&
        (part->hasCapturedWait.load(std::memory_order_relaxed) ||
         part->waits.load(std::memory_order_relaxed) > epochs->ended))
      return false;
  }
  return true;
}

// --- texts ---

std::string CudaParts::describe(const PairPart &part) const {
  return part.party.describe(fabric.rank());
}

std::string CudaParts::describe(const GivingUp &where, const std::string &collective) {
  std::lock_guard lock(mutex);
  std::string request = collective.empty() ? "a partitioned request that is freed" : collective;
  std::string peer = "rank " + std::to_string(where.obstacle.peer);
  std::string lack;
  for (const auto &[key, part] : all) {
    if (static_cast<uint32_t>(part->party.serial) != where.context.instruction)
      continue;
    request = describe(*part);
    if (part->lacksWords)
      lack = "; it has no words of arrival, as other receives of the rank have all: free some";
  }
  const std::string text = request + ", epoch " + std::to_string(where.invocation) + ": ";
  if (where.isBeginning != 0 && where.obstacle.what == kFreedPart)
    return text + peer + " has freed its request and takes no part in this epoch";
  // The program's kernels have misused it: `tile` says how.
  if (where.isBeginning != 0) {
    static constexpr const char *kWhat[] = {
        "",
        " marks or asks for a partition that there is not: ",
        " marks a partition twice: ",
        " marks or prepares a partition without an epoch: ",
        " marks what has no partitions to be marked, or asks for what does not arrive: partition ",
        " starts it while its last epoch has not ended"};
    const uint64_t kind = std::min<uint64_t>(where.context.tile, std::size(kWhat) - 1);
    const bool hasPartition = kind + 1 != std::size(kWhat);
    return text + "thread block " + std::to_string(where.block) + " of a kernel" + kWhat[kind] +
           (hasPartition ? std::to_string(where.obstacle.peer) : "");
  }
  // It has waited too long: for a mark, for the receiver, or for data.
  const std::string what = std::to_string(where.obstacle.what);
  switch (where.obstacle.reason) {
  case interpreter::BlockReason::Dependency:
    return text + "partition " + what + " has not been marked ready";
  case interpreter::BlockReason::Credit:
    return text + "waits for " + peer + " to start it";
  default:
    return text + "partition " + what + " has not arrived, waits for " + peer + lack;
  }
}

} // namespace occl::cuda

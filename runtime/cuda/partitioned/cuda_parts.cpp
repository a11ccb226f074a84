// Partitioned sends and receives: words in device memory that the program's kernels and the
// library's share, and kernels that wait for them.
#include "runtime/cuda/partitioned/cuda_parts.h"

#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/partitioned/part_layout.h"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/cuda/watch/stream_first_use.h"
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
  std::vector<ArrivalWords::Range> dirty;
  {
    std::lock_guard lock(mutex);
    dirty = words->takeUsed();
  }
  Status status;
  for (const ArrivalWords::Range &range : dirty) {
    if (status.ok())
      status = memory.clear(memory.onDevice() + wordsPiece.offset + range.offset, range.bytes);
    // What could not be cleared is tried again, behind what the device has been given of it.
    std::lock_guard lock(mutex);
    if (status.ok())
      words->cleared(range);
    else
      words->giveBack(range);
  }
  return status;
}

/// Takes what freed requests had, if no kernel can be at it: kernels that look for what sends have
/// left count themselves, and are seldom there.
Status CudaParts::recycle() {
  constexpr int kLooks = 8;
  std::vector<Remains> gone;
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
    remains.insert(remains.end(), gone.begin(), gone.end());
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
  void *memory = nullptr;
  Status status = toStatus(cudaHostAlloc(&memory, kPinnedBytes, cudaHostAllocPortable),
                           "allocating pinned memory");
  if (!status.ok())
    return status;
  pinned.push_back(memory);
  std::lock_guard lock(mutex);
  constexpr uint64_t kStride = 128;
  static_assert(sizeof(device::Peer) <= kStride);
  for (uint64_t at = 0; at < kPinnedBytes; at += kStride)
    freePeers.push_back(reinterpret_cast<device::Peer *>(static_cast<char *>(memory) + at));
  return {};
}

StatusOr<CudaParts::Made> CudaParts::allocate(const partitioned::Terms &terms) {
  const device::Cut cut = cutOf(terms.shape);
  const PartLayout layout(terms.isSend, cut, terms.shape.partitions);
  const auto piece = space.allocate(layout.bytes);
  if (!piece)
    return Status(StatusCode::Again, "there is no room for the words of " + terms.shape.describe() +
                                         ": free other requests, on both sides, or memory of "
                                         "occlMemAlloc, or set arenaBytes higher");
  auto part = std::make_unique<PairPart>(*this, terms);
  char *const block = memory.onDevice() + piece->offset;
  const auto wordsAt = [&](uint64_t offset) {
    return reinterpret_cast<uint64_t *>(block + offset);
  };
  part->onDevice = reinterpret_cast<device::State *>(block);
  part->cut = cut;
  {
    std::lock_guard lock(mutex);
    part->peer = new (freePeers.back()) device::Peer{};
    freePeers.pop_back();
  }
  // Goes to the remains when nobody has it any more: this rank, and the peer. Both drop it under
  // the lock alone, so nothing else here has it.
  const Remains mine = {*piece, part->peer};
  part->party.kept.push_back(std::shared_ptr<const void>(
      part->onDevice, [this, mine](const void *) { remains.push_back(mine); }));
  part->party.onDevice.words = piece->offset + 1;
  if (!terms.isSend && terms.shape.bytes() != 0)
    part->party.onDevice.buffer = *memory.offsetOf(terms.buffer, terms.shape.bytes()) + 1;

  device::State state{};
  state.side = terms.isSend ? device::Side::Send : device::Side::Receive;
  state.partitions = terms.shape.partitions;
  state.partitionBytes = terms.shape.count * sizeOf(terms.shape.type);
  state.peerRank = terms.peer;
  state.buffer = terms.buffer;
  state.host = part->peer;
  const WaitBound bound = watch.bound(kPartPlace, 0);
  state.watch = hostSideOf(bound);
  state.sends = sends;
  if (terms.isSend) {
    state.cut = cut;
    state.marked = wordsAt(layout.marked);
    state.counted = cut.perMessage > 1 ? wordsAt(layout.counted) : nullptr;
    state.units = wordsAt(layout.units);
  }
  return Made{std::move(part), state, layout.bytes};
}

device::HostSide CudaParts::hostSideOf(const WaitBound &bound) {
  return {&bound.host->abort, &bound.host->waitsFor, &bound.host->waiting[bound.place],
          bound.hasGivenUp};
}

/// The words of a request, and a send into the table that kernels look through.
Status CudaParts::put(const Made &made) {
  PairPart &part = *made.part;
  char *const block = reinterpret_cast<char *>(part.onDevice);
  std::vector<DeviceMemory::Change> changes = {{block, nullptr, made.bytes},
                                               {block, &made.state, sizeof made.state}};
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
  const auto state = reinterpret_cast<uint64_t>(part.onDevice);
  const uint64_t number = entries.size();
  changes.push_back({reinterpret_cast<char *>(&sends->of[part.entry]), &state, sizeof state});
  changes.push_back({reinterpret_cast<char *>(&sends->number), &number, sizeof number});
  Status status = memory.change(changes);
  // Kernels may have found it, or will when a copy comes late: it leaves behind that.
  if (status.ok())
    entries[part.entry] = &part;
  else
    (void)leave(part).ok();
  return status;
}

/// Out of it.
Status CudaParts::leave(const PairPart &part) {
  constexpr uint64_t none = 0;
  Status status =
      memory.upload(reinterpret_cast<char *>(&sends->of[part.entry]), &none, sizeof none);
  if (status.ok())
    entries[part.entry] = nullptr;
  return status;
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
  auto made = allocate(terms);
  if (!made.ok())
    return made.status();
  PairPart &part = *made->part;
  // From here on kernels find a send, and others may store to a receive.
  status = put(*made);
  if (status.ok() && !terms.isSend)
    hasReceives.store(true, std::memory_order_relaxed);
  std::unique_lock lock(mutex);
  Status added = status.ok() ? matching.add(part.party) : status;
  if (added.ok()) {
    all.emplace(part.party.serial, std::move(made->part));
    connect();
    return static_cast<DevicePart *>(&part);
  }
  // Undone in reverse: the matching, the table, the memory.
  if (part.party.serial != 0)
    matching.remove(part.party);
  lock.unlock();
  if (status.ok() && terms.isSend)
    (void)leave(part);
  lock.lock();
  part.party.kept.clear();
  return added.code() == StatusCode::Again || !status.ok() ? added : failed(added);
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

// --- epochs ---

Status PairPart::start(void *stream) { return owner.start(*this, stream); }
Status PairPart::mark(plan::Range range, void *stream) { return owner.mark(*this, range, stream); }
Status PairPart::prepare(void *stream) { return owner.prepare(*this, stream); }
Status PairPart::wait(void *stream) { return owner.wait(*this, stream); }
Status PairPart::release() { return owner.release(*this); }

PartWait CudaParts::waitOf(const PairPart &part) const {
  return {part.onDevice, part.party.peer, static_cast<uint32_t>(part.party.serial),
          watch.bound(kPartPlace, static_cast<uint64_t>(timeout.count()) * 1'000'000)};
}

template <class Launch>
Status CudaParts::launchIn(const PairPart &part, void *stream, bool waits, const Launch &launch,
                           const char *what) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(memory.device());
  // Its other side may have come meanwhile.
  if (Status tended = tend(part); !tended.ok())
    return tended;
  auto *const into = static_cast<cudaStream_t>(stream);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  // A captured launch runs at replays, and does not hold its stream.
  Status status = toStatus(cudaStreamIsCapturing(into, &capture), "looking at the stream");
  const auto launchNow = [&] { return toStatus(static_cast<cudaError_t>(launch()), what); };
  if (!status.ok() || capture != cudaStreamCaptureStatusNone)
    return status.ok() ? launchNow() : status;
  unsigned long long number = 0;
  status = toStatus(cudaStreamGetId(into, &number), "asking which stream it is");
  if (status.ok())
    status = useStream(into, number);
  // A wait leaves a connection for what it waits for.
  if (status.ok() && waits)
    status = watch.checkConnections(false);
  if (!status.ok())
    return status;
  return waits ? launchHeld(held, memory.device(), into, launchNow) : launchNow();
}

Status CudaParts::start(PairPart &part, void *stream) {
  return launchIn(
      part, stream, false, [&] { return launchPartStart(part.onDevice, stream); },
      "launching the start of a partitioned request");
}

Status CudaParts::mark(PairPart &part, plan::Range range, void *stream) {
  const Party &party = part.party;
  if (!party.isSend)
    return invalid("a " + describe(part) + " has no partitions to be marked");
  if (range.begin >= range.end || range.end > party.shape.partitions)
    return invalid(describe(part) + ": there are no partitions " + std::to_string(range.begin) +
                   " to " + std::to_string(range.end - 1) + " of " +
                   std::to_string(party.shape.partitions));
  // The messages that the marks can complete decide how many thread blocks store them.
  const uint64_t messages =
      party.shape.messageOf(range.end - 1) - party.shape.messageOf(range.begin) + 1;
  return launchIn(
      part, stream, false,
      [&] {
        return launchPartMarks(part.onDevice, range.begin, range.end - 1,
                               messages * part.cut.unitsOfMessage, stream);
      },
      "launching marks of a partitioned send");
}

Status CudaParts::prepare(PairPart &part, void *stream) {
  if (!part.party.isSend) // data come whatever this side does
    return fabric.failed() ? fabric.failure() : Status();
  return launchIn(
      part, stream, true, [&] { return launchPartPrepare(waitOf(part), stream); },
      "launching the preparation of a partitioned send");
}

Status CudaParts::wait(PairPart &part, void *stream) {
  Status status = launchIn(
      part, stream, true,
      [&] {
        return part.party.isSend ? launchSendWait(waitOf(part), part.cut.units(), stream)
                                 : launchReceiveWait(waitOf(part), stream);
      },
      "launching the wait of a partitioned request");
  part.waits += status.ok() ? 1 : 0;
  return status;
}

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
    all.erase(part.party.serial);
  }
  // Some request may lack them. It is freed, whatever comes of that: who needs them tries again.
  (void)clearWords().ok();
  return {};
}

StatusOr<bool> CudaParts::isOver() {
  OnDevice on(memory.device());
  std::lock_guard makes(making);
  // `making` keeps the requests there while the device is asked.
  std::vector<const PairPart *> parts;
  {
    std::lock_guard lock(mutex);
    for (const auto &[serial, part] : all)
      parts.push_back(part.get());
  }
  for (const PairPart *part : parts) {
    const auto epochs = epochsOf(part->onDevice);
    if (!epochs.ok())
      return epochs.status();
    // An epoch is open, and a wait for it is in a stream.
    if (epochs->started > epochs->ended && part->waits > epochs->ended)
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
  for (const auto &[serial, part] : all) {
    if (static_cast<uint32_t>(serial) != where.context.instruction)
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
        " marks a partition without an epoch: ",
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

// Groups of transfers as kernels in streams: checked and laid out, put behind what their streams
// have, and remembered by direction.
#include "runtime/cuda/transfer/stream_transfers.h"

#include "runtime/base/data_type.h"
#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/cuda/watch/stream_first_use.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace occl::cuda {

namespace {

/// After which a group of threads without progress makes room, if another one of its kernel stays.
constexpr auto kLeaveAfter = std::chrono::milliseconds(100);
/// For what was called before the first captured call to end.
constexpr auto kTransition = std::chrono::milliseconds(5000);
/// Tables of large groups, of the process: as many as there are connections to a device by default.
constexpr uint32_t kListsBeforehand = 8;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// The capture that all streams are in; 0: none is captured.
StatusOr<unsigned long long> captureOf(std::span<const cudaStream_t> streams) {
  unsigned long long first = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    Status asked = toStatus(
        cudaStreamGetCaptureInfo(streams[i], &status, &id, nullptr, nullptr, nullptr, nullptr),
        "looking at the stream");
    if (!asked.ok())
      return asked;
    // CUDA has given up such a capture, and takes nothing more into it.
    if (status == cudaStreamCaptureStatusInvalidated)
      return invalid("the capture of a stream is invalid; end it");
    // A stream that is not captured has 0: all streams of the group must agree.
    id = status == cudaStreamCaptureStatusActive ? id : 0;
    if (i != 0 && id != first)
      return invalid("streams of one group must all be captured, in one capture, or none of them");
    first = id;
  }
  return first;
}

/// Of captured streams CUDA does not say; handles of one capture are different streams.
Status streamNumber(cudaStream_t stream, unsigned long long capture, unsigned long long &number) {
  number = reinterpret_cast<uintptr_t>(stream);
  return capture != 0 ? Status()
                      : toStatus(cudaStreamGetId(stream, &number), "asking which stream it is");
}

} // namespace

/// A request on its way into the streams.
struct StreamTransfers::Prepared {
  StreamTransfers *of = nullptr;
  bool isLaunched = false;           // in its stream
  std::vector<cudaStream_t> streams; // the first one executes
  unsigned long long firstStream = 0;
  unsigned long long capture = 0; // 0: eager
  /// Another rank of the group has one of the streams, too: neither waits for the other.
  bool isApart = false;
  int64_t toItself = 0; // what it has of them: more sends, or more receives
  bool isApartFromItself = false;
  TransferArguments arguments;
  std::shared_ptr<PartList> list;
  std::vector<std::shared_ptr<StreamMark>> marks; // of strict daemons, one for each stream

  void putMarks() {
    for (size_t i = 0; i < marks.size(); ++i)
      marks[i]->put(streams[i], isLaunched);
    marks.clear();
  }
};

StreamTransfers::Event::~Event() {
  if (event)
    cudaEventDestroy(event);
}

StatusOr<std::unique_ptr<StreamTransfers>>
StreamTransfers::make(daemon::Fabric &fabric, DeviceMemory &memory, LaterMemory *later,
                      const PairGeometry &pairs, const HostWatch &watch,
                      std::chrono::milliseconds timeout) {
  std::unique_ptr<StreamTransfers> made(
      new StreamTransfers(fabric, memory, later, pairs, watch, timeout));
  OnDevice on(memory.device());
  void *pinned = nullptr;
  // Kernels and pinned memory are there before anything runs that these could wait for.
  Status status = toStatus(static_cast<cudaError_t>(loadTransfers()), "loading transfers");
  if (status.ok())
    status = toStatus(static_cast<cudaError_t>(loadSmallTransfers()), "loading small transfers");
  if (status.ok())
    status = toStatus(cudaHostAlloc(&pinned, sizeof(TransferMismatch), cudaHostAllocMapped),
                      "allocating pinned memory");
  if (!status.ok())
    return status;
  made->mismatch = new (pinned) TransferMismatch;
  status = PartList::reserve(kListsBeforehand);
  return status.ok() ? StatusOr<std::unique_ptr<StreamTransfers>>(std::move(made)) : status;
}

StreamTransfers::~StreamTransfers() {
  OnDevice on(memory.device());
  turns = {};
  for (const Apart &apart : aparts)
    cudaStreamDestroy(apart.stream);
  if (mismatch)
    cudaFreeHost(mismatch);
}

void StreamTransfers::abandon() {
  mismatch = nullptr;
  lists.abandon();
}

// --- what may be refused ---

Status StreamTransfers::check(const daemon::Transfer &transfer, bool isCaptured) const {
  constexpr uint64_t kMostCount = uint64_t{1} << 48;
  const transfer::Part &part = transfer.part;
  if (transfer.peer >= fabric.numRanks())
    return invalid("peer is " + std::to_string(transfer.peer) + ", the communicator has " +
                   std::to_string(fabric.numRanks()) + " ranks");
  if (part.count >= kMostCount)
    return invalid("count " + std::to_string(part.count) + " is not less than 2^48");
  if (!part.buffer && part.count != 0)
    return invalid("buffer is NULL and count is " + std::to_string(part.count));
  return checkOnDevice({{"buffer", part.buffer, part.bytes()}}, memory.device(), isCaptured);
}

/// Nothing is put into a stream.
Status StreamTransfers::prepare(const Request &request, Prepared &prepared) const {
  // Everything that may be refused comes first; nothing is locked, and nothing changes.
  if (pairs.numSlots == 0)
    return invalid("the communicator has too little device memory for transfers: set arenaBytes "
                   "to " +
                   std::to_string(2 * fabric.numRanks()) + " MiB or more");
  OnDevice on(memory.device());
  prepared.of = request.of;
  prepared.streams = request.streams;
  auto capture = captureOf(request.streams);
  if (!capture.ok())
    return capture.status();
  prepared.capture = *capture;
  for (const daemon::Transfer &transfer : request.transfers)
    if (Status checked = check(transfer, *capture != 0); !checked.ok())
      return checked;
  const auto layout = layoutOf(request.transfers, prepared);
  if (!layout.ok())
    return layout.status();
  const Status taken = takeSlots(*layout);
  return taken.ok() ? fill(prepared, *layout) : taken;
}

/// Of the receiving ranks alone, so that who has left is in nobody's way. Both sides of a transfer
/// come to the same.
Status StreamTransfers::takeSlots(const GroupLayout &layout) const {
  uint32_t ranks = 0;
  for (const TransferDirection &direction : layout.directions) {
    const auto parts = std::span(layout.parts).subspan(direction.firstPart, direction.numParts);
    const bool isToItself = direction.peer == fabric.rank();
    const bool hasSlots = !direction.isCopy && std::ranges::any_of(parts, [&](const auto &part) {
      return !pairs.isInLines(part.bytes(), isToItself);
    });
    if (hasSlots)
      ranks |= 1u << (direction.isSend ? direction.peer : fabric.rank());
  }
  Status taken = later && ranks != 0 ? later->need(LaterPart::Slots, ranks) : Status();
  const auto isOfAnother = [&](const TransferDirection &direction) {
    return direction.peer != layout.directions.front().peer;
  };
  // Peers that need other slots are not told, and wait for the rest of the group in their streams.
  if (!taken.ok() && std::ranges::any_of(layout.directions, isOfAnother))
    fabric.fail(taken);
  return taken;
}

/// What a rank sends to itself is copied as long as nothing waits to be received.
StatusOr<GroupLayout> StreamTransfers::layoutOf(std::span<const daemon::Transfer> transfers,
                                                Prepared &prepared) const {
  const uint32_t own = fabric.rank();
  // Sends that were not received yet come first, so a copy must not overtake them.
  const bool mayCopy = !isApartFromItself.load(std::memory_order_relaxed) &&
                       notReceived.load(std::memory_order_relaxed) == 0;
  auto layout = GroupLayout::of(transfers, pairs, own, mayCopy);
  // Count the sides that are apart: later groups may copy again once they are even.
  for (size_t d = 0; layout.ok() && d < layout->directions.size(); ++d) {
    const TransferDirection &direction = layout->directions[d];
    if (direction.peer != own || direction.isCopy)
      continue;
    const int64_t number = direction.numParts;
    prepared.toItself += direction.isSend ? number : -number;
    prepared.isApartFromItself = prepared.capture != 0; // replays are not counted
  }
  return layout;
}

Status StreamTransfers::fill(Prepared &prepared, const GroupLayout &layout) const {
  TransferArguments &arguments = prepared.arguments;
  for (uint32_t r = 0; r < fabric.numRanks(); ++r) {
    arguments.arenas[r] = memory.arena(r);
    arguments.slots[r] =
        later ? pairs.arenaFor(later->begin(LaterPart::Slots, r)) : arguments.arenas[r];
  }
  arguments.onDevice = memory.onDevice();
  arguments.rank = fabric.rank();
  arguments.pairs = pairs;
  arguments.numGroups = layout.numGroups;
  arguments.isSpread = layout.isSpread;
  arguments.warpsEach = layout.warpsEach;
  arguments.numDirections = static_cast<uint32_t>(layout.directions.size());
  std::ranges::copy(layout.directions, arguments.directions);
  // The deadline, and the time after which a thread group makes room.
  arguments.bound = watch.bound(kTransferPlace, static_cast<uint64_t>(timeout.count()) * 1'000'000);
  arguments.bound.leaveAfter = std::chrono::nanoseconds(kLeaveAfter).count();
  arguments.mismatch = mismatch;
  // Few parts travel with the arguments; a larger table lies in pinned memory.
  if (layout.parts.size() <= kPartsInline) {
    std::ranges::copy(layout.parts, arguments.inlined);
    return {};
  }
  auto list = PartList::make(layout.parts);
  if (!list.ok())
    return list.status();
  prepared.list = *list;
  arguments.parts = (*list)->parts();
  // A graph keeps its table; of an eager one the kernel says when it is over.
  if (prepared.capture == 0)
    arguments.isOver = (*list)->over();
  return {};
}

// --- into the streams ---

StreamedTransfers StreamTransfers::run(std::span<const Request> requests) {
  Status first;
  // Prepare all ranks' transfers first: an error then leaves no trace.
  std::vector<Prepared> all;
  for (const Request &request : requests) {
    Prepared prepared;
    if (Status ready = request.of->prepare(request, prepared); !ready.ok())
      return {ready};
    if (!request.of->fabric.failed())
      all.push_back(std::move(prepared));
    else if (first.ok())
      first = request.of->fabric.failure();
  }
  // Ranks that share a stream must not wait in it for each other.
  for (Prepared &one : all)
    one.isApart = std::ranges::any_of(all, [&](const Prepared &other) {
      return &other != &one &&
             std::ranges::find_first_of(one.streams, other.streams) != one.streams.end();
    });
  // Locks are taken by address, so that two groups cannot block each other.
  std::vector<StreamTransfers *> ranks;
  for (const Prepared &one : all)
    ranks.push_back(one.of);
  std::ranges::sort(ranks);
  std::vector<std::unique_lock<Mutex>> locks;
  for (StreamTransfers *rank : ranks)
    locks.emplace_back(rank->calls);
  StreamedTransfers enqueued = enqueue(all);
  // A refusal is the group's, whichever ranks have failed: nothing was done.
  const bool isRefused = !enqueued.status.ok() && !enqueued.haveBegun;
  return first.ok() || isRefused ? enqueued : StreamedTransfers{first, true};
}

/// All ranks' waits are in the streams before the first kernel is, so that none of a group waits
/// for another. Until then an error ends all; then each goes on for itself, as its peers do.
StreamedTransfers StreamTransfers::enqueue(std::span<Prepared> all) {
  Status first;
  const auto isDone = [&](Prepared &one, Status (StreamTransfers::*step)(Prepared &)) {
    OnDevice on(one.of->memory.device());
    Status status = (one.of->*step)(one);
    if (first.ok())
      first = status;
    return status.ok();
  };
  const auto areDone = [&](Status (StreamTransfers::*step)(Prepared &)) {
    return std::ranges::all_of(all, [&](Prepared &one) { return isDone(one, step); });
  };
  // What may be refused comes before anything is in a stream: a capture would not end with it.
  if (areDone(&StreamTransfers::awaitGraphsTurn) && areDone(&StreamTransfers::begin))
    for (Prepared &one : all)
      if (!isDone(one, &StreamTransfers::launch) && all.size() > 1)
        one.of->fabric.fail(first); // others of the group are in their streams
  // Later work is ordered behind every kernel that is in its stream, also after an error.
  for (Prepared &one : all)
    if (one.isLaunched)
      (void)isDone(one, &StreamTransfers::end);
  for (Prepared &one : all) {
    OnDevice on(one.of->memory.device());
    one.putMarks();
  }
  const bool haveBegun = std::ranges::any_of(
      all, [](const Prepared &one) { return one.isLaunched || one.of->fabric.failed(); });
  return {first, haveBegun};
}

/// Numbers come from the device in a graph: those of the host must have been used.
Status StreamTransfers::awaitGraphsTurn(Prepared &prepared) {
  return prepared.capture != 0 && !hasGraphs ? awaitNumbered() : Status();
}

/// The stream that executes waits for what the others have, and for its turns.
Status StreamTransfers::begin(Prepared &prepared) {
  Status status;
  if (prepared.list && prepared.capture != 0)
    status = keepWithGraph(prepared.list, prepared.streams[0]);
  if (status.ok() && prepared.isApart)
    status = standApart(prepared);
  if (status.ok() && prepared.capture == 0 && held.isWatched())
    status = hold(prepared);
  // The first stream executes, and waits for all others.
  for (size_t i = 1; i < prepared.streams.size() && status.ok(); ++i) {
    auto event = record(prepared.streams[i]);
    status = event.ok() ? toStatus(cudaStreamWaitEvent(prepared.streams[0], (*event)->event, 0),
                                   "joining streams")
                        : event.status();
  }
  return status.ok() ? takeTurns(prepared) : status;
}

/// For each first stream of a request, and each capture, another one: what they execute is in no
/// order but the user's. One whose capture has ended may have another.
Status StreamTransfers::standApart(Prepared &prepared) {
  unsigned long long number = 0;
  Status status = streamNumber(prepared.streams[0], prepared.capture, number);
  if (!status.ok())
    return status;
  // The stream that stands in for this one already.
  auto found = std::ranges::find_if(aparts, [&](const Apart &apart) {
    return apart.insteadOf == number && apart.capture == prepared.capture;
  });
  // Else one whose capture has ended.
  if (found == aparts.end() && prepared.capture != 0)
    found = std::ranges::find_if(aparts, [](const Apart &apart) {
      cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
      return apart.capture != 0 && cudaStreamIsCapturing(apart.stream, &capture) == cudaSuccess &&
             capture == cudaStreamCaptureStatusNone;
    });
  if (found == aparts.end()) {
    cudaStream_t made = nullptr;
    status = toStatus(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
    if (!status.ok())
      return status;
    found = aparts.insert(aparts.end(), Apart{made, 0, 0});
  }
  found->insteadOf = number;
  found->capture = prepared.capture;
  // It executes in the place of the request's first stream.
  prepared.streams.insert(prepared.streams.begin(), found->stream);
  return {};
}

/// The streams count as held before anything that waits is put into one.
Status StreamTransfers::hold(Prepared &prepared) {
  for (cudaStream_t stream : prepared.streams) {
    auto mark = cuda::hold(held, memory.device(), stream);
    if (!mark.ok())
      return mark.status();
    prepared.marks.push_back(std::move(*mark));
  }
  return {};
}

/// In the stream of a direction's kernel before the order is there. In another one an event has it
/// wait, if there is one; else, the first time, the kernel waits for its number on the device.
Status StreamTransfers::takeTurns(Prepared &prepared) {
  TransferArguments &arguments = prepared.arguments;
  Status status = streamNumber(prepared.streams[0], prepared.capture, prepared.firstStream);
  if (status.ok() && prepared.capture == 0)
    status = useStream(prepared.streams[0], prepared.firstStream);
  // Each direction may have had its last kernel in another stream.
  for (uint32_t d = 0; d < arguments.numDirections && status.ok(); ++d) {
    TransferDirection &direction = arguments.directions[d];
    const Turn &turn = turnOf(direction);
    std::shared_ptr<Event> behind;
    if (prepared.capture != 0) {
      if (turn.capture == prepared.capture && turn.capturedStream != prepared.firstStream)
        behind = turn.capturedBehind;
    } else if (turn.isUsed && turn.stream != prepared.firstStream) {
      behind = turn.behind;
      hasStreams = true;
      if (!behind && !hasGraphs) {
        direction.firstTransfer = turn.numTransfers;
        arguments.numGroups = 1; // it cannot leave while it waits
        arguments.isSpread = false;
        arguments.warpsEach = 0;
      }
    }
    if (behind)
      status = toStatus(cudaStreamWaitEvent(prepared.streams[0], behind->event, 0),
                        "waiting for a turn");
  }
  return status;
}

Status StreamTransfers::launch(Prepared &prepared) {
  const auto launchIt = prepared.arguments.warpsEach != 0 ? launchSmallTransfers : launchTransfers;
  Status status =
      toStatus(static_cast<cudaError_t>(launchIt(prepared.arguments, prepared.streams[0])),
               "launching transfers");
  if (!status.ok())
    return status;
  // From here on the kernel will run: its effects are counted.
  prepared.isLaunched = true;
  notReceived.fetch_add(prepared.toItself, std::memory_order_relaxed);
  if (prepared.isApartFromItself)
    isApartFromItself.store(true, std::memory_order_relaxed);
  hasGraphs |= prepared.capture != 0;
  if (prepared.list && prepared.capture == 0)
    lists.add(prepared.list);
  lists.giveBack();
  return {};
}

/// It is in its stream, and nobody can take it out.
Status StreamTransfers::end(Prepared &prepared) {
  Status status;
  // An event, where a later kernel or another stream may have to wait for this one.
  std::shared_ptr<Event> behind;
  if (prepared.capture != 0 || hasGraphs || hasStreams || prepared.streams.size() > 1) {
    auto recorded = record(prepared.streams[0]);
    status = recorded.status();
    if (recorded.ok())
      behind = *recorded;
  }
  // Everything behind the group in its other streams waits for it.
  for (size_t i = 1; i < prepared.streams.size() && status.ok(); ++i)
    status =
        toStatus(cudaStreamWaitEvent(prepared.streams[i], behind->event, 0), "joining streams");
  for (uint32_t d = 0; d < prepared.arguments.numDirections; ++d) {
    const TransferDirection &direction = prepared.arguments.directions[d];
    Turn &turn = turnOf(direction);
    if (prepared.capture != 0) {
      turn.capture = prepared.capture;
      turn.capturedStream = prepared.firstStream;
      turn.capturedBehind = behind;
      continue;
    }
    turn.isUsed = true;
    turn.numTransfers += direction.numParts;
    turn.stream = prepared.firstStream;
    turn.behind = behind;
  }
  if (status.ok())
    return {};
  // Without that event later transfers might overtake these.
  fabric.fail({status.code(), "rank " + std::to_string(fabric.rank()) +
                                  ": transfers are in their stream, and what orders the next ones "
                                  "behind them could not be put there: " +
                                  status.message()});
  return fabric.failure();
}

StatusOr<std::shared_ptr<StreamTransfers::Event>> StreamTransfers::record(cudaStream_t stream) {
  auto recorded = std::make_shared<Event>();
  Status status = toStatus(cudaEventCreateWithFlags(&recorded->event, cudaEventDisableTiming),
                           "making an event");
  if (status.ok())
    status = toStatus(cudaEventRecord(recorded->event, stream), "recording an event");
  if (!status.ok())
    return status;
  return recorded;
}

// --- what has become of them ---

StatusOr<std::vector<DirectionState>> StreamTransfers::states() {
  std::vector<DirectionState> found(2 * fabric.numRanks());
  Status read = memory.download(
      found.data(), reinterpret_cast<const char *>(pairs.state(memory.onDevice(), false, 0)),
      found.size() * sizeof(DirectionState));
  if (!read.ok())
    return read;
  return found;
}

/// Without graphs.
StatusOr<bool> StreamTransfers::areNumbersReached() {
  auto found = states();
  // Each direction must have counted as many transfers as the host has enqueued.
  if (!found.ok())
    return found.status();
  bool areReached = true;
  for (uint32_t peer = 0; peer < fabric.numRanks(); ++peer)
    for (uint32_t isSend = 0; isSend < 2; ++isSend)
      areReached &= (*found)[isSend * fabric.numRanks() + peer].nextTransfer >=
                    turns[peer * 2 + isSend].numTransfers;
  return areReached;
}

/// Replays take their numbers on the device: those that the host has given must have been used.
Status StreamTransfers::awaitNumbered() {
  for (Deadline deadline(kTransition);;) {
    auto areReached = areNumbersReached();
    if (!areReached.ok())
      return areReached.status();
    // Every number that the host gave has been used.
    if (*areReached)
      return {};
    if (fabric.failed())
      return fabric.failure();
    if (deadline.passed())
      return invalid(
          "the first transfers of a communicator that are captured in a graph wait until "
          "those before have ended, and they have not within 5 seconds: capture when "
          "they have");
    sleepFor(std::chrono::microseconds(50));
  }
}

StatusOr<bool> StreamTransfers::isOver() {
  std::lock_guard lock(calls);
  return areOver();
}

StatusOr<bool> StreamTransfers::isOverNow() {
  std::unique_lock lock(calls, std::try_to_lock);
  return lock.owns_lock() ? areOver() : StatusOr<bool>(false);
}

StatusOr<bool> StreamTransfers::areOver() {
  if (!hasGraphs && std::ranges::none_of(turns, &Turn::isUsed))
    return true;
  if (!hasGraphs)
    return areNumbersReached();
  OnDevice on(memory.device());
  for (const Turn &turn : turns) // those that are queued, and have not begun
    if (turn.behind && cudaEventQuery(turn.behind->event) == cudaErrorNotReady)
      return false;
  auto found = states();
  if (!found.ok())
    return found.status();
  return std::ranges::none_of(*found, [](const auto &state) { return state.entered != 0; });
}

std::string StreamTransfers::describe(const GivingUp &where) const {
  const bool isSend = where.context.instruction != 0;
  const bool isRefused = where.isBeginning != 0;
  const std::string own = std::to_string(fabric.rank());
  if (isRefused && where.obstacle.what == kTwoReplays)
    return "rank " + own +
           " gave up in transfers: others to or from the same rank run beside them. What graphs "
           "have captured is ordered by their streams and the program's events alone";
  const std::string peer = std::to_string(where.obstacle.peer);
  const std::string number = std::to_string(where.invocation);
  const auto elements = [](uint64_t count, uint32_t type) {
    return std::to_string(count) + " elements of type " +
           (type < kNumDataTypes ? nameOf(static_cast<DataType>(type)) : "unknown");
  };
  // The two sides differ in count or type; the kernel has stored both.
  if (isRefused)
    return "transfer " + number + " from rank " + peer + " to rank " + own + ": rank " + peer +
           " sends " + elements(mismatch->otherCount, mismatch->otherType) + ", rank " + own +
           " receives " + elements(mismatch->ownCount, mismatch->ownType);
  // It has waited too long for the other side.
  return "rank " + own + " gave up in transfer " + number + (isSend ? " to rank " : " from rank ") +
         peer + ": it waits for rank " + peer + (isSend ? " to receive" : " to send");
}

} // namespace occl::cuda

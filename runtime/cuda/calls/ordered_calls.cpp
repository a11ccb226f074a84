// A rank's calls in streams: shapes are made and kept by plan, count, type and operation, and each
// call is launched behind the call before.
#include "runtime/cuda/calls/ordered_calls.h"

#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/kernels/early_start.h"
#include "runtime/cuda/kernels/in_stream.h"
#include "runtime/cuda/packing/copy_kernel.h"
#include "runtime/cuda/tables/replay_word.h"
#include "runtime/cuda/transfer/transfer_table.h"
#include "runtime/cuda/watch/held_launch.h"
#include "runtime/cuda/watch/stream_first_use.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <utility>

namespace occl::cuda {

namespace {

/// For calls that were made before the first captured one to end.
constexpr auto kTransition = std::chrono::milliseconds(5000);

/// Shapes that give up their places together: with graphs the device may have to come to an end of
/// its work each time.
constexpr size_t kForgottenAtOnce = 64;

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

} // namespace

Status OrderedCalls::call(const daemon::CollectiveSpec &spec, const std::array<char *, 2> &buffers,
                          const InputFactor &factor, cudaStream_t stream) {
  return callBy([&](const Known &known,
                    bool isCaptured) { return passageOf(known, buffers, factor, isCaptured); },
                spec, stream);
}

Status OrderedCalls::callPacked(const daemon::CollectiveSpec &spec, const PackedCalls &calls,
                                cudaStream_t stream) {
  return callBy(
      [&](const Known &known, bool isCaptured) { return passageOf(known, calls, isCaptured); },
      spec, stream);
}

/// All that may be refused comes before the launch, and takes no number.
template <class PassageOf>
Status OrderedCalls::callBy(const PassageOf &passageOf, const daemon::CollectiveSpec &spec,
                            cudaStream_t stream) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(settings.device);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (!status.ok())
    return status;
  const bool isCaptured = capture != cudaStreamCaptureStatusNone;
  // From here on the calls of the rank are made one after the other.
  std::lock_guard lock(calls);
  status = prepare(isCaptured);
  if (!status.ok())
    return status;
  auto known = shapeFor(spec);
  if (!known.ok())
    return known.status();
  if (Status taken = takeNeeded(*(*known)->shape); !taken.ok())
    return taken;
  // Refuse bad buffers, and get memory for copies, before anything is in the stream.
  const auto passage = passageOf(**known, isCaptured);
  if (!passage.ok())
    return passage.status();
  const auto timeout = timeoutOf(spec);
  Turn turn{.isCaptured = isCaptured};
  const auto enqueue = [&] { return put(**known, *passage, timeout, turn, stream); };
  // Graphs do not count as held streams.
  status = isCaptured ? enqueue() : launchHeld(held, settings.device, stream, enqueue);
  if (!status.ok())
    return status;
  if (settings.crossing)
    settings.crossing->expect();
  // The launch has succeeded, so the call takes its number.
  (*known)->lastCall = numCalls++;
  (*known)->isCaptured |= isCaptured;
  // In another stream the next one that copies has to wait for this call.
  hasStreams |= passage->usesSharedMemory();
  if (timeout < kNoDeadline)
    longest = std::max(longest, timeout);
  return endTurn(stream, turn);
}

/// Into the stream, in this order: the turn, the tables, copies of inputs, the kernel, copies of
/// outputs.
Status OrderedCalls::put(const Known &known, const Passage &passage,
                         std::chrono::milliseconds timeout, Turn &turn, cudaStream_t stream) {
  const auto copy = [&](const std::vector<DeviceCopy> &copies) {
    return copies.empty() ? Status()
                          : toStatus(static_cast<cudaError_t>(launchCopies(copies, stream)),
                                     "copying the buffers of calls that are executed as one");
  };
  Status status = turn.isCaptured ? takeCapturedTurn(stream) : takeTurn(stream, turn);
  if (status.ok() && !turn.isCaptured)
    status = context.uploads->order(stream);
  if (status.ok())
    status = copy(passage.before);
  if (status.ok() && passage.copied.elements != 0)
    status = inputs.scaleIn(stream, passage.copied);
  if (status.ok())
    status = launch(known, passage.buffers, timeout, turn, stream);
  if (!status.ok()) {
    // The copies may be in the stream: whoever has their memory next waits for them.
    hasStreams |= !passage.before.empty();
    if (!passage.before.empty() && !turn.isCaptured)
      (void)endTurn(stream, turn);
    return status;
  }
  status = copy(passage.behind);
  return status.ok() ? status : failHalfway(status);
}

/// In the stream of the call before the order is there. In another one an event has it wait, if
/// there is one: else, the first time, the kernel waits for its number on the device, where it
/// holds room.
Status OrderedCalls::takeTurn(cudaStream_t stream, Turn &turn) {
  Status status = toStatus(cudaStreamGetId(stream, &turn.stream), "asking which stream it is");
  if (!status.ok())
    return status;
  const bool isFirst = numCalls == settings.firstCall;
  const bool isSameStream = !isFirst && turn.stream == lastStream;
  status = checkConnections(isSameStream);
  if (status.ok() && !isSameStream)
    status = useStream(stream, turn.stream);
  if (!status.ok() || isFirst || isSameStream)
    return status;
  // A second stream: from here on each call leaves an event behind.
  hasStreams = true;
  turn.waitsOnDevice = !hasEvent && !hasGraphs;
  return hasEvent ? turns.begin(stream) : Status();
}

/// Tables must be there before a replay. In another branch of the same capture an event has the
/// call wait.
Status OrderedCalls::takeCapturedTurn(cudaStream_t stream) {
  Status status = context.uploads->await();
  return status.ok() ? captured.begin(stream) : status;
}

/// One connection must be left for what other calls wait for, which may be this one: if all ranks
/// have begun it, it waits for nobody. Which replays have begun the host does not know.
Status OrderedCalls::checkConnections(bool isSameStream) const {
  Status status = watch.checkConnections(isSameStream);
  if (status.ok() || hasGraphs)
    return {};
  // If all others have begun, the call waits for nobody and needs no connection left.
  auto haveBegun = connectors->haveOthersBegun(numCalls);
  if (!haveBegun.ok())
    return haveBegun.status();
  return *haveBegun ? Status() : status;
}

/// The call is in its stream, and nobody can take it out.
Status OrderedCalls::endTurn(cudaStream_t stream, const Turn &turn) {
  // With several streams, or graphs, the next call may have to wait for this one.
  if (!turn.isCaptured) {
    lastStream = turn.stream;
    hasEvent = hasGraphs || hasStreams;
  }
  Status status = turn.isCaptured ? captured.end() : hasEvent ? turns.end(stream) : Status();
  return status.ok() ? status : failHalfway(status);
}

Status OrderedCalls::failHalfway(const Status &why) {
  fabric.fail({why.code(), "rank " + std::to_string(fabric.rank()) +
                               ": half of a call is in its stream, and what comes behind it could "
                               "not be put there: " +
                               why.message()});
  return fabric.failure();
}

Status OrderedCalls::prepare(bool isCaptured) {
  // The first call takes the memory for messages, and tells the other ranks where it is.
  if (!connectors) {
    auto made = OrderedConnectors::make(context, OrderedConnectors::kOfStreams, settings.geometry,
                                        settings.firstCall, unfinished, settings.reserved);
    if (!made.ok())
      return made.status();
    connectors = std::move(*made);
    if (settings.crossing)
      settings.crossing->calls().setBlock(connectors->geometry().sharedBlock());
  }
  if (!isCaptured || hasGraphs)
    return {};
  // The first captured call: from here on the device gives the numbers.
  Status status = awaitNumbered();
  hasGraphs = status.ok();
  graphsSince = numEagerOver = numCalls;
  return status;
}

/// All ranks come to the same: each needs it of all.
Status OrderedCalls::takeNeeded(const OrderedShape &shape) const {
  for (const LaterPart part : shape.needed())
    if (Status taken = context.later->need(part, (1u << context.numRanks) - 1); !taken.ok())
      return taken;
  return {};
}

/// Calls that are over, without graphs.
StatusOr<uint64_t> OrderedCalls::numFinished() const {
  auto ordinals = connectors->ordinals();
  return ordinals.ok() ? StatusOr<uint64_t>(*std::ranges::min_element(*ordinals))
                       : ordinals.status();
}

/// Calls below that number are over, but for those that graphs have captured. With graphs no number
/// on the device says so, but each eager call runs behind the one before and leaves an event.
StatusOr<uint64_t> OrderedCalls::numOver() {
  if (!hasGraphs)
    return numFinished();
  auto isOver = turns.isOver();
  if (!isOver.ok())
    return isOver.status();
  if (*isOver)
    numEagerOver = numCalls;
  return numEagerOver;
}

/// Replays take their numbers on the device: those that the host has given must have been used.
Status OrderedCalls::awaitNumbered() {
  for (Deadline deadline(kTransition);;) {
    auto finished = numFinished();
    if (!finished.ok())
      return finished.status();
    // Every call with a number of the host's has ended, and what comes behind its kernel.
    auto areCopied = turns.isOver();
    if (!areCopied.ok())
      return areCopied.status();
    if (*finished >= numCalls && *areCopied)
      return {};
    if (fabric.failed())
      return fabric.failure();
    if (deadline.passed())
      return invalid("the first call of a communicator that is captured in a graph waits until the "
                     "calls before it have ended, and they have not within 5 seconds: capture when "
                     "they have");
    sleepFor(std::chrono::microseconds(50));
  }
}

StatusOr<OrderedCalls::Known *> OrderedCalls::shapeFor(const daemon::CollectiveSpec &spec) {
  const Key key = {spec.planHash, spec.count, spec.type, spec.op};
  if (auto found = shapes.find(key); found != shapes.end())
    return &found->second;
  // What is over is noted while it costs nothing, so that later nobody has to wait for that.
  if (hasGraphs)
    (void)numOver();
  // All places are taken: the oldest shapes that are over give up theirs.
  if (shapes.size() == kPartPlace && !forgetOldest())
    return Status(StatusCode::Again, "calls of " + std::to_string(kPartPlace) +
                                         " kinds, counts and types are in flight or in graphs");
  auto made = makeShape(spec);
  if (!made.ok())
    return made.status();
  // Making the shape may have freed places, so the place is chosen behind it.
  uint32_t place = static_cast<uint32_t>(shapes.size());
  if (!freePlaces.empty())
    place = freePlaces.back();
  if (settings.crossing)
    if (Status entered = enterCrossing(spec, place); !entered.ok())
      return entered;
  // Nothing can fail any more: the place is taken.
  if (!freePlaces.empty())
    freePlaces.pop_back();
  // Reports must not wait for calls of CUDA, so they have a lock of their own.
  auto kept = std::make_shared<const daemon::CollectiveSpec>(spec);
  {
    std::lock_guard reported(reporting);
    reports[place] = kept;
  }
  Known known{kept, plan::Aliasing(*spec.plan, fabric.rank(), spec.count, sizeOf(spec.type)),
              std::move(*made), place};
  return &shapes.emplace(key, std::move(known)).first->second;
}

/// With graphs the host does not know the number of the next call.
Status OrderedCalls::enterCrossing(const daemon::CollectiveSpec &spec, uint32_t place) {
  auto crossing = OrderedShape::crossingOf(context, connectors->geometry(), spec,
                                           settings.crossing->isRemote());
  if (!crossing.ok())
    return crossing.status();
  settings.crossing->calls().enter(place, hasGraphs ? graphsSince : numCalls, std::move(*crossing));
  return {};
}

/// Without memory, old ones go.
StatusOr<std::unique_ptr<OrderedShape>>
OrderedCalls::makeShape(const daemon::CollectiveSpec &spec) {
  for (;;) {
    auto made = OrderedShape::make(context, connectors->geometry(), spec, Kernels::InStream);
    if (made.ok() || made.status().code() != StatusCode::Again || !forgetOldest())
      return made;
  }
}

/// Of those that no kernel uses any more, the ones that were called the longest ago.
bool OrderedCalls::forgetOldest() {
  // The sending thread looks for a call's shape at its place, and with graphs nobody here knows for
  // which calls it still will.
  if (hasGraphs && settings.crossing)
    return false;
  auto over = numOver();
  if (!over.ok())
    return false;
  std::vector<std::pair<uint64_t, Key>> old; // by their last calls
  for (const auto &[key, known] : shapes)
    if (!known.isCaptured && known.lastCall < *over)
      old.emplace_back(known.lastCall, key);
  const auto end = old.begin() + static_cast<ptrdiff_t>(std::min(old.size(), kForgottenAtOnce));
  std::ranges::partial_sort(old, end, {}, &std::pair<uint64_t, Key>::first);
  std::for_each(old.begin(), end, [this](const auto &each) { forget(each.second); });
  return !old.empty();
}

void OrderedCalls::forget(const Key &key) {
  const auto found = shapes.find(key);
  // The report goes first, since the place may soon be another shape's.
  {
    std::lock_guard reported(reporting);
    reports[found->second.place].reset();
  }
  freePlaces.push_back(found->second.place);
  shapes.erase(found);
}

Status OrderedCalls::checkBuffers(const Known &known, const std::array<char *, 2> &buffers,
                                  bool isCaptured) const {
  if (!known.aliasing.accepts(buffers[0], buffers[1]))
    return invalid(known.aliasing.complaint(buffers[0], buffers[1]));
  const uint64_t bytes[2] = {known.shape->inputBytes(), known.shape->outputBytes()};
  Status status = checkOnDevice(
      {{kBufferNames[0], buffers[0], bytes[0]}, {kBufferNames[1], buffers[1], bytes[1]}},
      settings.device, isCaptured);
  // Other ranks access the buffers of a direct program, so they must lie in the arena.
  if (!status.ok() || !known.shape->collective().isDirect)
    return status;
  for (uint32_t kind = 0; kind < 2; ++kind)
    if (bytes[kind] != 0 && !context.memory.offsetOf(buffers[kind], bytes[kind]))
      return invalid(std::string(kBufferNames[kind]) +
                     " is no memory of "
                     "occlMemAlloc, which plan '" +
                     known.spec->plan->name +
                     "' needs, as ranks access each other's buffers in it");
  return {};
}

StatusOr<OrderedCalls::Passage> OrderedCalls::passageOf(const Known &known,
                                                        const std::array<char *, 2> &buffers,
                                                        const InputFactor &factor,
                                                        bool isCaptured) {
  if (Status status = checkBuffers(known, buffers, isCaptured); !status.ok())
    return status;
  Passage passage = {.buffers = buffers};
  Status status = addScaling(passage, known, factor, isCaptured);
  return status.ok() ? StatusOr<Passage>(std::move(passage)) : status;
}

StatusOr<OrderedCalls::Passage>
OrderedCalls::passageOf(const Known &known, const PackedCalls &packed, bool isCaptured) {
  for (const PackedBuffers &call : packed.calls())
    if (Status status = checkOnDevice({{kBufferNames[0], call.input, packed.inputBytesOf(call)},
                                       {kBufferNames[1], call.output, packed.outputBytesOf(call)}},
                                      settings.device, isCaptured);
        !status.ok())
      return status;
  auto room = packing.room();
  if (!room.ok())
    return room.status();
  Passage passage = {.buffers = {room->input, room->output},
                     .before = packed.copiesIn(room->input),
                     .behind = packed.copiesOut(room->output)};
  Status status = addScaling(passage, known, {}, isCaptured);
  return status.ok() ? StatusOr<Passage>(std::move(passage)) : status;
}

/// The input is copied where the call needs that. The memory is that of earlier calls, which are
/// over when the stream has come so far: of the first call whose memory it is there is nothing to
/// wait for, and each leaves an event behind.
Status OrderedCalls::addScaling(Passage &passage, const Known &known, const InputFactor &factor,
                                bool isCaptured) {
  auto scale = known.shape->scaleBy(factor, isCaptured);
  if (!scale.ok())
    return scale.status();
  // A copy is needed for a factor, or for a call in place of a plan that is not.
  auto &[input, output] = passage.buffers;
  const uint64_t bytes = known.shape->inputBytes();
  if (bytes == 0 || (scale->isNone() && !known.aliasing.needsCopy(input, output)))
    return {};
  auto memory = scaledInputs.memoryFor(
      {numCalls, isCaptured, known.shape->collective().isDirect, [this] { return numOver(); }},
      bytes);
  if (!memory.ok())
    return memory.status();
  passage.copied = {known.spec->type, *scale, input, *memory, bytes / sizeOf(known.spec->type)};
  input = *memory;
  return {};
}

Status OrderedCalls::launch(const Known &known, const std::array<char *, 2> &buffers,
                            std::chrono::milliseconds timeout, const Turn &turn,
                            cudaStream_t stream) const {
  InStreamArguments arguments;
  // Kernels get no address of a buffer without bytes.
  arguments.collective = known.shape->in(*connectors);
  arguments.buffers[0] = known.shape->inputBytes() != 0 ? buffers[0] : nullptr;
  arguments.buffers[1] = known.shape->outputBytes() != 0 ? buffers[1] : nullptr;
  arguments.number = hasGraphs ? kAnyNumber : numCalls;
  // Only a turn without an event waits for the ordinals on the device.
  if (!turn.waitsOnDevice)
    arguments.collective.numOrdinals = 0;
  // The deadline, and the time after which thread blocks make way.
  arguments.bound = watch.bound(known.place, static_cast<uint64_t>(timeout.count()) * 1'000'000);
  arguments.bound.leaveAfter = known.shape->leaveAfter(arguments.bound.timeout);
  if (settings.leaveAfter != 0 && arguments.bound.leaveAfter != 0)
    arguments.bound.leaveAfter = settings.leaveAfter;
  // A kernel of few threads may be on the device before its turn (early_start.h).
  const uint32_t early =
      settings.mayStartEarly
          ? mostEarlyThreads(context.maxBlocks, settings.streams, known.shape->largestBuffer())
          : 0;
  return toStatus(
      static_cast<cudaError_t>(launchInStream(arguments, early, stream, turn.isCaptured)),
      "launching the interpreter");
}

StatusOr<bool> OrderedCalls::isOver() {
  std::lock_guard lock(calls);
  return areOver();
}

StatusOr<bool> OrderedCalls::isOverNow() {
  std::unique_lock lock(calls, std::try_to_lock);
  return lock.owns_lock() ? areOver() : StatusOr<bool>(false);
}

StatusOr<bool> OrderedCalls::areOver() {
  if (!connectors)
    return true;
  OnDevice on(settings.device);
  // With graphs eager calls may stand in their streams, and take no number before they begin.
  auto over = hasGraphs ? numOver() : StatusOr<uint64_t>(numCalls);
  if (!over.ok())
    return over.status();
  if (*over < numCalls)
    return false;
  // Copies of outputs come behind the kernels that say so.
  auto areCopied = turns.isOver();
  if (!areCopied.ok() || !*areCopied)
    return areCopied;
  auto ordinals = connectors->ordinals();
  if (!ordinals.ok())
    return ordinals.status();
  // Of replays the words alone say whether they run.
  return hasGraphs
             ? std::ranges::none_of(*ordinals, [](uint64_t word) { return isReplaying(word); })
             : *std::ranges::min_element(*ordinals) >= numCalls;
}

std::chrono::milliseconds OrderedCalls::longestTimeout() {
  std::lock_guard lock(calls);
  return longest;
}

std::shared_ptr<const daemon::CollectiveSpec> OrderedCalls::reported(uint32_t place) {
  std::lock_guard lock(reporting);
  return place < kMaxShapes ? reports[place] : nullptr;
}

} // namespace occl::cuda

// CudaRank: invocations as work of the user's streams.
#include "runtime/base/deadline.h"
#include "runtime/base/long_wait.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/buffer_check.h"
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/cuda/early_start.h"
#include "runtime/cuda/held_launch.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda {

namespace {

/// Who waits on the host polls, and every so many times looks whether the communicator has failed
/// or the time is over; after some 0.1 ms it offers its processor between two polls, then it naps.
constexpr uint32_t kPollsPerLook = 64, kSpinning = 2048, kYielding = 4096;
constexpr auto kNap = std::chrono::microseconds(20);
/// Kernels are late before the host is, and say what they wait for.
constexpr auto kGrace = std::chrono::milliseconds(1000);

Status invalid(std::string text) { return {StatusCode::InvalidArgument, std::move(text)}; }

/// The word of the stream itself, behind those of the thread blocks.
Status writeWhenReached(cudaStream_t stream, const EndWords &ended, uint32_t which) {
  CUstreamBatchMemOpParams operation = {};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operation.writeValue.address = reinterpret_cast<CUdeviceptr>(ended.words + which);
  operation.writeValue.value64 = ended.ticket;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return streamMemoryOperations(stream, &operation, 1);
}

/// So many words, zero, which both the host and the device map; the device is current.
StatusOr<uint64_t *> pinnedWords(size_t number) {
  void *pinned = nullptr;
  Status status = toStatus(cudaHostAlloc(&pinned, number * sizeof(uint64_t), cudaHostAllocMapped),
                           "allocating pinned memory");
  if (!status.ok())
    return status;
  std::fill_n(static_cast<uint64_t *>(pinned), number, 0);
  return static_cast<uint64_t *>(pinned);
}

void pauseAfter(uint64_t polls) {
  if (polls < kSpinning)
    relax();
  else if (polls < kYielding)
    yieldProcessor();
  else
    sleepFor(kNap);
}

} // namespace

/// The device is current.
Status CudaRank::startAwaiting() {
  const uint32_t wordsPerCall = AwaitedEnds::wordsFor(maxBlocks);
  auto words = pinnedWords(AwaitedEnds::kCalls * wordsPerCall);
  if (!words.ok())
    return words.status();
  endMemory.reset(*words);
  ends = std::make_unique<AwaitedEnds>(endMemory.get(), wordsPerCall);
  return {};
}

Status CudaRank::enqueue(uint64_t id, const void *input, void *output, void *stream) {
  return put(id, {static_cast<char *>(const_cast<void *>(input)), static_cast<char *>(output)},
             static_cast<cudaStream_t>(stream), nullptr);
}

Status CudaRank::callInStream(const daemon::CollectiveSpec &spec, const void *input, void *output,
                              void *stream) {
  return ordered->call(
      spec, {static_cast<char *>(const_cast<void *>(input)), static_cast<char *>(output)},
      static_cast<cudaStream_t>(stream));
}

Status CudaRank::enqueueAndWait(uint64_t id, const void *input, void *output, void *stream) {
  Awaited awaited;
  Status status =
      put(id, {static_cast<char *>(const_cast<void *>(input)), static_cast<char *>(output)},
          static_cast<cudaStream_t>(stream), &awaited);
  if (!status.ok() || awaited.numWords == 0)
    return status;
  status = awaitEnd(awaited);
  // Else somebody may store the ticket yet.
  if (status.ok())
    ends->giveBack(awaited.ended);
  return status;
}

/// Those whose kernels cannot stay are launched each time.
Status CudaRank::call(uint64_t id, const void *input, void *output) {
  if (fabric.failed())
    return fabric.failure();
  const Buffers buffers = {static_cast<char *>(const_cast<void *>(input)),
                           static_cast<char *>(output)};
  auto held = hold(id);
  if (!held.ok())
    return held.status();
  Known &known = **held;
  if (!known.seat)
    return invalid("OCCL_NO_STREAM is for collectives that are registered with stayMicroseconds");
  const DeviceCollective &collective = known.eager->collective();
  cudaStream_t stream = known.seat->stream;
  if (known.eager->isIdle() || collective.straight.images == nullptr) {
    held->lock.unlock();
    return enqueueAndWait(id, input, output, stream);
  }
  Status status = checkBuffers(known, buffers, false);
  if (!status.ok())
    return status;
  const Standby::Call next = known.seat->standby->call(known.numEnqueued, buffers);
  if (!next.isTaken)
    status =
        launchToStay({known, known.eager.get(), known.numEnqueued, buffers, stream, next.ended});
  if (!status.ok())
    return status;
  ++known.numEnqueued;
  const Awaited awaited{id, next.ended, collective.numBlocks, timeoutOf(known)};
  held->lock.unlock();
  return awaitEnd(awaited);
}

Status CudaRank::launchToStay(const Call &call) {
  OnDevice on(device());
  const Seat &seat = *call.known.seat;
  StandbyArguments arguments;
  arguments.first = argumentsOf(call);
  arguments.bells = seat.standby->bells();
  arguments.presence = seat.standby->presence();
  arguments.relay = call.registration->relay();
  arguments.session = call.ended.ticket;
  arguments.patience = static_cast<uint64_t>(call.known.stay.count()) * 1000;
  return launchHeld(heldStreamsOn(device()), device(), call.stream, [&] {
    return toStatus(static_cast<cudaError_t>(launchStandby(arguments, call.stream)),
                    "launching a kernel that stays");
  });
}

/// Nobody sits in it yet: see Standby::begin().
StatusOr<std::unique_ptr<CudaRank::Seat>> CudaRank::takeSeat() {
  {
    std::lock_guard changing(table);
    if (!freeSeats.empty()) {
      std::unique_ptr<Seat> seat = std::move(freeSeats.back());
      freeSeats.pop_back();
      return seat;
    }
  }
  OnDevice on(device());
  auto seat = std::make_unique<Seat>();
  auto memory = pinnedWords(Standby::wordsFor(maxBlocks));
  if (!memory.ok())
    return memory.status();
  seat->memory.reset(*memory);
  seat->standby = std::make_unique<Standby>(seat->memory.get(), maxBlocks);
  Status made = toStatus(cudaStreamCreateWithFlags(&seat->stream, cudaStreamNonBlocking),
                         "creating a stream");
  if (!made.ok())
    return made;
  return seat;
}

/// None of its calls is in flight: its kernel leaves by itself.
Status CudaRank::awaitLeaving(const Known &known) {
  if (!known.seat)
    return {};
  OnDevice on(device());
  for (Deadline deadline(kGrace); cudaStreamQuery(known.seat->stream) == cudaErrorNotReady;) {
    if (deadline.passed())
      return {StatusCode::Timeout, "the kernel of collective " + std::to_string(known.spec.id) +
                                       " does not leave the device"};
    sleepFor(kNap);
  }
  return {};
}

Status CudaRank::checkBuffers(const Known &known, const Buffers &buffers, bool isCaptured) const {
  if (!known.aliasing.accepts(buffers[0], buffers[1]))
    return invalid("collective " + std::to_string(known.spec.id) + ": " +
                   known.aliasing.complaint(buffers[0], buffers[1]));
  const interpreter::Binding &binding = known.eager->binding();
  return checkOnDevice({buffers[0], buffers[1]}, {binding.inputBytes(), binding.outputBytes()},
                       device(), isCaptured);
}

/// awaited: for whoever will wait for it; null: nobody.
Status CudaRank::put(uint64_t id, const Buffers &buffers, cudaStream_t stream, Awaited *awaited) {
  if (fabric.failed())
    return fabric.failure();
  auto held = hold(id);
  if (!held.ok())
    return held.status();
  return putHeld(**held, buffers, stream, awaited);
}

/// All that may be refused comes first, and whatever is taken for the call; then the stream gets
/// it.
Status CudaRank::putHeld(Known &known, const Buffers &buffers, cudaStream_t stream,
                         Awaited *awaited) {
  OnDevice on(device());
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (!status.ok())
    return status;
  if (awaited && capture != cudaStreamCaptureStatusNone)
    return invalid("the stream is captured, and nobody can wait for what only a replay of the "
                   "graph executes. Use occlEnqueue there");
  status = checkBuffers(known, buffers, capture != cudaStreamCaptureStatusNone);
  if (!status.ok())
    return status;
  const bool isCaptured = capture == cudaStreamCaptureStatusActive;
  if (isCaptured)
    status = reserveCapture(known);
  if (!status.ok())
    return status;
  Call call{known,
            isCaptured ? known.reserved.get() : known.eager.get(),
            isCaptured ? kAnyNumber : known.numEnqueued,
            buffers,
            stream,
            {}};
  StreamSteps steps;
  if (!call.registration->isIdle()) {
    auto staged = stagingOf(call);
    if (!staged.ok())
      return staged.status();
    if (awaited)
      status = lendEnd(call, staged->has_value(), *awaited);
    if (!status.ok())
      return status;
    launchAll(call, *staged, steps);
    if (!steps.status().ok() && call.ended.words && !steps.isHalfDone())
      ends->giveBack(call.ended);
  }
  if (steps.isHalfDone())
    fabric.fail({StatusCode::SystemError,
                 "rank " + std::to_string(fabric.rank()) + ", collective " +
                     std::to_string(known.spec.id) +
                     ": half of a call is in its stream and the rest could not be put there, so "
                     "ranks would pair other calls from now on: " +
                     steps.status().message()});
  if (!steps.status().ok())
    return steps.isHalfDone() ? fabric.failure() : steps.status();
  if (isCaptured) {
    std::lock_guard changing(table);
    known.captured.push_back(std::move(known.reserved));
  } else {
    ++known.numEnqueued;
  }
  return {};
}

/// What the next captured call is an invocation of.
Status CudaRank::reserveCapture(Known &known) {
  if (known.reserved)
    return {};
  auto made =
      Registration::make(context(), known.spec, static_cast<uint32_t>(known.captured.size()) + 1);
  if (made.ok())
    known.reserved = std::move(*made);
  return made.status();
}

/// Other ranks access the buffers of direct programs: what they cannot reach goes through memory
/// that they can. Nothing if they can.
StatusOr<std::optional<CudaRank::Buffers>> CudaRank::stagingOf(const Call &call) {
  Registration &registration = *call.registration;
  const interpreter::Binding &binding = registration.binding();
  if (!registration.collective().isDirect ||
      (memory->offsetOf(call.buffers[0], binding.inputBytes()) &&
       memory->offsetOf(call.buffers[1], binding.outputBytes())))
    return std::optional<Buffers>();
  auto staged = registration.staging();
  if (!staged.ok())
    return Status(staged.status().code(),
                  "a plan with direct access needs buffers of occlMemAlloc, or as much memory to "
                  "copy them to: " +
                      staged.status().message());
  return std::optional<Buffers>(*staged);
}

void CudaRank::launchAll(const Call &call, const std::optional<Buffers> &staged,
                         StreamSteps &steps) {
  if (staged)
    launchStaged(call, *staged, steps);
  else
    steps.then([&] { return launchCounted(call); });
}

/// behind: words that the stream writes after those of the thread blocks.
Status CudaRank::lendEnd(Call &call, uint32_t behind, Awaited &awaited) {
  auto ended = ends->lend();
  if (!ended)
    return {StatusCode::Again, std::to_string(AwaitedEnds::kCalls) +
                                   " threads wait for collectives of this rank already"};
  call.ended = *ended;
  awaited = {call.known.spec.id, *ended, call.registration->collective().numBlocks + behind,
             timeoutOf(call.known)};
  return {};
}

/// Graphs do not count.
Status CudaRank::launchCounted(const Call &call) {
  return call.number == kAnyNumber ? launch(call)
                                   : launchHeld(heldStreamsOn(device()), device(), call.stream,
                                                [&] { return launch(call); });
}

InStreamArguments CudaRank::argumentsOf(const Call &call) const {
  InStreamArguments arguments;
  arguments.collective = call.registration->collective();
  arguments.buffers[0] = call.buffers[0];
  arguments.buffers[1] = call.buffers[1];
  arguments.number = call.number;
  arguments.bound = watch->bound(arguments.collective.slot,
                                 static_cast<uint64_t>(timeoutOf(call.known).count()) * 1'000'000);
  arguments.bound.leaveAfter = call.registration->leaveAfter(arguments.bound.timeout);
  arguments.ended = call.ended;
  return arguments;
}

Status CudaRank::launch(const Call &call) {
  const uint32_t early =
      mostEarlyThreads(maxBlocks, options.streams, call.registration->largestBuffer());
  return toStatus(static_cast<cudaError_t>(launchInStream(argumentsOf(call), early, call.stream)),
                  "launching the interpreter");
}

/// A wait of the stream alone leaves it as it was: it is no step. Replays of a graph run one after
/// the other.
void CudaRank::launchStaged(Call call, const Buffers &staged, StreamSteps &steps) {
  const interpreter::Binding &binding = call.registration->binding();
  const Buffers given = std::exchange(call.buffers, staged);
  StreamTurns &turns = call.known.copies;
  const bool isCaptured = call.number == kAnyNumber;
  steps.then([&] {
    Status status = isCaptured ? Status() : turns.begin(call.stream);
    return !status.ok() ? status
                        : toStatus(cudaMemcpyAsync(staged[0], given[0], binding.inputBytes(),
                                                   cudaMemcpyDefault, call.stream),
                                   "copying the input");
  });
  steps.then([&] { return launchCounted(call); });
  steps.then([&] {
    return toStatus(
        cudaMemcpyAsync(given[1], staged[1], binding.outputBytes(), cudaMemcpyDefault, call.stream),
        "copying the output");
  });
  if (!isCaptured)
    steps.then([&] { return turns.end(call.stream); });
  if (call.ended.words)
    steps.then([&] {
      return writeWhenReached(call.stream, call.ended, call.registration->collective().numBlocks);
    });
}

/// Without a lock: other threads put into streams what this waits for.
Status CudaRank::awaitEnd(const Awaited &awaited) {
  Deadline deadline(awaited.timeout + kGrace), report(longWait());
  bool isReported = false;
  EndPoll end(awaited.ended, awaited.numWords);
  for (uint64_t polls = 1; !end.isOver(); ++polls) {
    if (polls % kPollsPerLook == 0 && fabric.failed())
      return fabric.failure();
    if (polls % kPollsPerLook == 0 && deadline.passed()) {
      fabric.fail({StatusCode::Timeout,
                   "collective " + std::to_string(awaited.id) +
                       " has not ended in its stream on rank " + std::to_string(fabric.rank()) +
                       " within its timeout and a second; what is before it in the stream counts"});
      return fabric.failure();
    }
    if (polls % kPollsPerLook == 0 && !isReported && report.passed()) {
      isReported = true;
      reportLongWait("collective " + std::to_string(awaited.id) + " on rank " +
                     std::to_string(fabric.rank()) + " has not ended in its stream after " +
                     describeLongWait() + ", with what is before it there, and is waited for on");
    }
    pauseAfter(polls);
  }
  return {};
}

} // namespace occl::cuda

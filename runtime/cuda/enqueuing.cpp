// CudaRank: invocations as work of the user's streams.
#include "runtime/base/deadline.h"
#include "runtime/base/thread.h"
#include "runtime/cuda/buffer_check.h"
#include "runtime/cuda/cuda_calls.h"
#include "runtime/cuda/cuda_rank.h"
#include "runtime/cuda/early_start.h"

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

/// What a stream has come to, for as long as anybody asks.
class StreamMark {
public:
  explicit StreamMark(int device) : device(device) {
    OnDevice on(device);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~StreamMark() {
    OnDevice on(device);
    cudaEventDestroy(event);
  }
  StreamMark(const StreamMark &) = delete;
  StreamMark &operator=(const StreamMark &) = delete;

  /// Once, also if nothing was put into the stream.
  void put(cudaStream_t stream) {
    cudaEventRecord(event, stream);
    isPut.store(true, std::memory_order_release);
  }
  bool isPassed() const {
    OnDevice on(device);
    return isPut.load(std::memory_order_acquire) && cudaEventQuery(event) != cudaErrorNotReady;
  }

private:
  const int device;
  cudaEvent_t event = nullptr;
  Atomic<bool> isPut{false};
};

/// In bytes.
uint64_t largestBuffer(const Registration &registration) {
  const interpreter::Binding &binding = registration.binding();
  return std::max(binding.inputBytes(), binding.outputBytes());
}

/// After how many nanoseconds without progress a thread block in a stream makes way (adoption.h):
/// about as many as one thread block takes for the work of all. So waiting costs at most twice what
/// it would with the better choice made beforehand, whether the others are late or wait for room.
uint64_t leaveAfter(const Registration &registration, uint64_t timeout) {
  constexpr uint64_t kAtLeast = 20'000'000, kBytesPerNanosecond = 16;
  const DeviceCollective &collective = registration.collective();
  if (collective.numBlocks == 1 || collective.straight.images != nullptr)
    return 0;
  return std::min(kAtLeast + largestBuffer(registration) / kBytesPerNanosecond, timeout / 4);
}

/// The word of the stream itself, behind those of the thread blocks.
Status writeWhenReached(cudaStream_t stream, const EndWords &ended, uint32_t which) {
  CUstreamBatchMemOpParams operation = {};
  operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operation.writeValue.address = reinterpret_cast<CUdeviceptr>(ended.words + which);
  operation.writeValue.value64 = ended.ticket;
  operation.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  return streamMemoryOperations(stream, &operation, 1);
}

Status checkBuffers(const Registration &registration, const std::array<char *, 2> &buffers,
                    int device, bool isCaptured) {
  const interpreter::Binding &binding = registration.binding();
  if ((!buffers[0] && binding.inputBytes() != 0) || (!buffers[1] && binding.outputBytes() != 0))
    return invalid("sendBuffer and recvBuffer must not be NULL where the collective has data");
  return checkOnDevice({buffers[0], buffers[1]}, {binding.inputBytes(), binding.outputBytes()},
                       device, isCaptured);
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
  std::unique_lock lock(calls);
  auto found = find(id);
  if (!found.ok())
    return found.status();
  Known &known = **found;
  if (!known.seat)
    return invalid("OCCL_NO_STREAM is for collectives that are registered with stayMicroseconds");
  const DeviceCollective &collective = known.eager->collective();
  cudaStream_t stream = known.seat->stream;
  if (known.eager->isIdle() || collective.straight.images == nullptr) {
    lock.unlock();
    return enqueueAndWait(id, input, output, stream);
  }
  Status status = checkBuffers(*known.eager, buffers, device(), false);
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
  lock.unlock();
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
  return launchHeld(call.stream, [&] {
    return toStatus(static_cast<cudaError_t>(launchStandby(arguments, call.stream)),
                    "launching a kernel that stays");
  });
}

StatusOr<std::unique_ptr<CudaRank::Seat>> CudaRank::takeSeat(uint32_t numBlocks) {
  std::unique_ptr<Seat> seat;
  if (!freeSeats.empty()) {
    seat = std::move(freeSeats.back());
    freeSeats.pop_back();
  } else {
    OnDevice on(device());
    seat = std::make_unique<Seat>();
    auto memory = pinnedWords(Standby::wordsFor(maxBlocks));
    if (!memory.ok())
      return memory.status();
    seat->memory.reset(*memory);
    seat->standby = std::make_unique<Standby>(seat->memory.get(), maxBlocks);
    Status made = toStatus(cudaStreamCreateWithFlags(&seat->stream, cudaStreamNonBlocking),
                           "creating a stream");
    if (!made.ok())
      return made;
  }
  seat->standby->begin(numBlocks);
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

/// awaited: for whoever will wait for it; null: nobody.
Status CudaRank::put(uint64_t id, const Buffers &buffers, cudaStream_t stream, Awaited *awaited) {
  if (fabric.failed())
    return fabric.failure();
  OnDevice on(device());
  std::lock_guard lock(calls);
  auto found = find(id);
  if (!found.ok())
    return found.status();
  Known &known = **found;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  Status status = toStatus(cudaStreamIsCapturing(stream, &capture), "looking at the stream");
  if (!status.ok())
    return status;
  if (awaited && capture != cudaStreamCaptureStatusNone)
    return invalid("the stream is captured, and nobody can wait for what only a replay of the "
                   "graph executes. Use occlEnqueue there");
  status = checkBuffers(*known.eager, buffers, device(), capture != cudaStreamCaptureStatusNone);
  if (!status.ok())
    return status;
  Call call{known, known.eager.get(), known.numEnqueued, buffers, stream, {}};
  if (capture == cudaStreamCaptureStatusActive) {
    auto instance = captureOf(known);
    if (!instance.ok())
      return instance.status();
    call.registration = *instance;
    call.number = kAnyNumber;
  }
  if (!call.registration->isIdle())
    status = launchReachable(call, awaited);
  if (status.ok() && call.number != kAnyNumber)
    ++known.numEnqueued;
  return status;
}

/// What the next captured call is an invocation of.
StatusOr<Registration *> CudaRank::captureOf(Known &known) {
  auto made =
      Registration::make(context(), known.spec, static_cast<uint32_t>(known.captured.size()) + 1);
  if (!made.ok())
    return made.status();
  std::lock_guard changing(table);
  known.captured.push_back(std::move(*made));
  return known.captured.back().get();
}

/// Other ranks access the buffers of direct programs: what they cannot reach goes through memory
/// that they can.
Status CudaRank::launchReachable(Call &call, Awaited *awaited) {
  Registration &registration = *call.registration;
  const interpreter::Binding &binding = registration.binding();
  if (!registration.collective().isDirect ||
      (memory->offsetOf(call.buffers[0], binding.inputBytes()) &&
       memory->offsetOf(call.buffers[1], binding.outputBytes()))) {
    Status lent = awaited ? lendEnd(call, 0, *awaited) : Status();
    return lent.ok() ? launchCounted(call) : lent;
  }
  auto staged = registration.staging();
  if (!staged.ok())
    return {staged.status().code(),
            "a plan with direct access needs buffers of occlMemAlloc, or as much memory to copy "
            "them to: " +
                staged.status().message()};
  Status lent = awaited ? lendEnd(call, 1, *awaited) : Status();
  return lent.ok() ? launchStaged(call, *staged) : lent;
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

/// What waits in a stream counts against the connections before it is there (held_streams.h);
/// somebody asks only where a daemon is strict.
Status CudaRank::launchHeld(cudaStream_t stream, const std::function<Status()> &launch) {
  HeldStreams &held = heldStreamsOn(device());
  if (!held.isWatched())
    return launch();
  unsigned long long which = 0;
  Status status = toStatus(cudaStreamGetId(stream, &which), "asking which stream it is");
  if (!status.ok())
    return status;
  auto mark = std::make_shared<StreamMark>(device());
  held.enterUntil(which, [mark] { return mark->isPassed(); });
  status = launch();
  mark->put(stream);
  return status;
}

/// Graphs do not count.
Status CudaRank::launchCounted(const Call &call) {
  return call.number == kAnyNumber ? launch(call)
                                   : launchHeld(call.stream, [&] { return launch(call); });
}

InStreamArguments CudaRank::argumentsOf(const Call &call) const {
  InStreamArguments arguments;
  arguments.collective = call.registration->collective();
  arguments.buffers[0] = call.buffers[0];
  arguments.buffers[1] = call.buffers[1];
  arguments.number = call.number;
  arguments.bound = watch->bound(arguments.collective.slot,
                                 static_cast<uint64_t>(timeoutOf(call.known).count()) * 1'000'000);
  arguments.bound.leaveAfter = leaveAfter(*call.registration, arguments.bound.timeout);
  arguments.ended = call.ended;
  return arguments;
}

Status CudaRank::launch(const Call &call) {
  const uint32_t early =
      mostEarlyThreads(maxBlocks, options.streams, largestBuffer(*call.registration));
  return toStatus(static_cast<cudaError_t>(launchInStream(argumentsOf(call), early, call.stream)),
                  "launching the interpreter");
}

Status CudaRank::launchStaged(Call call, const Buffers &staged) {
  const interpreter::Binding &binding = call.registration->binding();
  const Buffers given = std::exchange(call.buffers, staged);
  Status status = toStatus(
      cudaMemcpyAsync(staged[0], given[0], binding.inputBytes(), cudaMemcpyDefault, call.stream),
      "copying the input");
  if (status.ok())
    status = launchCounted(call);
  if (status.ok())
    status = toStatus(
        cudaMemcpyAsync(given[1], staged[1], binding.outputBytes(), cudaMemcpyDefault, call.stream),
        "copying the output");
  if (status.ok() && call.ended.words)
    status = writeWhenReached(call.stream, call.ended, call.registration->collective().numBlocks);
  return status;
}

/// Without a lock: other threads put into streams what this waits for.
Status CudaRank::awaitEnd(const Awaited &awaited) {
  Deadline deadline(awaited.timeout + kGrace);
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
    pauseAfter(polls);
  }
  return {};
}

} // namespace occl::cuda

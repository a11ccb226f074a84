// A resident daemon's marks: executors record them from one start to another, so they leave when
// that begins and when somebody reads them. Meanwhile the clocks of device and host are compared.
#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/cuda/resident/resident_daemon.h"
#include "runtime/sync/deadline.h"

#include <limits>
#include <mutex>
#include <string>
#include <utility>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// For the daemon's thread, which may be at something else; for copies; for an answer of the clock.
constexpr std::chrono::milliseconds kTurnPatience = 10s, kCopyPatience = 5s, kAnswerPatience = 50ms;
static_assert(kAnswerPatience < std::chrono::nanoseconds(ClockProbe::kPatienceNs));

} // namespace

Status ResidentDaemon::startMarks() {
  if (Status made = ensureStreams(); !made.ok())
    return made;
  std::unique_lock lock(mutex);
  if (!keeper.joinable())
    return {StatusCode::InvalidArgument, "the resident daemon has no tenant"};
  Status status = awaitMarks(lock);
  // They may be on though nobody records: after a Timeout the device turned them on all the same, or
  // nobody could turn them off. What they recorded is of no use then.
  if (status.ok() && (marksState == Marks::Off || numMarking == 0))
    status = turnMarks(lock, Marks::Starting);
  numMarking += status.ok();
  return status;
}

StatusOr<ResidentDaemon::Recording> ResidentDaemon::takeMarks(const Tenant &tenant) {
  std::unique_lock lock(mutex);
  Status status = awaitMarks(lock);
  if (numMarking == 0)
    return Status(StatusCode::InvalidArgument, "the resident daemon records no marks");
  if (status.ok())
    status = turnMarks(lock, numMarking == 1 ? Marks::Stopping : Marks::Reading);
  // The last recording takes the requests with it; others have copies.
  std::deque<Traced> known;
  if (--numMarking == 0)
    known.swap(traced);
  else
    known = traced;
  if (!status.ok())
    return status;
  // What is left of each ring, the oldest first, in the time of one clock.
  Recording recording;
  for (const MarkRing &ring : taken) {
    std::vector<MarkView> &view = recording.executors.emplace_back();
    const uint64_t first = ring.written > MarkRing::kMarks ? ring.written - MarkRing::kMarks : 0;
    recording.overwritten += first;
    for (uint64_t i = first; i < ring.written; ++i)
      view.push_back(decode(ring.marks[i % MarkRing::kMarks]));
  }
  taken.clear();
  recording.clock = {clockAtFirst, clockAtLast, nominalTicksPerNanosecond()};
  for (const Traced &entry : known)
    if (entry.tenant == &tenant)
      recording.requests.push_back(entry.request);
  return recording;
}

/// Until nobody else has them turned.
Status ResidentDaemon::awaitMarks(std::unique_lock<Mutex> &lock) {
  Deadline deadline(kTurnPatience);
  while (marksState != Marks::Off && marksState != Marks::On) {
    if (!failed.ok())
      return failed;
    if (deadline.passed())
      return {StatusCode::Timeout, "the resident daemon does not leave the device"};
    changed.wait_for(lock, 1ms);
  }
  return {};
}

/// The daemon's thread does it.
Status ResidentDaemon::turnMarks(std::unique_lock<Mutex> &lock, Marks through) {
  marksState = through;
  changed.notify_all();
  Status status = awaitMarks(lock);
  if (status.ok() && !marksOutcome.ok())
    status = marksOutcome;
  return status;
}

/// Of its thread; executors have left.
void ResidentDaemon::turnMarksNow() {
  Marks state;
  {
    std::lock_guard lock(mutex);
    state = marksState;
  }
  if (state == Marks::Off || state == Marks::On)
    return;
  OnDevice on(options.device);
  Status status;
  StatusOr<std::vector<MarkRing>> read = std::vector<MarkRing>();
  if (state == Marks::Starting) // in its stream: before the executors that are started next
    status = toStatus(cudaMemsetAsync(marks, 0, options.settings.numExecutors * sizeof(MarkRing),
                                      streams[current.load(std::memory_order_relaxed)]),
                      "clearing marks");
  else {
    read = readMarks();
    status = read.status();
  }
  auto sample = readClock();
  if (status.ok())
    status = sample.status();
  // What cannot be read is not recorded any more.
  const bool isOn = state == Marks::Reading || (state == Marks::Starting && status.ok());
  isMarking.store(isOn, std::memory_order_release);
  std::lock_guard lock(mutex);
  marksOutcome = status;
  if (status.ok()) {
    (state == Marks::Starting ? clockAtFirst : clockAtLast) = *sample;
    taken = std::move(*read);
  }
  marksState = isOn ? Marks::On : Marks::Off;
  changed.notify_all();
}

/// What somebody waits for cannot be done now. Who asked to begin or to end has ended; who only
/// reads them goes on.
void ResidentDaemon::turnMarksOff(const Status &cause) {
  std::lock_guard lock(mutex);
  if (marksState == Marks::Off || marksState == Marks::On)
    return;
  const bool isOn = marksState == Marks::Reading;
  isMarking.store(isOn, std::memory_order_release);
  marksOutcome = cause;
  marksState = isOn ? Marks::On : Marks::Off;
  changed.notify_all();
}

StatusOr<std::vector<MarkRing>> ResidentDaemon::readMarks() {
  std::vector<MarkRing> read(options.settings.numExecutors);
  Status status = toStatus(cudaMemcpyAsync(read.data(), marks, read.size() * sizeof(MarkRing),
                                           cudaMemcpyDeviceToHost,
                                           streams[current.load(std::memory_order_relaxed)]),
                           "copying marks");
  if (status.ok() && !awaitGone(kCopyPatience))
    status = {StatusCode::SystemError, "copying marks: the device does not get round to it"};
  if (!status.ok())
    return status;
  return read;
}

/// Of many answers that which came soonest: the device gave it half way.
StatusOr<ClockSample> ResidentDaemon::readClock() {
  *probe = {};
  cudaStream_t stream = streams[current.load(std::memory_order_relaxed)];
  Status status =
      toStatus(static_cast<cudaError_t>(launchClockProbe(probe, stream)), "reading the clock");
  if (!status.ok())
    return status;
  ClockSample best;
  Ticks shortest = std::numeric_limits<Ticks>::max();
  for (uint32_t round = 0; status.ok() && round < ClockProbe::kRounds; ++round) {
    // The kernel answers each question with its time. The fastest answer says best when that was:
    // half of the round trip after the question.
    const Ticks begin = ticks();
    storeShared(&probe->asked, uint64_t(round) + 1, std::memory_order_release);
    Deadline deadline(kAnswerPatience);
    uint64_t answer = 0;
    while ((answer = loadShared(&probe->answers[round], std::memory_order_acquire)) == 0 &&
           status.ok())
      if (deadline.passed())
        status = {StatusCode::SystemError, "reading the device's clock: something else occupies "
                                           "the device"};
    const Ticks took = elapsed(begin, ticks());
    if (took < shortest) {
      shortest = took;
      best = {answer & kMarkTime, begin + took / 2};
    }
  }
  if (!awaitGone(kCopyPatience))
    status = {StatusCode::SystemError, "reading the device's clock: the device does not answer"};
  if (!status.ok())
    return status;
  return best;
}

// --- requests meanwhile, with the lock ---

void ResidentDaemon::trace(uint64_t request, const Order &order) {
  const Waiting &open = waiting.at(request);
  const Ticks now = ticks();
  const auto waited = std::chrono::nanoseconds(Clock::now() - order.since).count();
  const Ticks started =
      now - static_cast<Ticks>(static_cast<double>(waited) * nominalTicksPerNanosecond());
  traced.push_back({open.tenant,
                    {.sequence = request,
                     .invocation = open.invocation,
                     .submitted = started,
                     .entered = now,
                     .awaited = order.awaited}});
  if (traced.size() > kTracedRequests)
    traced.pop_front();
}

void ResidentDaemon::traceEnd(uint64_t request, StatusCode outcome) {
  const uint64_t first = traced.front().request.sequence;
  if (request < first || request - first >= traced.size())
    return;
  TracedRequest &entry = traced[request - first].request;
  entry.ended = ticks();
  entry.outcome = outcome;
}

} // namespace occl::cuda::resident

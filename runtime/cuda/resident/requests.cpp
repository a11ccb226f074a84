// Requests of a resident daemon, from entering to their end, and the streams that wait for them.
#include "runtime/cuda/resident/resident_daemon.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/deadline.h"
#include "runtime/sync/thread.h"

#include <mutex>
#include <optional>

namespace occl::cuda::resident {

namespace {

/// How long a waiter polls before it looks whether the kernel has left, and how often it does so
/// before it offers its processor.
constexpr uint32_t kPollsPerLook = 64, kLooksPerYield = 32;
/// For the lock of a daemon, some 20 us.
constexpr uint32_t kLooksToEnter = 1000;

const char *nameOf(interpreter::BlockReason reason) {
  // The text continues "waits for".
  switch (reason) {
  case interpreter::BlockReason::Announce:
    return "the announcement of";
  case interpreter::BlockReason::Data:
    return "data from";
  case interpreter::BlockReason::Credit:
    return "a free slot of";
  case interpreter::BlockReason::Signal:
    return "a signal from";
  case interpreter::BlockReason::Dependency:
    return "another thread block of";
  case interpreter::BlockReason::None:
    break;
  }
  return "its turn on";
}

} // namespace

StatusOr<uint64_t> ResidentDaemon::enter(const Order &order, Callback callback) {
  Submission submission;
  submission.collective = collectives + order.collective;
  submission.input = static_cast<char *>(const_cast<void *>(order.input));
  submission.output = static_cast<char *>(order.output);
  submission.ordinal = order.ordinal;
  submission.priority = order.priority;
  submission.isStreamed = order.isGated;
  // Whoever enters a gated one has a lock that other ranks wait for.
  std::unique_lock lock(mutex, std::defer_lock);
  for (uint32_t look = 0; order.isGated && look < kLooksToEnter && !lock.try_lock(); ++look)
    relax();
  if (order.isGated && !lock.owns_lock())
    return Status(StatusCode::Again, "the resident daemon is busy");
  if (!order.isGated)
    lock.lock();
  if (!failed.ok())
    return failed;
  const Registered &collective = registered[order.collective];
  submission.numBlocks = static_cast<uint8_t>(collective.numBlocks);
  submission.home = collective.home;
  const std::optional<uint64_t> request = side->enter(submission);
  if (!request)
    return Status(StatusCode::Again,
                  std::to_string(kWindow) +
                      " submissions are in flight, the oldest of which is not "
                      "complete (the first: collective " +
                      std::to_string(waiting.empty()
                                         ? order.tag
                                         : waiting.begin()->second.invocation.collective) +
                      ")");
  // Else its thread comes by in time.
  const bool wakes = callback != nullptr || (options.isStrict && waiting.empty() && order.isGated);
  numCallbacks += callback != nullptr;
  lastSubmission = Clock::now();
  const bool hasDeadline = !order.isGated && order.timeout < kNoDeadline;
  waiting[*request] = {collective.tenant,
                       {order.tag, submission.ordinal},
                       order.since,
                       hasDeadline ? order.since + order.timeout : Clock::time_point::max(),
                       std::move(callback),
                       order.timeout,
                       order.isGated,
                       !order.isGated,
                       false,
                       false,
                       {}};
  if (numMarking != 0)
    trace(*request, order);
  if (wakes)
    changed.notify_all();
  return *request;
}

void ResidentDaemon::begin() {
  if (options.isStrict) {
    heldOnDevice.sweep(); // what has ended need keep nobody there
    // While streams wait a launch may be held up, and the lookout needs none: the daemon's thread
    // makes it when something has moved.
    if (heldOnDevice.count() != 0 && side->hasLookout())
      return attend();
  }
  side->startIfQuit();
}

namespace {

CUdeviceptr addressOf(uint64_t *word) { return reinterpret_cast<CUdeviceptr>(word); }

} // namespace

Status ResidentDaemon::letBegin(cudaStream_t stream, uint64_t request) {
  OnDevice on(options.device);
  // The stream stores the number of the request where executors look for it.
  CUstreamBatchMemOpParams opens = {};
  opens.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  opens.writeValue.address = addressOf(side->gateOf(request));
  opens.writeValue.value64 = request + 1;
  opens.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  Status status = streamMemoryOperations(stream, &opens, 1);
  if (!status.ok())
    letGo(request);
  return status;
}

void ResidentDaemon::letGo(uint64_t request) {
  storeShared(side->gateOf(request), request + 1, std::memory_order_release);
}

/// A stream counts as held before it is, and executors are there that need no launch, which a
/// stream that is held might keep from beginning.
Status ResidentDaemon::holdStream(cudaStream_t stream, uint64_t request) {
  if (isComplete(request))
    return {};
  unsigned long long number = 0;
  OnDevice on(options.device);
  Status status = toStatus(cudaStreamGetId(stream, &number), "asking which stream it is");
  if (!status.ok())
    return status;
  // Counted first: as long as it is held, and nobody knows it, nothing may take its connection.
  heldOnDevice.enter(number);
  auto isOpen = noteHeld(request, number);
  if (!isOpen.ok() || !*isOpen) {
    heldOnDevice.leave(number);
    return isOpen.status();
  }
  side->ensureStarted();
  // The completion word only grows, from one request in its slot to the next.
  CUstreamBatchMemOpParams waits = {};
  waits.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  waits.waitValue.address = addressOf(side->completionOf(request));
  waits.waitValue.value64 = request + 1;
  waits.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  return streamMemoryOperations(stream, &waits, 1);
}

/// False: it is complete.
StatusOr<bool> ResidentDaemon::noteHeld(uint64_t request, unsigned long long stream) {
  std::lock_guard lock(mutex);
  auto found = waiting.find(request);
  if (found == waiting.end() || isComplete(request))
    return false;
  if (!found->second.isGated)
    return Status(StatusCode::InvalidArgument,
                  "a stream can wait for a call that was started in the order of a stream alone: "
                  "set call->after");
  found->second.streams.push_back(stream);
  return true;
}

void ResidentDaemon::attend() {
  std::lock_guard lock(mutex);
  lastSubmission = Clock::now();
  changed.notify_all();
}

Status ResidentDaemon::settle(uint64_t request) {
  std::unique_lock lock(mutex);
  auto found = waiting.find(request);
  // The daemon has failed, and has not come to end it yet.
  if (found != waiting.end() && !isComplete(request))
    return failed.ok() ? Status(StatusCode::InProgress, "the request is in flight") : failed;
  if (found != waiting.end()) {
    if (found->second.isReleased)
      return badEndOf(found->second);
    Callback callback = end(found, {});
    lock.unlock();
    if (callback)
      callback(request, {});
    return {};
  }
  auto bad = badEnds.find(request);
  return bad == badEnds.end() ? Status() : bad->second.second;
}

/// With the lock: whoever finds it ended finds it counted, too. What is to be called, without.
ResidentDaemon::Callback ResidentDaemon::end(Requests::iterator open, const Status &outcome) {
  Waiting ended = std::move(open->second);
  if (!outcome.ok() && ended.tenant != &gone) // whose requests nobody asks for
    badEnds[open->first] = {ended.tenant, outcome};
  if (!traced.empty())
    traceEnd(open->first, outcome.code());
  waiting.erase(open);
  for (unsigned long long stream : ended.streams)
    heldOnDevice.leave(stream);
  numCallbacks -= ended.callback != nullptr;
  ended.tenant->ended(ended.invocation, outcome, Clock::now() - ended.since);
  return std::move(ended.callback);
}

Status ResidentDaemon::wait(uint64_t request, std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  for (uint32_t polls = 1; !isComplete(request); ++polls) {
    if (polls % kPollsPerLook != 0) {
      relax();
      continue;
    }
    // Executors that have left do not come back by themselves.
    side->restartIfOpen();
    if (polls % (kPollsPerLook * kLooksPerYield) != 0)
      continue;
    if (side->isAborted() && !failure().ok())
      return settle(request);
    if (deadline.passed())
      return {StatusCode::Timeout, "request " + std::to_string(request) +
                                       " is not complete after " + std::to_string(atMost.count()) +
                                       " ms:" + describeWaits()};
    yieldProcessor();
  }
  return settle(request);
}

bool ResidentDaemon::awaitEnd(uint64_t request, std::chrono::microseconds atMost) {
  const auto until = Clock::now() + atMost;
  for (uint32_t polls = 1; !isComplete(request); ++polls) {
    if (polls % kPollsPerLook != 0) {
      relax();
      continue;
    }
    // Executors that have left do not come back by themselves.
    side->restartIfOpen();
    if (side->isAborted() && !failure().ok())
      return true;
    if (polls % (kPollsPerLook * kLooksPerYield) == 0)
      yieldProcessor();
    if (Clock::now() > until)
      return false;
  }
  return true;
}

std::string ResidentDaemon::describeWaits() const {
  std::string text;
  // The executors said so when they last left.
  for (const OpenTask &task : side->openTasks()) {
    InvocationName invocation;
    {
      std::lock_guard lock(mutex);
      auto found = waiting.find(task.request);
      if (found == waiting.end())
        continue;
      invocation = found->second.invocation;
    }
    text += "\n  request " + std::to_string(task.request) + ", collective " +
            std::to_string(invocation.collective) + ", thread block " + std::to_string(task.block) +
            ", instruction " + std::to_string(task.instruction) + ": waits for " +
            nameOf(task.reason) + " rank " + std::to_string(task.peer) +
            " (connection or thread block " + std::to_string(task.what) + ")";
  }
  return text.empty() ? " nothing is known to be blocked" : text;
}

} // namespace occl::cuda::resident

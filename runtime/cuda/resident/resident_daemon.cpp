#include "runtime/cuda/resident/resident_daemon.h"

#include "runtime/base/deadline.h"
#include "runtime/cuda/cuda_calls.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// How long the daemon's thread sleeps while something is open, and while nothing is.
constexpr std::chrono::microseconds kBusyPause = 100us;
constexpr std::chrono::microseconds kIdlePause = 5ms;
/// How long a waiter polls before it offers its processor.
constexpr uint32_t kPollsPerYield = 2048;
/// For a kernel that has been told to leave.
constexpr auto kLeavePatience = 5000ms;

const char *nameOf(interpreter::BlockReason reason) {
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

StatusOr<std::unique_ptr<ResidentDaemon>> ResidentDaemon::make(const DaemonOptions &options) {
  std::unique_ptr<ResidentDaemon> daemon(new ResidentDaemon(options));
  Status started = daemon->start();
  if (!started.ok())
    return started;
  return daemon;
}

Status ResidentDaemon::start() {
  if (options.kernel == nullptr || options.settings.numExecutors == 0 ||
      options.settings.numExecutors > kMaxExecutors)
    return {StatusCode::InvalidArgument, "a resident daemon needs a kernel and 1 to " +
                                             std::to_string(kMaxExecutors) + " executors, not " +
                                             std::to_string(options.settings.numExecutors)};
  OnDevice on(options.device);
  Status status = on.status();
  if (status.ok())
    status = allocate();
  if (!status.ok())
    return status;
  nextOrdinals.reserve(options.maxCollectives);
  side =
      std::make_unique<SubmissionSide>(*page, [this](uint64_t generation) { launch(generation); });
  keeper = Thread([this] { keep(); });
  return {};
}

/// Everything that the daemon will ever ask CUDA for but launches, so that nothing waits for a
/// running kernel later.
Status ResidentDaemon::allocate() {
  int least = 0, greatest = 0;
  auto zeroed = [](auto *&memory, uint64_t bytes) {
    void *begin = nullptr;
    Status status = toStatus(cudaMalloc(&begin, bytes), "allocating the resident daemon's memory");
    if (status.ok())
      status = toStatus(cudaMemset(begin, 0, bytes), "clearing the resident daemon's memory");
    memory = static_cast<std::remove_reference_t<decltype(memory)>>(begin);
    return status;
  };
  Status status = toStatus(static_cast<cudaError_t>(options.kernel->load()),
                           "loading the resident daemon's kernel");
  if (status.ok())
    status = toStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                      "asking for the priorities of streams");
  if (status.ok())
    status = toStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
                      "making the resident daemon's stream");
  if (status.ok())
    status = toStatus(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking),
                      "making a stream for copies");
  void *pinned = nullptr;
  if (status.ok())
    status = toStatus(
        cudaHostAlloc(&pinned, sizeof(HostPage), cudaHostAllocMapped | cudaHostAllocPortable),
        "pinning memory of the host");
  if (!status.ok())
    return status;
  page = new (pinned) HostPage();
  status = zeroed(board, sizeof(Board));
  if (status.ok())
    status = zeroed(collectives, options.maxCollectives * sizeof(ResidentCollective));
  return status.ok() ? toStatus(cudaDeviceSynchronize(), "clearing the resident daemon's memory")
                     : status;
}

ResidentDaemon::~ResidentDaemon() {
  abort({StatusCode::Aborted, "the resident daemon is being destroyed"});
  {
    std::lock_guard lock(mutex);
    isOver = true;
    changed.notify_one();
  }
  if (keeper.joinable())
    keeper.join();
  OnDevice on(options.device);
  Deadline deadline(kLeavePatience);
  while (stream && cudaStreamQuery(stream) == cudaErrorNotReady) {
    if (deadline.passed())
      return; // freeing would wait for ever: what is left goes with the process
    yieldProcessor();
  }
  for (cudaStream_t used : {stream, copies})
    if (used)
      cudaStreamDestroy(used);
  cudaFree(board);
  cudaFree(collectives);
  cudaFreeHost(page);
}

Status ResidentDaemon::upload(void *to, const void *from, uint64_t bytes) {
  OnDevice on(options.device);
  Status status = toStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies),
                           "copying to the device");
  return status.ok() ? toStatus(cudaStreamSynchronize(copies), "copying to the device") : status;
}

StatusOr<uint32_t> ResidentDaemon::add(const DeviceCollective &device) {
  if (device.numBlocks > kMaxTasks)
    return Status(StatusCode::InvalidArgument,
                  "a resident daemon executes collectives of at most " + std::to_string(kMaxTasks) +
                      " thread blocks, not " + std::to_string(device.numBlocks));
  uint32_t number;
  {
    std::lock_guard lock(mutex);
    number = static_cast<uint32_t>(nextOrdinals.size());
    if (number == options.maxCollectives)
      return Status(StatusCode::Again,
                    "the resident daemon has room for " + std::to_string(number) + " collectives");
    nextOrdinals.push_back(0);
    numBlocks.push_back(device.numBlocks);
  }
  ResidentCollective collective;
  collective.device = device;
  collective.rank = device.rank;
  collective.numRanks = device.numRanks;
  collective.done = &collectives[number].doneWord;
  collective.announced = &recordIn(device.arenas[device.rank], device.slot, 0)->announced;
  collective.announcedStride = sizeof(RankRecord);
  for (uint32_t r = 0; r < device.numRanks; ++r)
    collective.announcedAt[r] = &recordIn(device.arenas[r], device.slot, device.rank)->announced;
  Status status = upload(&collectives[number], &collective, sizeof collective);
  if (!status.ok())
    return status;
  return number;
}

void ResidentDaemon::launch(uint64_t generation) {
  OnDevice on(options.device);
  ExecutorArguments arguments;
  arguments.board = board;
  arguments.page = page;
  arguments.generation = generation;
  arguments.settings = options.settings;
  Status status = toStatus(static_cast<cudaError_t>(options.kernel->launch(arguments, stream)),
                           "launching the resident daemon");
  if (!status.ok())
    abort(status);
}

StatusOr<uint64_t> ResidentDaemon::submit(uint32_t collective, const void *input, void *output,
                                          uint8_t priority, Callback callback) {
  Submission submission;
  submission.collective = collectives + collective;
  submission.input = static_cast<char *>(const_cast<void *>(input));
  submission.output = static_cast<char *>(output);
  submission.priority = priority;
  std::optional<uint64_t> request;
  {
    std::lock_guard lock(mutex);
    if (!failed.ok())
      return failed;
    if (collective >= numBlocks.size())
      return Status(StatusCode::InvalidArgument,
                    "no collective " + std::to_string(collective) + " is registered");
    submission.ordinal = nextOrdinals[collective];
    submission.numBlocks = static_cast<uint8_t>(numBlocks[collective]);
    request = side->enter(submission);
    if (!request)
      return Status(StatusCode::Again, std::to_string(kWindow) +
                                           " submissions are in flight, the oldest of which is not "
                                           "complete");
    ++nextOrdinals[collective];
    const bool wakes = callback != nullptr; // else its thread comes by in time
    waiting[*request] = {Clock::now(), collective, std::move(callback)};
    if (wakes)
      changed.notify_one();
  }
  side->startIfQuit();
  return *request;
}

Status ResidentDaemon::wait(uint64_t request, std::chrono::milliseconds atMost) {
  Deadline deadline(atMost);
  for (uint32_t polls = 1; !isComplete(request); ++polls) {
    if (polls % kPollsPerYield != 0) {
      relax();
      continue;
    }
    if (side->isAborted())
      return failure();
    side->restartIfOpen();
    if (deadline.passed())
      return {StatusCode::Timeout, "request " + std::to_string(request) +
                                       " is not complete after " + std::to_string(atMost.count()) +
                                       " ms:" + describeWaits()};
    yieldProcessor();
  }
  return {};
}

Status ResidentDaemon::waitForQuit(std::chrono::milliseconds atMost) const {
  Deadline deadline(atMost);
  OnDevice on(options.device);
  while (!side->hasQuit() || cudaStreamQuery(stream) == cudaErrorNotReady) {
    if (deadline.passed())
      return {StatusCode::Timeout, "the resident daemon has not left"};
    yieldProcessor();
  }
  return {};
}

void ResidentDaemon::abort(const Status &cause) {
  std::lock_guard lock(mutex);
  if (failed.ok())
    failed = cause;
  if (side)
    side->abort();
  changed.notify_one();
}

Status ResidentDaemon::failure() const {
  std::lock_guard lock(mutex);
  return failed;
}

std::string ResidentDaemon::describeWaits() const {
  std::string text;
  for (const OpenTask &task : side->openTasks()) {
    uint32_t collective = 0;
    {
      std::lock_guard lock(mutex);
      auto found = waiting.find(task.request);
      if (found == waiting.end())
        continue;
      collective = found->second.collective;
    }
    text += "\n  request " + std::to_string(task.request) + ", collective " +
            std::to_string(collective) + ", thread block " + std::to_string(task.block) +
            ", instruction " + std::to_string(task.instruction) + ": waits for " +
            nameOf(task.reason) + " rank " + std::to_string(task.peer) +
            " (connection or thread block " + std::to_string(task.what) + ")";
  }
  return text.empty() ? " nothing is known to be blocked" : text;
}

// --- the daemon's thread ---

void ResidentDaemon::keep() {
  for (;;) {
    {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, waiting.empty() ? kIdlePause : kBusyPause);
      if (isOver)
        break;
    }
    keepOnce();
  }
  while (runCallbacks())
    ;
}

void ResidentDaemon::keepOnce() {
  while (runCallbacks())
    ;
  checkDeadline();
  side->restartIfOpen();
}

/// The callback of one request that is complete, or cannot be any more.
bool ResidentDaemon::runCallbacks() {
  Callback callback;
  Status outcome;
  {
    std::lock_guard lock(mutex);
    auto found = std::ranges::find_if(
        waiting, [&](const auto &entry) { return !failed.ok() || isComplete(entry.first); });
    if (found == waiting.end())
      return false;
    if (!isComplete(found->first))
      outcome = failed;
    callback = std::move(found->second.callback);
    waiting.erase(found);
  }
  if (callback)
    callback(outcome);
  return true;
}

void ResidentDaemon::checkDeadline() {
  std::string what;
  {
    std::lock_guard lock(mutex);
    if (waiting.empty() || Clock::now() - waiting.begin()->second.since < options.timeout)
      return;
    what = "request " + std::to_string(waiting.begin()->first) + ", collective " +
           std::to_string(waiting.begin()->second.collective) + ", is not complete after " +
           std::to_string(options.timeout.count()) + " ms:";
  }
  abort({StatusCode::Timeout, what + describeWaits()});
}

} // namespace occl::cuda::resident

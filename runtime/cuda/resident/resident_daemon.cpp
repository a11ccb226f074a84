// The host's side of a resident daemon: memory and launches, tenants and their numbers, requests
// from entering to their end.
#include "runtime/cuda/resident/resident_daemon.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/adaptive_mutex.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <type_traits>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// How long a waiter polls before it looks whether the kernel has left, and how often it does so
/// before it offers its processor.
constexpr uint32_t kPollsPerLook = 64, kLooksPerYield = 32;
/// For the lock of a daemon, some 20 us.
constexpr uint32_t kLooksToEnter = 1000;
/// For a kernel at its end, and for copies.
constexpr auto kLeavePatience = 5000ms;
/// Longer than its thread gives executors to leave (keeping.cpp).
constexpr auto kEndPatience = 12000ms;

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

StatusOr<std::unique_ptr<ResidentDaemon>> ResidentDaemon::make(const DaemonOptions &options) {
  std::unique_ptr<ResidentDaemon> daemon(new ResidentDaemon(options));
  Status started = daemon->start();
  if (!started.ok())
    return started;
  return daemon;
}

Status ResidentDaemon::start() {
  // The lock is held for moments, so its users look some times before they sleep.
  lookBeforeSleeping(mutex);
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
  // Executors that have left with something open stay away in strict mode.
  side = std::make_unique<SubmissionSide>(
      *page, [this](uint64_t generation, bool beside) { launch(generation, beside); },
      options.isStrict ? DaemonOptions::kAway : std::chrono::microseconds(0));
  if (options.isStrict)
    heldOnDevice.attach(*this);
  return {};
}

/// Everything that the daemon will ever ask CUDA for but streams and launches, so that nothing
/// waits for a running kernel later.
Status ResidentDaemon::allocate() {
  auto zeroed = [](auto *&memory, uint64_t bytes) {
    void *begin = nullptr;
    Status status = toStatus(cudaMalloc(&begin, bytes), "allocating the resident daemon's memory");
    if (status.ok())
      status = clearNow(begin, bytes);
    memory = static_cast<std::remove_reference_t<decltype(memory)>>(begin);
    return status;
  };
  // Code first, while nothing runs.
  Status status = toStatus(static_cast<cudaError_t>(options.kernel->load()),
                           "loading the resident daemon's kernel");
  if (status.ok())
    status = toStatus(static_cast<cudaError_t>(loadClockProbe()), "loading what reads the clock");
  if (status.ok())
    status = copied.make();
  auto shared = status.ok() ? sharedStreamOn(options.device, SharedStream::Tables)
                            : StatusOr<cudaStream_t>(status);
  if (shared.ok())
    copies = *shared;
  status = shared.status();
  auto pin = [&](auto *&memory) {
    using Content = std::remove_reference_t<decltype(*memory)>;
    void *begin = nullptr;
    if (status.ok())
      status = toStatus(
          cudaHostAlloc(&begin, sizeof(Content), cudaHostAllocMapped | cudaHostAllocPortable),
          "pinning memory of the host");
    memory = status.ok() ? new (begin) Content() : nullptr;
  };
  pin(page);
  pin(probe);
  if (!status.ok())
    return status;
  status = zeroed(board, sizeof(Board));
  if (status.ok())
    status = zeroed(marks, options.settings.numExecutors * sizeof(MarkRing));
  if (status.ok())
    status = zeroed(collectives, options.maxCollectives * sizeof(ResidentCollective));
  return status;
}

ResidentDaemon::~ResidentDaemon() {
  // Executors leave for good, then the thread ends.
  if (side)
    side->abort();
  if (side && options.isStrict)
    heldOnDevice.detach(*this);
  {
    std::lock_guard lock(mutex);
    isOver = true;
    changed.notify_all();
  }
  if (keeper.joinable())
    keeper.join();
  OnDevice on(options.device);
  if (side && !awaitGone(kLeavePatience))
    return; // freeing would wait for ever: what is left goes with the process
  for (cudaStream_t used : streams)
    if (used)
      cudaStreamDestroy(used);
  cudaFree(board);
  cudaFree(marks);
  cudaFree(collectives);
  cudaFreeHost(page);
  cudaFreeHost(probe);
}

/// Before anything is executed: connections to the device are few, and many a program makes
/// communicators that start nothing.
Status ResidentDaemon::ensureStreams() {
  std::lock_guard lock(copying);
  if (haveStreams.load(std::memory_order_relaxed))
    return {};
  OnDevice on(options.device);
  int least = 0, greatest = 0;
  Status status = toStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                           "asking for the priorities of streams");
  for (cudaStream_t &stream : streams)
    if (status.ok() && !stream)
      status = toStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
                        "making the resident daemon's streams");
  haveStreams.store(status.ok(), std::memory_order_release);
  return status;
}

bool ResidentDaemon::areGone() const {
  return !haveStreams.load(std::memory_order_acquire) ||
         std::ranges::none_of(streams, [](cudaStream_t stream) {
           return cudaStreamQuery(stream) == cudaErrorNotReady;
         });
}

bool ResidentDaemon::awaitGone(std::chrono::milliseconds atMost) const {
  OnDevice on(options.device);
  Deadline deadline(atMost);
  while (!areGone()) {
    if (deadline.passed())
      return false;
    yieldProcessor();
  }
  return true;
}

Status ResidentDaemon::upload(void *to, const void *from, uint64_t bytes) {
  OnDevice on(options.device);
  std::lock_guard lock(copying);
  Status status = toStatus(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, copies),
                           "copying to the device");
  if (status.ok())
    status = copied.put(copies);
  if (!status.ok())
    return status;
  // A wait of CUDA could be for a kernel that stays.
  const cudaError_t state = pollDevice([&] { return copied.look(); }, kLeavePatience);
  if (state == cudaErrorNotReady)
    return {StatusCode::SystemError, "copying to the device: it does not get round to it"};
  return toStatus(state, "copying to the device");
}

// --- tenants and collectives ---

Status ResidentDaemon::attach(Tenant &tenant) {
  std::lock_guard lock(mutex);
  try {
    if (!keeper.joinable())
      keeper = Thread([this] { keep(); });
  } catch (const std::system_error &error) {
    return {StatusCode::SystemError, std::string("starting a thread: ") + error.what()};
  }
  tenants[&tenant] = false;
  return {};
}

bool ResidentDaemon::detach(Tenant &tenant) {
  std::unique_lock lock(mutex);
  auto found = tenants.find(&tenant);
  if (found == tenants.end())
    return true;
  found->second = true;
  const bool haveLeft = endTenant(tenant, lock);
  lock.unlock();
  std::lock_guard noCall(calling); // its thread is in none
  lock.lock();
  // Numbers of the tenant are others' once executors have come and gone.
  for (uint32_t number = 0; number < registered.size(); ++number)
    if (registered[number].tenant == &tenant) {
      registered[number] = {};
      freed.emplace_back(number, side->starts());
      numFreed.fetch_add(1, std::memory_order_release);
    }
  std::erase_if(badEnds, [&](const auto &end) { return end.second.first == &tenant; });
  tenants.erase(&tenant);
  return haveLeft;
}

/// The daemon's thread ends what is open. If it does not, as it is held up or executors get no
/// multiprocessor to leave from, it ends here for the tenant, and is withdrawn when they have left.
bool ResidentDaemon::endTenant(Tenant &tenant, std::unique_lock<Mutex> &lock) {
  const auto isIts = [&](const auto &entry) { return entry.second.tenant == &tenant; };
  for (Deadline deadline(kEndPatience); std::ranges::any_of(waiting, isIts);) {
    if (deadline.passed())
      break;
    changed.notify_all();
    changed.wait_for(lock, 1ms);
  }
  // If executors could not be made to leave in time, requests are left: they end all the same, and
  // their streams go on. They keep their places, since executors may still access the buffers.
  std::vector<std::pair<uint64_t, Callback>> calls;
  const Status outcome(StatusCode::Aborted, "the communicator is being destroyed");
  for (auto &[request, open] : waiting) {
    if (open.tenant != &tenant)
      continue;
    if (open.isGated && !open.isReleased)
      side->releaseStream(request);
    open.isReleased = open.isGated;
    numCallbacks -= open.callback != nullptr;
    tenant.ended(open.invocation, outcome, Clock::now() - open.since);
    calls.emplace_back(request, std::exchange(open.callback, {}));
    open.tenant = &gone;
  }
  lock.unlock();
  for (auto &[request, callback] : calls)
    if (callback)
      callback(request, outcome);
  lock.lock();
  return calls.empty();
}

/// Of a collective that is nobody's yet.
StatusOr<uint32_t> ResidentDaemon::takeNumber() {
  // Executors keep tables near them. A lookout may be there until a generation has come and gone;
  // what comes when none is there knows nothing of a number that was free before.
  const uint64_t freedBefore = numFreed.load(std::memory_order_acquire);
  OnDevice on(options.device);
  const bool isNobodyThere = isShortOfNumbers() && side->hasQuit() && areGone();
  std::lock_guard lock(mutex);
  if (registered.size() < options.maxCollectives) {
    registered.emplace_back();
    return static_cast<uint32_t>(registered.size() - 1);
  }
  const bool isOld = isNobodyThere && numFreed.load(std::memory_order_relaxed) == freedBefore;
  if (!freed.empty() && (freed.front().second + 1 < side->starts() || isOld)) {
    uint32_t number = freed.front().first;
    freed.pop_front();
    return number;
  }
  lackedAt.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  return Status(StatusCode::Again, "a resident daemon has room for " +
                                       std::to_string(options.maxCollectives) +
                                       " collectives of the same kind");
}

StatusOr<uint32_t> ResidentDaemon::add(Tenant &tenant, const DeviceCollective &device,
                                       const Words &words) {
  if (device.numBlocks > kMaxTasks)
    return Status(StatusCode::InvalidArgument,
                  "a resident daemon executes collectives of at most " + std::to_string(kMaxTasks) +
                      " thread blocks a rank, not " + std::to_string(device.numBlocks));
  if (Status made = ensureStreams(); !made.ok())
    return made;
  auto number = takeNumber();
  if (!number.ok())
    return number;
  // Addresses are resolved here, once: executors look up nothing.
  ResidentCollective collective;
  collective.device = device;
  collective.rank = device.rank;
  collective.numRanks = device.numRanks;
  collective.done = words.done ? words.done : &collectives[*number].doneWord;
  collective.announced = &recordIn(device.arenas[device.rank], device.slot, 0)->announced;
  collective.announcedStride = sizeof(RankRecord);
  collective.counts = words.counts;
  collective.parts = words.parts;
  for (uint32_t r = 0; r < device.numRanks; ++r)
    collective.announcedAt[r] = &recordIn(device.arenas[r], device.slot, device.rank)->announced;
  Status status = upload(&collectives[*number], &collective, sizeof collective);
  std::lock_guard lock(mutex);
  if (!status.ok()) {
    freed.emplace_back(*number, 0);
    return status;
  }
  registered[*number] = {&tenant, device.numBlocks, homeOf(device.slot)};
  return number;
}

void ResidentDaemon::remove(uint32_t collective) {
  std::lock_guard lock(mutex);
  registered[collective] = {};
  freed.emplace_back(collective, side->starts());
  numFreed.fetch_add(1, std::memory_order_release);
}

bool ResidentDaemon::wantsNumbers() const {
  std::lock_guard lock(mutex);
  return isShortOfNumbers() && freed.empty();
}

// --- requests ---

void ResidentDaemon::launch(uint64_t generation, bool beside) {
  // A lookout still occupies the stream of its generation.
  if (beside)
    current.store(1 - current.load(std::memory_order_relaxed), std::memory_order_relaxed);
  OnDevice on(options.device);
  ExecutorArguments arguments;
  arguments.board = board;
  arguments.page = page;
  arguments.generation = generation;
  arguments.settings = options.settings;
  arguments.marks = isMarking.load(std::memory_order_acquire) ? marks : nullptr;
  Status status = toStatus(static_cast<cudaError_t>(options.kernel->launch(
                               arguments, streams[current.load(std::memory_order_relaxed)])),
                           "launching the resident daemon");
  if (status.ok())
    return;
  // Nothing will be executed any more: all that is open ends with this failure.
  side->abort();
  std::lock_guard lock(mutex);
  if (failed.ok())
    failed = status;
  changed.notify_all();
}

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

Status ResidentDaemon::waitForQuit(std::chrono::milliseconds atMost) const {
  Deadline deadline(atMost);
  OnDevice on(options.device);
  while (!side->hasQuit() || !areGone()) {
    if (deadline.passed())
      return {StatusCode::Timeout, "the resident daemon has not left"};
    yieldProcessor();
  }
  return {};
}

Status ResidentDaemon::failure() const {
  std::lock_guard lock(mutex);
  return failed;
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

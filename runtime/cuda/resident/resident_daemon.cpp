// The host's side of a resident daemon: memory and launches, tenants and their numbers.
#include "runtime/cuda/resident/resident_daemon.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/adaptive_mutex.h"
#include "runtime/sync/deadline.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>
#include <type_traits>

namespace occl::cuda::resident {

namespace {

using namespace std::chrono_literals;

/// For a kernel at its end, and for copies.
constexpr auto kLeavePatience = 5000ms;
/// Longer than its thread gives executors to leave (keeping.cpp).
constexpr auto kEndPatience = 12000ms;

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

// --- the kernel ---

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

} // namespace occl::cuda::resident

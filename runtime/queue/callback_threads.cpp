// Threads for callbacks that may block: more while some do, fewer after a quiet time.
#include "runtime/queue/callback_threads.h"


#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace occl::daemon {

CallbackThreads::~CallbackThreads() {
  Lock lock(mutex);
  // Threads run the jobs that are left before they go.
  stopping = true;
  isWanted.store(true, std::memory_order_relaxed);
  changed.notify_all();
  changed.wait(lock, [this] { return threads.empty(); });
  joinEnded(lock);
}

Status CallbackThreads::ensureThread() {
  Lock lock(mutex);
  return threads.empty() ? addThread() : Status();
}

void CallbackThreads::add(const CallbackJob &job) {
  Lock lock(mutex);
  jobs.push_back(job);
  if (numIdle() == 0)
    tryAddThread();
  // The first job is for who looks out; somebody else has to look after the next one. All are told:
  // they wait for different things, and one that waits for a job to end might take the only call.
  if (isLookedOut && jobs.size() == 1)
    isWanted.store(true, std::memory_order_relaxed);
  else
    changed.notify_all();
}

uint32_t CallbackThreads::numThreads() {
  Lock lock(mutex);
  return static_cast<uint32_t>(threads.size());
}

Status CallbackThreads::addThread() {
  if (threads.size() >= mostThreads)
    return {StatusCode::SystemError, "all threads for callbacks are busy"};
  Threads one(1);
  try {
    one.front() = Thread([this, self = one.begin()] { loop(self); });
  } catch (const std::system_error &error) {
    return systemError("starting a thread for callbacks", error.code().value());
  }
  threads.splice(threads.end(), one); // iterators stay good
  return {};
}

/// Without it jobs wait for the threads that are there.
void CallbackThreads::tryAddThread() {
  try {
    (void)addThread();
  } catch (const std::bad_alloc &) { // neither for the thread, nor to say so
  }
}

void CallbackThreads::joinEnded(Lock &lock) {
  Threads leaving;
  leaving.splice(leaving.end(), ended);
  lock.unlock();
  for (Thread &thread : leaving)
    thread.join(); // it is on its last instructions
  lock.lock();
}

/// Returns when there may be something to do, or after kLookOut.
void CallbackThreads::lookOut(Lock &lock) {
  isLookedOut = true;
  isWanted.store(false, std::memory_order_relaxed);
  lock.unlock();
  yieldProcessor(); // mostly who gets the processor now adds the next job
  for (const auto end = SteadyClock::now() + kLookOut;
       !isWanted.load(std::memory_order_relaxed) && SteadyClock::now() < end;)
    yieldProcessor();
  lock.lock();
  isLookedOut = false;
}

bool CallbackThreads::awaitJob(Lock &lock) {
  std::optional<SteadyClock::time_point> idleSince;
  for (;;) {
    // The next job begins when the last one has returned, or seems to block.
    if (!jobs.empty() && numActive == 0)
      return true;
    auto now = SteadyClock::now();
    if (jobs.empty()) {
      idleSince = idleSince.value_or(now);
      // One idle thread stays as a spare.
      bool isLeftOver = numIdle() > 1 && now - *idleSince >= kSpare;
      if (stopping || isLeftOver)
        return false;
      changed.wait_for(lock, kSpare, [this] { return stopping || !jobs.empty(); });
      continue;
    }
    if (now - lastBegin >= kPatience) {
      // Those that are at it seem to be blocked.
      ++round;
      numActive = 0;
      return true;
    }
    // Who has run a job begins the next one: nobody tells that there is none any more.
    changed.wait_for(lock, lastBegin + kPatience - now,
                     [this] { return jobs.empty() ? stopping : numActive == 0; });
  }
}

void CallbackThreads::runFirst(Lock &lock) {
  const CallbackJob job = jobs.front();
  jobs.pop_front();
  const uint64_t ownRound = round;
  ++numRunning;
  ++numActive;
  lastBegin = SteadyClock::now();
  if (!jobs.empty() && numIdle() == 0)
    tryAddThread(); // somebody has to look after the next one, too
  lock.unlock();
  job.run(job.owner, job.entry);
  lock.lock();
  --numRunning;
  // A round that was given up is not counted: its jobs seemed to block.
  if (ownRound == round)
    --numActive;
}

void CallbackThreads::loop(Threads::iterator self) {
  Lock lock(mutex);
  // A new thread joins those that have ended since.
  joinEnded(lock);
  while (awaitJob(lock)) {
    runFirst(lock);
    if (jobs.empty() && !stopping && !isLookedOut)
      lookOut(lock);
  }
  // The list keeps the thread until somebody joins it.
  ended.splice(ended.end(), threads, self);
  changed.notify_all();
}

} // namespace occl::daemon

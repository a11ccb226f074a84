#include "helper.h"

#include <pthread.h>

#include <algorithm>
#include <thread>

namespace occl_torch {

namespace {
constexpr unsigned kMaxWorkers = 64;
constexpr auto kStuckAfter = std::chrono::milliseconds(10);
constexpr auto kSweepPeriod = std::chrono::milliseconds(100);

// Never destroyed: its threads end with the process. A child made by fork() has none of them, and
// mutexes in whatever state they were: it takes another helper.
Helper *helper = nullptr;
std::once_flag once;
} // namespace

Helper &Helper::get() {
  std::call_once(once, [] {
    helper = new Helper;
    pthread_atfork(nullptr, nullptr, [] { helper = new Helper; });
  });
  return *helper;
}

void Helper::run(std::function<void()> task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (tasks_.empty())
    lastTaken_ = Clock::now();
  tasks_.push_back(std::move(task));
  if (idle_ >= tasks_.size())
    tasksThere_.notify_one();
  else if (workers_ == 0) {
    ++workers_;
    std::thread([this] { work(); }).detach();
  }
  startTicking();
}

void Helper::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    ++idle_;
    tasksThere_.wait(lock, [this] { return !tasks_.empty(); });
    --idle_;
    lastTaken_ = Clock::now();
    {
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
    lock.lock();
  }
}

// A task may wait for what a later one does: then somebody else has to execute that.
void Helper::addWorkerIfStuck() {
  if (tasks_.empty() || workers_ >= kMaxWorkers || Clock::now() - lastTaken_ < kStuckAfter)
    return;
  ++workers_;
  lastTaken_ = Clock::now();
  std::thread([this] { work(); }).detach();
}

void Helper::watch(std::weak_ptr<Ticking> object) {
  std::lock_guard<std::mutex> lock(mutex_);
  watched_.push_back({std::move(object), Clock::now() + std::chrono::milliseconds(1)});
  startTicking();
  ticks_.notify_one();
}

void Helper::startTicking() {
  if (ticking_)
    return;
  ticking_ = true;
  std::thread([this] { tickForEver(); }).detach();
}

void Helper::tickForEver() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    auto next = Clock::now() + kSweepPeriod;
    for (const Watched &watched : watched_)
      next = std::min(next, watched.next);
    if (!tasks_.empty())
      next = std::min(next, Clock::now() + kStuckAfter);
    ticks_.wait_until(lock, next);
    addWorkerIfStuck();
    std::vector<Watched> due;
    for (Watched &watched : watched_)
      if (watched.next <= Clock::now())
        due.push_back(std::move(watched));
    watched_.erase(std::remove_if(watched_.begin(), watched_.end(),
                                  [](const Watched &w) {
                                    return w.next <= Clock::now() && w.object.expired();
                                  }),
                   watched_.end());
    lock.unlock();
    for (Watched &watched : due) {
      auto object = watched.object.lock();
      const unsigned again = object ? object->tick() : 0;
      if (again == 0)
        watched.object.reset();
      watched.next = Clock::now() + std::chrono::milliseconds(again);
    }
    sweep();
    lock.lock();
    for (Watched &watched : due)
      if (!watched.object.expired())
        watched_.push_back(std::move(watched));
  }
}

void Helper::release(std::shared_ptr<void> object) {
  std::lock_guard<std::mutex> lock(garbageMutex_);
  garbage_.push_back(std::move(object));
}

void Helper::sweep() {
  std::vector<std::shared_ptr<void>> garbage;
  {
    std::lock_guard<std::mutex> lock(garbageMutex_);
    garbage.swap(garbage_);
  }
}

} // namespace occl_torch

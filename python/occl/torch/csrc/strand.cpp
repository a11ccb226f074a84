#include "strand.h"

namespace occl_torch {

void Strand::add(Step step) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    steps_.push_back(std::move(step));
  }
  drain();
}

bool Strand::empty() {
  std::lock_guard<std::mutex> lock(mutex_);
  return steps_.empty();
}

void Strand::drain() {
  bool watch = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (draining_) {
      again_ = true; // whoever drains may have found no room before there was some
      return;
    }
    draining_ = true;
    while (!steps_.empty()) {
      Step step = std::move(steps_.front());
      steps_.pop_front();
      again_ = false;
      lock.unlock();
      const bool done = step();
      if (done)
        step = nullptr; // what it holds is released without the mutex
      lock.lock();
      if (done)
        continue;
      steps_.push_front(std::move(step));
      if (!again_)
        break;
    }
    draining_ = false;
    watch = !steps_.empty() && !watched_;
    watched_ = watched_ || watch;
  }
  if (watch)
    Helper::get().watch(weak_from_this());
}

unsigned Strand::tick() {
  drain();
  std::lock_guard<std::mutex> lock(mutex_);
  watched_ = !steps_.empty();
  return watched_ ? 1 : 0;
}

} // namespace occl_torch

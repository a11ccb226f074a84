// Steps that are done one after the other, in the order in which they were added, by whoever comes.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "helper.h"

namespace occl_torch {

/// Nobody ever waits: who adds a step does it and those before it, unless another thread is at
/// that, which then does this one, too. So steps may call OCCL, whose callbacks add steps. A step
/// that finds no room returns false; it and those behind it are tried again a millisecond later,
/// or when somebody drains. Thread-safe; owned by shared_ptr.
class Strand : public Ticking, public std::enable_shared_from_this<Strand> {
public:
  using Step = std::function<bool()>;

  void add(Step step);
  void drain();
  bool empty();
  unsigned tick() override;

private:
  std::mutex mutex_;
  std::deque<Step> steps_;
  bool draining_ = false, again_ = false, watched_ = false;
};

} // namespace occl_torch

// What the exit of a process waits for: CUDA is there no more afterwards, and threads that use it
// then crash.
#pragma once

#include <chrono>

namespace occl::nccl {

/// As long as there is one the process does not exit, unless more than its time passes. Of a thread
/// in the background, from before it starts until it uses CUDA no more. Thread safety: any.
class HoldsExit {
public:
  explicit HoldsExit(std::chrono::milliseconds time);
  ~HoldsExit();
  HoldsExit(const HoldsExit &) = delete;
  HoldsExit &operator=(const HoldsExit &) = delete;

private:
  const std::chrono::milliseconds time;
};

} // namespace occl::nccl

// Streams without CUDA: each is a thread that executes what it is given, one after the other.
// Programs have no such streams, only NULL, with which calls return when they have ended; tests
// make them.
#pragma once

#include "nccl/nccl_abi.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace occl::nccl {

/// Happens once.
class HostEvent {
public:
  void happen();
  bool hasHappened();
  void await();

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool happened = false;
};

/// Thread safety: any. The thread starts with the first task, is never joined, and ends some time
/// after the last shared_ptr has gone and all tasks are done.
class HostStream {
public:
  static std::shared_ptr<HostStream> make();
  ~HostStream();
  HostStream(const HostStream &) = delete;
  HostStream &operator=(const HostStream &) = delete;

  /// What a program passes as stream.
  cudaStream_t handle() { return reinterpret_cast<cudaStream_t>(this); }
  /// Null if there is no such stream.
  static std::shared_ptr<HostStream> find(cudaStream_t handle);

  void push(std::function<void()> task);
  /// Happens when all that was pushed before has been done.
  std::shared_ptr<HostEvent> record();
  /// What is pushed from here on begins after the event.
  void waitFor(std::shared_ptr<HostEvent> event);
  /// Returns when all that was pushed has been done.
  void synchronize();

private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> tasks;
    bool isStarted = false, isClosed = false;
  };

  HostStream() : queue(std::make_shared<Queue>()) {}
  static void execute(const std::shared_ptr<Queue> &queue);

  const std::shared_ptr<Queue> queue;
};

} // namespace occl::nccl

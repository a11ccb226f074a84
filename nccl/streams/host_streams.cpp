#include "nccl/streams/host_streams.h"

#include "nccl/base/per_process.h"
#include "nccl/base/threads.h"

#include <map>

namespace occl::nccl {

namespace {

struct LiveStreams {
  std::mutex mutex;
  std::map<cudaStream_t, std::weak_ptr<HostStream>> streams;
};

constinit PerProcess<LiveStreams> live;

} // namespace

void HostEvent::happen() {
  std::lock_guard lock(mutex);
  happened = true;
  changed.notify_all();
}

bool HostEvent::hasHappened() {
  std::lock_guard lock(mutex);
  return happened;
}

void HostEvent::await() {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return happened; });
}

std::shared_ptr<HostStream> HostStream::make() {
  std::shared_ptr<HostStream> stream(new HostStream);
  std::lock_guard lock(live.get().mutex);
  live.get().streams.emplace(stream->handle(), stream);
  return stream;
}

HostStream::~HostStream() {
  // First out of the list of those alive, so that a call cannot find it any more; then the thread
  // is told to end when its tasks are done.
  {
    std::lock_guard lock(live.get().mutex);
    live.get().streams.erase(handle());
  }
  std::lock_guard lock(queue->mutex);
  queue->isClosed = true;
  queue->changed.notify_all();
}

std::shared_ptr<HostStream> HostStream::find(cudaStream_t handle) {
  std::lock_guard lock(live.get().mutex);
  auto found = live.get().streams.find(handle);
  return found == live.get().streams.end() ? nullptr : found->second.lock();
}

void HostStream::push(std::function<void()> task) {
  std::lock_guard lock(queue->mutex);
  // The thread begins with the first task: most communicators of a program have few streams that
  // are used.
  if (!queue->isStarted) {
    startThread([queue = queue] { execute(queue); });
    queue->isStarted = true;
  }
  queue->tasks.push_back(std::move(task));
  queue->changed.notify_all();
}

void HostStream::execute(const std::shared_ptr<Queue> &queue) {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(queue->mutex);
      queue->changed.wait(lock, [&] { return !queue->tasks.empty() || queue->isClosed; });
      // Closed and empty: whatever was put in has been executed, as CUDA does when a stream is
      // destroyed.
      if (queue->tasks.empty())
        return;
      task = std::move(queue->tasks.front());
      queue->tasks.pop_front();
    }
    // Without the lock, since a task may put others into the same stream.
    task();
  }
}

std::shared_ptr<HostEvent> HostStream::record() {
  auto event = std::make_shared<HostEvent>();
  push([event] { event->happen(); });
  return event;
}

void HostStream::waitFor(std::shared_ptr<HostEvent> event) {
  push([event = std::move(event)] { event->await(); });
}

void HostStream::synchronize() { record()->await(); }

} // namespace occl::nccl

#include "work.h"

#include <c10/core/StreamGuard.h>

#include <thread>

#include "../signals.h"

namespace occl_torch {

void DevicePart::endWith(const c10::Stream &stream, bool captured) {
  stream_ = stream;
  captured_ = captured;
  mark_ = markOf(stream);
}

void DevicePart::ended(std::exception_ptr error) {
  std::lock_guard<std::mutex> lock(mutex_);
  error_ = error;
  if (error || !more_)
    done_ = true;
}

bool DevicePart::isComplete() {
  // A node of a graph is waited for where the graph is replayed.
  if (done_ || captured_)
    return true;
  if (mark_ && mark_->query())
    done_ = !comm_->failed();
  return done_ || error();
}

std::exception_ptr DevicePart::error() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (error_ || done_)
      return error_;
  }
  if (!comm_->failed())
    return nullptr;
  auto why = comm_->failure(name_, occlAborted);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!error_ && !done_)
    error_ = why;
  return error_;
}

void DevicePart::holdBack(const c10::Stream &stream) {
  if (mark_) {
    // What a graph has is before all that follows its replay.
    if (stream != stream_ && (!captured_ || isCaptured(stream)))
      mark_->block(stream);
    return;
  }
  Communicator::Use use(*comm_);
  const occlResult_t result =
      use ? occl().occlStreamWait(use.handle(), request_, handleOf(stream)) : occlAborted;
  if (result != occlSuccess && !(done_ && !error()))
    std::rethrow_exception(comm_->failure(std::string(name_) + ": wait", result));
}

bool DeviceWork::isCompleted() {
  for (const auto &part : parts_)
    if (!part->isComplete())
      return false;
  return true;
}

bool DeviceWork::isSuccess() const {
  for (const auto &part : parts_)
    if (!part->isComplete() || part->error())
      return false;
  return true;
}

std::exception_ptr DeviceWork::exception() const {
  for (const auto &part : parts_)
    if (auto error = part->error())
      return error;
  return nullptr;
}

void DeviceWork::synchronize() {
  const c10::Stream stream = currentStream(side_.device());
  for (const auto &part : parts_)
    part->holdBack(stream);
}

bool DeviceWork::wait(std::chrono::milliseconds timeout) {
  if (auto error = exception())
    std::rethrow_exception(error);
  synchronize();
  if (timeout > kNoTimeout)
    waitOnHost(timeout);
  return true;
}

void DeviceWork::waitOnHost(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + boundedOf(timeout);
  while (!isCompleted()) {
    checkSignals();
    if (std::chrono::steady_clock::now() >= deadline)
      C10_THROW_ERROR(DistBackendError, "occl: " + name_ + ": not complete after wait(timeout=" +
                                            std::to_string(timeout.count()) + " ms); it goes on. " +
                                            parts_[0]->communicator().report());
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (auto error = exception())
    std::rethrow_exception(error);
}

void DeviceWork::abort() {
  parts_[0]->communicator().abort("Work.abort() was called for " + name_);
}

// Complete at once, for whoever waits for it in a stream: PyTorch's futures of devices are.
c10::intrusive_ptr<c10::ivalue::Future> DeviceWork::getFuture() {
  std::lock_guard<std::mutex> lock(futureMutex_);
  if (future_)
    return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                     std::vector<c10::Device>{side_.device()});
  if (auto error = exception()) {
    future_->setError(error);
    return future_;
  }
  const bool inOne = parts_.size() == 1 && parts_[0]->isInStream();
  const c10::Stream stream = inOne ? parts_[0]->stream() : side_;
  c10::StreamGuard guard(stream);
  if (!inOne)
    for (const auto &part : parts_)
      part->holdBack(stream);
  future_->markCompleted(c10::IValue(outputs_));
  return future_;
}

} // namespace occl_torch

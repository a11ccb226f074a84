// What an operation on CUDA tensors is to PyTorch: streams wait for it, and the host need not.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "../communicator.h"
#include "streams.h"

namespace occl_torch {

/// A request that the resident daemon executes, or what a stream has up to a mark. Thread-safe
/// once it has begun.
class DevicePart {
public:
  DevicePart(std::shared_ptr<Communicator> comm, const char *name, c10::Stream stream)
      : comm_(std::move(comm)), name_(name), stream_(stream) {}

  // Before others see the part: its request, and before that is started, that more follows it.
  void setRequest(occlRequest_t request) { request_ = request; }
  void moreFollows() { more_ = true; }
  /// It is over with what `stream` has so far.
  void endWith(const c10::Stream &stream, bool captured);

  /// The request has ended, by an error unless it is null.
  void ended(std::exception_ptr error);
  /// Never waits.
  bool isComplete();
  /// Why it failed, or null: also if it has not ended.
  std::exception_ptr error();
  /// What follows in the stream comes after it. Throws what occlStreamWait says.
  void holdBack(const c10::Stream &stream);
  /// Where it was called, or where its last kernels are.
  const c10::Stream &stream() const { return stream_; }
  bool isInStream() const { return mark_ != nullptr; }
  Communicator &communicator() { return *comm_; }

private:
  const std::shared_ptr<Communicator> comm_;
  const char *const name_;
  c10::Stream stream_;
  occlRequest_t request_ = 0; // 0: none
  std::shared_ptr<c10::Event> mark_;
  bool captured_ = false, more_ = false;
  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// Complete with all of its parts. wait() makes the current stream wait, and the host only if it is
/// given a time. Thread-safe.
class DeviceWork : public c10d::Work {
public:
  using Parts = std::vector<std::shared_ptr<DevicePart>>;

  /// `side`: a stream for futures, which waits for the parts. One part at least.
  DeviceWork(int rank, c10d::OpType type, const char *name, std::vector<at::Tensor> outputs,
             Parts parts, c10::Stream side, uint64_t number)
      : Work(rank, type), name_(name), outputs_(std::move(outputs)), parts_(std::move(parts)),
        side_(side), number_(number) {}

  const Parts &parts() const { return parts_; }
  const c10::Stream &side() const { return side_; }
  /// Before others see the work: what it writes is of no matter on this rank.
  void dropResult() { outputs_.clear(); }

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override;
  // Not in all versions of PyTorch.
  void blockCurrentStream() { synchronize(); }
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return number_; }

private:
  void waitOnHost(std::chrono::milliseconds timeout);

  const std::string name_;
  std::vector<at::Tensor> outputs_;
  const Parts parts_;
  const c10::Stream side_;
  const uint64_t number_;
  std::mutex futureMutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

using DeviceWorkPtr = c10::intrusive_ptr<DeviceWork>;

} // namespace occl_torch

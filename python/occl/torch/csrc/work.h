// What an operation is to PyTorch: waited for, asked, or followed by a future.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "communicator.h"
#include "strand.h"

namespace occl_torch {

/// Made of parts, which are what OCCL executes. Complete when all of them have ended, and the
/// step after them is done. Thread-safe.
class OcclWork : public c10d::Work {
public:
  /// `name`: as torch.distributed's function, for errors and profiles. `inputs` are held until the
  /// work is complete, `outputs` as long as it exists: they are its result.
  OcclWork(std::shared_ptr<Communicator> comm, std::shared_ptr<Strand> strand, int rank,
           c10d::OpType type, const char *name, std::vector<at::Tensor> inputs,
           std::vector<at::Tensor> outputs, unsigned parts = 1);

  const std::string &name() const { return name_; }
  /// Before anything of it starts: what is to be done once all parts have ended well, on a thread
  /// where it may take long.
  void afterwards(std::function<void()> step) { afterwards_ = std::move(step); }
  /// Before anything of it starts: memory that its parts use.
  void hold(at::Tensor tensor) { inputs_.push_back(std::move(tensor)); }
  /// More parts, before the last one has ended.
  void addParts(unsigned parts) { parts_ += parts; }
  /// The request to look after while waiting.
  void setRequest(occlRequest_t request) { request_ = request; }
  /// A part has ended, by an error unless it is null. May be called in callbacks.
  void partEnded(std::exception_ptr error = nullptr);
  void setSource(int rank) { source_ = rank; }
  void setSequenceNumber(uint64_t number) { number_ = number; }
  /// Calls `observer` once with the error, if any, when the work is complete, maybe at once.
  void whenComplete(std::function<void(std::exception_ptr)> observer);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  void synchronize() override {}
  bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  uint64_t getSequencenumber() const override { return number_; }

private:
  void complete(std::exception_ptr error);
  void advance();
  bool spin();
  void fulfil();
  c10::intrusive_ptr<c10::ivalue::Future> future(c10::intrusive_ptr<c10::ivalue::Future> &member,
                                                 c10::TypePtr type);

  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<Strand> strand_;
  std::string name_;
  std::vector<at::Tensor> inputs_;
  const std::vector<at::Tensor> outputs_;
  std::atomic<unsigned> parts_;
  std::atomic<bool> done_{false};
  std::atomic<occlRequest_t> request_{0};
  std::function<void()> afterwards_;
  // The following are under the mutex of the base class.
  std::exception_ptr firstError_;
  c10::intrusive_ptr<c10::ivalue::Future> future_, resultFuture_;
  std::vector<std::function<void(std::exception_ptr)>> observers_;
  bool futureFulfilled_ = false, resultFutureFulfilled_ = false;
  std::atomic<int> source_{-1};
  uint64_t number_ = 0;
};

using WorkPtr = c10::intrusive_ptr<OcclWork>;

/// The user pointer of a callback: what has to live until it is called.
struct Part {
  WorkPtr work;
  std::shared_ptr<Communicator> comm;
  std::vector<uint8_t> bytes; // read and written by OCCL
};
/// The callback: the part of the work has ended.
void partCallback(occlRequest_t, occlResult_t result, void *part);

} // namespace occl_torch

// What a process group is for CUDA tensors: a communicator on one device.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <optional>

#include <torch/csrc/distributed/c10d/Types.hpp>

#include "../helper.h"
#include "../types.h"
#include "work.h"

namespace occl_torch {

/// How a call is made.
struct DeviceHow {
  c10d::OpType type;
  const char *name; // a literal
  bool async;       // by the resident daemon, else in the current stream
  uint32_t timeoutMs;
};

/// A piece of a tensor that goes to, or comes from, a rank.
struct DevicePiece {
  int peer;
  at::Tensor tensor;
};

/// Ranks come together in the background, so that no order in which they use groups can be a wrong
/// one: the first CUDA tensor of a process has all its groups, and those made later, join on that
/// device, while callers wait for the group that they use alone. Calls are in the order in which
/// they are made. Thread-safe; owned by shared_ptr.
class DeviceGroup : public Ticking, public std::enable_shared_from_this<DeviceGroup> {
public:
  /// `name` as of Communicator::join; `timeoutMs` of its calls and of joining. `refused`: why there
  /// is no such group, which is said when it is used; "" if there is.
  static std::shared_ptr<DeviceGroup> make(int rank, int size, std::string name, uint32_t timeoutMs,
                                           std::string refused);

  /// Of the device from now on. Waits for the other ranks. Throws DistBackendError, or ValueError
  /// if the process group is of another device.
  void connect(c10::Device device, const char *operation);

  // The tensors are held until the work is complete. Errors that are known at once are thrown:
  // DistBackendError with OCCL's text.
  DeviceWorkPtr reduce(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                       const at::Tensor &output, uint64_t count, const c10d::ReduceOp &op,
                       int64_t root);
  /// `count`: elements of one part.
  DeviceWorkPtr copy(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                     const at::Tensor &output, uint64_t count, int64_t root);
  /// The same; then kernels of PyTorch, which read the output and write the results.
  DeviceWorkPtr copyAnd(const DeviceHow &how, occlKind_t kind, const at::Tensor &input,
                        const at::Tensor &output, uint64_t count, int64_t root,
                        std::vector<at::Tensor> results, std::function<void()> then);
  /// Of a collective; matched by pair, in the order of calls.
  DeviceWorkPtr transfer(const DeviceHow &how, const std::vector<DevicePiece> &sends,
                         const std::vector<DevicePiece> &receives, std::vector<at::Tensor> results);
  /// One send, or one receive; its stream is that of the peer and the direction.
  DeviceWorkPtr message(const DeviceHow &how, const DevicePiece &piece, bool isSend);
  /// One work for several. Throws ValueError unless all are of this group's device.
  DeviceWorkPtr combine(const std::vector<c10::intrusive_ptr<c10d::Work>> &works);
  /// The host waits until the current stream of the group's device, if it has one, is done. Throws
  /// why the group has failed, if it has.
  void drainCurrentStream();

  void abort(const std::string &why);
  void close();
  /// Why it failed, "" if it did not.
  bool failed() { return !whyFailed().empty(); }
  std::string whyFailed();
  unsigned tick() override;

private:
  struct Job;
  struct Started;
  DeviceGroup(int rank, int size, std::string name, uint32_t timeoutMs, std::string refused)
      : rank_(rank), size_(size), name_(std::move(name)), timeoutMs_(timeoutMs),
        refused_(std::move(refused)) {}
  void begin(c10::DeviceIndex device);
  void join(c10::DeviceIndex device);
  DeviceWorkPtr execute(Job job);
  void call(Job &job, DevicePart &part, const c10::Stream &stream);
  void start(Job &job, const std::shared_ptr<DevicePart> &part, const c10::Stream &stream);
  void transferIn(const c10::Stream &stream, const char *name,
                  const std::vector<DevicePiece> &sends, const std::vector<DevicePiece> &receives);
  DeviceWorkPtr workOf(const DeviceHow &how, std::vector<at::Tensor> outputs,
                       std::shared_ptr<DevicePart> part);
  c10::Stream streamFor(int purpose);

  const int rank_, size_;
  const std::string name_;
  const uint32_t timeoutMs_;
  const std::string refused_;
  std::mutex calls_; // orders them
  uint64_t next_ = 0;
  std::mutex mutex_; // of all that follows
  std::condition_variable joined_;
  std::optional<c10::Device> device_;
  std::shared_ptr<Communicator> comm_;
  std::string whyNot_; // it cannot be joined
  std::string reason_; // of its end by this rank
  bool closed_ = false, told_ = false;
  uint64_t number_ = 0;
  std::map<int, c10::Stream> streams_;
};

} // namespace occl_torch

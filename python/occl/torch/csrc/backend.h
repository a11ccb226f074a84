// The c10d backend `occl`: a process group is a communicator of OCCL, and one for its messages.
#pragma once

#include <map>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

#include "device/group.h"
#include "meeting.h"
#include "messages.h"
#include "types.h"

namespace c10d {
enum class ErrorType; // that older versions of PyTorch do not have
}

namespace occl_torch {

using c10d::Work;
using Tensors = std::vector<at::Tensor>;

struct GroupOptions : c10d::Backend::Options {
  explicit GroupOptions(std::chrono::milliseconds limit = kBackendDefaultTimeout)
      : c10d::Backend::Options("occl", limit) {}
  // Overrides the base's where PyTorch has one.
  c10::intrusive_ptr<c10d::Backend::Options> clone() const {
    return c10::make_intrusive<GroupOptions>(*this);
  }
};

/// The name of a group to be made, as far as PyTorch's options have it.
template <typename Options> auto groupName(const Options &options) {
  if constexpr (requires { options.group_name; })
    return options.group_name;
  else
    return std::string();
}

/// Whether the caller will not wait at once, as far as PyTorch's options have it.
template <typename Options> bool isAsync(const Options &options) {
  if constexpr (requires { options.asyncOp; })
    return options.asyncOp;
  else
    return true;
}

/// Operations start and return; their order is that of the calls, on all ranks, as with other
/// backends. Thread-safe where threads order their calls.
class Backend : public c10d::Backend {
public:
  /// Waits for the other ranks, at most the timeout of the options.
  Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
          c10::intrusive_ptr<GroupOptions> options);
  /// Of ranks that meet so; `comm`: their communicator for collectives, null if it is to be made.
  Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
          c10::intrusive_ptr<GroupOptions> options, std::shared_ptr<Communicator> comm,
          const Meeting &meeting);
  ~Backend() override;

  const std::string getBackendName() const override { return "occl"; }
  void startCoalescing() override;
  c10::intrusive_ptr<Work> endCoalescing() override;
  bool supportsSplitting() const override { return true; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return number_; }
  // Virtual functions that not all versions of PyTorch have: so there is no `override`.
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() { return options_; }
  // Batches of sends and receives stay works of their own, each of which ends by itself.
  bool supportsCoalescing() const { return false; }
  // Of a group that is bound to a device: it is connected there, which waits for the other ranks.
  void eagerConnectSingleDevice(at::Device device);
  c10::intrusive_ptr<c10d::Backend>
  split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
        const c10::intrusive_ptr<c10d::Backend::Options> &options);
  bool supportsShrinking() const { return true; }
  /// A group of the ranks that are left without `excluded`, which do not call. The others do, and
  /// get it in their order. Flag 1: what is in flight is aborted first, on all ranks. Throws
  /// DistBackendError on all if a further rank has died, or does not call within the timeout.
  c10::intrusive_ptr<c10d::Backend>
  shrink(const std::vector<int64_t> &excluded, int flags,
         const c10::intrusive_ptr<c10d::Backend::Options> &options);
  void setTimeout(std::chrono::milliseconds timeout);
  c10d::ErrorType getError();
  /// Why it has failed, "" if it has not as far as this rank knows. CUDA's streams go on after a
  /// failure, and so does a program that does not call the group again.
  std::string failure();
  void abort();
  void shutdown();

  c10::intrusive_ptr<Work> broadcast(Tensors &, const c10d::BroadcastOptions &) override;
  c10::intrusive_ptr<Work> allreduce(Tensors &, const c10d::AllreduceOptions &) override;
  c10::intrusive_ptr<Work> allreduce_coalesced(Tensors &,
                                               const c10d::AllreduceCoalescedOptions &) override;
  c10::intrusive_ptr<Work> reduce(Tensors &, const c10d::ReduceOptions &) override;
  c10::intrusive_ptr<Work> allgather(std::vector<Tensors> &, Tensors &,
                                     const c10d::AllgatherOptions &) override;
  c10::intrusive_ptr<Work> _allgather_base(at::Tensor &, at::Tensor &,
                                           const c10d::AllgatherOptions &) override;
  c10::intrusive_ptr<Work> allgather_coalesced(std::vector<Tensors> &, Tensors &,
                                               const c10d::AllgatherOptions &) override;
  c10::intrusive_ptr<Work> allgather_into_tensor_coalesced(Tensors &, Tensors &,
                                                           const c10d::AllgatherOptions &) override;
  c10::intrusive_ptr<Work> gather(std::vector<Tensors> &, Tensors &,
                                  const c10d::GatherOptions &) override;
  // Not in all versions either.
  c10::intrusive_ptr<Work> gather_single(at::Tensor &, at::Tensor &, const c10d::GatherOptions &);
  c10::intrusive_ptr<Work> scatter(Tensors &, std::vector<Tensors> &,
                                   const c10d::ScatterOptions &) override;
  c10::intrusive_ptr<Work> reduce_scatter(Tensors &, std::vector<Tensors> &,
                                          const c10d::ReduceScatterOptions &) override;
  c10::intrusive_ptr<Work> _reduce_scatter_base(at::Tensor &, at::Tensor &,
                                                const c10d::ReduceScatterOptions &) override;
  c10::intrusive_ptr<Work>
  reduce_scatter_tensor_coalesced(Tensors &, Tensors &,
                                  const c10d::ReduceScatterOptions &) override;
  c10::intrusive_ptr<Work> alltoall_base(at::Tensor &, at::Tensor &, std::vector<int64_t> &,
                                         std::vector<int64_t> &,
                                         const c10d::AllToAllOptions &) override;
  c10::intrusive_ptr<Work> alltoall(Tensors &, Tensors &, const c10d::AllToAllOptions &) override;
  c10::intrusive_ptr<Work> barrier(const c10d::BarrierOptions &) override;
  void monitoredBarrier(const c10d::BarrierOptions &, bool waitAll) override;
  c10::intrusive_ptr<Work> send(Tensors &, int peer, int tag) override;
  c10::intrusive_ptr<Work> recv(Tensors &, int peer, int tag) override;
  c10::intrusive_ptr<Work> recvAnysource(Tensors &, int tag) override;

private:
  using Piece = DevicePiece;
  using Works = std::vector<c10::intrusive_ptr<Work>>;
  struct Batch {
    Works works;
    size_t sweepAt; // when it has so many, those that are complete go
  };

  void usable(const char *operation) const;
  void checkRoot(int64_t root, const char *operation) const;
  WorkPtr newWork(c10d::OpType type, const char *name, Tensors inputs, Tensors outputs,
                  unsigned parts = 1);
  c10::intrusive_ptr<Work> started(c10::intrusive_ptr<Work> work);
  void openBatch(size_t sweepAt);
  Works closeBatch();
  /// One work for all that `calls` starts.
  c10::intrusive_ptr<Work> coalesce(const std::function<void()> &calls);
  uint32_t timeout(std::chrono::milliseconds ofCall) const;
  /// How a call of tensors on devices is made.
  template <typename Options>
  DeviceHow how(c10d::OpType type, const char *name, const Options &options) const {
    return {type, name, isAsync(options), timeout(options.timeout)};
  }
  /// Of parts that lie in `input` one behind the other, each as large as `output`.
  c10::intrusive_ptr<Work> reduceScatterEven(c10d::OpType type, const char *name,
                                             const at::Tensor &input, const at::Tensor &output,
                                             const c10d::ReduceScatterOptions &options);
  c10::intrusive_ptr<Work> reduceScatterUneven(const at::Tensor &output, const Tensors &parts,
                                               const c10d::ReduceScatterOptions &options);
  // Starts a collective, in the order of calls. What `scalar` holds and `keep` live until it ends.
  void start(const WorkPtr &work, occlCall_t call, std::string scalar = {},
             std::vector<uint8_t> keep = {});
  void startReduction(const WorkPtr &work, occlKind_t kind, const at::Tensor &input,
                      at::Tensor output, uint64_t count, const c10d::ReduceOp &op, int64_t root,
                      std::chrono::milliseconds limit);
  void startCopy(const WorkPtr &work, occlKind_t kind, const at::Tensor &input,
                 const at::Tensor &output, const at::Tensor &counted, int64_t root,
                 std::chrono::milliseconds limit);
  void startPieces(const WorkPtr &work, occlKind_t kind, int64_t root, std::vector<Piece> sends,
                   std::vector<Piece> receives, std::chrono::milliseconds limit);
  // The same on devices.
  c10::intrusive_ptr<Work> allgatherOnDevice(Tensors &outputs, const at::Tensor &input,
                                             const DeviceHow &how);
  c10::intrusive_ptr<Work> gatherOnDevice(const Tensors &outputs, const at::Tensor &input, int root,
                                          const DeviceHow &how);
  c10::intrusive_ptr<Work> scatterOnDevice(const at::Tensor &output, const Tensors &inputs,
                                           int root, const DeviceHow &how);

  const c10::intrusive_ptr<GroupOptions> options_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const bool isAcross_; // several machines
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<Strand> strand_;
  std::shared_ptr<Messages> messages_;
  std::shared_ptr<DeviceGroup> devices_;
  std::atomic<int64_t> timeout_; // milliseconds
  std::atomic<uint64_t> number_{0};
  // Of the communicator's calls; accessed by steps of the strand only.
  std::shared_ptr<uint64_t> next_ = std::make_shared<uint64_t>(0);
  std::mutex mutex_;
  // Batches that threads have open, one in another.
  std::map<std::thread::id, std::vector<Batch>> coalesced_;
  std::map<std::string, int> splits_;
};

} // namespace occl_torch

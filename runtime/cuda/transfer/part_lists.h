// Pinned memory for the parts of large groups of transfers, from when their kernel is enqueued
// until nobody can run it any more.
#pragma once

#include "runtime/base/status.h"
#include "runtime/cuda/transfer/transfer_table.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace occl::cuda {

/// Memory as all devices map it. Goes back to the process's pool, without a call of CUDA.
class PartList {
public:
  /// From then on the pool has that many for groups of up to 1,024 parts, unless they are taken: to
  /// pin memory may wait for kernels. SystemError. Thread safety: any.
  static Status reserve(uint32_t number);
  /// With a copy of the parts. SystemError. Thread safety: any.
  static StatusOr<std::shared_ptr<PartList>> make(std::span<const TransferPart> parts);
  ~PartList();
  PartList(const PartList &) = delete;
  PartList &operator=(const PartList &) = delete;

  const TransferPart *parts() const { return reinterpret_cast<TransferPart *>(memory + kHeader); }
  /// The kernel that is given the parts sets it.
  TransfersOver *over() const { return reinterpret_cast<TransfersOver *>(memory); }
  /// A kernel may look at it, nobody knows for how long: it is not used again.
  void abandon() { isAbandoned = true; }

private:
  static constexpr uint64_t kHeader = 64;
  PartList(char *memory, uint64_t capacity) : memory(memory), capacity(capacity) {}

  char *const memory;
  const uint64_t capacity; // parts
  bool isAbandoned = false;
};

/// Of kernels that run once each. Thread safety: one thread at a time.
class PartListsInFlight {
public:
  void add(std::shared_ptr<PartList> list) { lists.push_back(std::move(list)); }
  /// Those of kernels that are over go back. Kernels of several streams end in any order.
  void giveBack();
  /// As PartList::abandon().
  void abandon();

private:
  std::vector<std::shared_ptr<PartList>> lists;
};

/// The list stays until the graph that the stream's capture makes, and all that was instantiated of
/// it, are gone. SystemError.
Status keepWithGraph(const std::shared_ptr<PartList> &list, cudaStream_t captured);

} // namespace occl::cuda

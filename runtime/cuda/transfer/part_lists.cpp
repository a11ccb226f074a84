// Pinned tables for large groups: taken from a pool, and given back when no kernel can look at
// them.
#include "runtime/cuda/transfer/part_lists.h"

#include "runtime/cuda/device/cuda_calls.h"
#include "runtime/sync/atomic.h"
#include "runtime/sync/mutex.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>
#include <vector>

namespace occl::cuda {

namespace {

/// What nobody uses, of this process; never given back to CUDA, which would wait for kernels.
struct Pool {
  Mutex mutex;
  std::vector<std::pair<char *, uint64_t>> unused; // with capacities
};
Pool &pool() {
  static Pool *const pool = new Pool; // graphs may go after static objects
  return *pool;
}

/// Parts.
constexpr uint64_t kSmallest = 1024;

void CUDART_CB release(void *list) { delete static_cast<std::shared_ptr<PartList> *>(list); }

} // namespace

PartList::~PartList() {
  if (isAbandoned)
    return;
  std::lock_guard lock(pool().mutex);
  pool().unused.emplace_back(memory, capacity);
}

/// In one piece, which nobody gives back to CUDA. The lock is not held in CUDA's call.
Status PartList::reserve(uint32_t number) {
  constexpr uint64_t kEach = kHeader + kSmallest * sizeof(TransferPart);
  uint64_t missing = 0;
  {
    std::lock_guard lock(pool().mutex);
    missing = number - std::min<uint64_t>(number, pool().unused.size());
  }
  if (missing == 0)
    return {};
  void *memory = nullptr;
  Status made = toStatus(cudaHostAlloc(&memory, missing * kEach, cudaHostAllocPortable),
                         "allocating pinned memory for groups of transfers");
  std::lock_guard lock(pool().mutex);
  for (uint64_t i = 0; made.ok() && i < missing; ++i)
    pool().unused.emplace_back(static_cast<char *>(memory) + i * kEach, kSmallest);
  return made;
}

StatusOr<std::shared_ptr<PartList>> PartList::make(std::span<const TransferPart> parts) {
  std::shared_ptr<PartList> list;
  {
    std::lock_guard lock(pool().mutex);
    auto &unused = pool().unused;
    auto fits =
        std::ranges::find_if(unused, [&](const auto &one) { return one.second >= parts.size(); });
    if (fits != unused.end()) {
      list.reset(new PartList(fits->first, fits->second));
      unused.erase(fits);
    }
  }
  if (!list) {
    // Rounded up, so that later groups fit as well.
    const uint64_t capacity = std::bit_ceil(std::max<uint64_t>(parts.size(), kSmallest));
    void *memory = nullptr;
    Status made = toStatus(
        cudaHostAlloc(&memory, kHeader + capacity * sizeof(TransferPart), cudaHostAllocPortable),
        "allocating pinned memory for a group of transfers");
    if (!made.ok())
      return made;
    list.reset(new PartList(static_cast<char *>(memory), capacity));
  }
  // The kernel sets this once it needs the table no more.
  *list->over() = 0;
  std::ranges::copy(parts, reinterpret_cast<TransferPart *>(list->memory + kHeader));
  return list;
}

void PartListsInFlight::giveBack() {
  std::erase_if(lists, [](const std::shared_ptr<PartList> &list) {
    return loadShared(list->over(), std::memory_order_acquire) != 0;
  });
}

void PartListsInFlight::abandon() {
  for (const auto &list : lists)
    list->abandon();
}

Status keepWithGraph(const std::shared_ptr<PartList> &list, cudaStream_t captured) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  Status asked = toStatus(
      cudaStreamGetCaptureInfo(captured, &status, nullptr, &graph, nullptr, nullptr, nullptr),
      "asking which graph is captured");
  if (!asked.ok())
    return asked;
  // The graph owns a reference, which goes when the graph and its instances go.
  auto *kept = new std::shared_ptr<PartList>(list);
  cudaUserObject_t object = nullptr;
  Status made =
      toStatus(cudaUserObjectCreate(&object, kept, release, 1, cudaUserObjectNoDestructorSync),
               "keeping what a graph needs");
  if (!made.ok()) {
    delete kept;
    return made;
  }
  made = toStatus(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove),
                  "keeping what a graph needs");
  if (!made.ok())
    cudaUserObjectRelease(object, 1); // the graph has not taken this function's reference
  return made;
}

} // namespace occl::cuda

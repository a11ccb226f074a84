// Private memory of invocations in flight, recycled so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace occl::daemon {

/// Memory is held up to the peak that was in flight. Thread safety: none.
class WorkspacePool {
public:
  static constexpr size_t kAlignment = 64;

  WorkspacePool() = default;
  WorkspacePool(const WorkspacePool &) = delete;
  WorkspacePool &operator=(const WorkspacePool &) = delete;
  ~WorkspacePool();

  /// At least `bytes`, with any content; the block given back last comes first. nullptr if the
  /// system has no memory.
  std::byte *acquire(uint64_t bytes);
  /// What acquire(bytes) returned. All blocks must be back before the pool goes.
  void release(std::byte *block, uint64_t bytes);

private:
  static uint64_t classOf(uint64_t bytes);

  std::map<uint64_t, std::vector<std::byte *>> stacks; // by size
};

} // namespace occl::daemon

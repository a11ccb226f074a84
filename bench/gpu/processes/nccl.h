// NCCL, loaded when the program runs: one communicator of this process's rank.
#pragma once

#include "bench/gpu/processes/together.h"
#include "plan/collectives/collectives.h"

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <string>

namespace occl::bench {

/// Of elements, which are summed.
enum class Type : uint8_t { Float32, Bfloat16 };
constexpr size_t sizeOf(Type type) { return type == Type::Float32 ? 4 : 2; }

using Kind = plan::StandardCollective;

class Nccl {
public:
  /// By the library of that name; null without it. All ranks call it.
  static std::unique_ptr<Nccl> join(Together &together, uint32_t rank,
                                    const char *name = "libnccl.so.2");

  std::string version() const;
  /// Memory of NCCL's; registered for symmetric access if `symmetric`, where NCCL has that.
  void *allocate(size_t bytes, bool symmetric);
  /// Sum; count: elements of a part. The root is rank 0. Not for Kind::Gather and Scatter.
  void enqueue(Kind kind, const void *input, void *output, size_t count, cudaStream_t stream,
               Type type = Type::Float32);

  /// Bytes, to the one and from the other rank; within a group, which begins or ends.
  void group(bool begins);
  void exchange(const void *input, uint32_t to, void *output, uint32_t from, size_t bytes,
                cudaStream_t stream);

private:
  struct Library;
  Nccl(std::shared_ptr<Library> library, uint32_t numRanks)
      : library(std::move(library)), numRanks(numRanks) {}

  std::shared_ptr<Library> library;
  const uint32_t numRanks;
};

} // namespace occl::bench

// What the interpreter is compared with: kernels written by hand, and NCCL.
#pragma once

#include "bench/gpu/kernels/interpreter_run.h"

#include <cstdint>
#include <memory>

namespace occl::bench {

/// Nanoseconds for one invocation, in a loop in the kernel. `count` floats, a multiple of 4 times
/// the number of ranks. Takes memory from the group's pools; Again if they have too little.
StatusOr<double> runProbe(DeviceGroup &group, Probe probe, const UserBuffers &buffers,
                          uint64_t count, uint32_t blocks, uint32_t warmUp, uint32_t measured);

/// NCCL's all-reduce over the group's devices; the library is loaded when the program runs.
class Nccl {
public:
  /// Null without the library.
  static std::unique_ptr<Nccl> load(DeviceGroup &group);
  ~Nccl();

  /// As 2.28.9.
  std::string version() const;
  /// Sum of `count` floats in a graph: microseconds for one.
  double inGraph(const UserBuffers &buffers, uint64_t count, uint32_t repetitions,
                 uint32_t replays);

private:
  struct Library;
  explicit Nccl(DeviceGroup &group);

  DeviceGroup &group;
  std::unique_ptr<Library> library;
};

} // namespace occl::bench

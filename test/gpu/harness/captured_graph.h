// What a stream was given while it was captured, to be replayed.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>

namespace occl::gpu_test {

/// An executable graph, destroyed at the end, which may wait for what runs. All calls with its
/// device current.
class CapturedGraph {
public:
  CapturedGraph() = default;
  ~CapturedGraph();
  CapturedGraph(CapturedGraph &&other) noexcept : executable(other.executable) {
    other.executable = nullptr;
  }
  CapturedGraph &operator=(CapturedGraph &&) = delete;

  /// Of what `work` puts into the stream, which returns "" or what is wrong. Made once, and brought
  /// to the device: waits for the stream. "" or what is wrong.
  std::string capture(cudaStream_t stream, const std::function<std::string()> &work);
  /// As the stream's next work. "" or what is wrong.
  std::string replay(cudaStream_t stream) const;

private:
  cudaGraphExec_t executable = nullptr;
};

} // namespace occl::gpu_test

// cuBLAS, loaded when the program runs, so that nothing has to be there when this is built.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace occl::bench {

class Cublas {
public:
  /// Null without the library, of CUDA 12 or 13. The device is current.
  static std::unique_ptr<Cublas> open();

  /// Rows of the product, row-major, all of bfloat16: rows x k times k x columns, added up as
  /// floats. multiprocessors: as many as it is to use at most; 0: all.
  void multiply(const void *left, const void *right, void *product, uint64_t rows, uint64_t columns,
                uint64_t k, uint32_t multiprocessors, cudaStream_t stream);

private:
  Cublas() = default;
  bool load();

  cudaStream_t current = nullptr; // if one is set
  bool isSet = false;
  void *library = nullptr, *handle = nullptr, *workspace = nullptr;
  int (*create)(void **) = nullptr;
  int (*setStream)(void *, cudaStream_t) = nullptr;
  int (*setWorkspace)(void *, void *, size_t) = nullptr;
  int (*setSmCountTarget)(void *, int) = nullptr;
  int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, const void *,
              int, int, const void *, void *, int, int, int, int) = nullptr;
};

} // namespace occl::bench

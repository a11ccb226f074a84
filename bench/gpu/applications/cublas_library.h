// cuBLAS, loaded when the program runs, so that nothing has to be there when this is built.
#pragma once

#include "bench/gpu/processes/nccl.h"

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace occl::bench {

class Cublas {
public:
  /// Null without the library, of CUDA 12 or 13. The device is current.
  static std::unique_ptr<Cublas> open();

  /// batch products, row-major: rows x inner times inner x columns, added up as floats; the left
  /// ones and the products lie so many elements apart, the right one is the same.
  struct Product {
    const void *left, *right;
    void *product;
    uint64_t rows, inner, columns;
    Type type = Type::Bfloat16;
    bool adds = false;            // to what is there
    uint32_t multiprocessors = 0; // as many as it is to use at most; 0: all
    uint32_t batch = 1;
    uint64_t leftApart = 0, productApart = 0;
  };
  void multiply(const Product &product, cudaStream_t stream);

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
  int (*gemm)(void *, int, int, int, int, int, const void *, const void *, int, int, long long,
              const void *, int, int, long long, const void *, void *, int, int, long long, int,
              int, int) = nullptr;
};

} // namespace occl::bench

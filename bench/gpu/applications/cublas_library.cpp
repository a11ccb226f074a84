#include "bench/gpu/applications/cublas_library.h"

#include "examples/partitioned/check.h"

#include <dlfcn.h>
#include <library_types.h>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace occl::bench {

namespace {

/// Of cuBLAS's stable binary interface.
constexpr int kAsItIs = 0, kAddFloats = 68, kDefaultAlgorithm = -1;
constexpr size_t kWorkspace = 64 << 20;

void require(int error, const char *what) {
  if (error != 0)
    throw std::runtime_error(std::string(what) + ": cuBLAS error " + std::to_string(error));
}

} // namespace

bool Cublas::load() {
  for (const char *name : {"libcublas.so.13", "libcublas.so.12"})
    if (!library)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return false;
  const auto find = [this](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  return find(create, "cublasCreate_v2") && find(setStream, "cublasSetStream_v2") &&
         find(setWorkspace, "cublasSetWorkspace_v2") &&
         find(setSmCountTarget, "cublasSetSmCountTarget") &&
         find(gemm, "cublasGemmStridedBatchedEx");
}

std::unique_ptr<Cublas> Cublas::open() {
  std::unique_ptr<Cublas> made(new Cublas);
  if (!made->load())
    return nullptr;
  require(made->create(&made->handle), "cublasCreate");
  // One of its own, as a graph that is captured would else have one each.
  examples::check(cudaMalloc(&made->workspace, kWorkspace), "cudaMalloc");
  return made;
}

void Cublas::multiply(const Product &product, cudaStream_t stream) {
  if (!isSet || stream != current) {
    require(setStream(handle, stream), "cublasSetStream");
    require(setWorkspace(handle, workspace, kWorkspace), "cublasSetWorkspace");
    current = stream;
    isSet = true;
  }
  require(setSmCountTarget(handle, static_cast<int>(product.multiprocessors)),
          "cublasSetSmCountTarget");
  // It has columns behind each other: the transposed product is right times left.
  const float one = 1, added = product.adds ? 1.f : 0.f;
  const int type = product.type == Type::Float32 ? CUDA_R_32F : CUDA_R_16BF;
  const auto n = static_cast<int>(product.columns), m = static_cast<int>(product.rows),
             inner = static_cast<int>(product.inner);
  require(gemm(handle, kAsItIs, kAsItIs, n, m, inner, &one, product.right, type, n, 0, product.left,
               type, inner, static_cast<long long>(product.leftApart), &added, product.product,
               type, n, static_cast<long long>(product.productApart),
               static_cast<int>(product.batch), kAddFloats, kDefaultAlgorithm),
          "cublasGemmStridedBatchedEx");
}

} // namespace occl::bench

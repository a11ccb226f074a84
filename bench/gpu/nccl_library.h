// What contenders of NCCL load of it, whatever else each of them needs. By name, so that nothing
// has to be there when this is built.
#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace occl::bench {

/// Of NCCL's stable binary interface.
constexpr int kNcclUint8 = 1, kNcclFloat32 = 7, kNcclBfloat16 = 9, kNcclSum = 0;

/// Ends the program if `error` is one.
void requireNccl(int error, const char *what);

class NcclLibrary {
public:
  /// As dlopen() searches for it. False: it is not there, or a function is missing.
  bool open(const char *name = "libnccl.so.2");
  /// As 2.28.9. After open().
  std::string version() const;

  /// After open(). False: there is no such function.
  template <class Function> bool find(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  int (*groupStart)() = nullptr;
  int (*groupEnd)() = nullptr;
  int (*allReduce)(const void *, void *, size_t, int, int, void *, cudaStream_t) = nullptr;

private:
  void *handle = nullptr;
  int (*getVersion)(int *) = nullptr;
};

} // namespace occl::bench

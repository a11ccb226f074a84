#include "bench/gpu/nccl_library.h"

#include <cstdio>
#include <cstdlib>

namespace occl::bench {

void requireNccl(int error, const char *what) {
  if (error == 0)
    return;
  std::fprintf(stderr, "%s: NCCL error %d\n", what, error);
  std::exit(1);
}

bool NcclLibrary::open(const char *name) {
  handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return handle != nullptr && find(getVersion, "ncclGetVersion") &&
         find(groupStart, "ncclGroupStart") && find(groupEnd, "ncclGroupEnd") &&
         find(allReduce, "ncclAllReduce");
}

std::string NcclLibrary::version() const {
  int number = 0;
  requireNccl(getVersion(&number), "ncclGetVersion");
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

} // namespace occl::bench

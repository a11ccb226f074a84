// Finds NCCL's functions as a program does that has NCCL as a library, and sums up two numbers.
#include "nccl/nccl_abi.h"

#include <cstdio>
#include <dlfcn.h>

int main() {
  // Looked up and not linked, so that the test sees which library a preload has put in its way.
  const auto initAll =
      reinterpret_cast<decltype(&ncclCommInitAll)>(dlsym(RTLD_DEFAULT, "ncclCommInitAll"));
  const auto allReduce =
      reinterpret_cast<decltype(&ncclAllReduce)>(dlsym(RTLD_DEFAULT, "ncclAllReduce"));
  if (!initAll || !allReduce) {
    std::puts("there is no NCCL");
    return 3;
  }
  // One rank needs no other process.
  ncclComm_t comm = nullptr;
  float number = 5;
  if (initAll(&comm, 1, nullptr) != ncclSuccess ||
      allReduce(&number, &number, 1, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess)
    return 1;
  std::printf("%g\n", number);
  return 0;
}

// Calls of the C interface in measurements: an error ends the program.
#pragma once

#include "runtime/communicator/occl.h"

#include <cstdio>
#include <cstdlib>

namespace occl::bench {

inline void check(occlResult_t result) {
  if (result == occlSuccess)
    return;
  std::fprintf(stderr, "%s: %s\n", occlGetErrorString(result), occlGetLastError());
  std::exit(1);
}

} // namespace occl::bench

// The bound of every wait of a kernel: a deadline, and the host's word that everything is to end.
#pragma once

#include "runtime/cuda/tables/host_words.h"

#include <cstdint>

namespace occl::cuda {

struct WaitBound {
  HostWords *host = nullptr; // as the device maps it
  /// In device memory: 0 until a thread block of this rank has given up, or seen the host's word.
  uint32_t *hasGivenUp = nullptr;
  /// Nanoseconds from a kernel's first wait in vain on.
  uint64_t timeout = 0;
  uint32_t place = 0; // of the call's shape
  /// Nanoseconds without progress after which a thread block leaves its steps to another one
  /// (adoption.h); 0: it stays.
  uint64_t leaveAfter = 0;
};

} // namespace occl::cuda

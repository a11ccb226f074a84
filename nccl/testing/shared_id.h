// For tests: an id that one of several processes makes.
#pragma once

#include "nccl/nccl_abi.h"

#include <atomic>
#include <functional>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace occl::nccl::testing {

/// To be made before the processes are forked.
class SharedId {
public:
  SharedId()
      : shared(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}

  /// The same in all processes: that of the first rank's ncclGetUniqueId.
  ncclUniqueId get(int rank, decltype(&ncclGetUniqueId) make = ncclGetUniqueId) const {
    if (rank == 0) {
      make(&shared->id);
      shared->isMade = true;
    }
    while (!shared->isMade)
      usleep(100);
    return shared->id;
  }

  /// Waits until as many ranks have called this, at most ten seconds: whoever ends before the
  /// others is missed.
  void leaveTogether(int numRanks) const {
    ++shared->numLeft;
    for (int i = 0; i < 100000 && shared->numLeft < numRanks; ++i)
      usleep(100);
  }

private:
  struct Shared {
    ncclUniqueId id;
    std::atomic<bool> isMade = false;
    std::atomic<int> numLeft = 0;
  };
  Shared *shared; // as long as the test
};

} // namespace occl::nccl::testing

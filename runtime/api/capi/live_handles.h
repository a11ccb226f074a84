// Which communicators there are, so that one may be aborted while another thread destroys it.
#pragma once

#include "runtime/api/occl.h"
#include "runtime/sync/mutex.h"

#include <cstdint>
#include <map>

namespace occl::communicator {

/// Thread safety: any.
class LiveHandles {
public:
  void add(occlComm_t comm);
  /// Keeps remove() from returning until letGo(). False if there is no such communicator.
  bool hold(occlComm_t comm);
  void letGo(occlComm_t comm);
  /// Returns when nobody holds it; from the call on nobody can.
  void remove(occlComm_t comm);

private:
  struct Entry {
    uint32_t holders = 0;
    bool isLeaving = false;
  };

  Mutex mutex;
  ConditionVariable released;
  std::map<occlComm_t, Entry> entries;
};

/// Of this process.
LiveHandles &liveHandles();

} // namespace occl::communicator

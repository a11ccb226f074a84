// Locks; see atomic.h. std::lock_guard and std::unique_lock take a Mutex.
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/sync/explored_threads.h"
#else

#include <condition_variable>
#include <mutex>

namespace occl {

using Mutex = std::mutex;
using ConditionVariable = std::condition_variable;

} // namespace occl

#endif

// Locks that are held for less time than it takes to sleep and to be woken.
#pragma once

#include "runtime/sync/mutex.h"

#include <pthread.h>

namespace occl {

/// Before the mutex is first used: whoever wants it looks for some microseconds before it sleeps,
/// where the system has such locks. Then whoever gives it back seldom has somebody to wake.
inline void lookBeforeSleeping([[maybe_unused]] Mutex &mutex) {
#if !defined(OCCL_EXPLORE) && defined(PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP)
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_destroy(mutex.native_handle());
  pthread_mutex_init(mutex.native_handle(), &kind);
  pthread_mutexattr_destroy(&kind);
#endif
}

} // namespace occl

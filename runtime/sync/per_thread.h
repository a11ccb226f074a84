// What a thread has for itself; see atomic.h. When schedules are explored, threads are fibers of
// one real thread.
#pragma once

#ifdef OCCL_EXPLORE
#include "runtime/sync/explored.h"
#else
#include <functional>
#include <thread>
#endif

#include <cstddef>

namespace occl {

#ifdef OCCL_EXPLORE

template <class Tag, class T> T *&pointerOfThisThread() {
  static const char kind = 0;
  return *static_cast<T **>(explored::placeOfThisThread(&kind));
}

template <class Tag, class T> T &valueOfThisThread() {
  T *&own = pointerOfThisThread<Tag, T>();
  if (!own)
    own = new T;
  return *own;
}

inline size_t hashOfThisThread() { return explored::currentThread(); }
inline size_t numberOfThisThread() { return explored::currentThread(); }

#else

/// A pointer, at first null, of which each thread has one for each Tag.
template <class Tag, class T> T *&pointerOfThisThread() {
  thread_local T *pointer = nullptr;
  return pointer;
}

/// A T of which each thread has one for each Tag.
template <class Tag, class T> T &valueOfThisThread() {
  thread_local T own;
  return own;
}

/// To let threads begin at different places.
inline size_t hashOfThisThread() {
  return std::hash<std::thread::id>()(std::this_thread::get_id());
}

/// Threads that ask are numbered from 1 on, in the order in which they first do.
size_t numberOfThisThread();

#endif

} // namespace occl

// Calls of the libraries that access memory, hand it out or order accesses. Those of the linker's
// --wrap (BUILD.bazel) are the program's own calls, those of malloc also the libraries'.
#include "test/explore/explorer/scheduler.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <malloc.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>

using occl::explore::AccessKind;
using occl::explore::Scheduler;

#define PLACE __builtin_return_address(0)

namespace {

inline void access(const void *address, size_t bytes, AccessKind kind, const void *place) {
  if (Scheduler *scheduler = Scheduler::observed())
    scheduler->access(address, bytes, kind, place);
}

/// Its former accesses were to what lay there before. The explorer's, too: it calls what the
/// program has given it.
void *handedOut(void *block) {
  if (Scheduler *scheduler = Scheduler::current(); scheduler && block)
    scheduler->forget(block, malloc_usable_size(block));
  return block;
}

inline void givenBack(void *block, const void *place) {
  if (Scheduler *scheduler = Scheduler::observed(); scheduler && block)
    scheduler->giveBack(block, malloc_usable_size(block), place);
}

} // namespace

extern "C" {

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t bytes) { return handedOut(__libc_malloc(bytes)); }
void *calloc(size_t number, size_t bytes) { return handedOut(__libc_calloc(number, bytes)); }
void *realloc(void *block, size_t bytes) {
  givenBack(block, PLACE);
  return handedOut(__libc_realloc(block, bytes));
}
void *memalign(size_t alignment, size_t bytes) {
  return handedOut(__libc_memalign(alignment, bytes));
}
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block ? 0 : ENOMEM;
}
void free(void *block) {
  givenBack(block, PLACE);
  __libc_free(block);
}

void *__real_memcpy(void *, const void *, size_t);
void *__real_memmove(void *, const void *, size_t);
void *__real_memset(void *, int, size_t);
void *__real_mmap(void *, size_t, int, int, int, off_t);
int __real_munmap(void *, size_t);
int __real_pthread_mutex_lock(pthread_mutex_t *);
int __real_pthread_mutex_unlock(pthread_mutex_t *);
int __real___cxa_guard_acquire(uint64_t *);
void __real___cxa_guard_release(uint64_t *);

void *__wrap_memcpy(void *to, const void *from, size_t bytes) {
  access(from, bytes, AccessKind::Read, PLACE);
  access(to, bytes, AccessKind::Write, PLACE);
  return __real_memcpy(to, from, bytes);
}
void *__wrap_memmove(void *to, const void *from, size_t bytes) {
  access(from, bytes, AccessKind::Read, PLACE);
  access(to, bytes, AccessKind::Write, PLACE);
  return __real_memmove(to, from, bytes);
}
void *__wrap_memset(void *to, int value, size_t bytes) {
  access(to, bytes, AccessKind::Write, PLACE);
  return __real_memset(to, value, bytes);
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
  void *memory = __real_mmap(at, bytes, protection, flags, file, offset);
  if (Scheduler *scheduler = Scheduler::observed(); scheduler && memory != MAP_FAILED)
    scheduler->forget(memory, bytes);
  return memory;
}

/// What malloc() takes from the system later is not seen.
int __wrap_munmap(void *memory, size_t bytes) {
  if (Scheduler *scheduler = Scheduler::observed()) {
    scheduler->giveBack(memory, bytes, PLACE);
    scheduler->forget(memory, bytes);
  }
  return __real_munmap(memory, bytes);
}

// No thread is left while it holds one of these: they do not ask who goes on.
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  const int result = __real_pthread_mutex_lock(mutex);
  if (Scheduler *scheduler = Scheduler::observed())
    scheduler->acquire(mutex);
  return result;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  if (Scheduler *scheduler = Scheduler::observed())
    scheduler->release(mutex);
  return __real_pthread_mutex_unlock(mutex);
}

// Of static variables; who finds them made loads the guard itself.
int __wrap___cxa_guard_acquire(uint64_t *guard) {
  const int mustMake = __real___cxa_guard_acquire(guard);
  if (Scheduler *scheduler = Scheduler::observed(); scheduler && !mustMake)
    scheduler->acquire(guard);
  return mustMake;
}
void __wrap___cxa_guard_release(uint64_t *guard) {
  if (Scheduler *scheduler = Scheduler::observed())
    scheduler->release(guard);
  __real___cxa_guard_release(guard);
}

} // extern "C"

// So that the place is the program's.
void operator delete(void *block) noexcept {
  givenBack(block, PLACE);
  __libc_free(block);
}
void operator delete(void *block, size_t) noexcept {
  givenBack(block, PLACE);
  __libc_free(block);
}
void operator delete(void *block, std::align_val_t) noexcept {
  givenBack(block, PLACE);
  __libc_free(block);
}
void operator delete(void *block, size_t, std::align_val_t) noexcept {
  givenBack(block, PLACE);
  __libc_free(block);
}

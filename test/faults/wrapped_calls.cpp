// The system calls of set-up and tear-down: the linker (--wrap) leads them here.
#include "test/faults/passing.h"

#include <fcntl.h>
#include <sys/types.h>

extern "C" {

#define OCCL_WRAP(Result, name, parameters, arguments)                                             \
  Result __real_##name parameters;                                                                 \
  Result __wrap_##name parameters {                                                                \
    occl::faults::passCall(#name);                                                                 \
    return __real_##name arguments;                                                                \
  }

OCCL_WRAP(int, shm_open, (const char *name, int flags, mode_t mode), (name, flags, mode))
OCCL_WRAP(int, shm_unlink, (const char *name), (name))
OCCL_WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags))
OCCL_WRAP(int, posix_fallocate, (int file, off_t offset, off_t bytes), (file, offset, bytes))
OCCL_WRAP(int, ftruncate, (int file, off_t bytes), (file, bytes))
OCCL_WRAP(int, flock, (int file, int operation), (file, operation))
OCCL_WRAP(int, close, (int file), (file))

/// Taking and giving up a lock is a step; asking is none, and is done as often as time passes.
int __real_fcntl(int file, int operation, void *argument);
int __wrap_fcntl(int file, int operation, void *argument) {
  if (operation == F_SETLK)
    occl::faults::passCall("fcntl");
  return __real_fcntl(file, operation, argument);
}
OCCL_WRAP(int, munmap, (void *address, size_t bytes), (address, bytes))
OCCL_WRAP(void *, mmap, (void *at, size_t bytes, int access, int flags, int file, off_t offset),
          (at, bytes, access, flags, file, offset))
}

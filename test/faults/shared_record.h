// What the processes of a trial share with the test.
#pragma once

#include <new>
#include <sys/mman.h>

namespace occl::communicator::testing {

/// A T in memory that children of this process share. T has no destructor to speak of.
template <class T> class InSharedMemory {
public:
  InSharedMemory()
      : memory(
            mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    new (memory) T{};
  }
  ~InSharedMemory() { munmap(memory, sizeof(T)); }
  InSharedMemory(const InSharedMemory &) = delete;
  InSharedMemory &operator=(const InSharedMemory &) = delete;
  T *operator->() const { return static_cast<T *>(memory); }
  T *get() const { return static_cast<T *>(memory); }

private:
  void *memory;
};

} // namespace occl::communicator::testing

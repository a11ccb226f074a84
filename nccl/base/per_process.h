// What a process has one of, also when it was forked from one that had it.
#pragma once

#include "support/process/per_process.h"

#include <sys/types.h>
#include <unistd.h>

namespace occl::nccl {

/// Of this process, in which it was made, or of one that was forked from it.
class ProcessId {
public:
  bool isThisProcess() const { return process == getpid(); }

private:
  const pid_t process = getpid();
};

template <class T> using PerProcess = OnePerProcess<T, ProcessId>;

} // namespace occl::nccl

// Which processes could map each other's memory.
#pragma once

#include <string>

namespace occl {

/// Equal text for processes on one running kernel with the same /dev/shm and the same PID and
/// network namespaces; for comparison alone. Where /proc or /dev/shm is not there, all processes
/// say so.
std::string sharedMemoryHost();

} // namespace occl

#include "runtime/api/testing/resident_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace occl::communicator::testing {

uint64_t residentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:"))
      return std::strtoull(line.c_str() + 6, nullptr, 10);
  return 0;
}

} // namespace occl::communicator::testing

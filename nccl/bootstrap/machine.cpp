#include "nccl/bootstrap/machine.h"

#include "nccl/base/environment.h"
#include "support/shared_memory_host.h"

#include <cstring>
#include <unistd.h>

namespace occl::nccl {

MachineId machineId() {
  std::string text = sharedMemoryHost() + " user " + std::to_string(getuid());
  if (auto given = setting("NCCL_HOSTID"))
    text += " id " + *given;
  return hashOf(text);
}

std::string hostName() {
  char name[64] = "";
  gethostname(name, sizeof(name) - 1);
  std::string host = name;
  // NCCL_HOSTID makes ranks of one machine look like several; then messages should say so.
  if (auto given = setting("NCCL_HOSTID"))
    host += " (NCCL_HOSTID=" + given->substr(0, 32) + ")";
  return host;
}

MachineId hashOf(const std::string &text) {
  MachineId bytes{};
  // FNV-1a of 64 bits, twice with different beginnings. Not a secret and not safe against people
  // who want collisions: it tells machines of one job apart.
  for (uint64_t half = 0; half < 2; ++half) {
    uint64_t hash = 14695981039346656037u + half;
    for (unsigned char c : text)
      hash = (hash ^ c) * 1099511628211u;
    std::memcpy(bytes.data() + half * 8, &hash, 8);
  }
  return bytes;
}

} // namespace occl::nccl

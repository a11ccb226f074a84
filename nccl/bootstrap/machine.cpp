#include "nccl/bootstrap/machine.h"

#include "nccl/base/environment.h"

#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::nccl {

namespace {

/// "" where /proc is not there, which is the same for all ranks there.
std::string bootId() {
  char id[64] = "";
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(id, sizeof(id), file))
      id[0] = 0;
    std::fclose(file);
  }
  return id;
}

std::string numberOf(const char *path) {
  struct stat info = {};
  if (stat(path, &info) != 0)
    return "none";
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

} // namespace

MachineId machineId() {
  std::string text = bootId() + " user " + std::to_string(getuid()) + " shm " +
                     numberOf("/dev/shm") + " pid " + numberOf("/proc/self/ns/pid") + " net " +
                     numberOf("/proc/self/ns/net");
  if (auto given = setting("NCCL_HOSTID"))
    text += " id " + *given;
  return hashOf(text);
}

std::string hostName() {
  char name[64] = "";
  gethostname(name, sizeof(name) - 1);
  std::string host = name;
  if (auto given = setting("NCCL_HOSTID"))
    host += " (NCCL_HOSTID=" + given->substr(0, 32) + ")";
  return host;
}

MachineId hashOf(const std::string &text) {
  MachineId bytes{};
  for (uint64_t half = 0; half < 2; ++half) {
    uint64_t hash = 14695981039346656037u + half;
    for (unsigned char c : text)
      hash = (hash ^ c) * 1099511628211u;
    std::memcpy(bytes.data() + half * 8, &hash, 8);
  }
  return bytes;
}

} // namespace occl::nccl

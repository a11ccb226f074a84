#include "support/shared_memory_host.h"

#include <fstream>
#include <sys/stat.h>

namespace occl {

namespace {

std::string numberOf(const char *path) {
  struct stat info = {};
  if (stat(path, &info) != 0)
    return "none";
  return std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

} // namespace

std::string sharedMemoryHost() {
  // The boot distinguishes machines and reboots; the device of /dev/shm and the namespaces,
  // containers on one machine that cannot map each other's segments or signal each other.
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, boot);
  return "boot " + boot + " shm " + numberOf("/dev/shm") + " pid " + numberOf("/proc/self/ns/pid") +
         " net " + numberOf("/proc/self/ns/net");
}

} // namespace occl

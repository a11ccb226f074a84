#include "runtime/net/host_id.h"

#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::net {
namespace {

std::string identityOf(const char *path) {
  struct stat about {};
  if (stat(path, &about) != 0)
    return "none";
  return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

} // namespace

std::string hostId() {
  if (const char *given = std::getenv("OCCL_HOSTID"); given && *given)
    return std::string("given ") + given;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return "boot " + boot + " shm " + identityOf("/dev/shm") + " pid " +
         identityOf("/proc/self/ns/pid") + " net " + identityOf("/proc/self/ns/net") + " user " +
         std::to_string(geteuid());
}

} // namespace occl::net

#include "tools/occlc/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace occl::tools {

namespace {

void useHugePages(char **arguments) {
  // glibc reads this variable when it starts, so it can only be set for another start.
  constexpr const char *kVariable = "GLIBC_TUNABLES", *kSetting = "glibc.malloc.hugetlb";
  const char *given = std::getenv(kVariable);
  std::string tunables = given ? given : "";
  // Set by the user, or by this function in the process before: no endless loop.
  if (tunables.find(kSetting) != std::string::npos)
    return;
  // By its path, not as /proc/self/exe, which lists of processes would call it then.
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  tunables += (tunables.empty() ? "" : ":") + std::string(kSetting) + "=1";
  if (!failure && setenv(kVariable, tunables.c_str(), 1) == 0)
    execv(self.c_str(), arguments);
}

} // namespace

void prepareHeap(char **arguments) {
  useHugePages(arguments);
  mallopt(M_MMAP_THRESHOLD, INT_MAX);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

} // namespace occl::tools

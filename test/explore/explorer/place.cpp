#include "test/explore/explorer/place.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace occl::explore {

namespace {

/// Where accesses are inlined from that are another's.
bool isLibrary(const char *file) {
  for (const char *part : {"/include/c++/", "runtime/sync/explored_"})
    if (std::strstr(file, part))
      return true;
  return false;
}

/// "lines_host.h:46, in step_driver.cpp:210" of addr2line's answer, a line for each.
std::string readLines(FILE *answer) {
  std::string text;
  char line[512];
  while (std::fgets(line, sizeof line, answer)) {
    line[std::strcspn(line, " \n")] = 0;
    if (isLibrary(line) || std::strstr(line, ":?") || std::strstr(line, ":0"))
      continue;
    const char *slash = std::strrchr(line, '/');
    text += (text.empty() ? "" : ", in ") + std::string(slash ? slash + 1 : line);
  }
  return text;
}

} // namespace

std::string describePlace(uintptr_t place) {
  const uintptr_t call = place - 1;
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void *>(call), &info) || !info.dli_fname)
    return "an unknown place";
  const uintptr_t offset = call - reinterpret_cast<uintptr_t>(info.dli_fbase);
  char command[512];
  std::snprintf(command, sizeof command, "addr2line -i -e '%s' %#zx 2>/dev/null", info.dli_fname,
                static_cast<size_t>(offset));
  std::string lines;
  if (FILE *answer = popen(command, "r")) {
    lines = readLines(answer);
    pclose(answer);
  }
  std::snprintf(command, sizeof command, "%s+%#zx", info.dli_fname, static_cast<size_t>(offset));
  return lines.empty() ? command : lines;
}

} // namespace occl::explore

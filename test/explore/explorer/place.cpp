#include "test/explore/explorer/place.h"

#include <cstdio>
#include <cstring>
#include <unistd.h>

extern "C" const char __executable_start; // the linker's

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
  std::string text, last;
  char line[512];
  while (std::fgets(line, sizeof line, answer)) {
    line[std::strcspn(line, " \n")] = 0;
    if (std::strstr(line, ":?") || std::strstr(line, ":0"))
      continue;
    const char *slash = std::strrchr(line, '/');
    last = slash ? slash + 1 : line;
    if (!isLibrary(line))
      text += (text.empty() ? "" : ", in ") + last;
  }
  return text.empty() ? last : text;
}

} // namespace

uint32_t placeOf(const void *returnAddress) {
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(returnAddress) - reinterpret_cast<uintptr_t>(&__executable_start);
  return offset <= UINT32_MAX ? static_cast<uint32_t>(offset) : 0;
}

std::string describePlace(uint32_t place) {
  if (place == 0)
    return "a place in a library";
  // Of a program that can lie anywhere; else addresses are absolute.
  const bool isRelative = reinterpret_cast<uintptr_t>(&__executable_start) > 1u << 30;
  const uintptr_t call =
      place - 1 + (isRelative ? 0 : reinterpret_cast<uintptr_t>(&__executable_start));
  char command[128];
  std::snprintf(command, sizeof command, "addr2line -i -e /proc/%d/exe %#zx 2>/dev/null",
                static_cast<int>(getpid()), static_cast<size_t>(call));
  std::string lines;
  if (FILE *answer = popen(command, "r")) {
    lines = readLines(answer);
    pclose(answer);
  }
  std::snprintf(command, sizeof command, "the program's %#zx", static_cast<size_t>(call));
  return lines.empty() ? command : lines;
}

} // namespace occl::explore

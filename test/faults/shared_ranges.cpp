#include "test/faults/shared_ranges.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <map>

namespace occl::faults {

namespace {

struct Range {
  uint64_t end = 0;
  bool isShared = false;
};

/// By where they begin.
std::map<uint64_t, Range> ranges;

void readRanges() {
  ranges.clear();
  std::FILE *maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && std::fgets(line, sizeof line, maps)) {
    uint64_t begin = 0, end = 0;
    char access[5] = {};
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, access) == 3)
      ranges[begin] = {end, access[3] == 's'};
  }
  if (maps)
    std::fclose(maps);
}

const Range *find(uint64_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin())
    return nullptr;
  const Range &range = std::prev(after)->second;
  return address < range.end ? &range : nullptr;
}

} // namespace

bool SharedRanges::contains(const void *address) {
  auto number = reinterpret_cast<uint64_t>(address);
  const Range *range = find(number);
  if (!range) {
    readRanges();
    range = find(number);
  }
  return range && range->isShared;
}

void SharedRanges::forget() { ranges.clear(); }

} // namespace occl::faults

#include "compiler/cost/Units.h"

#include <cstdio>

namespace occl::cost {

/// With at most `decimals` digits behind the point, and no zeros at their end.
static std::string shortest(double value, int decimals) {
  char text[64];
  // Digits are cut off at the end and not by rounding to fewer: 1.50 becomes 1.5, and 100 stays
  // 100.
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string result = text;
  while (result.find('.') != result.npos && (result.back() == '0' || result.back() == '.')) {
    bool isPoint = result.back() == '.';
    result.pop_back();
    if (isPoint)
      break;
  }
  return result;
}

std::string timeText(Picoseconds time) {
  // Below a microsecond, whole nanoseconds: predictions are not more exact than that.
  auto value = static_cast<double>(time);
  if (time < topology::kMicrosecond)
    return shortest(value / static_cast<double>(topology::kNanosecond), 0) + " ns";
  const struct {
    Picoseconds unit;
    const char *name;
  } units[] = {{topology::kSecond, "s"},
               {1000 * topology::kMicrosecond, "ms"},
               {topology::kMicrosecond, "us"}};
  // From the largest unit down: the first in which the number is at least 1.
  for (const auto &entry : units)
    if (time >= entry.unit) {
      char text[64];
      std::snprintf(text, sizeof text, "%.2f %s", value / static_cast<double>(entry.unit),
                    entry.name);
      return text;
    }
  return "";
}

std::string bytesText(uint64_t bytes) {
  constexpr const char *kNames[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  auto value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(kNames); ++unit)
    value /= 1024;
  return shortest(value, 2) + " " + kNames[unit];
}

std::string bandwidthText(BytesPerSecond bandwidth) {
  return shortest(static_cast<double>(bandwidth) / static_cast<double>(topology::kGigabyte), 2) +
         " GB/s";
}

} // namespace occl::cost

// A bar that grows on a terminal; elsewhere a line for every quarter.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace occl::demo {

class ProgressBar {
public:
  /// With 0 steps it prints nothing.
  explicit ProgressBar(uint32_t steps) : steps(steps), terminal(isatty(STDOUT_FILENO)) {}

  void advance() {
    ++done;
    if (steps == 0 || (!terminal && done * 4 / steps == (done - 1) * 4 / steps))
      return;
    const uint32_t filled = done * kWidth / steps;
    std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
    std::printf("%s  [%s] iteration %u of %u%s", terminal ? "\r" : "", bar.c_str(), done, steps,
                terminal && done < steps ? "" : "\n");
    std::fflush(stdout);
  }

private:
  static constexpr uint32_t kWidth = 40;

  uint32_t steps, done = 0;
  bool terminal;
};

} // namespace occl::demo

#include "tools/occl/report.h"

#include <cstdio>

namespace occl::driver {

void Report::add(Finding finding, const std::string &what, const std::string &state,
                 const std::string &advice) {
  static constexpr const char *kWords[] = {"ok", "limited", "BROKEN"};
  std::printf("%-8s %-22s %s\n", kWords[static_cast<int>(finding)], what.c_str(), state.c_str());
  if (!advice.empty())
    std::printf("%-8s %-22s -> %s\n", "", "", advice.c_str());
  std::fflush(stdout);
  broken |= finding == Finding::Broken;
}

} // namespace occl::driver

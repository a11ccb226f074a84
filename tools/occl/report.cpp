#include "tools/occl/report.h"

#include "support/text/wrapped.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace occl::driver {

void Report::add(Finding finding, const std::string &what, const std::string &state,
                 const std::string &advice) {
  static constexpr const char *kWords[] = {"ok", "limited", "BROKEN"};
  constexpr size_t kFindingWidth = 9, kWhatWidth = 21;
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(width, text.size() + 1), ' ');
    return text;
  };
  constexpr size_t kIndent = kFindingWidth + kWhatWidth;
  const std::string head =
      padded(kWords[static_cast<int>(finding)], kFindingWidth) + padded(what, kWhatWidth);
  std::string lines = wrapped(head + state, kIndent) + "\n";
  if (!advice.empty())
    lines += wrapped(std::string(kIndent, ' ') + "-> " + advice, kIndent + 3) + "\n";
  std::fputs(lines.c_str(), stdout);
  std::fflush(stdout);
  broken |= finding == Finding::Broken;
}

} // namespace occl::driver

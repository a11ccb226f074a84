// What `occl doctor` prints: for each thing that it has looked at its state, and what to do.
#pragma once

#include <string>

namespace occl::driver {

enum class Finding {
  Good,
  Limited, // what is there works, and something else does not
  Broken,  // OCCL does not work
};

class Report {
public:
  /// `what` in a few words, `state` as it is found; `advice`: what to do about it, or "". Lines
  /// have at most 80 columns, but for words that are longer.
  void add(Finding finding, const std::string &what, const std::string &state,
           const std::string &advice = "");
  bool isBroken() const { return broken; }

private:
  bool broken = false;
};

} // namespace occl::driver

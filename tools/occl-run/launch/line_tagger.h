// Passes output on, whole lines at a time, with a prefix in front.
#pragma once

#include <string>
#include <string_view>

namespace occl::run {

class LineTagger {
public:
  /// `destination`: a file descriptor. With an empty prefix unfinished lines are passed on, too.
  LineTagger(std::string prefix, int destination);

  /// Keeps an unfinished line back.
  void add(std::string_view text);
  /// Passes the unfinished line on.
  void finish();

private:
  void emitLines();

  std::string prefix;
  int destination;
  std::string pending;
};

/// Of a rank: "[3] ".
std::string rankPrefix(unsigned rank);

/// Writes all of it, or as much as somebody reads.
void writeAll(int destination, std::string_view text);

} // namespace occl::run

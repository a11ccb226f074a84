// occlc fmt.
#pragma once

#include <string>
#include <vector>

namespace occl::tools {

struct FmtCommand {
  std::vector<std::string> paths; // none, or "-": standard input to standard output
  bool inPlace = false;
  bool check = false; // only name the files whose layout is another
};

/// Formats .coll files. Returns the exit status: 1 after an error, or if `check` found a file. A
/// file with errors stays as it is.
int fmt(const FmtCommand &command);

} // namespace occl::tools

// What `occl doctor` says of versions: OCCL's own parts, and what it would meet in a program.
#pragma once

#include "tools/occl/report.h"

#include <compare>
#include <optional>
#include <string>

namespace occl::driver {

/// The loaded library of this name or path, closed at the end.
class LoadedLibrary {
public:
  explicit LoadedLibrary(const std::string &name);
  ~LoadedLibrary();
  LoadedLibrary(const LoadedLibrary &) = delete;
  LoadedLibrary &operator=(const LoadedLibrary &) = delete;

  explicit operator bool() const { return handle != nullptr; }
  /// NULL if it has none of this name.
  void *symbol(const char *name) const;
  /// The file that a function of this name came from; "" if there is none.
  std::string pathOf(const char *function) const;
  /// Why it is not there.
  const std::string &problem() const { return why; }

private:
  void *handle = nullptr;
  std::string why;
};

/// What a header says by OCCL_VERSION_MAJOR and OCCL_VERSION_MINOR, as "0.1"; nothing if it says
/// none or cannot be read.
std::optional<std::string> versionInHeader(const std::string &path);

/// Numbers of a version, "2.11.0+cpu" is 2.11; 0.0 of what begins with no number.
struct Version {
  unsigned major = 0, minor = 0;
  auto operator<=>(const Version &) const = default;
};
Version versionOf(const std::string &text);

/// OCCL's version, and whether its library, header and Python package are of the same; versions of
/// PyTorch and of another NCCL. Loads libraries, which may start threads, and starts `python3`.
void checkVersions(Report &report);

} // namespace occl::driver

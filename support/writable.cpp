#include "support/writable.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace occl {
namespace {

namespace fs = std::filesystem;

/// What the last call of the system says if it has failed.
std::string reasonUnless(bool isDone) { return isDone ? "" : std::strerror(errno); }

/// Of a file that is there. Only a regular one is opened.
std::string whyNotOpened(const std::string &path, const struct stat &file) {
  if (S_ISDIR(file.st_mode))
    return "it is a directory";
  if (!S_ISREG(file.st_mode))
    // A pipe or a terminal is not opened: that could block, or end what another process reads.
    return reasonUnless(access(path.c_str(), W_OK) == 0);
  const int opened = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const std::string reason = reasonUnless(opened >= 0);
  if (opened >= 0)
    close(opened);
  return reason;
}

} // namespace

std::string linkTarget(const std::string &path) {
  // As many as Linux follows.
  constexpr int kMostLinks = 40;
  fs::path place = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code none;
    const fs::path next = fs::read_symlink(place, none);
    if (none)
      break;
    place = place.parent_path() / next;
  }
  return place.string();
}

std::string whyNotWritable(const std::string &path) {
  struct stat file {};
  if (stat(path.c_str(), &file) == 0)
    return whyNotOpened(path, file);
  if (errno != ENOENT || path.empty())
    return reasonUnless(false);
  // It can be made if its folder is there and may be written to.
  const fs::path place = linkTarget(path);
  if (!place.has_filename())
    return "it is a directory";
  const fs::path folder = place.has_parent_path() ? place.parent_path() : ".";
  return reasonUnless(access(folder.c_str(), W_OK | X_OK) == 0);
}

} // namespace occl

// Files of reports, by pattern, and how they are written without blocking.
#include "runtime/observe/report/output.h"

#include "runtime/sync/deadline.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace occl::insight {

namespace {

/// A pipe whose reader has stopped must not stop those who end a communicator. Standard error is
/// others' as well, so it cannot be told not to block; but a pipe that is ready has so much room.
Status writeAll(int file, std::string_view text, const std::string &what,
                std::chrono::milliseconds patience) {
  // A pipe that is ready takes at least PIPE_BUF bytes, a file takes all.
  struct stat info;
  const bool isRegular = fstat(file, &info) == 0 && S_ISREG(info.st_mode);
  const size_t most = isRegular ? text.size() : PIPE_BUF;
  for (Deadline deadline(patience); !text.empty();) {
    pollfd ready{file, POLLOUT, 0};
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining());
    int found = poll(&ready, 1, static_cast<int>(left.count()));
    if (found == 0)
      return {StatusCode::SystemError, "writing " + what + ": nobody has read it for " +
                                           std::to_string(patience.count()) + " ms"};
    ssize_t written = found < 0 ? -1 : write(file, text.data(), std::min(most, text.size()));
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return systemError("writing " + what, errno);
    if (written > 0)
      text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

/// Of this user, and of no other name: what a process has left that was killed as it wrote.
bool isLeftOver(const char *path) {
  struct stat found = {};
  return lstat(path, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
         found.st_nlink == 1;
}

} // namespace

std::string pathOf(std::string_view pattern, uint32_t rank, uint32_t numRanks) {
  std::string path;
  bool hasRank = false;
  // A sign that is no placeholder stands for itself.
  for (size_t i = 0; i < pattern.size(); ++i) {
    char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'r')
      path += std::to_string(rank);
    else if (next == 'p')
      path += std::to_string(getpid());
    else if (next == '%')
      path += '%';
    else
      next = '\0', path += pattern[i];
    hasRank |= next == 'r';
    i += next != '\0';
  }
  // Ranks of one job must not write to one file.
  if (!hasRank && numRanks > 1)
    path += "." + std::to_string(rank);
  return path;
}

Status append(const std::string &path, std::string_view text, std::chrono::milliseconds patience) {
  if (path.empty())
    return writeAll(STDERR_FILENO, text, "to standard error", patience);
  // A pipe without a reader is an error here, not a reason to wait.
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file < 0)
    return systemError("opening '" + path + "'", errno);
  Status written = writeAll(file, text, "'" + path + "'", patience);
  close(file);
  return written;
}

Status replace(const std::string &path, std::string_view text) {
  // What needs memory comes first: without any nothing is left open.
  const std::string whole = path + ".new", named = "'" + whole + "'";
  const auto make = [&] {
    return open(whole.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  };
  int file = make();
  if (file < 0 && errno == EEXIST && isLeftOver(whole.c_str()) && unlink(whole.c_str()) == 0)
    file = make();
  if (file < 0)
    return systemError("making " + named, errno);
  constexpr std::chrono::seconds kPatience{2};
  Status written = writeAll(file, text, named, kPatience);
  close(file);
  if (written.ok() && std::rename(whole.c_str(), path.c_str()) != 0)
    written = systemError("renaming " + named, errno);
  if (!written.ok())
    unlink(whole.c_str());
  return written;
}

void complain(const Status &status) {
  constexpr std::chrono::milliseconds kPatience{50}; // it may be standard error that is the matter
  if (!status.ok())
    (void)append("", "OCCL: " + status.message() + "\n", kPatience).ok();
}

} // namespace occl::insight

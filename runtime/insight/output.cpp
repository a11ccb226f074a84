#include "runtime/insight/output.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace occl::insight {

namespace {

Status writeAll(int file, std::string_view text, const std::string &what) {
  while (!text.empty()) {
    ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR)
      return systemError("writing " + what, errno);
    if (written > 0)
      text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

} // namespace

std::string pathOf(std::string_view pattern, uint32_t rank, uint32_t numRanks) {
  std::string path;
  bool hasRank = false;
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
  if (!hasRank && numRanks > 1)
    path += "." + std::to_string(rank);
  return path;
}

Status append(const std::string &path, std::string_view text) {
  if (path.empty())
    return writeAll(STDERR_FILENO, text, "to standard error");
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0)
    return systemError("opening '" + path + "'", errno);
  Status written = writeAll(file, text, "'" + path + "'");
  close(file);
  return written;
}

} // namespace occl::insight

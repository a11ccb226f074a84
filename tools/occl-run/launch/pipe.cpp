#include "tools/occl-run/launch/pipe.h"

#include <fcntl.h>
#include <unistd.h>

namespace occl::run {

Pipe::Pipe() {
  if (pipe2(ends, O_CLOEXEC) == 0)
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

Pipe::~Pipe() {
  closeWriteEnd();
  if (ends[0] >= 0)
    close(ends[0]);
}

void Pipe::closeWriteEnd() {
  if (ends[1] >= 0)
    close(ends[1]);
  ends[1] = -1;
}

std::string Pipe::readSome() {
  constexpr size_t kMost = 256 << 10; // so that one who writes all the time does not keep us here
  std::string text;
  char buffer[4096];
  ssize_t length = -1;
  while (ends[0] >= 0 && text.size() < kMost && (length = read(ends[0], buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<size_t>(length));
  if (ends[0] >= 0 && length == 0) {
    close(ends[0]);
    ends[0] = -1;
  }
  return text;
}

} // namespace occl::run

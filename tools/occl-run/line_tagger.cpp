#include "tools/occl-run/line_tagger.h"

#include <fcntl.h>
#include <unistd.h>

namespace occl::run {

LineTagger::LineTagger(uint32_t rank, int destination)
    : prefix("[" + std::to_string(rank) + "] "), destination(destination) {
  if (pipe2(ends, O_CLOEXEC) == 0)
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

LineTagger::~LineTagger() {
  closeWriteEnd();
  if (ends[0] >= 0)
    close(ends[0]);
}

void LineTagger::closeWriteEnd() {
  if (ends[1] >= 0)
    close(ends[1]);
  ends[1] = -1;
}

void LineTagger::forward() {
  char buffer[4096];
  ssize_t length;
  while ((length = read(ends[0], buffer, sizeof buffer)) > 0)
    pending.append(buffer, static_cast<size_t>(length));
  emitLines();
  if (length == 0) {
    close(ends[0]);
    ends[0] = -1;
  }
}

void LineTagger::finish() {
  if (ends[0] >= 0)
    forward();
  if (!pending.empty()) {
    pending += '\n';
    emitLines();
  }
}

void LineTagger::emitLines() {
  std::string text;
  size_t begin = 0;
  for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
    text += prefix + pending.substr(begin, end + 1 - begin);
  pending.erase(0, begin);
  for (size_t written = 0; written < text.size();) {
    ssize_t length = write(destination, text.data() + written, text.size() - written);
    if (length <= 0)
      return; // nobody reads any more
    written += static_cast<size_t>(length);
  }
}

} // namespace occl::run

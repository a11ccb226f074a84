#include "tools/occl-run/launch/line_tagger.h"

#include <unistd.h>
#include <utility>

namespace occl::run {

LineTagger::LineTagger(std::string prefix, int destination)
    : prefix(std::move(prefix)), destination(destination) {}

void LineTagger::add(std::string_view text) {
  if (prefix.empty())
    return writeAll(destination, text);
  pending += text;
  emitLines();
}

void LineTagger::finish() {
  if (pending.empty())
    return;
  pending += '\n';
  emitLines();
}

void LineTagger::emitLines() {
  std::string text;
  size_t begin = 0;
  for (size_t end; (end = pending.find('\n', begin)) != std::string::npos; begin = end + 1)
    text += prefix + pending.substr(begin, end + 1 - begin);
  pending.erase(0, begin);
  writeAll(destination, text);
}

std::string rankPrefix(unsigned rank) { return "[" + std::to_string(rank) + "] "; }

void writeAll(int destination, std::string_view text) {
  while (!text.empty()) {
    const ssize_t length = write(destination, text.data(), text.size());
    if (length <= 0)
      return; // nobody reads any more
    text.remove_prefix(static_cast<size_t>(length));
  }
}

} // namespace occl::run

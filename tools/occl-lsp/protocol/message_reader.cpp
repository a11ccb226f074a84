#include "tools/occl-lsp/protocol/message_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <poll.h>
#include <string_view>
#include <unistd.h>

namespace occl::lsp {
namespace {

constexpr size_t kMaxLine = 4096;

constexpr std::string_view kLength = "content-length:";

/// Names of headers may be of either case.
bool hasName(std::string_view line, std::string_view name) {
  if (line.size() < name.size())
    return false;
  for (size_t i = 0; i < name.size(); ++i)
    if ((line[i] | 0x20) != (name[i] | 0x20))
      return false;
  return true;
}

/// The line from the last place on where a header with a length may begin.
std::string_view fromLastLength(std::string_view line) {
  for (size_t begin = line.size(); begin-- > 0;)
    if (hasName(line.substr(begin), kLength))
      return line.substr(begin);
  return line;
}

bool isBlank(char c) { return c == ' ' || c == '\t'; }

enum class Header { Length, BadLength, Other };

Header readHeader(std::string_view line, size_t &length) {
  // Other headers (Content-Type) are allowed and mean nothing here.
  if (!hasName(line, kLength))
    return Header::Other;
  line.remove_prefix(kLength.size());
  while (!line.empty() && isBlank(line.front()))
    line.remove_prefix(1);
  while (!line.empty() && isBlank(line.back()))
    line.remove_suffix(1);
  // The whole value has to be a number: "12 bytes" is none.
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), length);
  const bool isNumber = error == std::errc() && end == line.data() + line.size();
  return isNumber ? Header::Length : Header::BadLength;
}

} // namespace

bool MessageReader::fill() {
  // What has been taken goes before more is appended, so the buffer is as long as a message and
  // what came with it.
  buffer.erase(0, at);
  at = 0;
  char piece[1 << 16];
  ssize_t count;
  do
    count = read(descriptor, piece, sizeof piece);
  while (count < 0 && errno == EINTR);
  if (count <= 0)
    return false;
  buffer.append(piece, static_cast<size_t>(count));
  return true;
}

bool MessageReader::readLine(std::string &line) {
  line.clear();
  // A line may come in pieces. Of very long ones only the end is kept: a client that sends garbage
  // costs no memory.
  for (;;) {
    size_t end = buffer.find('\n', at);
    size_t taken = std::min(end, buffer.size());
    line.append(buffer, at, taken - at);
    line.erase(0, line.size() - std::min(line.size(), kMaxLine));
    at = taken;
    if (end != buffer.npos)
      break;
    if (!fill())
      return false;
  }
  ++at;
  if (line.ends_with('\r'))
    line.pop_back();
  return true;
}

bool MessageReader::readBytes(size_t count, std::string *into) {
  // With nothing to put them in, the bytes are skipped.
  while (count > 0) {
    if (at == buffer.size() && !fill())
      return false;
    size_t taken = std::min(count, buffer.size() - at);
    if (into)
      into->append(buffer, at, taken);
    at += taken;
    count -= taken;
  }
  return true;
}

MessageReader::Status MessageReader::next(std::string &message) {
  // A message without a good header is lost, but the next one need not be: the header lines are
  // where messages can be found again.
  message.clear();
  size_t length = 0;
  bool isGiven = false, isGood = true;
  std::string line;
  do {
    if (!readLine(line))
      return Status::End;
    const Header header = readHeader(isLost ? fromLastLength(line) : line, length);
    isGiven |= header == Header::Length;
    // Of a lost message the last header is the next one's.
    if (header == Header::BadLength || (isLost && header == Header::Length))
      isGood = header == Header::Length;
  } while (!line.empty());
  isLost = !isGood || !isGiven;
  if (isLost)
    return Status::BadHeader;
  // Read past, so that the message behind it is understood.
  if (length > kMaxBytes)
    return readBytes(length, nullptr) ? Status::TooLarge : Status::End;
  return readBytes(length, &message) ? Status::Message : Status::End;
}

bool MessageReader::hasInput() {
  if (at < buffer.size())
    return true;
  pollfd input{descriptor, POLLIN, 0};
  return poll(&input, 1, 0) > 0 && (input.revents & POLLIN);
}

} // namespace occl::lsp

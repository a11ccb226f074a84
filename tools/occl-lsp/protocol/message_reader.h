// Takes messages from a stream of bytes: header, blank line, JSON.
#pragma once

#include <cstddef>
#include <string>

namespace occl::lsp {

/// MLIR's transport ends at a message that is wrong; this one goes on with the next that has a good
/// header. Not thread-safe.
class MessageReader {
public:
  /// Larger ones are skipped: a file of 16 MiB fits, whatever its bytes are.
  static constexpr size_t kMaxBytes = 128u << 20;

  /// The descriptor stays the caller's.
  explicit MessageReader(int descriptor) : descriptor(descriptor) {}

  enum class Status { Message, BadHeader, TooLarge, End };
  /// Waits for the next one; `message` is its JSON. End also where a message breaks off.
  Status next(std::string &message);
  /// Whether something is there already, so that the answer to what was read can wait.
  bool hasInput();

private:
  bool fill();
  /// Without its end; false at the end of the stream. Of what is longer than headers are it is the
  /// last part.
  bool readLine(std::string &line);
  bool readBytes(size_t count, std::string *into);

  int descriptor;
  std::string buffer; // read, from `at` on not taken
  size_t at = 0;
  /// After a bad header: what was its message comes before the next header, in the same line.
  bool isLost = false;
};

} // namespace occl::lsp

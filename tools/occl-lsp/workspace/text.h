// The text of a document, with the protocol's positions.
#pragma once

#include "mlir/Tools/lsp-server-support/Protocol.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace occl::lsp {

namespace protocol = mlir::lsp;

/// Lines end in "\n", "\r\n" or "\r". Lines and columns count from 0, columns in UTF-16 code units;
/// a byte that is no part of valid UTF-8 is one. Offsets are bytes, and count from behind a byte
/// order mark, which the frontend leaves out, too. Not thread-safe.
class Text {
public:
  explicit Text(std::string text = "");

  const std::string &bytes() const { return text; }
  /// A column behind the end of its line means that end, a line behind the last one the end of the
  /// text; negative ones are 0. Within a character it means the character's beginning.
  uint32_t offsetOf(protocol::Position position) const;
  protocol::Position positionOf(uint32_t offset) const;
  protocol::Range rangeOf(uint32_t begin, uint32_t end) const {
    return {positionOf(begin), positionOf(end)};
  }
  protocol::Range all() const;
  /// Ends in the other order are put right; without range, the whole text is replaced.
  void apply(const protocol::TextDocumentContentChangeEvent &change);

private:
  /// A byte, counted with the mark, that begins a character.
  struct Stop {
    size_t byte;
    int line, column;
  };

  size_t byteOf(protocol::Position position) const;
  void setStops();
  /// Appends the next one; false at the end of the text.
  bool addStop();
  void replace(size_t begin, size_t end, const std::string &with);

  std::string text;
  std::vector<Stop> stops; // the beginnings of lines and, in long ones, places on the way
  uint32_t mark = 0;       // its length
};

} // namespace occl::lsp

#include "compiler/format/Pieces.h"

#include <algorithm>

namespace occl::format {

namespace {

class Splitter {
public:
  explicit Splitter(std::string_view text) : text(text) {}

  std::vector<Piece> run(const std::vector<frontend::Token> &tokens) {
    for (const frontend::Token &token : tokens) {
      addComments(token.range.begin);
      if (token.kind != frontend::TokenKind::End)
        add(Piece::Token, token.range.end, token.kind);
    }
    return std::move(pieces);
  }

private:
  /// The comments up to `end`; there is nothing else but blanks.
  void addComments(size_t end) {
    while (skipBlanks(end), at < end) {
      bool isLine = text[at + 1] == '/';
      size_t close = isLine ? text.find('\n', at) : text.find("*/", at + 2) + 2;
      add(isLine ? Piece::LineComment : Piece::BlockComment, std::min(close, end));
    }
  }

  void skipBlanks(size_t end) {
    for (;
         at < end && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n');
         ++at)
      breaks += text[at] == '\n';
  }

  void add(Piece::Kind kind, size_t end, frontend::TokenKind token = frontend::TokenKind::End) {
    std::string_view piece = text.substr(at, end - at);
    if (kind == Piece::LineComment)
      piece = piece.substr(0, piece.find_last_not_of(" \t\r") + 1);
    pieces.push_back({kind, token, piece, static_cast<uint8_t>(std::min<size_t>(breaks, 2))});
    at = end;
    breaks = 0;
  }

  std::string_view text;
  size_t at = 0, breaks = 0;
  std::vector<Piece> pieces;
};

} // namespace

std::vector<Piece> piecesOf(const frontend::SourceManager &sources, frontend::FileId file,
                            const std::vector<frontend::Token> &tokens) {
  return Splitter(sources.text(file)).run(tokens);
}

} // namespace occl::format

// What a formatter moves around: the tokens of a file and the comments between them.
#pragma once

#include "compiler/frontend/syntax/Lexer.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace occl::format {

struct Piece {
  enum Kind : uint8_t { Token, LineComment, BlockComment };

  Kind kind = Token;
  frontend::TokenKind token = frontend::TokenKind::End; // of a Token
  /// As it stands in the source, without blanks at the end of a line comment.
  std::string_view text;
  /// Line breaks between the piece before and this one; more than 2 count as 2.
  uint8_t breaksBefore = 0;

  bool isComment() const { return kind != Token; }
  bool is(frontend::TokenKind wanted) const { return kind == Token && token == wanted; }
};

/// All pieces of a file without lexical errors, in order; the end of the file is none.
std::vector<Piece> piecesOf(const frontend::SourceManager &sources, frontend::FileId file,
                            const std::vector<frontend::Token> &tokens);

} // namespace occl::format

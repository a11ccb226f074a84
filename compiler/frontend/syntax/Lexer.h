// From text to tokens.
#pragma once

#include "compiler/frontend/diagnostics/Diagnostics.h"
#include "compiler/frontend/diagnostics/SourceManager.h"

#include <vector>

namespace occl::frontend {

enum class TokenKind : uint8_t {
#define OCCL_TOKEN(name, spelling) name,
#include "compiler/frontend/syntax/Token.def"
};

/// How diagnostics call a token of this kind: "';'", "name".
std::string describe(TokenKind kind);

struct Token {
  TokenKind kind = TokenKind::End;
  SourceRange range;
  int64_t value = 0; // of an Integer
};

/// All tokens of a file, the last of kind End. What starts no token is reported and left out.
std::vector<Token> lex(const SourceManager &sources, FileId file, DiagnosticEngine &diagnostics);

} // namespace occl::frontend

// Where in the grammar a byte of a document is, which may not be finished there.
#pragma once

#include "tools/occl-lsp/workspace/workspace.h"

#include <optional>
#include <string>

namespace occl::lsp {

/// A call that is open at the byte.
struct Call {
  std::string_view name;
  bool isMember = false;     // behind a dot
  bool isCollective = false; // behind 'implements'
  int argument = 0;          // from 0
};

/// Looks at the tokens before the byte only, without the word that ends there. The analysis lives
/// longer.
class SyntaxContext {
public:
  SyntaxContext(const Analysis &analysis, uint32_t offset);

  uint32_t offset() const { return place; }
  /// The text of a token before the word that is being written, 0: the last one; "" if there is
  /// none.
  std::string_view before(size_t back) const;

  bool isInComment() const;
  bool isInString() const;
  /// What is written of the path if the byte is within that of an import.
  std::optional<std::string> importPath() const;
  bool isOutside() const { return !isInBody() && !isInHead(); }
  /// Between the parameters, or arguments, of an algorithm and its body.
  bool isHead() const;
  bool isInModes() const;
  bool isParameterType() const;
  bool isHintList() const;
  bool beginsStatement() const;
  bool isInCollective() const { return declWord() == frontend::TokenKind::KwCollective; }
  bool isInTopology() const { return declWord() == frontend::TokenKind::KwTopology; }
  /// Behind reduce(...) and a dot.
  bool isAfterReduce() const;
  /// Of what stands before the dot, as if something followed it; Error if that is not known.
  frontend::Type typeBeforeDot(Workspace &workspace, const Document &document) const;
  std::optional<Call> call() const;

private:
  const frontend::Token &at(size_t index) const { return analysis.tokens[index]; }
  bool isInBody() const { return depth > 0; }
  bool isInHead() const { return declaration != kNone && depth == 0 && !isClosed; }
  frontend::TokenKind declWord() const {
    return declaration == kNone ? frontend::TokenKind::End : at(declaration).kind;
  }
  /// Where the operand begins that ends before this token: a name, call or place with its brackets.
  size_t operandBegin(size_t end) const;
  size_t statementBegin() const;
  /// The token that opens the innermost bracket around the byte; kNone if there is none.
  size_t opening() const;

  static constexpr size_t kNone = ~size_t{0};

  const Analysis &analysis;
  uint32_t place;
  size_t count = 0;           // of tokens before the word
  size_t declaration = kNone; // the word that begins the declaration around the byte
  int depth = 0;              // of braces
  bool isClosed = false;      // the declaration's body is over
};

} // namespace occl::lsp

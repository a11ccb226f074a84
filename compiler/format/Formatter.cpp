#include "compiler/format/Formatter.h"

#include "compiler/format/Pieces.h"
#include "compiler/format/Spacing.h"
#include "compiler/frontend/syntax/Parser.h"

#include <algorithm>

namespace occl::format {

using frontend::TokenKind;

namespace {

struct Line {
  std::string text;         // with indentation
  std::string_view comment; // at its end
  /// The outermost blocks on one line that the line has, by the piece that opens them.
  std::vector<size_t> inlineBlocks;
};

class Layout {
public:
  explicit Layout(std::vector<Piece> all)
      : pieces(std::move(all)), blanks(blanksBefore(pieces)), isInline(pieces.size()),
        partner(pieces.size()) {
    findBlocks();
  }

  std::string run() {
    do
      layOut();
    while (openLongBlocks());
    return text();
  }

private:
  static constexpr size_t kIndent = 2, kContinuation = 4;

  /// Pairs the braces; a block is inline if its author wrote it on one line.
  void findBlocks() {
    // A stack of open braces: a line break inside makes all of them blocks over several lines.
    std::vector<size_t> open;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].breaksBefore > 0 || pieces[i].kind == Piece::LineComment)
        for (size_t block : open)
          isInline[block] = false;
      if (pieces[i].is(TokenKind::LeftBrace)) {
        open.push_back(i);
        isInline[i] = true;
      } else if (pieces[i].is(TokenKind::RightBrace)) {
        partner[i] = open.back();
        open.pop_back();
      }
    }
  }

  void layOut() {
    lines.clear();
    depth = inlineDepth = 0;
    inStatement = false;
    for (size_t i = 0; i < pieces.size(); ++i)
      place(i);
  }

  void place(size_t i) {
    // A closing brace stands one level further out than what it closes, so that the depth changes
    // before it is placed.
    const Piece &piece = pieces[i];
    bool closesBlock = piece.is(TokenKind::RightBrace) && !isInline[partner[i]];
    if (closesBlock) {
      --depth;
      inStatement = false;
    }
    // A line of its own, the end of the last line, or behind a comment: where the piece goes
    // decides before what it is.
    if (breaksBefore(i))
      startLine(i);
    else if (piece.isComment() && !inStatementComment(i))
      return trail(piece);
    append(i);
    if (piece.is(TokenKind::LeftBrace))
      openBlock(i);
    else if (piece.is(TokenKind::RightBrace) && isInline[partner[i]])
      --inlineDepth;
    // Whether what follows continues a statement, and is indented further.
    inStatement = !endsStatement(i);
  }

  void openBlock(size_t i) {
    if (!isInline[i]) {
      ++depth;
      return;
    }
    if (inlineDepth++ == 0)
      lines.back().inlineBlocks.push_back(i);
  }

  bool endsStatement(size_t i) const {
    const Piece &piece = pieces[i];
    if (piece.is(TokenKind::LeftBrace) || piece.is(TokenKind::RightBrace))
      return true;
    return piece.is(TokenKind::Semicolon) || (piece.isComment() && !inStatement);
  }

  /// A comment with more of its statement behind it on the line.
  bool inStatementComment(size_t i) const {
    return pieces[i].kind == Piece::BlockComment && i + 1 < pieces.size() &&
           pieces[i + 1].breaksBefore == 0 && (inStatement || inlineDepth > 0);
  }

  bool breaksBefore(size_t i) const {
    // In the order of precedence: the first rule that applies decides. A line comment always ends
    // its line.
    if (i == 0)
      return true;
    const Piece &piece = pieces[i], &before = pieces[i - 1];
    if (before.kind == Piece::LineComment || (!lines.back().comment.empty() && !piece.isComment()))
      return true;
    // Comments stay where their author put them: on lines of their own, or behind something.
    if (piece.isComment())
      return piece.breaksBefore > 0;
    // Braces by whether their block is inline.
    if (piece.is(TokenKind::RightBrace))
      return !isInline[partner[i]];
    if (before.is(TokenKind::LeftBrace))
      return !isInline[i - 1];
    if (before.isComment())
      return piece.breaksBefore > 0;
    // "} else" goes on the same line, unless the block before is inline and the author broke the
    // line.
    if (piece.is(TokenKind::KwElse) && before.is(TokenKind::RightBrace))
      return isInline[partner[i - 1]] && piece.breaksBefore > 0;
    // Statements of an inline block stay on one line.
    if (before.is(TokenKind::Semicolon) || before.is(TokenKind::RightBrace))
      return inlineDepth == 0;
    // Other breaks are the author's: long expressions stay broken as they were.
    return piece.breaksBefore > 0 && !piece.is(TokenKind::LeftBrace);
  }

  void startLine(size_t i) {
    bool afterOpening = i > 0 && pieces[i - 1].is(TokenKind::LeftBrace);
    if (!lines.empty() && pieces[i].breaksBefore > 1 && !inStatement && !afterOpening &&
        !pieces[i].is(TokenKind::RightBrace))
      lines.push_back({});
    lines.push_back(
        {std::string(depth * kIndent + (inStatement ? kContinuation : 0), ' '), {}, {}});
  }

  void append(size_t i) {
    std::string &line = lines.back().text;
    bool isFirst = line.find_first_not_of(' ') == line.npos;
    if (!isFirst && (blanks[i] || isApart(i)))
      line += ' ';
    line += pieces[i].text;
  }

  /// Comments stand apart, but close to the bracket that they follow.
  bool isApart(size_t i) const {
    const Piece &before = pieces[i - 1];
    if (pieces[i].isComment())
      return !before.is(TokenKind::LeftParen) && !before.is(TokenKind::LeftBracket);
    return before.isComment();
  }

  /// A comment at the end of a line; a second one joins as text.
  void trail(const Piece &piece) {
    Line &line = lines.back();
    if (line.comment.empty())
      line.comment = piece.text;
    else
      line.comment = {
          line.comment.data(),
          static_cast<size_t>(piece.text.data() + piece.text.size() - line.comment.data())};
  }

  /// Opens the blocks of lines that are too long. Whether there were any.
  bool openLongBlocks() {
    bool found = false;
    for (const Line &line : lines)
      if (line.text.size() > kMaxColumns)
        for (size_t block : line.inlineBlocks)
          isInline[block] = false, found = true;
    return found;
  }

  std::string text() {
    // Comments at the ends of neighbouring lines are aligned, as far as such lines follow each
    // other.
    std::string result;
    for (size_t begin = 0, end; begin < lines.size(); begin = end) {
      size_t width = lines[begin].text.size();
      for (end = begin + 1;
           end < lines.size() && !lines[begin].comment.empty() && !lines[end].comment.empty();
           ++end)
        width = std::max(width, lines[end].text.size());
      for (size_t i = begin; i < end; ++i)
        result += withComment(lines[i], width) + '\n';
    }
    return result;
  }

  static std::string withComment(const Line &line, size_t width) {
    if (line.comment.empty())
      return line.text;
    return line.text + std::string(width - line.text.size() + 2, ' ') + std::string(line.comment);
  }

  std::vector<Piece> pieces;
  std::vector<bool> blanks;
  std::vector<bool> isInline;  // of the piece that opens a block
  std::vector<size_t> partner; // of a closing brace, the opening one
  std::vector<Line> lines;
  size_t depth = 0, inlineDepth = 0;
  bool inStatement = false; // the line goes on a statement that began before
};

} // namespace

std::optional<std::string> format(const frontend::SourceManager &sources, frontend::FileId file,
                                  frontend::DiagnosticEngine &diagnostics) {
  frontend::parse(sources, file, diagnostics);
  if (diagnostics.hasErrors())
    return std::nullopt;
  return Layout(piecesOf(sources, file, frontend::lex(sources, file, diagnostics))).run();
}

} // namespace occl::format

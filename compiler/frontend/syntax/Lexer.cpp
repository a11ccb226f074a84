#include "compiler/frontend/syntax/Lexer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace occl::frontend {
namespace {

constexpr const char *kSpellings[] = {
#define OCCL_TOKEN(name, spelling) spelling,
#include "compiler/frontend/syntax/Token.def"
};

constexpr std::pair<std::string_view, TokenKind> kWords[] = {
#define OCCL_KEYWORD(name, spelling) {spelling, TokenKind::name},
#define OCCL_RESERVED(spelling) {spelling, TokenKind::Reserved},
#include "compiler/frontend/syntax/Token.def"
};

// Longer spellings first, so that ".." is not two dots.
constexpr TokenKind kPunctuation[] = {
    TokenKind::DotDot,    TokenKind::Arrow,      TokenKind::AndAnd,      TokenKind::OrOr,
    TokenKind::Equal,     TokenKind::NotEqual,   TokenKind::LessEqual,   TokenKind::GreaterEqual,
    TokenKind::LeftParen, TokenKind::RightParen, TokenKind::LeftBracket, TokenKind::RightBracket,
    TokenKind::LeftBrace, TokenKind::RightBrace, TokenKind::Comma,       TokenKind::Semicolon,
    TokenKind::Colon,     TokenKind::Question,   TokenKind::Dot,         TokenKind::Assign,
    TokenKind::Plus,      TokenKind::Minus,      TokenKind::Star,        TokenKind::Slash,
    TokenKind::Percent,   TokenKind::Not,        TokenKind::Less,        TokenKind::Greater,
};

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isWord(char c) { return isWordStart(c) || isDigit(c); }

class Lexer {
public:
  Lexer(const SourceManager &sources, FileId file, DiagnosticEngine &diagnostics)
      : text(sources.text(file)), file(file), diagnostics(diagnostics) {}

  std::vector<Token> run() {
    while (skipBlanks(), at < text.size())
      lexToken();
    add(TokenKind::End, at);
    return std::move(tokens);
  }

private:
  SourceRange from(size_t begin) const {
    return {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(at)};
  }
  void add(TokenKind kind, size_t begin, int64_t value = 0) {
    tokens.push_back({kind, from(begin), value});
  }
  template <typename Predicate> void skipWhile(Predicate predicate) {
    while (at < text.size() && predicate(text[at]))
      ++at;
  }

  void skipBlanks() {
    // Comments are blanks; block comments do not nest.
    for (;;) {
      skipWhile([](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
      if (text.substr(at).starts_with("//"))
        skipWhile([](char c) { return c != '\n'; });
      else if (text.substr(at).starts_with("/*"))
        skipBlockComment();
      else
        return;
    }
  }

  void skipBlockComment() {
    size_t begin = at, end = text.find("*/", at + 2);
    at = end == text.npos ? text.size() : end + 2;
    if (end == text.npos)
      diagnostics.error(DiagnosticCode::UnterminatedText,
                        {file, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + 2)},
                        "this comment is not closed; '*/' is missing");
  }

  void lexToken() {
    if (isWordStart(text[at]))
      lexWord();
    else if (isDigit(text[at]))
      lexNumber();
    else if (text[at] == '"')
      lexString();
    else if (!lexPunctuation())
      lexUnknown();
  }

  void lexWord() {
    size_t begin = at;
    skipWhile(isWord);
    std::string_view word = text.substr(begin, at - begin);
    auto known = std::find_if(std::begin(kWords), std::end(kWords),
                              [&](const auto &entry) { return entry.first == word; });
    add(known == std::end(kWords) ? TokenKind::Identifier : known->second, begin);
  }

  /// Takes the unit of a size from the end of a number; 1 if there is none.
  static int64_t takeUnit(std::string_view &number) {
    // In ascending order, so that each unit is 1024 times the one before.
    int64_t unit = 1;
    for (std::string_view name : {"KiB", "MiB", "GiB"}) {
      unit <<= 10;
      if (!number.ends_with(name))
        continue;
      number.remove_suffix(name.size());
      return unit;
    }
    return 1;
  }

  void lexNumber() {
    // Everything that looks like a word belongs to the number, so that "12abc" is one mistake and
    // not two tokens.
    size_t begin = at;
    skipWhile(isWord);
    if (at + 1 < text.size() && text[at] == '.' && isDigit(text[at + 1]))
      return lexFraction(begin);
    int64_t value = 0;
    bool digits = true, fits = true;
    std::string_view number = text.substr(begin, at - begin);
    int64_t unit = takeUnit(number);
    // Overflow is found while it is read: the value may be far beyond 64 bits.
    for (char c : number) {
      digits &= isDigit(c);
      fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
             !__builtin_add_overflow(value, c - '0', &value);
    }
    fits = fits && !__builtin_mul_overflow(value, unit, &value);
    if (!digits)
      diagnostics.error(DiagnosticCode::BadNumber, from(begin),
                        "a number consists of decimal digits; it may end in KiB, MiB or GiB");
    else if (!fits)
      diagnostics.error(DiagnosticCode::BadNumber, from(begin),
                        "this number does not fit 64 bits; the largest is 9223372036854775807");
    // A token in any case, so that the parser goes on.
    add(TokenKind::Integer, begin, digits && fits ? value : 0);
  }

  /// The number before the point is read.
  void lexFraction(size_t begin) {
    ++at;
    skipWhile(isWord);
    diagnostics.error(DiagnosticCode::BadNumber, from(begin),
                      "numbers are whole: the language has no fractions");
    add(TokenKind::Integer, begin);
  }

  void lexString() {
    size_t begin = at++;
    skipWhile([](char c) { return c != '"' && c != '\n'; });
    if (at < text.size() && text[at] == '"')
      ++at;
    else
      diagnostics.error(DiagnosticCode::UnterminatedText, from(begin),
                        "this string is not closed on its line; '\"' is missing");
    add(TokenKind::String, begin);
  }

  bool lexPunctuation() {
    for (TokenKind kind : kPunctuation) {
      std::string_view spelling = kSpellings[static_cast<size_t>(kind)];
      if (!text.substr(at).starts_with(spelling))
        continue;
      size_t begin = at;
      at += spelling.size();
      add(kind, begin);
      return true;
    }
    return false;
  }

  void lexUnknown() {
    size_t begin = at++;
    // The rest of a UTF-8 sequence belongs to the same character.
    skipWhile([](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; });
    unsigned char c = static_cast<unsigned char>(text[begin]);
    std::string shown = c > 0x20 && c < 0x7f
                            ? std::string("'") + text[begin] + "' means nothing here"
                            : "this character is allowed in comments and strings only";
    if (c == '#') // what follows is a comment in other languages
      shown += "; a comment begins with '//'";
    Diagnostic &error = diagnostics.error(DiagnosticCode::UnknownCharacter, from(begin), shown);
    if (c != '#')
      return;
    error.fixIt(from(begin), "//");
    skipWhile([](char next) { return next != '\n'; });
  }

  std::string_view text;
  FileId file;
  DiagnosticEngine &diagnostics;
  size_t at = 0;
  std::vector<Token> tokens;
};

} // namespace

std::string describe(TokenKind kind) {
  bool isWordClass = kind == TokenKind::End || kind == TokenKind::Identifier ||
                     kind == TokenKind::Integer || kind == TokenKind::String ||
                     kind == TokenKind::Reserved;
  std::string spelling = kSpellings[static_cast<size_t>(kind)];
  return isWordClass ? spelling : "'" + spelling + "'";
}

std::vector<Token> lex(const SourceManager &sources, FileId file, DiagnosticEngine &diagnostics) {
  return Lexer(sources, file, diagnostics).run();
}

} // namespace occl::frontend

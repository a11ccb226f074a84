#include "compiler/frontend/syntax/Lexer.h"

#include <gtest/gtest.h>

namespace occl::frontend {
namespace {

struct Lexed {
  SourceManager sources;
  DiagnosticEngine diagnostics{sources};
  std::vector<Token> tokens;

  explicit Lexed(std::string text) {
    tokens = lex(sources, sources.addText("t", std::move(text)), diagnostics);
  }
  std::vector<TokenKind> kinds() const {
    std::vector<TokenKind> result;
    for (const Token &token : tokens)
      result.push_back(token.kind);
    return result;
  }
};

using Kinds = std::vector<TokenKind>;

TEST(Lexer, EmptyTextIsTheEnd) { EXPECT_EQ(Lexed("").kinds(), Kinds{TokenKind::End}); }

TEST(Lexer, LongestPunctuationWins) {
  EXPECT_EQ(Lexed("0..3 . <= < -> - == =").kinds(),
            (Kinds{TokenKind::Integer, TokenKind::DotDot, TokenKind::Integer, TokenKind::Dot,
                   TokenKind::LessEqual, TokenKind::Less, TokenKind::Arrow, TokenKind::Minus,
                   TokenKind::Equal, TokenKind::Assign, TokenKind::End}));
}

TEST(Lexer, WordsAreWholeWords) {
  EXPECT_EQ(Lexed("for form input inputs while").kinds(),
            (Kinds{TokenKind::KwFor, TokenKind::Identifier, TokenKind::KwInput,
                   TokenKind::Identifier, TokenKind::Reserved, TokenKind::End}));
}

TEST(Lexer, CommentsAreBlanks) {
  EXPECT_EQ(Lexed("a // b\n/* c\n * d */ e // f").kinds(),
            (Kinds{TokenKind::Identifier, TokenKind::Identifier, TokenKind::End}));
}

TEST(Lexer, LargestNumber) {
  Lexed lexed("9223372036854775807");
  EXPECT_EQ(lexed.tokens[0].value, INT64_MAX);
  EXPECT_FALSE(lexed.diagnostics.hasErrors());
}

TEST(Lexer, NumbersThatAreNone) {
  for (const char *text : {"9223372036854775808", "99999999999999999999999", "0x10", "1e3", "1_0"})
    EXPECT_EQ(Lexed(text).diagnostics.all().at(0).code, DiagnosticCode::BadNumber) << text;
}

TEST(Lexer, OneErrorForOneCharacter) {
  Lexed lexed("\xc3\xa4 \xe2\x82\xac");
  ASSERT_EQ(lexed.diagnostics.numErrors(), 2u);
  EXPECT_EQ(lexed.diagnostics.all()[1].range.end - lexed.diagnostics.all()[1].range.begin, 3u);
}

TEST(Lexer, EveryByteAlone) {
  for (int byte = 0; byte < 256; ++byte) {
    Lexed lexed(std::string(3, static_cast<char>(byte)));
    EXPECT_EQ(lexed.tokens.back().kind, TokenKind::End);
  }
}

TEST(Lexer, DescribesTokens) {
  EXPECT_EQ(describe(TokenKind::Semicolon), "';'");
  EXPECT_EQ(describe(TokenKind::Identifier), "name");
}

} // namespace
} // namespace occl::frontend

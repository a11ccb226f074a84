#include "compiler/frontend/sema/Vocabulary.h"
#include "compiler/frontend/syntax/Lexer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace occl::frontend {
namespace {

TEST(Vocabulary, HasEveryWordOfTheLanguage) {
  constexpr std::string_view kKeywords[] = {
#define OCCL_KEYWORD(name, spelling) spelling,
#include "compiler/frontend/syntax/Token.def"
  };
  std::span<const Word> words = vocabulary();
  for (std::string_view keyword : kKeywords)
    EXPECT_TRUE(std::any_of(words.begin(), words.end(), [&](const Word &word) {
      return word.name == keyword;
    })) << keyword;
}

TEST(Vocabulary, SaysWhatEachMeans) {
  std::set<std::pair<WordKind, std::string_view>> seen;
  for (const Word &word : vocabulary()) {
    EXPECT_TRUE(seen.emplace(word.kind, word.name).second) << word.name << " is there twice";
    EXPECT_NE(word.signature.find(word.name), std::string_view::npos) << word.signature;
    EXPECT_TRUE(word.summary.ends_with(".")) << word.summary;
    bool isProperty = word.kind == WordKind::Property;
    EXPECT_EQ(word.isOfChunk || word.isOfList || word.isOfOrigin, isProperty) << word.name;
  }
}

} // namespace
} // namespace occl::frontend

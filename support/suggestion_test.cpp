#include "support/suggestion.h"

#include <gtest/gtest.h>

namespace occl::support {
namespace {

TEST(Suggestion, NearestFirst) {
  EXPECT_EQ(suggest("chunsk", {"chunk", "chunks", "ranks"}), "chunk");
  EXPECT_EQ(suggest("rank", {"root", "ranks"}), "ranks");
  EXPECT_EQ(suggest("x", {"y"}), "");
  EXPECT_EQ(suggest("something", {"else"}), "");
  EXPECT_EQ(suggest(std::string(1000, 'a'), {"a"}), "");
  EXPECT_EQ(suggest("same", {}), "");
}

TEST(Suggestion, Sentence) {
  EXPECT_EQ(didYouMean("x"), "; did you mean 'x'?");
  EXPECT_EQ(didYouMean(""), "");
}

} // namespace
} // namespace occl::support

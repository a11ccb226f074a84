// The examples in docs/language.md are programs that compile.
#include "compiler/frontend/elaborate/Testing.h"

#include <gtest/gtest.h>

#include <fstream>

namespace occl::frontend::testing {
namespace {

TEST(Documentation, ExamplesCompile) {
  std::ifstream stream("docs/language.md");
  std::string line, text;
  bool isExample = false;
  size_t examples = 0;
  while (std::getline(stream, line)) {
    if (line == "```coll") {
      isExample = true;
      text.clear();
    } else if (isExample && line == "```") {
      isExample = false;
      ++examples;
      auto result = compile(text, {}, {"algorithms"});
      EXPECT_EQ(result->diagnostics.render(), "") << text;
      EXPECT_TRUE(result->info) << text;
    } else if (isExample) {
      text += line + "\n";
    }
  }
  EXPECT_GE(examples, 7u);
}

} // namespace
} // namespace occl::frontend::testing

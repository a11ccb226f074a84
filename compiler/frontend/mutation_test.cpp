// Damaged programs: whatever the text, the frontend ends soon, with errors or with a result.
#include "compiler/frontend/elaborate/Testing.h"
#include "support/testing/seed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

namespace occl::frontend::testing {
namespace {

std::vector<std::string> corpus() {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::recursive_directory_iterator("algorithms"))
    if (entry.path().extension() == ".coll")
      paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto &path : paths) {
    std::ifstream stream(path);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  texts.emplace_back(preludeText());
  // An example of each construct.
  std::ifstream manual("docs/language.md");
  std::string text(std::istreambuf_iterator<char>(manual), {});
  const std::string begin = "```coll\n", end = "```\n";
  for (size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    size_t last = text.find(end, at);
    texts.push_back(text.substr(at, last - at));
  }
  return texts;
}

class Mutator {
public:
  Mutator(uint64_t seed, const std::vector<std::string> &texts) : random(seed), texts(texts) {}

  std::string next() {
    std::string text = pick();
    size_t edits = 1 + below(6);
    for (size_t i = 0; i < edits && !text.empty(); ++i)
      edit(text);
    return text;
  }

private:
  size_t below(size_t bound) { return random() % bound; }
  const std::string &pick() { return texts[below(texts.size())]; }
  /// A piece of some program, mostly of a token's size.
  std::string piece() {
    const std::string &text = pick();
    size_t begin = below(text.size());
    return text.substr(begin, 1 + below(below(4) == 0 ? 80 : 8));
  }

  void edit(std::string &text) {
    static constexpr const char *kNasty[] = {"9223372036854775807",
                                             "-1",
                                             "0",
                                             "..",
                                             "(",
                                             "{",
                                             "}",
                                             ";",
                                             "\"",
                                             "/*",
                                             "4000000000",
                                             "reduce(",
                                             "[",
                                             "\0",
                                             "\xff",
                                             "for x in 0..99999999999 {",
                                             "input[0][0]"};
    size_t at = below(text.size());
    size_t length = below(below(4) == 0 ? 80 : 6);
    switch (below(5)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, piece());
      break;
    case 2:
      text.replace(at, length, piece());
      break;
    case 3:
      text.replace(at, below(2), kNasty[below(std::size(kNasty))]);
      break;
    case 4:
      text[at] = static_cast<char>(below(256));
      break;
    }
  }

  std::mt19937_64 random;
  const std::vector<std::string> &texts;
};

TEST(Mutation, NeverCrashesOrHangs) {
  const uint64_t seed = printedSeed();
  const uint64_t mutants = numberFrom("OCCL_TEST_MUTANTS", 5000);
  std::vector<std::string> texts = corpus();
  ASSERT_GT(texts.size(), 10u);
  Mutator mutator(seed, texts);
  size_t accepted = 0;
  for (size_t i = 0; i < mutants; ++i) {
    std::string text = mutator.next();
    auto begin = std::chrono::steady_clock::now();
    auto result = compile(text, {.maxOps = 20000});
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    result->diagnostics.render();
    accepted += result->info.has_value();
    EXPECT_LT(time.count(), 5.0) << "mutant " << i << ":\n" << text;
    bool hasAlgorithm = !result->program.main().algorithms.empty();
    EXPECT_TRUE(result->info || result->diagnostics.hasErrors() || !hasAlgorithm) << text;
  }
  std::printf("%zu of %zu mutants are right\n", accepted, mutants);
}

} // namespace
} // namespace occl::frontend::testing

// What an observer of an algorithm's run is told.
#include "compiler/frontend/elaborate/Testing.h"

#include <gtest/gtest.h>

namespace occl::frontend::testing {
namespace {

/// Writes down "3: n = 4": the line, the text there and the value.
class Writer : public Observer {
public:
  void onInt(SourceRange name, int64_t value) override { add(name, std::to_string(value)); }
  void onBool(SourceRange name, bool value) override { add(name, value ? "true" : "false"); }
  void onInts(SourceRange name, std::span<const int64_t> values) override {
    std::string text;
    for (int64_t value : values)
      text += (text.empty() ? "[" : ", ") + std::to_string(value);
    add(name, text + "]");
  }
  void onPlace(SourceRange place, const Layout &layout, const Place &where) override {
    add(place, layout.describe(where));
  }

  std::vector<std::pair<SourceRange, std::string>> seen;

private:
  void add(SourceRange place, std::string text) { seen.emplace_back(place, std::move(text)); }
};

std::vector<std::string> observe(const std::string &text) {
  Writer writer;
  ElaborationOptions options;
  options.observer = &writer;
  auto result = compile(text, options);
  std::vector<std::string> lines;
  for (const auto &[place, value] : writer.seen)
    if (place.file == result->program.main().file) // and not of the prelude's postcondition
      lines.push_back(std::to_string(result->sources.lineColumn(place.file, place.begin).line) +
                      ": " + std::string(result->sources.text(place)) + " = " + value);
  EXPECT_EQ(result->diagnostics.render(), "");
  return lines;
}

TEST(Observer, VariablesAndPlaces) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(
      observe("algorithm a(ranks: int = 2, list: [int] = [1, 0]) implements broadcast(ranks, 1) {\n"
              "  let same = ranks == 2;\n"
              "  for r in list where same {\n"
              "    input[0][0].copy(output[r][0]);\n"
              "  }\n"
              "}\n"),
      (Lines{"1: ranks = 2", "1: list = [1, 0]", "2: same = true", "3: r = 1",
             "4: input[0][0] = input[0][0]", "4: output[r][0] = output[1][0]", "3: r = 0",
             "4: input[0][0] = input[0][0]", "4: output[r][0] = output[0][0]"}));
}

TEST(Observer, ArgumentsAndChunks) {
  std::vector<std::string> lines =
      observe("function put(c: chunk, to: location) -> chunk { return c.copy(to); }\n"
              "algorithm a(ranks: int = 2) implements broadcast(ranks, 2) {\n"
              "  for r in 0..ranks {\n"
              "    var c = put(input[0][0..2], output[r][0]);\n"
              "    c = c[0..1];\n"
              "  }\n"
              "}\n");
  auto has = [&](const std::string &line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  EXPECT_TRUE(has("1: c = input[0][0..2]"));
  EXPECT_TRUE(has("1: to = output[1][0]"));
  EXPECT_TRUE(has("4: c = output[1][0..2]"));
  EXPECT_TRUE(has("5: c = output[1][0]"));
}

} // namespace
} // namespace occl::frontend::testing

#include "tools/command_line/app.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace {

using occl::tools::prepare;

size_t widestLine(const std::string &text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    widest = std::max(widest, line.size());
  return widest;
}

const std::string kLong =
    "a description that goes on for so long that a terminal of eighty columns "
    "has no room for it in one line";

TEST(App, helpOfAnyLength_has80Columns) {
  CLI::App app(kLong, "program");
  prepare(app);
  std::string text;
  app.add_option("--short", text, kLong);
  app.add_option("--of-words", text, "which")
      ->check(CLI::IsMember(std::vector<std::string>(20, "word-of-some-length")));
  app.footer("Examples:\n  program --short a        " + kLong);
  CLI::App *sub = app.add_subcommand("command", kLong);
  sub->add_option("positional", text, kLong);
  for (const CLI::App *each : {&app, sub}) {
    const std::string help = each->help();
    EXPECT_LE(widestLine(help), 80u) << help;
    EXPECT_GT(widestLine(help), 60u) << "lines are filled:\n" << help;
    EXPECT_NE(help.find("\n                              terminal"), std::string::npos)
        << "the second column goes on in its own:\n"
        << help;
  }
}

TEST(App, shortHelp_staysAsItIs) {
  CLI::App app("Does a thing.", "program");
  prepare(app);
  app.footer("Examples:\n  program a     one\n  program bbb   two");
  EXPECT_NE(app.help().find("Does a thing.\nUsage: program [OPTIONS]\n"), std::string::npos);
  EXPECT_NE(app.help().find("\n  program a     one\n  program bbb   two\n"), std::string::npos);
}

TEST(App, version_needsNothingElseOfTheCommandLine) {
  CLI::App app("", "program");
  prepare(app);
  app.require_subcommand(1);
  app.add_subcommand("command")->add_option("positional")->required();
  try {
    app.parse(std::vector<std::string>{"--version"});
    FAIL() << "accepted";
  } catch (const CLI::CallForVersion &wish) {
    EXPECT_EQ(wish.what(), "program " + occl::tools::version());
    EXPECT_EQ(wish.get_exit_code(), 0);
  }
}

} // namespace

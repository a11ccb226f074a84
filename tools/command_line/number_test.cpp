#include "tools/command_line/number.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using occl::tools::parseNumber;
using occl::tools::wholeNumber;

TEST(Number, takesDecimalDigitsInItsRange) {
  uint32_t number = 7;
  for (const char *wrong : {"", "-1", "+1", " 1", "1 ", "1x", "0x1", "1", "5", "4294967298"})
    EXPECT_FALSE(parseNumber(wrong, 2u, 4u, number)) << wrong;
  EXPECT_EQ(number, 7u) << "stays";
  EXPECT_TRUE(parseNumber("2", 2u, 4u, number));
  EXPECT_TRUE(parseNumber("004", 2u, 4u, number));
  EXPECT_EQ(number, 4u);
}

TEST(Number, isTheValueOfAnOption) {
  for (const auto &[text, value] : {std::pair("0", uint64_t{0}), std::pair("010", uint64_t{10}),
                                    std::pair("18446744073709551615", ~uint64_t{0})}) {
    CLI::App app;
    uint64_t number = 7;
    app.add_option("--count", number)->transform(wholeNumber());
    app.parse(std::vector<std::string>{text, "--count"}); // from the last word on
    EXPECT_EQ(number, value);
  }
  for (const char *text : {"-1", "18446744073709551616", "1.5", "0x10", "many"}) {
    CLI::App app;
    uint64_t number = 7;
    app.add_option("--count", number)->transform(wholeNumber());
    EXPECT_THROW(app.parse(std::vector<std::string>{text, "--count"}), CLI::ValidationError)
        << text;
  }
}

} // namespace

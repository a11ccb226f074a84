// What the environment says is a number, or is named.
#include "runtime/base/environment_number.h"

#include "runtime/base/long_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

namespace occl {
namespace {

/// The number that `text` means, and what is said.
std::pair<uint64_t, std::string> read(const char *text) {
  setenv("OCCL_TEST_NUMBER", text, 1);
  testing::internal::CaptureStderr();
  const uint64_t number = environmentNumber("OCCL_TEST_NUMBER", 2, 1000, 30);
  return {number, testing::internal::GetCapturedStderr()};
}

TEST(EnvironmentNumber, ANumberInTheRangeCounts) {
  unsetenv("OCCL_TEST_NUMBER");
  EXPECT_EQ(environmentNumber("OCCL_TEST_NUMBER", 2, 1000, 30), 30u);
  EXPECT_EQ(read(""), std::make_pair(uint64_t{30}, std::string()));
  EXPECT_EQ(read("2"), std::make_pair(uint64_t{2}, std::string()));
  EXPECT_EQ(read("1000"), std::make_pair(uint64_t{1000}, std::string()));
}

TEST(EnvironmentNumber, AnythingElseIsSaidAndDoesNotCount) {
  for (const char *wrong : {"1", "0", "-5", "5s", "1M", "0x20", " 20", "many", "1e2"})
    EXPECT_EQ(read(wrong),
              std::make_pair(uint64_t{30}, "occl: environment variable OCCL_TEST_NUMBER is '" +
                                               std::string(wrong) +
                                               "', expected 2 to 1000; it is taken as 30\n"));
}

TEST(EnvironmentNumber, ATooLargeNumberIsTheLargest) {
  for (const char *large : {"1001", "99999999999999999999999"})
    EXPECT_EQ(read(large),
              std::make_pair(uint64_t{1000}, "occl: environment variable OCCL_TEST_NUMBER is '" +
                                                 std::string(large) +
                                                 "', expected 2 to 1000; it is taken as 1000\n"));
}

/// It was 5 ms.
TEST(EnvironmentNumber, ALongWaitOfSecondsIsNotTakenForMilliseconds) {
  setenv("OCCL_LONG_WAIT_MS", "5s", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(longWait(), std::chrono::milliseconds(30000));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("OCCL_LONG_WAIT_MS is '5s'"),
            std::string::npos);
}

} // namespace
} // namespace occl

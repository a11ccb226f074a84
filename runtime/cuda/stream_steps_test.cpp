#include "runtime/cuda/stream_steps.h"

#include <gtest/gtest.h>

#include <string>

namespace occl::cuda {
namespace {

/// Three steps, the one of that number fails; what was put.
std::string putUntil(int failing, StreamSteps &steps) {
  std::string put;
  for (int i = 0; i < 3; ++i)
    steps.then([&]() -> Status {
      if (i == failing)
        return {StatusCode::SystemError, "step " + std::to_string(i)};
      put += std::to_string(i);
      return {};
    });
  return put;
}

TEST(StreamSteps, AllArePutInOrder) {
  StreamSteps steps;
  EXPECT_EQ(putUntil(-1, steps), "012");
  EXPECT_TRUE(steps.status().ok());
  EXPECT_FALSE(steps.isHalfDone());
}

TEST(StreamSteps, AFirstOneThatFailsLeavesTheStreamAsItWas) {
  StreamSteps steps;
  EXPECT_EQ(putUntil(0, steps), "");
  EXPECT_EQ(steps.status().message(), "step 0");
  EXPECT_FALSE(steps.isHalfDone());
}

TEST(StreamSteps, ALaterOneThatFailsLeavesHalfOfThem) {
  for (int failing : {1, 2}) {
    StreamSteps steps;
    EXPECT_EQ(putUntil(failing, steps), std::string("012").substr(0, failing));
    EXPECT_EQ(steps.status().message(), "step " + std::to_string(failing));
    EXPECT_TRUE(steps.isHalfDone());
  }
}

} // namespace
} // namespace occl::cuda

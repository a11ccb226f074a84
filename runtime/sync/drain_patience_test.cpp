// The end of a communicator waits for deadlines, and not for what has none.
#include "runtime/sync/drain_patience.h"

#include <gtest/gtest.h>

namespace occl {
namespace {

using namespace std::chrono_literals;

TEST(DrainPatience, IsThirtySecondsUnlessADeadlineIsLater) {
  EXPECT_EQ(drainPatience({}, 1s), 30s);
  EXPECT_EQ(drainPatience({0ms, 5s}, 1s), 30s);
  EXPECT_EQ(drainPatience({5s, 2min, 1min}, 1s), 121s);
  EXPECT_EQ(drainPatience({29500ms}, 1s), 30500ms);
}

TEST(DrainPatience, IsNotThatOfATimeoutThatIsNone) {
  EXPECT_EQ(drainPatience({kNoDeadline}, 1s), 30s);
  EXPECT_EQ(drainPatience({40s, kNoDeadline}, 1s), 41s);
}

} // namespace
} // namespace occl

// Pages are pinned once for all that map them, whoever comes while others go.
#include "runtime/cuda/device/host_pages.h"

#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

using namespace testing;

class HostPagesTest : public ::testing::Test {
protected:
  void SetUp() override { resetHostCuda(); }
  void TearDown() override { resetHostCuda(); }

  std::vector<std::byte> pages = std::vector<std::byte>(4096);
};

TEST_F(HostPagesTest, ThoseWhoMapTheSamePagesShareThem) {
  auto first = HostPages::pin(pages), second = HostPages::pin(pages);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->get(), second->get());
}

TEST_F(HostPagesTest, ThatCouldNotBePinnedMayBeTriedAgain) {
  failCall("cudaHostRegister", cudaErrorMemoryAllocation);
  EXPECT_EQ(HostPages::pin(pages).status().code(), StatusCode::SystemError);
  EXPECT_TRUE(HostPages::pin(pages).ok());
  EXPECT_TRUE(HostPages::pin(pages).ok()) << "they were given back between";
}

TEST_F(HostPagesTest, AUserThatComesWhileTheLastOneGoesPinsThemAnew) {
  auto last = HostPages::pin(pages);
  ASSERT_TRUE(last.ok());
  std::atomic<bool> isGoing{false};
  inCall("cudaHostUnregister", [&] {
    isGoing = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  std::thread goes([&] { last->reset(); });
  while (!isGoing)
    std::this_thread::yield();
  auto next = HostPages::pin(pages);
  goes.join();
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_TRUE(HostPages::pin(pages).ok());
}

TEST_F(HostPagesTest, NobodyWaitsForPagesThatWereLeft) {
  {
    auto left = HostPages::pin(pages);
    ASSERT_TRUE(left.ok());
    (*left)->leave();
  }
  // CUDA has them still, and says so.
  EXPECT_EQ(HostPages::pin(pages).status().code(), StatusCode::SystemError);
}

} // namespace
} // namespace occl::cuda

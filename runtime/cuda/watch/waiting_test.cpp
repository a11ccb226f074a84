#include "runtime/cuda/watch/waiting.h"

#include <gtest/gtest.h>

#include <memory>

namespace occl::cuda {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

TEST(Waiting, CountsWhatWaitsOnADeviceNow) {
  auto first = std::make_unique<HostWords>(), second = std::make_unique<HostWords>(),
       elsewhere = std::make_unique<HostWords>();
  WaitingOnDevices all;
  EXPECT_EQ(all.count(0), 0u);
  all.add(0, *first);
  all.add(0, *second);
  all.add(1, *elsewhere);
  EXPECT_EQ(all.count(0), 0u);
  first->waiting[0] = 1000 * kMillisecond;
  first->waiting[kMaxShapes - 1] = 1001 * kMillisecond;
  second->waiting[0] = 1040 * kMillisecond; // the same collective on another rank
  second->waiting[7] = 100 * kMillisecond;  // long over
  elsewhere->waiting[3] = 5 * kMillisecond; // by another clock
  EXPECT_EQ(all.count(0), 3u);
  EXPECT_EQ(all.count(1), 1u);
  all.remove(*first);
  EXPECT_EQ(all.count(0), 1u);
}

TEST(Waiting, CountsStreamsThatAreHeldByNoKernel) {
  WaitingOnDevices all;
  int who = 0, another = 0;
  all.setHeld(0, &who, 3);
  all.setHeld(0, &another, 2);
  all.setHeld(1, &who, 1);
  EXPECT_EQ(all.count(0), 5u);
  EXPECT_EQ(all.count(1), 1u);
  auto words = std::make_unique<HostWords>();
  all.add(0, *words);
  words->waiting[1] = 7 * kMillisecond;
  all.setHeld(0, &who, 1);
  EXPECT_EQ(all.count(0), 4u);
  all.setHeld(0, &another, 0);
  EXPECT_EQ(all.count(0), 2u);
}

TEST(Waiting, TheNumberOfConnectionsIsCudas) {
  EXPECT_EQ(connectionsFrom(nullptr), 8u);
  EXPECT_EQ(connectionsFrom(""), 8u);
  EXPECT_EQ(connectionsFrom("many"), 8u);
  EXPECT_EQ(connectionsFrom("1"), 1u);
  EXPECT_EQ(connectionsFrom("32"), 32u);
  EXPECT_EQ(connectionsFrom("100"), 32u);
}

TEST(Waiting, LaunchesThatWaitForTheirKernelsAreNamed) {
  EXPECT_EQ(describeLaunchBlocking(nullptr), "");
  EXPECT_EQ(describeLaunchBlocking(""), "");
  EXPECT_EQ(describeLaunchBlocking("0"), "");
  EXPECT_NE(describeLaunchBlocking("1").find("CUDA_LAUNCH_BLOCKING"), std::string::npos);
}

TEST(Waiting, TheLimitIsNamedWhenItIsReached) {
  EXPECT_EQ(describeConnections(0, 7, 8), "");
  std::string text = describeConnections(2, 8, 8);
  EXPECT_NE(text.find("8 collectives of this process wait on device 2, and "
                      "CUDA_DEVICE_MAX_CONNECTIONS is 8"),
            std::string::npos)
      << text;
}

TEST(Waiting, WaitingCallsAreTheSumOfThoseOfRanks) {
  auto first = std::make_unique<HostWords>(), second = std::make_unique<HostWords>();
  WaitingOnDevices all;
  all.add(0, *first);
  all.add(1, *second);
  first->waiting[0] = 1000 * kMillisecond; // some time ago, for all that is known
  EXPECT_EQ(all.waitingNow(0), 0u);
  int who = 0;
  all.setWaiting(*first, 3);
  all.setWaiting(*second, 1);
  all.setHeld(0, &who, 2);
  EXPECT_EQ(all.waitingNow(0), 5u);
  EXPECT_EQ(all.waitingNow(*first), 3u);
  EXPECT_EQ(all.waitingNow(1), 1u);
  all.setWaiting(*first, 0);
  EXPECT_EQ(all.waitingNow(0), 2u);
  all.remove(*second);
  EXPECT_EQ(all.waitingNow(1), 0u);
}

TEST(Waiting, TheCallThatWouldTakeTheLastConnectionIsRefused) {
  EXPECT_TRUE(checkConnections(0, 6, 8).ok());
  const Status refused = checkConnections(2, 7, 8);
  EXPECT_EQ(refused.code(), StatusCode::Again);
  EXPECT_NE(refused.message().find("7 collectives of this process wait on device 2, and "
                                   "CUDA_DEVICE_MAX_CONNECTIONS is 8"),
            std::string::npos)
      << refused.message();
  // One connection executes everything in the order of the host.
  EXPECT_TRUE(checkConnections(0, 0, 1).ok());
  EXPECT_TRUE(checkConnections(0, 5, 1).ok());
}

TEST(Waiting, KernelsThatAreLoadedLateAreNamed) {
  EXPECT_EQ(describeLazyLoading("EAGER"), "");
  EXPECT_NE(describeLazyLoading("LAZY").find("CUDA_MODULE_LOADING"), std::string::npos);
  EXPECT_EQ(describeLazyLoading(nullptr), describeLazyLoading("LAZY"));
}

} // namespace
} // namespace occl::cuda

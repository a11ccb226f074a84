// occl.hpp: the standard collectives by spans, calls with plans of one's own, what is started with
// requests and callbacks, errors as exceptions.
#include "plan/testing/example_plans.h"
#include "runtime/api/capi/handles.h"
#include "runtime/api/occl.hpp"
#include "runtime/api/testing/communicators.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using plan::testing::oneShotAllReduce;

constexpr uint32_t kRanks = 3;

Plan ownPlan(uint32_t numRanks) { return Plan(adoptPlan(oneShotAllReduce(numRanks))); }

/// Element i of what rank r sends; small enough for sums in 8 bits.
template <class T> T sent(uint32_t r, uint64_t i) { return static_cast<T>((r * 7 + i * 3) % 50); }

template <class T> std::vector<T> sentBy(uint32_t r, uint64_t count) {
  std::vector<T> values(count);
  for (uint64_t i = 0; i < count; ++i)
    values[i] = sent<T>(r, i);
  return values;
}

template <class T> T sumAt(uint64_t i) {
  T sum = 0;
  for (uint32_t r = 0; r < kRanks; ++r)
    sum = static_cast<T>(sum + sent<T>(r, i));
  return sum;
}

template <class T> class Collectives : public ::testing::Test {};
using Types = ::testing::Types<uint8_t, int32_t, int64_t, float, double>;
TYPED_TEST_SUITE(Collectives, Types);

constexpr uint64_t kCount = 101;

TYPED_TEST(Collectives, Reducing) {
  using T = TypeParam;
  onRanks(kRanks, [](Communicator &comm, uint32_t rank) {
    const std::vector<T> send = sentBy<T>(rank, kCount * kRanks);
    std::vector<T> all(send.size()), part(kCount), atRoot(rank == 1 ? send.size() : 0);
    comm.allReduce<T>(send, all);
    comm.reduceScatter<T>(send, part);
    comm.reduce<T>(send, atRoot, 1);
    std::vector<T> largest = send; // in place
    comm.allReduce(largest, std::span(largest), occlMax);
    for (uint64_t i = 0; i < send.size(); ++i) {
      ASSERT_EQ(all[i], sumAt<T>(i));
      ASSERT_EQ(largest[i], std::max({sent<T>(0, i), sent<T>(1, i), sent<T>(2, i)}));
    }
    for (uint64_t i = 0; i < kCount; ++i)
      ASSERT_EQ(part[i], sumAt<T>(rank * kCount + i));
    for (uint64_t i = 0; i < atRoot.size(); ++i)
      ASSERT_EQ(atRoot[i], sumAt<T>(i));
  });
}

TYPED_TEST(Collectives, Copying) {
  using T = TypeParam;
  onRanks(kRanks, [](Communicator &comm, uint32_t rank) {
    const std::vector<T> send = sentBy<T>(rank, kCount), parts = sentBy<T>(rank, kCount * kRanks);
    const std::vector<T> nothing;
    const bool isRoot = rank == 2;
    std::vector<T> all(kCount * kRanks), copied(kCount), exchanged(kCount * kRanks),
        gathered(isRoot ? kCount * kRanks : 0), scattered(kCount);
    comm.allGather<T>(send, all);
    comm.broadcast<T>(isRoot ? send : nothing, copied, 2);
    comm.allToAll<T>(parts, exchanged);
    comm.gather<T>(send, gathered, 2);
    comm.scatter<T>(isRoot ? parts : nothing, scattered, 2);
    for (uint64_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(copied[i], sent<T>(2, i));
      ASSERT_EQ(scattered[i], sent<T>(2, rank * kCount + i));
      for (uint32_t r = 0; r < kRanks; ++r) {
        ASSERT_EQ(all[r * kCount + i], sent<T>(r, i));
        ASSERT_EQ(exchanged[r * kCount + i], sent<T>(r, rank * kCount + i));
        if (isRoot) {
          ASSERT_EQ(gathered[r * kCount + i], sent<T>(r, i));
        }
      }
    }
  });
}

/// What `call` throws, as "result: text"; "" if it throws nothing.
std::string thrownBy(const std::function<void()> &call) {
  try {
    call();
    return "";
  } catch (const Error &error) {
    return std::to_string(error.result()) + ": " + error.what();
  }
}

/// Before anything is called: afterwards all goes on.
TEST(Wrapper, RefusesSpansOfOtherLengths) {
  onRanks(2, [](Communicator &comm, uint32_t rank) {
    std::vector<int32_t> three(3, 1), four(4, 1), eight(8, 1);
    auto refused = [&](const std::string &text, const std::function<void()> &call) {
      std::string thrown = thrownBy(call);
      EXPECT_EQ(thrown.find(std::to_string(occlInvalidArgument) + ": "), 0u) << thrown;
      EXPECT_NE(thrown.find(text), std::string::npos) << thrown;
    };
    refused("allReduce: receive has 3 elements, it needs 4",
            [&] { comm.allReduce<int32_t>(four, three); });
    refused("allGather: receive has 4 elements, it needs 8",
            [&] { comm.allGather<int32_t>(four, four); });
    refused("reduceScatter: send has 4 elements, it needs 8",
            [&] { comm.reduceScatter<int32_t>(four, four); });
    refused("allToAll: send has 3 elements, it needs 2",
            [&] { comm.allToAll<int32_t>(three, three); });
    refused("allToAll: receive has 4 elements, it needs 8",
            [&] { comm.allToAll<int32_t>(eight, four); });
    refused("broadcast: send of the root has 3 elements, it needs 4",
            [&] { comm.broadcast<int32_t>(three, four, rank); });
    refused("reduce: receive of the root has 3 elements, it needs 4",
            [&] { comm.reduce<int32_t>(four, three, rank); });
    refused("gather: receive of the root has 4 elements, it needs 8",
            [&] { comm.gather<int32_t>(four, four, rank); });
    refused("scatter: send of the root has 4 elements, it needs 8",
            [&] { comm.scatter<int32_t>(four, four, rank); });
    comm.allReduce(four, std::span(four));
    EXPECT_EQ(four, std::vector<int32_t>(4, 2));
  });
}

TEST(Wrapper, APlanOfOnesOwnByEachWay) {
  Plan plan = ownPlan(kRanks);
  EXPECT_EQ(plan.numRanks(), kRanks);
  EXPECT_EQ(plan.collective(), "allreduce");
  onRanks(kRanks, [&](Communicator &comm, uint32_t rank) {
    const std::vector<float> send = sentBy<float>(rank, kCount);
    std::vector<float> want(kCount), called(kCount), started(kCount), tried(kCount);
    for (uint64_t i = 0; i < kCount; ++i)
      want[i] = sumAt<float>(i);
    const Call ofId{.plan = plan, .count = kCount, .id = 5 + rank % 2, .name = "own"};
    // Other ids come first on each rank.
    Call call = ofId;
    Request first = comm.start<float>(call, send, started);
    call.id = 11 - call.id;
    auto second = comm.tryStart<float>(call, send, tried);
    ASSERT_TRUE(second);
    first.wait();
    while (!second->test())
      std::this_thread::yield();
    comm.call<float>({.plan = plan, .count = kCount}, send, called);
    for (const std::vector<float> &got : {called, started, tried})
      EXPECT_EQ(got, want);
  });
}

/// An alternative to typed spans: 16-bit floats, for which C++20 has no type.
TEST(Wrapper, PointersAndAType) {
  onRanks(2, [](Communicator &comm, uint32_t) {
    const uint16_t one = 0x3f80, two = 0x4000; // of bfloat16
    std::vector<uint16_t> data(kCount, one);
    comm.call({.kind = occlKindAllReduce, .count = kCount, .type = occlBfloat16}, data.data(),
              data.data());
    EXPECT_EQ(data, std::vector<uint16_t>(kCount, two));
  });
}

TEST(Wrapper, CallbacksGetTheResult) {
  onRanks(2, [](Communicator &comm, uint32_t) {
    std::vector<double> one(kCount, 1), two(kCount, 1), sums(2 * kCount);
    std::promise<occlResult_t> first, second;
    const Call call{.kind = occlKindAllReduce, .count = kCount};
    comm.start<double>(call, one, std::span(sums).first(kCount),
                       [&](occlResult_t result) { first.set_value(result); });
    Call other = call;
    other.id = 1;
    EXPECT_TRUE(comm.tryStart<double>(other, two, std::span(sums).last(kCount),
                                      [&](occlResult_t result) { second.set_value(result); }));
    EXPECT_EQ(first.get_future().get(), occlSuccess);
    EXPECT_EQ(second.get_future().get(), occlSuccess);
    EXPECT_EQ(sums, std::vector<double>(2 * kCount, 2));
  });
}

/// Another rank comes later, so nothing ends before.
TEST(Wrapper, TooMuchInFlightIsSaidAndDropsTheCallback) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.maxInFlight = 1;
  std::vector<Communicator> ranks = Communicator::all(2, config);
  std::vector<int32_t> data(4, 1), peers(4, 2);
  Call call{.kind = occlKindAllReduce, .count = 4};
  Request first = ranks[0].start<int32_t>(call, data, data);
  call.id = 1;
  auto token = std::make_shared<int>(0);
  auto onEnd = [token](occlResult_t) {};
  EXPECT_FALSE(ranks[0].tryStart<int32_t>(call, data, data));
  EXPECT_FALSE(ranks[0].tryStart<int32_t>(call, data, data, onEnd));
  const std::string again = std::to_string(occlAgain) + ": ";
  EXPECT_EQ(thrownBy([&] { ranks[0].start<int32_t>(call, data, data); }).find(again), 0u);
  EXPECT_EQ(thrownBy([&] { ranks[0].start<int32_t>(call, data, data, onEnd); }).find(again), 0u);
  EXPECT_EQ(token.use_count(), 2) << "onEnd has one, nobody else";
  call.id = 0;
  std::thread peer([&] { ranks[1].start<int32_t>(call, peers, peers).wait(); });
  first.wait();
  peer.join();
  EXPECT_EQ(data, std::vector<int32_t>(4, 3));
}

TEST(Wrapper, AnErrorOfTheLibraryIsThrownWithItsText) {
  std::vector<Communicator> ranks = Communicator::all(2);
  std::vector<float> data(4);
  std::string thrown =
      thrownBy([&] { ranks[0].call<float>({.plan = ownPlan(3), .count = 4}, data, data); });
  EXPECT_EQ(thrown.find(std::to_string(occlInvalidPlan) + ": "), 0u) << thrown;
  EXPECT_NE(thrown.find("is for 3 ranks"), std::string::npos) << thrown;
}

TEST(Wrapper, versionOfTheLibrary_isThatOfTheHeader) {
  EXPECT_EQ(libraryVersion(), kHeaderVersion);
  uint32_t number = 7;
  EXPECT_EQ(occlGetVersion(&number, nullptr), occlInvalidArgument);
  EXPECT_EQ(occlGetVersion(nullptr, &number), occlInvalidArgument);
  EXPECT_EQ(number, 7u) << "is not written";
  EXPECT_NE(std::string(occlGetLastError()).find("occlGetVersion"), std::string::npos);
}

std::set<std::string> threadsOfThisProcess() {
  std::set<std::string> threads;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads.insert(entry.path().filename());
  return threads;
}

/// Only what may block gets a thread that is there for it.
TEST(Wrapper, CallbacksThatNeverBlockNeedNoThread) {
  std::vector<Communicator> ranks = Communicator::all(1);
  std::vector<float> data(4, 1);
  ranks[0].allReduce(data, std::span(data));
  const std::set<std::string> before = threadsOfThisProcess();
  for (bool neverBlocks : {true, false}) {
    std::promise<std::string> thread;
    ranks[0].start<float>(
        {.kind = occlKindAllReduce, .count = 4, .callbacksNeverBlock = neverBlocks}, data, data,
        [&](occlResult_t) { thread.set_value(std::to_string(gettid())); });
    EXPECT_EQ(before.contains(thread.get_future().get()), neverBlocks);
  }
}

TEST(Wrapper, CallbacksNeverBlockIsAFlag) {
  std::vector<Communicator> ranks = Communicator::all(1);
  float data = 1;
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  call.sendBuffer = call.recvBuffer = &data;
  call.count = 1;
  call.callbacksNeverBlock = 2;
  occlRequest_t request = 0;
  EXPECT_EQ(occlStart(ranks[0].handle(), &call, nullptr, nullptr, &request), occlInvalidArgument);
  EXPECT_NE(std::string(occlGetLastError()).find("callbacksNeverBlock must be 0 or 1"),
            std::string::npos)
      << occlGetLastError();
  call.size = offsetof(occlCall_t, callbacksNeverBlock); // of a caller that does not know it
  EXPECT_EQ(occlStart(ranks[0].handle(), &call, nullptr, nullptr, &request), occlSuccess);
  EXPECT_EQ(occlWait(ranks[0].handle(), request), occlSuccess);
}

} // namespace
} // namespace occl::communicator::testing

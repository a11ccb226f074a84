// Memory that ranks take when it is first needed: whoever asks first, in any order, and what
// becomes of ranks that do not get it, do not answer, have left, or whose communicator fails
// meanwhile.
#include "runtime/cuda/memory/later_memory.h"

#include "runtime/control/testing/thread_fabrics.h"
#include "runtime/cuda/testing/host_cuda.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace occl::cuda {
namespace {

using namespace testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 3, kAll = 7;
constexpr LaterMemory::Bytes kBytes = {3 << 20, 4096, 1 << 20};
constexpr DeviceMemory::Sizes kSizes = {1 << 20, 1 << 20};

/// Ranks as threads, each with a thread that tends, as HostWatch's does.
class Communicator {
public:
  explicit Communicator(LaterMemory::Patience patience = 20s) {
    auto made = daemon::testing::makeThreadFabrics(kRanks, sizeof(ControlBlock));
    EXPECT_TRUE(made.ok()) << made.status().message();
    fabrics = std::move(*made);
    std::vector<DeviceMemory::HostMemory> hosts;
    for (uint32_t r = 0; r < kRanks; ++r)
      hosts.push_back({reinterpret_cast<ControlBlock *>(fabrics.fabrics[0]->of(r).arena()), {}});
    for (uint32_t r = 0; r < kRanks; ++r) {
      auto memory = DeviceMemory::make(fabrics.fabrics[r]->ranks(), hosts, 0, kSizes);
      EXPECT_TRUE(memory.ok()) << memory.status().message();
      memories.push_back(std::move(*memory));
      later.push_back(
          std::make_unique<LaterMemory>(*fabrics.fabrics[r], *memories[r], kBytes, patience));
    }
  }
  ~Communicator() {
    isEnding = true;
    for (std::thread &thread : tending)
      thread.join();
  }
  void tend(uint32_t rank) {
    tending.emplace_back([this, rank] {
      for (; !isEnding && !isForgotten[rank]; std::this_thread::sleep_for(1ms))
        later[rank]->tend();
      hasEnded[rank] = true;
    });
  }
  /// What the rank has goes, as when its communicator is destroyed.
  void forget(uint32_t rank) {
    isForgotten[rank] = true;
    while (!hasEnded[rank])
      std::this_thread::sleep_for(1ms);
    later[rank].reset();
    memories[rank].reset();
  }
  void tendAll() {
    for (uint32_t r = 0; r < kRanks; ++r)
      tend(r);
  }
  LaterMemory &of(uint32_t rank) { return *later[rank]; }
  daemon::Fabric &fabric(uint32_t rank) { return *fabrics.fabrics[rank]; }

private:
  daemon::testing::ThreadFabrics fabrics;
  std::vector<std::unique_ptr<DeviceMemory>> memories;
  std::vector<std::unique_ptr<LaterMemory>> later;
  std::atomic<bool> isEnding{false};
  std::atomic<bool> isForgotten[kRanks] = {}, hasEnded[kRanks] = {};
  std::vector<std::thread> tending;
};

class LaterMemoryTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("OCCL_LONG_WAIT_MS", "30", 1); // before anybody has asked
    resetHostCuda();
  }
  void TearDown() override { resetHostCuda(); }
};

TEST_F(LaterMemoryTest, IsThereForWhoNeedsItWhateverOthersDo) {
  const uint64_t before = numAllocations();
  {
    Communicator all;
    all.tendAll();
    const uint64_t withArenas = numAllocations();
    EXPECT_EQ(withArenas, before + kRanks);
    ASSERT_TRUE(all.of(1).need(LaterPart::Lines, kAll).ok());
    EXPECT_EQ(numAllocations(), withArenas + kRanks)
        << "each rank has taken the part that is asked";
    for (uint32_t r = 0; r < kRanks; ++r) {
      char *begin = all.of(1).begin(LaterPart::Lines, r);
      EXPECT_TRUE(std::all_of(begin, begin + kBytes[0], [](char byte) { return byte == 0; }));
      begin[7] = static_cast<char>(r + 1);
    }
    // Another rank needs it, too: it is the same, and nothing is cleared.
    ASSERT_TRUE(all.of(2).need(LaterPart::Lines, kAll).ok());
    for (uint32_t r = 0; r < kRanks; ++r)
      EXPECT_EQ(all.of(2).begin(LaterPart::Lines, r)[7], static_cast<char>(r + 1));
    EXPECT_EQ(numAllocations(), withArenas + kRanks);
  }
  EXPECT_EQ(numAllocations(), before);
}

/// Others need not have come to the call that a rank was part of.
TEST_F(LaterMemoryTest, ARankMayLeaveOnceItHasWhatItNeeds) {
  Communicator all;
  all.tendAll();
  ASSERT_TRUE(all.of(2).need(LaterPart::Messages, kAll).ok());
  for (const uint32_t rank : {0u, 1u})
    EXPECT_NE(all.of(rank).begin(LaterPart::Messages, 2), nullptr)
        << "it could not be mapped later";
  all.fabric(2).leave();
  EXPECT_TRUE(all.of(0).need(LaterPart::Messages, kAll).ok());
  EXPECT_TRUE(all.of(1).need(LaterPart::Messages, kAll).ok());
}

/// Two communicators in opposite orders, which would wait for each other if a call waited for
/// calls.
TEST_F(LaterMemoryTest, IsTakenInAnyOrderOfCommunicators) {
  Communicator first, second;
  first.tendAll();
  second.tendAll();
  ASSERT_TRUE(first.of(0).need(LaterPart::Messages, kAll).ok());
  ASSERT_TRUE(second.of(1).need(LaterPart::Messages, kAll).ok());
  ASSERT_TRUE(second.of(0).need(LaterPart::Messages, kAll).ok());
  ASSERT_TRUE(first.of(1).need(LaterPart::Messages, kAll).ok());
}

TEST_F(LaterMemoryTest, WhereOneRankGetsNoneAllAreToldWhoseItIsAndGoOn) {
  Communicator all;
  failCall("cudaMalloc", cudaErrorMemoryAllocation);
  const Status own = all.of(1).need(LaterPart::Lines, 1u << 1);
  EXPECT_EQ(own.code(), StatusCode::SystemError);
  EXPECT_NE(own.message().find("rank 1 has not got the 3 MiB"), std::string::npos) << own.message();
  EXPECT_NE(own.message().find("allocating device memory"), std::string::npos) << own.message();
  EXPECT_EQ(lastError(), cudaSuccess) << "the program would take it for its own";
  all.tendAll();
  // There would be memory now, but some rank may have been told already.
  for (const uint32_t rank : {0u, 1u, 2u, 0u}) {
    const Status status = all.of(rank).need(LaterPart::Lines, kAll);
    EXPECT_EQ(status.code(), StatusCode::SystemError);
    for (const std::string &name :
         {std::string("rank 1 has not got"), "call of rank " + std::to_string(rank)})
      EXPECT_NE(status.message().find(name), std::string::npos) << status.message();
  }
  EXPECT_FALSE(all.fabric(0).failed());
  EXPECT_TRUE(all.of(0).need(LaterPart::Lines, 1u << 2).ok()) << "rank 1 is not needed";
  EXPECT_TRUE(all.of(0).need(LaterPart::Slots, kAll).ok());
}

/// The device cannot be asked, or has not cleared it in time.
TEST_F(LaterMemoryTest, MemoryThatCannotBeClearedIsGivenToNobody) {
  Communicator all;
  failCall("cudaMemsetAsync", cudaErrorUnknown);
  EXPECT_FALSE(all.of(0).need(LaterPart::Lines, 1).ok());
  EXPECT_FALSE(all.of(1).need(LaterPart::Lines, 1).ok());
}

TEST_F(LaterMemoryTest, ARankThatDoesNotAnswerIsNamed) {
  Communicator all(2000ms);
  all.tend(1);
  ::testing::internal::CaptureStderr();
  const Status status = all.of(0).need(LaterPart::Slots, kAll);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("rank 2 has not answered in 30 ms, and rank 0 needs 1 MiB"),
            std::string::npos)
      << said;
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_NE(status.message().find("rank 2 has not answered in 2000 ms, and rank 0 needs 1 MiB"),
            std::string::npos)
      << status.message();
  EXPECT_TRUE(all.fabric(1).failed());
}

TEST_F(LaterMemoryTest, ARankThatHasLeftIsInTheWayOfWhoNeedsIt) {
  Communicator all;
  all.tend(1);
  all.fabric(2).leave();
  EXPECT_TRUE(all.of(0).need(LaterPart::Slots, 1u << 1).ok());
  const Status status = all.of(0).need(LaterPart::Slots, kAll);
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status.message();
}

/// All have got the part, and one leaves before the others have mapped its piece.
TEST_F(LaterMemoryTest, ARankThatNobodyNeedsAnyMoreMayLeave) {
  Communicator all;
  all.tendAll();
  for (uint32_t r = 0; r < kRanks; ++r) {
    ASSERT_TRUE(all.of(r).need(LaterPart::Slots, 1u << r).ok());
    EXPECT_EQ(all.of(r).begin(LaterPart::Slots, (r + 1) % kRanks), nullptr) << "it is not asked";
  }
  all.fabric(2).leave();
  all.forget(2);
  ASSERT_TRUE(all.of(0).need(LaterPart::Slots, 1u << 1).ok());
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(all.fabric(0).failed());
  EXPECT_TRUE(all.of(1).need(LaterPart::Slots, 1u << 0).ok());
  const Status status = all.of(0).need(LaterPart::Slots, kAll);
  EXPECT_EQ(status.code(), StatusCode::PeerFailed);
  EXPECT_NE(status.message().find("rank 2 has destroyed"), std::string::npos) << status.message();
}

TEST_F(LaterMemoryTest, OnlyThoseThatAreAskedTakeIt) {
  const uint64_t before = numAllocations();
  Communicator all;
  all.tendAll();
  ASSERT_TRUE(all.of(0).need(LaterPart::Slots, 1u << 1).ok());
  std::this_thread::sleep_for(20ms); // the others have looked, too
  EXPECT_EQ(numAllocations(), before + kRanks + 1);
}

/// As calls of CUDA are held up by others.
TEST_F(LaterMemoryTest, AnAbortEndsTheWaitForOnesOwnMemory) {
  std::atomic<bool> isHeld = true; // longer than the threads of `all`
  Communicator all;
  inCall("cudaMalloc", [&] {
    all.fabric(1).fail({StatusCode::Aborted, "rank 1 was aborted"});
    for (uint32_t i = 0; i < 20000 && isHeld; ++i)
      std::this_thread::sleep_for(1ms);
  });
  const Status status = all.of(0).need(LaterPart::Lines, 1);
  EXPECT_EQ(status.code(), StatusCode::Aborted);
  EXPECT_TRUE(isHeld.exchange(false));
}

TEST_F(LaterMemoryTest, ThreadsThatAreLateMapNothingOnceItIsAbandoned) {
  Communicator all;
  all.tendAll();
  ASSERT_TRUE(all.of(0).need(LaterPart::Lines, 1).ok());
  all.of(0).abandon();
  EXPECT_FALSE(all.of(0).need(LaterPart::Slots, 1u << 1).ok());
  EXPECT_EQ(all.of(0).begin(LaterPart::Slots, 1), nullptr);
}

TEST_F(LaterMemoryTest, AnAbortEndsTheWait) {
  Communicator all;
  std::thread aborting([&] {
    std::this_thread::sleep_for(20ms);
    all.fabric(1).fail({StatusCode::Aborted, "rank 1 was aborted"});
  });
  const Status status = all.of(0).need(LaterPart::Lines, kAll);
  aborting.join();
  EXPECT_EQ(status.code(), StatusCode::Aborted);
}

TEST_F(LaterMemoryTest, SeveralThreadsNeedItAtATime) {
  Communicator all;
  all.tendAll();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 12; ++i)
    threads.emplace_back([&, i] {
      const LaterPart part = i % 2 == 0 ? LaterPart::Lines : LaterPart::Messages;
      EXPECT_TRUE(all.of(i % kRanks).need(part, kAll).ok());
      EXPECT_NE(all.of(i % kRanks).begin(part, 2), nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
} // namespace occl::cuda

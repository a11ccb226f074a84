// What a tool of NVTX sees of calls of the C interface.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "test/nvtx/recorded.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace occl::nvtx_test {
namespace {

constexpr uint32_t kRanks = 2;
constexpr uint64_t kCount = 1000;

class Ranges : public testing::Test {
protected:
  static void SetUpTestSuite() { tool = new Tool; }
  void SetUp() override {
    ASSERT_EQ(occlCommInitAll(comms.data(), kRanks, nullptr), occlSuccess) << occlGetLastError();
    tool->take();
  }
  void TearDown() override {
    for (occlComm_t comm : comms)
      EXPECT_EQ(occlCommDestroy(comm), occlSuccess);
  }
  /// body(rank) on a thread each; what the tool has seen of it.
  std::vector<std::string> inThreads(const std::function<void(uint32_t)> &body) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        body(rank);
        EXPECT_EQ(tool->open(), 0) << "a range has no end";
      });
    for (std::thread &thread : threads)
      thread.join();
    return tool->take();
  }
  /// A range of each rank. The categories of a communicator's ranks follow each other.
  std::vector<std::string> ofEach(const std::vector<std::string> &calls) {
    std::vector<std::string> all;
    for (uint32_t rank = 0; rank < kRanks; ++rank)
      for (const std::string &call : calls)
        all.push_back("OCCL | communicator " + std::to_string(category + rank) + ", rank " +
                      std::to_string(rank) + " of 2 | " + call);
    std::ranges::sort(all);
    category += kRanks;
    return all;
  }

  static inline Tool *tool = nullptr;
  static inline uint32_t category = 1; // of rank 0
  std::array<occlComm_t, kRanks> comms{};
};

TEST_F(Ranges, OfCollectivesHaveCommunicatorNameAndBytes) {
  const auto seen = inThreads([&](uint32_t rank) {
    std::vector<float> data(kRanks * kCount, 1);
    EXPECT_EQ(
        occlAllReduce(data.data(), data.data(), kCount, occlFloat32, occlSum, comms[rank], nullptr),
        occlSuccess);
    EXPECT_EQ(occlAllGather(data.data() + rank * kCount, data.data(), kCount, occlFloat32,
                            comms[rank], nullptr),
              occlSuccess);
  });
  EXPECT_EQ(seen, ofEach({"occlAllReduce | 4000", "occlAllGather | 4000"}));
}

TEST_F(Ranges, OfWhatIsStartedSayThatAndWaitsAreSeen) {
  const auto seen = inThreads([&](uint32_t rank) {
    std::vector<double> data(kCount, 1);
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = call.recvBuffer = data.data();
    call.count = kCount;
    call.dataType = occlFloat64;
    call.op = occlSum;
    call.id = 7;
    occlRequest_t request = 0;
    EXPECT_EQ(occlStart(comms[rank], &call, nullptr, nullptr, &request), occlSuccess);
    EXPECT_EQ(occlWait(comms[rank], request), occlSuccess);
  });
  EXPECT_EQ(seen, ofEach({"occlStart AllReduce | 8000", "occlWait | 0"}));
}

TEST_F(Ranges, OfTransfersAndGroups) {
  const auto seen = inThreads([&](uint32_t rank) {
    std::vector<float> sent(kCount, 1), received(kCount);
    EXPECT_EQ(occlGroupStart(), occlSuccess);
    EXPECT_EQ(occlSend(sent.data(), kCount, occlFloat32, 1 - rank, comms[rank], nullptr),
              occlSuccess);
    EXPECT_EQ(occlRecv(received.data(), kCount, occlFloat32, 1 - rank, comms[rank], nullptr),
              occlSuccess);
    EXPECT_EQ(occlGroupEnd(), occlSuccess);
  });
  EXPECT_EQ(seen, ofEach({"occlSend | 4000", "occlRecv | 4000", "occlGroupEnd | 4000"}));
}

/// With an end, too.
TEST_F(Ranges, OfCallsThatFailEnd) {
  EXPECT_EQ(occlCommAbort(comms[1]), occlSuccess);
  const auto seen = inThreads([&](uint32_t rank) {
    float data = 0;
    EXPECT_NE(occlAllReduce(&data, &data, 1, occlFloat32, occlSum, comms[rank], nullptr),
              occlSuccess);
  });
  EXPECT_EQ(seen, ofEach({"occlAllReduce | 4"}));
}

} // namespace
} // namespace occl::nvtx_test

// Calls in which some ranks have nothing to do, in streams and graphs. Ranks are threads, three at
// least. Skipped where there is no device.
#include "plan/model/builder.h"
#include "plan/testing/example_plans.h"
#include "test/gpu/harness/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::gpu_test {
namespace {

/// Rank 0 sends its input to rank 1; the others have no thread block.
plan::Plan sendToNext(uint32_t n, plan::Protocol protocol = plan::Protocol::Simple) {
  using namespace plan;
  PlanBuilder builder;
  builder.header().protocol = protocol;
  builder.header().name = "send";
  builder.header().collective = "send";
  builder.header().sourceHash = "0123456789abcdef";
  builder.addConnection(0, 0, {1});
  for (uint32_t r = 0; r < n; ++r) {
    builder.beginRank({.inputChunks = r == 0 ? 1u : 0u, .outputChunks = r == 1 ? 1u : 0u});
    if (r > 1)
      continue;
    builder.beginThreadBlock();
    if (r == 0) {
      builder.addInstruction({.opcode = Opcode::Send, .count = 1}, {input(0, 0)}, {connection(0)});
    } else {
      builder.addInstruction({.opcode = Opcode::Recv, .count = 1}, {connection(0)}, {output(1, 0)});
      Contribution sent = {0, 0};
      builder.addRequirement({.rank = 1, .outputChunk = 0, .count = 1}, {&sent, 1});
    }
  }
  return std::move(builder).take();
}

/// In the rank's stream, and waits for it.
std::string fill(RankOnDevice &rank, char *memory, char value, uint64_t bytes) {
  cudaMemsetAsync(memory, value, bytes, rank.stream());
  return rank.synchronize();
}

/// Whether all bytes have the value.
bool holds(RankOnDevice &rank, const char *memory, char value, uint64_t bytes) {
  std::vector<char> copy(bytes);
  cudaMemcpyAsync(copy.data(), memory, bytes, cudaMemcpyDeviceToHost, rank.stream());
  return rank.synchronize().empty() &&
         std::ranges::all_of(copy, [=](char byte) { return byte == value; });
}

/// Ranks that have no thread block in a plan: they take part all the same, by saying that they have
/// come so far.
class IdleRanks : public RanksOnDevices {
protected:
  static constexpr uint64_t kBytes = 4000; // of the call: 1000 floats
  void SetUp() override {
    RanksOnDevices::SetUp();
    if (!IsSkipped())
      start(std::max(numRanks(), 3u));
  }
  /// What rank 0 sends next, and nothing where it is to come.
  void prepare(char value) {
    ASSERT_EQ(fill(*onDevices[0], onDevices[0]->input(false), value, kBytes), "");
    ASSERT_EQ(fill(*onDevices[1], onDevices[1]->output(false), 0, kBytes), "");
  }
  /// What rank 0 sends must have arrived at rank 1.
  void expectArrived(char value) {
    for (uint32_t r = 0; r < comms.size(); ++r)
      ASSERT_EQ(onDevices[r]->synchronize(), "") << "rank " << r;
    EXPECT_TRUE(holds(*onDevices[1], onDevices[1]->output(false), value, kBytes));
    for (occlComm_t comm : comms)
      EXPECT_STREQ(occlCommGetLastError(comm), "");
  }
};

TEST_F(IdleRanks, StayInStepWithTheOthers) {
  auto n = static_cast<uint32_t>(comms.size());
  const Case sent = one(sendToNext(n)), all = one(plan::testing::ringAllReduce(n));
  for (char value = 1; value < 20; ++value) {
    prepare(value);
    for (uint32_t r = n; r-- > 0;)
      ASSERT_EQ(call(r, sent), "");
    expectArrived(value);
    if (value % 3 == 0) // one in which all have something to do
      callOnAll(all);
  }
}

TEST_F(IdleRanks, MayComeLate) {
  auto n = static_cast<uint32_t>(comms.size());
  const Case sent = one(sendToNext(n));
  callOnAll(sent);
  prepare(7);
  for (uint32_t r = 0; r < n - 1; ++r)
    ASSERT_EQ(call(r, sent), "");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(call(n - 1, sent), "");
  expectArrived(7);
}

TEST_F(IdleRanks, AreNamedWhereTheyDoNotCome) {
  auto n = static_cast<uint32_t>(comms.size());
  const Case sent = one(sendToNext(n));
  callOnAll(sent);
  for (uint32_t r = 0; r < n - 1; ++r)
    ASSERT_EQ(call(r, sent, 300), "");
  for (uint32_t r = 0; r < n; ++r)
    EXPECT_NE(failureOf(r).find("waits for rank " + std::to_string(n - 1)), std::string::npos)
        << failureOf(r);
}

/// All others have ended what they call, so it alone can find that out.
TEST_F(IdleRanks, TheLastRankFindsThatItCallsSomethingElse) {
  auto n = static_cast<uint32_t>(comms.size());
  const Case sent = one(sendToNext(n, plan::Protocol::LL));
  Case another = sent;
  another.count /= 2;
  callOnAll(sent);
  for (uint32_t r = 0; r < n - 1; ++r)
    ASSERT_EQ(call(r, sent), "");
  for (uint32_t r = 0; r < n - 1; ++r)
    ASSERT_EQ(onDevices[r]->synchronize(), "") << "rank " << r;
  ASSERT_EQ(call(n - 1, another), "");
  for (uint32_t r = 0; r < n; ++r)
    EXPECT_NE(failureOf(r).find("calls something else there"), std::string::npos) << failureOf(r);
}

TEST_F(IdleRanks, AreInGraphs) {
  auto n = static_cast<uint32_t>(comms.size());
  const Case sent = one(sendToNext(n));
  std::vector<cudaGraphExec_t> graphs(n);
  for (uint32_t r = 0; r < n; ++r) {
    cudaSetDevice(static_cast<int>(r % devices));
    cudaStream_t stream = onDevices[r]->stream();
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(r, sent), "");
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    size_t numNodes = 0;
    ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &numNodes), cudaSuccess);
    EXPECT_EQ(numNodes, 1u);
    ASSERT_EQ(cudaGraphInstantiate(&graphs[r], graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
  }
  for (char value = 1; value < 5; ++value) {
    prepare(value);
    for (uint32_t r = 0; r < n; ++r) {
      ASSERT_EQ(call(r, sent), ""); // beside it
      ASSERT_EQ(cudaGraphLaunch(graphs[r], onDevices[r]->stream()), cudaSuccess);
    }
    expectArrived(value);
  }
  for (cudaGraphExec_t graph : graphs)
    cudaGraphExecDestroy(graph);
}

} // namespace
} // namespace occl::gpu_test

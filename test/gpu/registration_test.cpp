// What collectives on devices hold of their ranks' memory, and ranks that take no part in them.
#include "plan/builder.h"
#include "plan/testing/example_plans.h"
#include "test/gpu/ranks_on_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace occl::gpu_test {
namespace {

using namespace plan;

class Registrations : public RanksOnDevices {};

/// Rank 0 sends its input to rank 1; the others have no thread block.
Plan sendToNext(uint32_t n) {
  PlanBuilder builder;
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

struct Piece {
  char *memory;
  uint64_t bytes;
};

/// All of the rank's memory that is free: as large pieces as there are, down to the smallest.
std::vector<Piece> takeAll(occlComm_t comm) {
  std::vector<Piece> pieces;
  void *memory = nullptr;
  for (uint64_t bytes = 64 << 20; bytes >= 128; bytes /= 2)
    while (occlMemAlloc(comm, bytes, &memory) == occlSuccess)
      pieces.push_back({static_cast<char *>(memory), bytes});
  return pieces;
}

uint64_t bytesOf(const std::vector<Piece> &pieces) {
  uint64_t sum = 0;
  for (const Piece &piece : pieces)
    sum += piece.bytes;
  return sum;
}

/// A broadcast along a chain, of twice as many messages as a connection holds. Without the last
/// rank the others come so far that the root has sent everything and is done: its memory must be
/// nobody else's before they are done, too.
TEST_F(Registrations, NobodyStoresIntoMemoryThatHasBecomeAnothers) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(testing::chainBroadcast(n, 4));
  ASSERT_EQ(what.plan.depth, 2u);
  for (uint32_t r = 0; r < n; ++r)
    ASSERT_EQ(registerCase(comms[r], what), occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r + 1 < n; ++r)
    ASSERT_EQ(enqueue(r, what.id), "");
  ASSERT_EQ(onDevices[0]->synchronize(), "");
  ASSERT_EQ(occlDeregister(comms[0], what.id), occlSuccess) << occlGetLastError();
  constexpr char kMine = 0x3c;
  std::vector<Piece> pieces = takeAll(comms[0]);
  for (const Piece &mine : pieces)
    cudaMemsetAsync(mine.memory, kMine, mine.bytes, onDevices[0]->stream());
  ASSERT_EQ(onDevices[0]->synchronize(), "");
  ASSERT_EQ(enqueue(n - 1, what.id), "");
  for (uint32_t r = 1; r < n; ++r)
    ASSERT_EQ(onDevices[r]->synchronize(), "");
  for (const Piece &mine : pieces)
    ASSERT_TRUE(holds(*onDevices[0], mine.memory, kMine, mine.bytes))
        << mine.bytes << " bytes at " << static_cast<void *>(mine.memory);
  // With the last rank the memory comes back.
  uint64_t before = bytesOf(pieces);
  for (const Piece &mine : pieces)
    ASSERT_EQ(occlMemFree(comms[0], mine.memory), occlSuccess);
  for (uint32_t r = 1; r < n; ++r)
    ASSERT_EQ(occlDeregister(comms[r], what.id), occlSuccess) << occlGetLastError();
  EXPECT_GT(bytesOf(takeAll(comms[0])), before);
  EXPECT_STREQ(occlCommGetLastError(comms[0]), "");
}

TEST_F(Registrations, IdsComeAndGoForEver) {
  auto n = static_cast<uint32_t>(comms.size());
  inThreads([&](uint32_t rank) -> std::string {
    for (uint32_t round = 0; round < 100; ++round) {
      Case what = one(testing::ringAllReduce(n), round % 3);
      what.count = 250'000; // the device memory of these tests would not hold all of them
      occlResult_t result = occlAgain;
      auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      // Others may not have deregistered the one before.
      while (result == occlAgain && std::chrono::steady_clock::now() < end)
        result = registerCase(comms[rank], what);
      if (result != occlSuccess)
        return "round " + std::to_string(round) + ": " + occlGetLastError();
      if (std::string wrong = enqueue(rank, what.id); !wrong.empty())
        return wrong;
      if (std::string wrong = onDevices[rank]->synchronize(); !wrong.empty())
        return wrong;
      if (occlDeregister(comms[rank], what.id) != occlSuccess)
        return occlGetLastError();
    }
    return "";
  });
}

class IdleRanks : public RanksOnDevices {
protected:
  static constexpr uint64_t kBytes = 4000; // of the collective: 1000 floats
  /// What rank 0 sends must have arrived at rank 1.
  void expectArrived(char value) {
    for (uint32_t r = 0; r < comms.size(); ++r)
      ASSERT_EQ(onDevices[r]->synchronize(), "") << "rank " << r;
    EXPECT_TRUE(holds(*onDevices[1], onDevices[1]->output(false), value, kBytes));
    for (occlComm_t comm : comms)
      EXPECT_STREQ(occlCommGetLastError(comm), "");
  }
};

TEST_F(IdleRanks, TakeNoPartAndStayInStep) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(sendToNext(n));
  for (uint32_t round = 0; round < 3; ++round) { // registered again and again
    for (uint32_t r = 0; r < n; ++r)
      ASSERT_EQ(registerCase(comms[r], what), occlSuccess) << occlGetLastError();
    for (char value = 1; value < 10; ++value) {
      ASSERT_EQ(fill(*onDevices[0], onDevices[0]->input(false), value, kBytes), "");
      ASSERT_EQ(fill(*onDevices[1], onDevices[1]->output(false), 0, kBytes), "");
      for (uint32_t r = 0; r < n; ++r)
        ASSERT_EQ(enqueue(r, what.id), "");
      expectArrived(value);
    }
    for (uint32_t r = 0; r < n; ++r)
      ASSERT_EQ(occlDeregister(comms[r], what.id), occlSuccess) << occlGetLastError();
  }
}

TEST_F(IdleRanks, MayComeLateOrNotAtAll) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(sendToNext(n));
  for (uint32_t r = 0; r < 2; ++r) // the others not even register
    ASSERT_EQ(registerCase(comms[r], what), occlSuccess) << occlGetLastError();
  for (char value = 1; value < 10; ++value) {
    ASSERT_EQ(fill(*onDevices[0], onDevices[0]->input(false), value, kBytes), "");
    for (uint32_t r = 0; r < 2; ++r)
      ASSERT_EQ(enqueue(r, what.id), "");
    expectArrived(value);
  }
  ++what.count;
  EXPECT_EQ(registerCase(comms[2], what), occlMismatch) << "idle ranks must agree, too";
}

TEST_F(IdleRanks, WaitForNobody) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(sendToNext(n));
  registerOnAll(what);
  ASSERT_EQ(fill(*onDevices[0], onDevices[0]->input(false), 7, kBytes), "");
  ASSERT_EQ(fill(*onDevices[1], onDevices[1]->output(false), 0, kBytes), "");
  for (uint32_t rank : {2u, 0u}) // rank 0 sends without waiting for the receiver
    EXPECT_EQ(occlEnqueueAndWait(comms[rank], what.id, onDevices[rank]->input(false),
                                 onDevices[rank]->output(false), onDevices[rank]->stream()),
              occlSuccess)
        << occlGetLastError();
  ASSERT_EQ(enqueue(1, what.id), "");
  expectArrived(7);
}

TEST_F(IdleRanks, AreNotInGraphs) {
  auto n = static_cast<uint32_t>(comms.size());
  if (n < 3)
    GTEST_SKIP() << "needs three ranks";
  Case what = one(sendToNext(n));
  std::vector<cudaGraphExec_t> graphs(n);
  for (uint32_t r = 0; r < n; ++r) {
    ASSERT_EQ(registerCase(comms[r], what), occlSuccess) << occlGetLastError();
    cudaSetDevice(static_cast<int>(r % devices));
    cudaStream_t stream = onDevices[r]->stream();
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(enqueue(r, what.id), "");
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    size_t numNodes = 99;
    ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &numNodes), cudaSuccess);
    EXPECT_EQ(numNodes, r < 2 ? 1u : 0u);
    ASSERT_EQ(cudaGraphInstantiate(&graphs[r], graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
  }
  for (char value = 1; value < 5; ++value) {
    ASSERT_EQ(fill(*onDevices[0], onDevices[0]->input(false), value, kBytes), "");
    for (uint32_t r = 0; r < n; ++r) {
      ASSERT_EQ(enqueue(r, what.id), ""); // beside it
      ASSERT_EQ(cudaGraphLaunch(graphs[r], onDevices[r]->stream()), cudaSuccess);
    }
    expectArrived(value);
  }
  for (cudaGraphExec_t graph : graphs)
    cudaGraphExecDestroy(graph);
}

} // namespace
} // namespace occl::gpu_test

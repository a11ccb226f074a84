// Plans with more thread blocks a rank than there are executors to run them.
#include "plan/model/builder.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan;

constexpr uint32_t kRanks = 3, kBlocks = 16;

/// Rank 0's buffer goes from rank to rank, each chunk by a thread block and channel of its own.
Plan wideBroadcast() {
  PlanBuilder builder;
  Plan &header = builder.header();
  header.name = "wide_broadcast";
  header.collective = "broadcast";
  header.parameters = {{"ranks", kRanks}};
  header.sourceHash = "0123456789abcdef";
  header.partChunks = kBlocks;
  header.root = 0;
  uint32_t file = builder.file("wide_broadcast.coll");
  for (uint32_t r = 0; r + 1 < kRanks; ++r)
    for (uint32_t b = 0; b < kBlocks; ++b)
      builder.addConnection(r, b, {r + 1});
  for (uint32_t r = 0; r < kRanks; ++r) {
    builder.beginRank({.inputChunks = kBlocks, .outputChunks = kBlocks});
    for (uint32_t b = 0; b < kBlocks; ++b) {
      builder.beginThreadBlock();
      Instruction move;
      move.count = 1;
      move.extent = b;
      move.location = builder.location(file, 1 + r, 1);
      Operand from = connection((r - 1) * kBlocks + b), to = connection(r * kBlocks + b);
      if (r == 0) {
        move.opcode = Opcode::Copy;
        builder.addInstruction(move, {input(r, b)}, {output(r, b)});
        move.opcode = Opcode::Send;
        builder.addInstruction(move, {input(r, b)}, {to});
      } else if (r + 1 < kRanks) {
        move.opcode = Opcode::RecvCopySend;
        builder.addInstruction(move, {from}, {output(r, b), to});
      } else {
        move.opcode = Opcode::Recv;
        builder.addInstruction(move, {from}, {output(r, b)});
      }
    }
  }
  return std::move(builder).take();
}

/// The root of a broadcast may be ahead of the others by all the invocations that there may be.
class ManyBlocks : public ::testing::TestWithParam<uint32_t> {};

TEST_P(ManyBlocks, AreAllRunInWhateverOrderTheRanksSubmit) {
  constexpr uint32_t kJobs = 4, kRounds = 25;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.workers = GetParam();
  Ranks ranks(kRanks, config);
  PlanHandle handle = handleOf(wideBroadcast());
  std::vector<Job> jobs;
  for (uint32_t j = 0; j < kJobs; ++j)
    jobs.emplace_back(j, handle, 1000 * (j + 1));
  ranks.run([&](uint32_t r) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      std::vector<occlRequest_t> requests(kJobs);
      for (uint32_t j : latinOrder(kJobs, r, round))
        ASSERT_EQ(submitOnceFree(jobs[j], ranks[r], r, &requests[j]), occlSuccess)
            << occlGetLastError();
      for (uint32_t j : latinOrder(kJobs, r, round + 1))
        ASSERT_EQ(occlWait(ranks[r], requests[j]), occlSuccess) << occlGetLastError();
      ASSERT_EQ(checkAll(jobs, r), "");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, ManyBlocks, ::testing::Values(1, 3));

} // namespace
} // namespace occl::communicator::testing

// What is wrong with a partitioned collective is said, with one clear text; the request lives on,
// or the communicator fails, on all ranks for the same cause.
#include "plan/testing/direct_plans.h"
#include "plan/testing/example_plans.h"
#include "runtime/api/occl_partitioned_collectives.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/tests/partitioned/pair.h"

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <limits>

namespace occl::communicator::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kInvalid = occlInvalidArgument;

void expectSaid(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' in: " << text;
}

/// An all-reduce of 40 int32 between two ranks.
class PartitionedCollectiveMisuse : public ::testing::Test {
protected:
  occlResult_t make(uint32_t r, int64_t sent, int64_t received, Part &part,
                    const occlPartConfig_t *config = nullptr) {
    return occlPallReduceInit(inputs[r].data(), sent, outputs[r].data(), received, 40, occlInt32,
                              occlSum, ranks[r], config, &part);
  }
  void begin(int64_t sent = 4, int64_t received = 4) {
    for (uint32_t r = 0; r < 2; ++r) {
      ASSERT_EQ(make(r, sent, received, parts[r]), occlSuccess) << lastText();
      ASSERT_EQ(occlPstart(parts[r]), occlSuccess) << lastText();
    }
  }
  /// What was refused has changed nothing: the epoch ends with what rank 0 has not marked before.
  void finish(const std::vector<int64_t> &marks) {
    EXPECT_EQ(occlPreadyList(parts[0], marks.size(), marks.data()), occlSuccess) << lastText();
    EXPECT_EQ(occlPreadyRange(parts[1], 0, 3), occlSuccess) << lastText();
    for (Part &part : parts)
      EXPECT_EQ(occlPwait(part), occlSuccess) << lastText();
    for (uint64_t i = 0; i < 40; ++i)
      EXPECT_EQ(outputs[0][i], 2 * inputs[0][i]);
    EXPECT_EQ(outputs[0], outputs[1]);
  }

  std::array<std::vector<int32_t>, 2> inputs = {numbersFrom(1, 40), numbersFrom(1, 40)};
  std::array<std::vector<int32_t>, 2> outputs = {std::vector<int32_t>(40),
                                                 std::vector<int32_t>(40)};
  Ranks ranks{2, withTimeout(20000)};
  std::array<Part, 2> parts;
};

TEST_F(PartitionedCollectiveMisuse, Init) {
  Part part;
  EXPECT_EQ(make(0, -1, 4, part), kInvalid);
  expectSaid(lastText(), "-1 partitions of the input of 40 elements");
  EXPECT_EQ(make(0, 4, std::numeric_limits<int64_t>::min(), part), kInvalid);
  EXPECT_EQ(make(0, 0, 4, part), kInvalid);
  expectSaid(lastText(), "0 partitions of the input of 40 elements");
  EXPECT_EQ(make(0, 4, 0, part), kInvalid);
  expectSaid(lastText(), "0 partitions of the output of 40 elements");
  EXPECT_EQ(make(0, OCCL_MAX_PARTITIONS + 1, 1, part), kInvalid);
  EXPECT_EQ(occlPcollInit(ranks[0], nullptr, 1, 1, nullptr, &part), kInvalid);
  EXPECT_EQ(occlPcollInit(nullptr, nullptr, 1, 1, nullptr, &part), kInvalid);
  EXPECT_EQ(occlPallReduceInit(nullptr, 4, outputs[0].data(), 4, 40, occlInt32, occlSum, ranks[0],
                               nullptr, &part),
            kInvalid);
  expectSaid(lastText(), "partitioned allreduce: ");
  EXPECT_EQ(occlPallReduceInit(outputs[0].data() + 1, 4, outputs[0].data(), 4, 20, occlInt32,
                               occlSum, ranks[0], nullptr, &part),
            kInvalid)
      << "they overlap";
  EXPECT_EQ(occlPbroadcastInit(inputs[0].data(), 1, outputs[0].data(), 1, 40, occlInt32, 2,
                               ranks[0], nullptr, &part),
            kInvalid)
      << "no such root";
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.size = 0;
  EXPECT_EQ(make(0, 4, 4, part, &config), kInvalid);
  config = OCCL_PART_CONFIG_INITIALIZER;
  config.partitionsPerMessage = 2;
  EXPECT_EQ(make(0, 4, 4, part, &config), kInvalid);
  expectSaid(lastText(), "collectives have rounds instead");
  config = {sizeof config, 0, OCCL_MAX_ROUNDS + 1};
  EXPECT_EQ(make(0, 4, 4, part, &config), kInvalid);
  config.rounds = 2;
  EXPECT_EQ(occlPsendInit(ranks[0], inputs[0].data(), 4, 10, occlInt32, 1, 0, &config, &part),
            kInvalid);
  expectSaid(lastText(), "only collectives have rounds");
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindAllReduce;
  call.id = 3;
  EXPECT_EQ(occlPcollInit(ranks[0], &call, 1, 1, nullptr, &part), kInvalid);
  expectSaid(lastText(), "in the order in which they are made");
  // What was refused has no number: the others come together.
  begin();
  finish({0, 1, 2, 3});
}

/// Which plans cannot be.
TEST_F(PartitionedCollectiveMisuse, Plans) {
  Part part;
  const PlanHandle direct = handleOf(plan::testing::directAllReduce(2)),
                   three = handleOf(plan::testing::ringAllReduce(3));
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.sendBuffer = inputs[0].data();
  call.recvBuffer = outputs[0].data();
  call.count = 40;
  call.dataType = occlInt32;
  call.plan = direct.get();
  EXPECT_EQ(occlPcollInit(ranks[0], &call, 4, 4, nullptr, &part), kInvalid);
  expectSaid(lastText(), "compile it without --direct");
  const occlPartConfig_t config = {sizeof config, 0, 2};
  EXPECT_EQ(occlPcollInit(ranks[0], &call, 4, 4, &config, &part), kInvalid);
  expectSaid(lastText(), "cannot be executed in 2 rounds");
  call.plan = three.get();
  EXPECT_EQ(occlPcollInit(ranks[0], &call, 4, 4, nullptr, &part), occlInvalidPlan);
  begin();
  finish({0, 1, 2, 3});
}

TEST_F(PartitionedCollectiveMisuse, Marks) {
  begin();
  for (int64_t p : {int64_t{4}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    EXPECT_EQ(occlPready(parts[0], p), kInvalid);
    expectSaid(lastText(), "partitioned allreduce, request 0: there is no partition " +
                               std::to_string(p) + " of 4 of its input");
  }
  constexpr int64_t kBeyond[] = {0, 4}, kTwice[] = {3, 1, 3};
  EXPECT_EQ(occlPreadyList(parts[0], 2, kBeyond), kInvalid) << "nothing is marked";
  EXPECT_EQ(occlPreadyRange(parts[0], 2, 1), kInvalid);
  EXPECT_EQ(occlPreadyRange(parts[0], 2, 4), kInvalid);
  EXPECT_EQ(occlPreadyList(parts[0], 2, nullptr), kInvalid);
  EXPECT_EQ(occlPreadyList(parts[0], 3, kTwice), kInvalid) << "all others are";
  expectSaid(lastText(), "partitioned collective, request 0: partition 3 is ready already in "
                         "epoch 1");
  finish({0, 2});
  EXPECT_EQ(occlPready(parts[0], 0), kInvalid) << "the epoch is over";
  expectSaid(lastText(), "has not been started");
}

TEST_F(PartitionedCollectiveMisuse, States) {
  ASSERT_EQ(make(0, 4, 5, parts[0]), occlSuccess);
  EXPECT_EQ(occlPready(parts[0], 0), kInvalid);
  EXPECT_EQ(arrivedNow(parts[0], 0), 1) << "without an epoch";
  EXPECT_EQ(occlPtest(parts[0]), occlSuccess);
  EXPECT_EQ(occlPwait(parts[0]), occlSuccess);
  EXPECT_EQ(parts[0].free(), occlSuccess);
  ASSERT_EQ(make(1, 4, 5, parts[1]), occlSuccess);
  EXPECT_EQ(parts[1].free(), occlSuccess);
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(make(r, 4, 5, parts[r]), occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
  }
  EXPECT_EQ(occlPstart(parts[0]), kInvalid);
  expectSaid(lastText(), "partitioned allreduce, request 1, epoch 1 has been started");
  EXPECT_EQ(parts[0].free(), kInvalid);
  expectSaid(lastText(), "epoch 1 is not over");
  EXPECT_EQ(occlPprepare(parts[0]), kInvalid);
  expectSaid(lastText(), "only sends and receives can be prepared");
  for (int64_t q : {int64_t{5}, int64_t{-1}}) {
    EXPECT_EQ(arrivedNow(parts[0], q), -1);
    expectSaid(lastText(), "there is no partition " + std::to_string(q) + " of 5 of its output");
  }
  EXPECT_EQ(occlParrived(parts[0], 0, nullptr), kInvalid);
  finish({0, 1, 2, 3});
}

/// A rank without input marks nothing, one without output asks nothing; both may be NULL there.
TEST_F(PartitionedCollectiveMisuse, RanksWithoutABuffer) {
  std::array<Part, 2> sent, summed;
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPbroadcastInit(r == 0 ? inputs[0].data() : nullptr, r == 0 ? 4 : -1,
                                 outputs[r].data(), 3, 40, occlInt32, 0, ranks[r], nullptr,
                                 &sent[r]),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPreduceInit(inputs[r].data(), 4, r == 1 ? outputs[1].data() : nullptr,
                              r == 1 ? 4 : OCCL_MAX_PARTITIONS + 1, 40, occlInt32, occlSum, 1,
                              ranks[r], nullptr, &summed[r]),
              occlSuccess)
        << lastText();
    ASSERT_EQ(occlPstart(sent[r]), occlSuccess) << lastText();
  }
  EXPECT_EQ(occlPready(sent[1], 0), kInvalid);
  expectSaid(lastText(), "partitioned broadcast, request 0: rank 1 has no input");
  ASSERT_EQ(occlPreadyRange(sent[0], 0, 3), occlSuccess);
  for (Part &part : sent)
    EXPECT_EQ(occlPwait(part), occlSuccess) << lastText();
  EXPECT_EQ(outputs[1], inputs[0]);
  for (Part &part : summed)
    ASSERT_EQ(occlPstart(part), occlSuccess) << lastText();
  EXPECT_EQ(arrivedNow(summed[0], 0), -1);
  expectSaid(lastText(), "partitioned reduce, request 1: rank 0 has no output");
  for (Part &part : summed)
    ASSERT_EQ(occlPreadyRange(part, 0, 3), occlSuccess);
  for (Part &part : summed)
    EXPECT_EQ(occlPwait(part), occlSuccess) << lastText();
  EXPECT_EQ(outputs[1][39], 80);
}

/// Of no elements each partition is to be marked all the same, as of sends.
TEST_F(PartitionedCollectiveMisuse, EmptyPartitions) {
  for (uint32_t r = 0; r < 2; ++r)
    ASSERT_EQ(occlPallReduceInit(nullptr, 3, nullptr, 2, 0, occlInt32, occlSum, ranks[r], nullptr,
                                 &parts[r]),
              occlSuccess)
        << lastText();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (Part &part : parts) {
      ASSERT_EQ(occlPstart(part), occlSuccess);
      ASSERT_EQ(occlPreadyRange(part, 0, 1), occlSuccess);
      awaitArrival(part, 1);
      EXPECT_EQ(occlPtest(part), occlInProgress);
    }
    for (Part &part : parts)
      ASSERT_EQ(occlPready(part, 2), occlSuccess);
    for (Part &part : parts)
      EXPECT_EQ(occlPwait(part), occlSuccess) << lastText();
  }
}

/// Of what ranks have to say alike. Partitions are none of it.
TEST(PartitionedCollectiveMismatch, IsNamedOnAllRanks) {
  struct Said {
    occlKind_t kind = occlKindAllReduce;
    uint64_t count = 40;
    occlDataType_t type = occlInt32;
    occlRedOp_t op = occlSum;
    uint32_t root = 0;
    uint64_t rounds = 1;
  };
  const std::pair<Said, const char *> cases[] = {
      {{.kind = occlKindAllGather}, "allgather"}, {{.count = 41}, "count 41"},
      {{.type = occlFloat32}, "float32"},         {{.op = occlMax}, "max"},
      {{.kind = occlKindBroadcast}, "broadcast"}, {{.rounds = 3}, "rounds 3"},
  };
  for (const auto &[other, text] : cases) {
    std::vector<std::vector<int32_t>> inputs(2, std::vector<int32_t>(200)), outputs = inputs;
    const Ranks ranks(2, withTimeout(20000));
    ranks.run([&](uint32_t r) {
      const Said said = r == 0 ? Said{} : other;
      occlCall_t call = OCCL_CALL_INITIALIZER;
      call.kind = said.kind;
      call.sendBuffer = inputs[r].data();
      call.recvBuffer = outputs[r].data();
      call.count = said.count;
      call.dataType = said.type;
      call.op = said.op;
      call.root = said.root;
      const occlPartConfig_t config = {sizeof config, 0, said.rounds};
      Part part;
      ASSERT_EQ(occlPcollInit(ranks[r], &call, 2, 2, &config, &part), occlSuccess) << lastText();
      occlResult_t result = occlPstart(part);
      if (result == occlSuccess && (r == 0 || said.kind != occlKindBroadcast)) {
        result = occlPreadyRange(part, 0, 1);
      }
      if (result == occlSuccess)
        result = occlPwait(part);
      if (result == occlSuccess) { // its part was at an end before: then the next one says so
        while ((result = occlPstart(part)) == occlSuccess) {
          occlPreadyRange(part, 0, 1);
          occlPwait(part);
        }
      }
      EXPECT_EQ(result, occlMismatch) << lastText();
      expectSaid(lastText(), text);
      expectSaid(lastText(), "rounds 1"); // what rank 0 has
      expectSaid(lastText(), "(partitioned, request 0)");
    });
  }
}

TEST(PartitionedCollectiveFailure, ADeadlineNamesWhatIsMissing) {
  const Ranks ranks(2, withTimeout(300));
  std::vector<int32_t> values(40), sums(80);
  std::array<Part, 2> parts;
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPallReduceInit(values.data(), 4, sums.data() + 40 * r, 4, 40, occlInt32, occlSum,
                                 ranks[r], nullptr, &parts[r]),
              occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
    ASSERT_EQ(occlPready(parts[r], 0), occlSuccess);
  }
  EXPECT_EQ(occlPwait(parts[0]), occlTimeout);
  expectSaid(lastText(), "(partitioned, request 0), epoch 1 did not end");
  expectSaid(lastText(), "waits for partition 1 of its input, which has not been marked ready");
  EXPECT_EQ(occlPwait(parts[1]), occlTimeout);
  // No epoch again, and marks do nothing.
  EXPECT_EQ(occlPstart(parts[0]), occlTimeout);
  EXPECT_EQ(occlPready(parts[0], 1), occlTimeout);
}

/// Also of what no step reads.
TEST(PartitionedCollectiveFailure, ADeadlineNamesWhatNobodyNeeds) {
  const Ranks ranks(1, withTimeout(200));
  Part part;
  ASSERT_EQ(
      occlPallReduceInit(nullptr, 3, nullptr, 1, 0, occlInt32, occlSum, ranks[0], nullptr, &part),
      occlSuccess);
  ASSERT_EQ(occlPstart(part), occlSuccess);
  ASSERT_EQ(occlPready(part, 0), occlSuccess);
  EXPECT_EQ(occlPwait(part), occlTimeout);
  expectSaid(lastText(), "partition 1 of its input has not been marked ready");
}

TEST(PartitionedCollectiveFailure, Abort) {
  const Ranks ranks(2);
  std::vector<int32_t> values(40), sums(80);
  std::array<Part, 2> parts;
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPallReduceInit(values.data(), 4, sums.data() + 40 * r, 4, 40, occlInt32, occlSum,
                                 ranks[r], nullptr, &parts[r]),
              occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
  }
  ASSERT_EQ(occlPready(parts[0], 0), occlSuccess);
  std::thread aborter([&] {
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(occlCommAbort(ranks[1]), occlSuccess);
  });
  EXPECT_EQ(occlPwait(parts[0]), occlAborted);
  aborter.join();
  int32_t arrived = 0;
  EXPECT_EQ(occlParrived(parts[0], 0, &arrived), occlAborted); // not that it has
  EXPECT_EQ(arrived, 0);
  EXPECT_EQ(occlPready(parts[0], 1), occlAborted);
  EXPECT_EQ(occlPstart(parts[0]), occlAborted);
  while (parts[1].free() == occlInvalidArgument) // which has not been waited for
    std::this_thread::yield();
  EXPECT_EQ(parts[1], nullptr);
}

/// Its requests go with it, also those that have an epoch.
TEST(PartitionedCollectiveFailure, DestroyWithRequests) {
  std::vector<int32_t> values(40), sums(80); // they live longer
  const Ranks ranks(2, withTimeout(20000));
  std::array<occlPart_t, 2> parts{};
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPallReduceInit(values.data(), 4, sums.data() + 40 * r, 4, 40, occlInt32, occlSum,
                                 ranks[r], nullptr, &parts[r]),
              occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
    ASSERT_EQ(occlPreadyRange(parts[r], 0, 3), occlSuccess);
  }
}

TEST(PartitionedCollectiveFailure, ReportsNameIt) {
  const occlPartConfig_t config = {sizeof config, 0, 2};
  const Ranks ranks(2, withTimeout(20000));
  std::vector<int32_t> values(40), sums(80);
  std::array<Part, 2> parts;
  for (uint32_t r = 0; r < 2; ++r) {
    ASSERT_EQ(occlPallReduceInit(values.data(), 4, sums.data() + 40 * r, 4, 40, occlInt32, occlSum,
                                 ranks[r], &config, &parts[r]),
              occlSuccess);
    ASSERT_EQ(occlPstart(parts[r]), occlSuccess);
  }
  const std::string expected =
      "rank 0 waits for itself (its program, to mark partition 0 as ready)";
  std::string report; // until somebody has looked at it
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (report.find(expected) == std::string::npos && std::chrono::steady_clock::now() < end)
    report = reportOf(ranks[0]);
  expectSaid(report, expected);
  expectSaid(report, "(partitioned, request 0), epoch 1, round ");
  for (Part &part : parts)
    ASSERT_EQ(occlPreadyRange(part, 0, 3), occlSuccess);
  for (Part &part : parts)
    EXPECT_EQ(occlPwait(part), occlSuccess);
}

/// A process is killed with a part of its marks made: the others are told.
TEST(PartitionedCollectiveFailure, AKilledRankIsNamed) {
  const std::string name = jobName("pcoll_killed");
  Processes processes(2, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, 2, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    std::vector<int32_t> values(40), sums(40);
    occlPart_t part = nullptr;
    if (occlPallReduceInit(values.data(), 4, sums.data(), 4, 40, occlInt32, occlSum, comm, nullptr,
                           &part) != occlSuccess ||
        occlPstart(part) != occlSuccess || occlPready(part, 0) != occlSuccess)
      return lastError("start");
    if (rank == 1)
      raise(SIGKILL);
    if (occlPreadyRange(part, 1, 3) != occlSuccess)
      return lastError("ready");
    const occlResult_t result = occlPwait(part);
    const std::string text = occlGetLastError();
    occlCommDestroy(comm);
    return result == occlPeerFailed && text.find("rank 1") != std::string::npos
               ? ""
               : std::to_string(result) + ": " + text;
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  EXPECT_EQ(processes.join(1), -1);
}

} // namespace
} // namespace occl::communicator::testing

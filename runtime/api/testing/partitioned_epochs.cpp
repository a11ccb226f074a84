#include "runtime/api/testing/partitioned_epochs.h"

#include "plan/testing/example_plans.h"
#include "runtime/sync/thread.h"

#include <algorithm>

namespace occl::communicator::testing {

namespace {

constexpr uint32_t kEpochs = 2;
constexpr uint64_t kSent = 12; // int32
constexpr int64_t kSentPartitions = 4, kReceivedPartitions = 3;
constexpr uint64_t kRounds = 2;
constexpr uint64_t kCount = kRounds * 32; // int32; a round has 128 bytes of a chunk
constexpr int64_t kPartitions = 2;        // one of each round

int32_t valueOf(uint32_t rank, uint32_t epoch, uint64_t element) {
  return static_cast<int32_t>(element * 7 + rank * 1009 + epoch * 100003);
}

occlResult_t makeCollective(occlComm_t comm, const PlanHandle &plan,
                            const std::vector<int32_t> &input, std::vector<int32_t> &output,
                            occlPart_t *part) {
  occlCall_t call = OCCL_CALL_INITIALIZER;
  call.kind = occlKindPlan; // the library of an explored test comes without plans
  call.plan = plan.get();
  call.sendBuffer = input.data();
  call.recvBuffer = output.data();
  call.count = kCount;
  call.dataType = occlInt32;
  occlPartConfig_t config = OCCL_PART_CONFIG_INITIALIZER;
  config.rounds = kRounds;
  return occlPcollInit(comm, &call, kPartitions, kPartitions, &config, part);
}

/// The first error of several calls, each of which is made if those before it were well.
occlResult_t firstError(const auto &...calls) {
  occlResult_t result = occlSuccess;
  (void)(((result = calls()) == occlSuccess) && ...);
  return result;
}

occlResult_t awaitArrival(occlPart_t part, int64_t partition) {
  int32_t arrived = 0;
  occlResult_t result = occlSuccess;
  while ((result = occlParrived(part, partition, &arrived)) == occlSuccess && arrived == 0)
    yieldProcessor();
  return result;
}

} // namespace

PartitionedEpochs::PartitionedEpochs(uint32_t numRanks)
    : numRanks(numRanks), sumPlan(handleOf(plan::testing::oneShotAllReduce(numRanks))),
      copyPlan(handleOf(plan::testing::chainBroadcast(numRanks, 1))), sent(kSent), received(kSent),
      summands(kCount), sums(kCount), original(kCount), copied(kCount) {}

occlResult_t PartitionedEpochs::make(occlComm_t comm) {
  occlCommRank(comm, &rank);
  const uint32_t next = (rank + 1) % numRanks, last = (rank + numRanks - 1) % numRanks;
  return firstError(
      [&] {
        return occlPsendInit(comm, sent.data(), kSentPartitions, kSent / kSentPartitions, occlInt32,
                             next, 0, nullptr, &parts[Send]);
      },
      [&] {
        return occlPrecvInit(comm, received.data(), kReceivedPartitions,
                             kSent / kReceivedPartitions, occlInt32, last, 0, nullptr,
                             &parts[Receive]);
      },
      [&] { return makeCollective(comm, sumPlan, summands, sums, &parts[Sum]); },
      [&] { return makeCollective(comm, copyPlan, original, copied, &parts[Copy]); });
}

void PartitionedEpochs::fill(uint32_t epoch) {
  for (uint64_t i = 0; i < kSent; ++i)
    sent[i] = valueOf(rank, epoch, i);
  for (uint64_t i = 0; i < kCount; ++i)
    summands[i] = original[i] = valueOf(rank, epoch, i);
  for (auto *target : {&received, &sums, &copied})
    std::ranges::fill(*target, -1);
}

/// In another order on each rank: by range, list and one by one.
occlResult_t PartitionedEpochs::mark() const {
  constexpr int64_t kOthers[] = {3, 0};
  const auto markSend = [&] {
    return firstError([&] { return occlPreadyRange(parts[Send], 1, 2); },
                      [&] { return occlPreadyList(parts[Send], 2, kOthers); });
  };
  const auto markSum = [&] {
    return firstError([&] { return occlPready(parts[Sum], rank % kPartitions); },
                      [&] { return occlPready(parts[Sum], (rank + 1) % kPartitions); });
  };
  // In a plan of one's own others than the root may have an input, which is marked, too.
  const auto markCopy = [&] { return occlPreadyRange(parts[Copy], 0, kPartitions - 1); };
  return rank % 2 == 0 ? firstError(markSend, markSum, markCopy)
                       : firstError(markCopy, markSum, markSend);
}

/// Asks for partitions, and tests and waits for epochs.
occlResult_t PartitionedEpochs::await() const {
  const auto wait = [](occlPart_t part) { return [part] { return occlPwait(part); }; };
  return firstError([&] { return awaitArrival(parts[Receive], kReceivedPartitions - 1); },
                    [&] { return awaitArrival(parts[Sum], rank % kPartitions); },
                    [&] {
                      occlResult_t result = occlInProgress;
                      while ((result = occlPtest(parts[Copy])) == occlInProgress)
                        yieldProcessor();
                      return result;
                    },
                    wait(parts[Sum]), wait(parts[Receive]), wait(parts[Send]));
}

void PartitionedEpochs::check(uint32_t epoch) {
  const auto compare = [&](const char *what, uint64_t i, int32_t found, int32_t expected) {
    if (found != expected && wrongData.empty())
      wrongData = std::string(what) + " " + std::to_string(i) + " of epoch " +
                  std::to_string(epoch) + " is " + std::to_string(found) + ", not " +
                  std::to_string(expected);
  };
  const uint32_t last = (rank + numRanks - 1) % numRanks;
  for (uint64_t i = 0; i < kSent; ++i)
    compare("what was received", i, received[i], valueOf(last, epoch, i));
  for (uint64_t i = 0; i < kCount; ++i) {
    int32_t sum = 0;
    for (uint32_t r = 0; r < numRanks; ++r)
      sum += valueOf(r, epoch, i);
    compare("the sum", i, sums[i], sum);
    compare("what was broadcast", i, copied[i], valueOf(0, epoch, i));
  }
}

occlResult_t PartitionedEpochs::runEpoch(uint32_t epoch) {
  fill(epoch);
  for (uint32_t i = 0; i < parts.size(); ++i) // in another order on each rank
    if (occlResult_t result = occlPstart(parts[(i + rank) % parts.size()]); result != occlSuccess)
      return result;
  const occlResult_t result = firstError([&] { return mark(); }, [&] { return await(); });
  if (result == occlSuccess)
    check(epoch);
  return result;
}

occlResult_t PartitionedEpochs::run(occlComm_t comm) {
  occlResult_t result = make(comm);
  for (uint32_t epoch = 1; epoch <= kEpochs && result == occlSuccess; ++epoch)
    result = runEpoch(epoch);
  for (occlPart_t part : parts)
    if (result == occlSuccess)
      result = occlPfree(part);
  return result;
}

} // namespace occl::communicator::testing

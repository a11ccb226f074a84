// A rank of a job that occl-run starts on several machines, for namespaces_test.py:
//   rank_program collectives            all kinds of the library's collectives, checked
//   rank_program seconds N              all-reduces for N seconds, checked
//   rank_program until-failure [MILLISECONDS]
//                                       all-reduces until one fails, at the latest at this
//                                       deadline; says why and how long it took
//   rank_program transfers              sends, receives, collectives with counts by rank, checked
//   rank_program transfer-seconds N     exchanges between machines for N seconds, checked
//   rank_program transfer-until-failure exchanges until one fails, likewise
//   rank_program join MILLISECONDS      joins with this deadline; says why it could not
//   rank_program shrink MILLISECONDS    all-reduces until one fails, shrinks with this timeout;
//                                       says how many are left, checked, or why it could not
//   rank_program splits ORDERS          divides into all ranks for each letter of it, one after the
//                                       other, s: in the same order, r: in reverse; checked
// Says "rank R: ..." on standard output; the exit status is 0 if that is what was asked for.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/transfer_graph.h"
#include "runtime/api/testing/v_collectives.h"
#include "test/machines/islands.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

namespace testing = occl::communicator::testing;
using Clock = std::chrono::steady_clock;

struct Member {
  occlComm_t comm = nullptr;
  uint32_t rank = 0, numRanks = 0;
};

int say(uint32_t rank, const std::string &text, bool isWrong) {
  std::printf("rank %u: %s\n", rank, text.c_str());
  return isWrong ? 1 : 0;
}

int checkCollectives(const Member &self) {
  std::string wrong;
  for (uint64_t count : {0u, 1u, 1000u, 65537u})
    if (wrong.empty())
      wrong = testing::runCollectives(self.comm, count);
  return say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
}

int checkTransfers(const Member &self) {
  const uint64_t seed = testing::printedSeed(); // OCCL_TEST_SEED, the same on all ranks
  std::string wrong = testing::runVCollectives(self.comm, self.numRanks, self.rank, seed);
  for (uint64_t round = 0; round < 5 && wrong.empty(); ++round)
    wrong =
        testing::TransferGraph(self.numRanks, 60, 3000000, seed + round).run(self.comm, self.rank);
  return say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
}

bool allReduce(const Member &self, const std::vector<int32_t> &input,
               std::vector<int32_t> &output) {
  return occlAllReduce(input.data(), output.data(), input.size(), occlInt32, occlSum, self.comm,
                       nullptr) == occlSuccess;
}

/// With the rank that is as far as another one can be; both have the same.
bool exchange(const Member &self, const std::vector<int32_t> &input, std::vector<int32_t> &output) {
  const uint32_t half = self.numRanks / 2, to = (self.rank + half) % self.numRanks,
                 from = (self.rank + self.numRanks - half) % self.numRanks;
  return occlGroupStart() == occlSuccess &&
         occlSend(input.data(), input.size(), occlInt32, to, self.comm, nullptr) == occlSuccess &&
         occlRecv(output.data(), output.size(), occlInt32, from, self.comm, nullptr) ==
             occlSuccess &&
         occlGroupEnd() == occlSuccess;
}

/// What is done again and again, and by how much its output is a multiple of its input.
struct Work {
  bool (*run)(const Member &, const std::vector<int32_t> &, std::vector<int32_t> &);
  int32_t factor;
};

/// The wrong element or the error that ended it; "" once the time is over, on all ranks together.
std::string workUntil(const Member &self, const Work &work, Clock::time_point end) {
  std::vector<int32_t> input(100000), output(input.size());
  for (int32_t round = 0;; ++round) {
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = round + static_cast<int32_t>(i);
    int32_t goesOn = self.rank == 0 && Clock::now() >= end ? 0 : 1;
    if (!work.run(self, input, output) ||
        occlBroadcast(&goesOn, &goesOn, 1, occlInt32, 0, self.comm, nullptr) != occlSuccess)
      return occlCommGetLastError(self.comm);
    for (size_t i = 0; i < input.size(); ++i)
      if (output[i] != work.factor * input[i])
        return "element " + std::to_string(i) + " is wrong";
    if (!goesOn)
      return "";
    if (round == 0)
      std::fprintf(stderr, "rank %u has begun\n", self.rank);
  }
}

int shrinkAfterFailure(const Member &self) {
  const std::string why = workUntil(self, {allReduce, static_cast<int32_t>(self.numRanks)},
                                    Clock::now() + std::chrono::hours(1));
  occlComm_t smaller = nullptr;
  if (occlCommShrink(self.comm, nullptr, 0, nullptr, &smaller) != occlSuccess)
    return say(self.rank, occlGetLastError(), false);
  uint32_t left = 0;
  occlCommSize(smaller, &left);
  const std::string wrong = testing::runCollectives(smaller, 1000);
  occlCommDestroy(smaller);
  return say(self.rank, wrong.empty() ? std::to_string(left) + " left" : wrong, !wrong.empty());
}

int splitInTurn(const Member &self, const std::string &orders) {
  std::string wrong;
  for (size_t i = 0; i < orders.size() && wrong.empty(); ++i) {
    const auto key = static_cast<int32_t>(self.rank);
    occlComm_t part = nullptr;
    if (occlCommSplit(self.comm, 0, orders[i] == 'r' ? -key : key, nullptr, &part) != occlSuccess)
      return say(self.rank, occlGetLastError(), true);
    wrong = testing::runCollectives(part, 1000);
    occlCommDestroy(part);
  }
  return say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
}

} // namespace

int main(int argc, char **argv) {
  const std::string task = argc > 1 ? argv[1] : "";
  const unsigned long number = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  if (task == "join" || task == "shrink" || task == "until-failure") // 0: the default
    config.timeoutMs = static_cast<uint32_t>(number);
  Member self;
  const auto begin = Clock::now();
  const auto since = [&] {
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    return " after " + std::to_string(seconds.count()) + " s";
  };
  if (occlCommInitFromEnv(&self.comm, &config) != occlSuccess)
    return say(self.rank, occlGetLastError() + since(), task != "join");
  occlCommRank(self.comm, &self.rank);
  occlCommSize(self.comm, &self.numRanks);
  const bool isTransfers = task.starts_with("transfer-");
  const Work work =
      isTransfers ? Work{exchange, 1} : Work{allReduce, static_cast<int32_t>(self.numRanks)};
  const std::string until = isTransfers ? task.substr(task.find('-') + 1) : task;
  int status = 1;
  if (task == "shrink") {
    status = shrinkAfterFailure(self);
  } else if (task == "splits") {
    status = splitInTurn(self, argc > 2 ? argv[2] : "");
  } else if (task == "collectives") {
    status = checkCollectives(self);
  } else if (task == "transfers") {
    status = checkTransfers(self);
  } else if (until == "seconds") {
    const std::string wrong = workUntil(self, work, begin + std::chrono::seconds(number));
    status = say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
  } else if (until == "until-failure") {
    const std::string wrong = workUntil(self, work, begin + std::chrono::hours(1));
    status = say(self.rank, wrong + since(), wrong.empty());
  }
  std::fflush(stdout);
  occlCommDestroy(self.comm);
  return status;
}

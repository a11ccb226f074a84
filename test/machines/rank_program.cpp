// A rank of a job that occl-run starts on several machines, for namespaces_test.py:
//   rank_program collectives            all kinds of the library's collectives, checked
//   rank_program seconds N              all-reduces for N seconds, checked
//   rank_program until-failure          all-reduces until one fails; says why and how long it took
//   rank_program join MILLISECONDS      joins with this deadline; says why it could not
// Says "rank R: ..." on standard output; the exit status is 0 if that is what was asked for.
#include "runtime/api/occl_collectives.h"
#include "test/machines/islands.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using occl::communicator::testing::runCollectives;

struct Member {
  occlComm_t comm = nullptr;
  uint32_t rank = 0;
};

int say(uint32_t rank, const std::string &text, bool isWrong) {
  std::printf("rank %u: %s\n", rank, text.c_str());
  return isWrong ? 1 : 0;
}

int checkCollectives(const Member &self) {
  std::string wrong;
  for (uint64_t count : {0u, 1u, 1000u, 65537u})
    if (wrong.empty())
      wrong = runCollectives(self.comm, count);
  return say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
}

/// The wrong element or the error that ended it; "" once the time is over, on all ranks together.
std::string allReduceUntil(const Member &self, Clock::time_point end) {
  std::vector<int32_t> input(100000), output(input.size());
  uint32_t numRanks = 0;
  occlCommSize(self.comm, &numRanks);
  for (int32_t round = 0;; ++round) {
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = round + static_cast<int32_t>(i);
    int32_t goesOn = self.rank == 0 && Clock::now() >= end ? 0 : 1;
    if (occlAllReduce(input.data(), output.data(), input.size(), occlInt32, occlSum, self.comm,
                      nullptr) != occlSuccess ||
        occlBroadcast(&goesOn, &goesOn, 1, occlInt32, 0, self.comm, nullptr) != occlSuccess)
      return occlCommGetLastError(self.comm);
    for (size_t i = 0; i < input.size(); ++i)
      if (output[i] != static_cast<int32_t>(numRanks) * input[i])
        return "element " + std::to_string(i) + " is wrong";
    if (!goesOn)
      return "";
    if (round == 0)
      std::fprintf(stderr, "rank %u has begun\n", self.rank);
  }
}

} // namespace

int main(int argc, char **argv) {
  const std::string task = argc > 1 ? argv[1] : "";
  const unsigned long number = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  if (task == "join")
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
  int status = 1;
  if (task == "collectives") {
    status = checkCollectives(self);
  } else if (task == "seconds") {
    const std::string wrong = allReduceUntil(self, begin + std::chrono::seconds(number));
    status = say(self.rank, wrong.empty() ? "right" : wrong, !wrong.empty());
  } else if (task == "until-failure") {
    const std::string wrong = allReduceUntil(self, begin + std::chrono::hours(1));
    status = say(self.rank, wrong + since(), wrong.empty());
  }
  std::fflush(stdout);
  occlCommDestroy(self.comm);
  return status;
}

// Processes that fork while they have communicators.
#include "plan/testing/example_plans.h"
#include "runtime/api/occl.hpp"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 2;
constexpr uint64_t kId = 1;

#ifdef __SANITIZE_THREAD__
/// gcc's thread sanitizer ends children of processes with threads that start threads themselves.
struct NotWithThreadSanitizer : ::testing::Environment {
  void SetUp() override { GTEST_SKIP() << "thread sanitizer does not survive fork()"; }
};
const auto *const kSkipped = ::testing::AddGlobalTestEnvironment(new NotWithThreadSanitizer);
#endif

/// "" or what is wrong, from a child that runs `body`; it ends by exit(), with static destructors.
std::string inChild(const std::function<std::string()> &body) {
  int said[2];
  if (pipe(said) != 0)
    return "no pipe";
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::string wrong = body();
    (void)!write(said[1], wrong.data(), wrong.size());
    std::exit(wrong.empty() ? 0 : 1);
  }
  close(said[1]);
  std::string wrong;
  char text[1000];
  for (ssize_t bytes; (bytes = read(said[0], text, sizeof text)) > 0;)
    wrong.append(text, static_cast<size_t>(bytes));
  close(said[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (wrong.empty() && status != 0)
    wrong = "the child's status is " + std::to_string(status);
  return wrong;
}

std::string runOnce(occlComm_t comm, Job &job, uint32_t rank) {
  if (job.run(comm, rank) != occlSuccess)
    return lastError("occlCall");
  return job.check(rank);
}

/// Collectives before and after inside(comm, job) was called on rank 0, while rank 1 waits for it;
/// it may submit the job `extra` times.
void around(const char *test, const std::function<std::string(occlComm_t, Job &)> &inside,
            uint32_t extra = 0) {
  inProcesses(kRanks, test, [&](occlComm_t comm, uint32_t rank) {
    Job job(kId, handleOf(ringAllReduce(kRanks)), 1000);
    std::string wrong = runOnce(comm, job, rank);
    if (rank == 0 && wrong.empty())
      wrong = inside(comm, job);
    for (uint32_t i = 0; i < rank * extra && wrong.empty(); ++i) {
      occlRequest_t request = 0;
      if (job.submit(comm, rank, &request) != occlSuccess || occlWait(comm, request) != occlSuccess)
        wrong = lastError("occlStart");
    }
    for (uint32_t i = 0; i < 3 && wrong.empty(); ++i)
      wrong = runOnce(comm, job, rank);
    return wrong;
  });
}

TEST(Fork, AChildThatDestroysTheCommunicatorHarmsNobody) {
  around("child-destroys", [](occlComm_t comm, Job &) {
    return inChild([&]() -> std::string {
      if (occlCommDestroy(comm) != occlSuccess || occlCommDestroy(comm) != occlSuccess)
        return lastError("occlCommDestroy");
      return "";
    });
  });
}

occlComm_t ofStatic = nullptr;
struct Owner {
  ~Owner() { occl::Communicator destroyed(std::exchange(ofStatic, nullptr)); }
};

TEST(Fork, NorDoesOneThatEndsWithStaticCommunicators) {
  around("child-exits", [](occlComm_t comm, Job &) {
    return inChild([&]() -> std::string {
      ofStatic = comm;
      static Owner owner; // destroyed by exit()
      std::atexit([] { occlCommDestroy(ofStatic); });
      return "";
    });
  });
}

/// Calls of a group from before the fork are the parent's.
TEST(Fork, NorDoesOneInsideOfAGroup) {
  inProcesses(kRanks, "child-group", [&](occlComm_t comm, uint32_t rank) -> std::string {
    int32_t sent = 5, got = 0;
    if (occlGroupStart() != occlSuccess ||
        occlSend(&sent, 1, occlInt32, 1 - rank, comm, nullptr) != occlSuccess ||
        occlRecv(&got, 1, occlInt32, 1 - rank, comm, nullptr) != occlSuccess)
      return lastError("group");
    std::string wrong = inChild([&]() -> std::string {
      // Its own are outside of it.
      Ranks own(1);
      int32_t from = 7, to = 0;
      if (occlGroupStart() != occlSuccess ||
          occlSend(&from, 1, occlInt32, 0, own[0], nullptr) != occlSuccess ||
          occlRecv(&to, 1, occlInt32, 0, own[0], nullptr) != occlSuccess ||
          occlGroupEnd() != occlSuccess)
        return lastError("a group of the child");
      if (occlGroupEnd() != occlInvalidArgument)
        return "the child runs the group";
      return to == 7 ? "" : "the child's group has done nothing";
    });
    if (occlGroupEnd() != occlSuccess)
      return lastError("occlGroupEnd");
    return got == 5 ? wrong : "wrong data";
  });
}

TEST(Fork, NorDoesOneWhoseParentHasSomethingInFlight) {
  around(
      "child-in-flight",
      [](occlComm_t comm, Job &job) -> std::string {
        occlRequest_t request = 0;
        if (job.submit(comm, 0, &request) != occlSuccess)
          return lastError("occlStart");
        std::string wrong = inChild([&]() -> std::string {
          if (occlWait(comm, request) != occlInvalidArgument)
            return "the child waits";
          return occlCommDestroy(comm) == occlSuccess ? "" : lastError("occlCommDestroy");
        });
        return occlWait(comm, request) == occlSuccess ? wrong : lastError("occlWait") + wrong;
      },
      1);
}

/// Every function that is given a communicator, with arguments that are right otherwise.
std::vector<std::pair<const char *, std::function<occlResult_t()>>> allCalls(occlComm_t comm,
                                                                             Job &job) {
  static uint32_t number = 0;
  static size_t length = 0;
  static void *memory = nullptr;
  static occlRequest_t request = 1;
  static occlComm_t made = nullptr;
  static occlStats_t stats{};
  static int isBusy = 0;
  static occlCollectiveStats_t collectiveStats{};
  static occlBlockStats_t blockStats{};
  stats.size = sizeof stats;
  collectiveStats.size = sizeof collectiveStats;
  blockStats.size = sizeof blockStats;
  return {
      {"occlCommSplit", [=] { return occlCommSplit(comm, 0, 0, nullptr, &made); }},
      {"occlCommShrink", [=] { return occlCommShrink(comm, nullptr, 0, nullptr, &made); }},
      {"occlCommRank", [=] { return occlCommRank(comm, &number); }},
      {"occlCommSize", [=] { return occlCommSize(comm, &number); }},
      {"occlCommAbort", [=] { return occlCommAbort(comm); }},
      {"occlStart", [=, &job] { return job.submit(comm, 0, &request); }},
      {"occlWait", [=] { return occlWait(comm, request); }},
      {"occlCall", [=, &job] { return job.run(comm, 0); }},
      {"occlSend", [=, &job] { return occlSend(job.input(0), 1, occlUint8, 1, comm, nullptr); }},
      {"occlRecv", [=, &job] { return occlRecv(job.output(0), 1, occlUint8, 1, comm, nullptr); }},
      {"occlAllGatherv",
       [=, &job] {
         static const uint64_t none[kRanks] = {};
         return occlAllGatherv(job.input(0), 0, job.output(0), none, none, occlUint8, comm,
                               nullptr);
       }},
      {"occlTest", [=] { return occlTest(comm, request); }},
      {"occlMemAlloc", [=] { return occlMemAlloc(comm, 100, &memory); }},
      {"occlMemFree", [=] { return occlMemFree(comm, memory); }},
      {"occlCommGetStats", [=] { return occlCommGetStats(comm, &stats); }},
      {"occlCollectiveGetStats",
       [=] { return occlCollectiveGetStats(comm, kId, &collectiveStats); }},
      {"occlCollectiveGetBlockStats",
       [=] { return occlCollectiveGetBlockStats(comm, kId, OCCL_ALL_BLOCKS, &blockStats); }},
      {"occlCommGetCollectives", [=] { return occlCommGetCollectives(comm, nullptr, 0, &length); }},
      {"occlCommIsBusy", [=] { return occlCommIsBusy(comm, &isBusy); }},
      {"occlCommReport", [=] { return occlCommReport(comm, nullptr, 0, &length); }},
      {"occlCommGetMetrics",
       [=] { return occlCommGetMetrics(comm, nullptr, nullptr, 0, &length); }},
      {"occlTraceStart", [=] { return occlTraceStart(comm, "/dev/null"); }},
      {"occlTraceStop", [=] { return occlTraceStop(comm); }},
  };
}

TEST(Fork, EveryCallOfAChildIsRefused) {
  around("child-calls", [](occlComm_t comm, Job &job) {
    return inChild([&]() -> std::string {
      for (const auto &[name, call] : allCalls(comm, job)) {
        if (call() != occlInvalidArgument)
          return std::string(name) + " is not refused";
        std::string text = occlGetLastError();
        if (text.find(name) != 0 || text.find("process that forked this one") == std::string::npos)
          return std::string(name) + " says " + text;
      }
      return *occlCommGetLastError(comm) == '\0' ? "" : "there is a failure";
    });
  });
}

TEST(Fork, RanksThatAreThreadsAreThoseOfTheParent) {
  Ranks ranks(kRanks);
  Job job(kId, handleOf(ringAllReduce(kRanks)), 1000);
  EXPECT_EQ(inChild([&]() -> std::string {
              for (uint32_t r = 0; r < kRanks; ++r)
                if (job.run(ranks[r], r) != occlInvalidArgument ||
                    occlCommDestroy(ranks[r]) != occlSuccess)
                  return lastError("call of a child");
              Ranks own(kRanks);
              Job ofChild(kId, handleOf(ringAllReduce(kRanks)), 1000);
              std::string wrong;
              own.run([&](uint32_t r) {
                if (!runOnce(own[r], ofChild, r).empty())
                  wrong = "the child's own communicator fails";
              });
              return wrong;
            }),
            "");
  ranks.run([&](uint32_t r) { EXPECT_EQ(runOnce(ranks[r], job, r), ""); });
}

TEST(Fork, AChildReadsMemoryThatItsParentHasAllocated) {
  around("child-reads", [](occlComm_t comm, Job &) -> std::string {
    void *memory = nullptr;
    if (occlMemAlloc(comm, 100, &memory) != occlSuccess)
      return lastError("occlMemAlloc");
    std::memset(memory, 7, 100);
    return inChild([&]() -> std::string {
      return static_cast<char *>(memory)[99] == 7 ? "" : "it holds something else";
    });
  });
}

TEST(Fork, AChildThatExecutesAProgramHarmsNobody) {
  around("child-executes", [](occlComm_t, Job &) {
    return inChild([]() -> std::string {
      execl("/bin/true", "true", nullptr);
      return "cannot execute a program";
    });
  });
}

TEST(Fork, AChildMakesCommunicatorsOfItsOwn) {
  std::string own = jobName("of-children");
  inProcesses(kRanks, "of-parents", [&](occlComm_t comm, uint32_t rank) {
    Job job(kId, handleOf(ringAllReduce(kRanks)), 1000);
    std::string wrong = runOnce(comm, job, rank);
    if (wrong.empty())
      wrong = inChild([&]() -> std::string {
        occlComm_t made = nullptr;
        if (occlCommInitRank(&made, kRanks, rank, own.c_str(), nullptr) != occlSuccess)
          return lastError("occlCommInitRank");
        std::string result = runOnce(made, job, rank);
        occlCommDestroy(made);
        return result;
      });
    return wrong.empty() ? runOnce(comm, job, rank) : wrong;
  });
}

} // namespace
} // namespace occl::communicator::testing

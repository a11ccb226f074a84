// Who is taken for dead, and who is not, between ranks that are processes.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

constexpr uint32_t kRanks = 2;
/// Many times the time between two looks whether a peer is alive.
constexpr auto kLate = 400ms;
/// Elements; the second is read out of the other process's memory.
constexpr uint64_t kSmall = 100, kLarge = 1 << 20;

std::string submitAndWait(occlComm_t comm, Job &job, uint32_t rank) {
  occlRequest_t request = 0;
  if (job.submit(comm, rank, &request) != occlSuccess)
    return lastError("occlStart");
  if (occlWait(comm, request) != occlSuccess)
    return lastError("occlWait");
  return job.check(rank);
}

std::vector<Job> makeJobs() {
  std::vector<Job> jobs;
  PlanHandle ring = handleOf(ringAllReduce(kRanks));
  jobs.emplace_back(1, ring, kSmall);
  jobs.emplace_back(2, ring, kLarge);
  return jobs;
}

std::string runAll(occlComm_t comm, std::vector<Job> &jobs, uint32_t rank) {
  std::string wrong;
  for (Job &job : jobs)
    if (wrong.empty())
      wrong = submitAndWait(comm, job, rank);
  return wrong;
}

/// Every descriptor that this process may have.
void useUpDescriptors() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 256);
  setrlimit(RLIMIT_NOFILE, &limit);
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
}

TEST(Liveness, ALatePeerOfAProcessWithoutDescriptorsIsAlive) {
  inProcesses(kRanks, "no-descriptors", [](occlComm_t comm, uint32_t rank) -> std::string {
    std::vector<Job> jobs = makeJobs();
    if (rank == 0)
      useUpDescriptors();
    else
      std::this_thread::sleep_for(kLate);
    return runAll(comm, jobs, rank);
  });
}

TEST(Liveness, ADeadPeerOfAProcessWithoutDescriptorsIsSeen) {
  std::string name = jobName("dead-without-descriptors");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    std::vector<Job> jobs = makeJobs();
    if (rank == 1)
      raise(SIGKILL);
    useUpDescriptors();
    auto begin = std::chrono::steady_clock::now();
    std::string wrong = runAll(comm, jobs, rank);
    if (std::chrono::steady_clock::now() - begin > 20s)
      return "only after the deadline: " + wrong;
    return wrong.find("process of rank 1 is gone") == std::string::npos ? "got " + wrong : "";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0); // nobody has waited for rank 1 so far
  EXPECT_EQ(processes.join(1), -1);
}

TEST(Liveness, ARankWhoseMainThreadHasEndedIsAlive) {
  std::string name = jobName("main-has-ended");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    auto rest = [comm, rank]() -> std::string {
      std::vector<Job> jobs = makeJobs();
      if (rank == 1)
        std::this_thread::sleep_for(kLate);
      std::string wrong = runAll(comm, jobs, rank);
      occlComm_t divided = nullptr;
      if (wrong.empty() && occlCommSplit(comm, 0, 0, nullptr, &divided) != occlSuccess)
        wrong = lastError("occlCommSplit");
      if (wrong.empty())
        wrong = runAll(divided, jobs, rank);
      occlCommDestroy(divided);
      occlCommDestroy(comm);
      return wrong;
    };
    if (rank == 0)
      return rest();
    std::thread([rest] {
      std::string wrong = rest();
      std::fprintf(stderr, "%s", wrong.c_str());
      _exit(wrong.empty() ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0); // as pthread_exit, without unwinding the test
    return "main has not ended";
  });
  for (uint32_t r = 0; r < kRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Liveness, ARankThatExecutesAnotherProgramIsGone) {
  std::string name = jobName("executes");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    if (rank == 1)
      execl("/bin/sleep", "sleep", "600", nullptr);
    std::vector<Job> jobs = makeJobs();
    auto begin = std::chrono::steady_clock::now();
    std::string wrong = runAll(comm, jobs, rank);
    if (std::chrono::steady_clock::now() - begin > 20s)
      return "only after the deadline: " + wrong;
    return wrong.find("process of rank 1 is gone") == std::string::npos ? "got " + wrong : "";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  processes.kill(1);
  EXPECT_EQ(processes.join(1), -1);
}

TEST(Liveness, AForkedChildThatGoesOnDoesNotKeepItsParentAlive) {
  std::string name = jobName("survived-by-a-child");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    if (rank == 1) {
      if (fork() == 0) {
        alarm(20);
        for (;;)
          pause();
      }
      raise(SIGKILL);
    }
    std::vector<Job> jobs = makeJobs();
    auto begin = std::chrono::steady_clock::now();
    std::string wrong = runAll(comm, jobs, rank);
    if (std::chrono::steady_clock::now() - begin > 15s)
      return "only after the child had ended: " + wrong;
    return wrong.find("process of rank 1 is gone") == std::string::npos ? "got " + wrong : "";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  EXPECT_EQ(processes.join(1), -1);
}

/// The root of a broadcast needs nobody's data, but room that its killed reader holds.
TEST(Liveness, ARootWithoutRoomLearnsThatItsReaderIsDead) {
  std::string name = jobName("dead-reader");
  Processes processes(kRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, kRanks, rank, name.c_str(), nullptr) != occlSuccess)
      return lastError("occlCommInitRank");
    if (rank == 1)
      raise(SIGKILL);
    Job job(1, handleOf(chainBroadcast(kRanks, 1)), kSmall);
    for (int i = 0; i < 100; ++i)
      if (occlResult_t result = job.run(comm, rank); result != occlSuccess) {
        std::string text = lastError("occlCall");
        return result == occlPeerFailed &&
                       text.find("process of rank 1 is gone; it has not finished") != text.npos
                   ? ""
                   : text;
      }
    return "the calls of a dead reader's root all return";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  EXPECT_EQ(processes.join(1), -1);
}

} // namespace
} // namespace occl::communicator::testing

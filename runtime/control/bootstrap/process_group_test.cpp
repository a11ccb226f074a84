#include "runtime/control/bootstrap/bootstrap.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::bootstrap {
namespace {

using namespace std::chrono_literals;

constexpr int kAsExpected = 7; // exit status of a child that saw what it should

/// Not from the pid: test runs in sandboxes have equal pids and one /dev/shm.
std::string uniqueName() {
  std::random_device random;
  return "test-" + std::to_string(random()) + "-" + std::to_string(random());
}

std::string objectName(const std::string &name) {
  return "/occl-" + std::to_string(geteuid()) + "-" + name;
}

bool objectExists(const std::string &name) {
  return std::filesystem::exists("/dev/shm" + objectName(name));
}

ProcessGroupOptions optionsFor(const std::string &name, uint32_t numRanks, uint32_t rank) {
  ProcessGroupOptions options;
  options.name = name;
  options.numRanks = numRanks;
  options.rank = rank;
  options.segmentBytes = 10000;
  options.timeout = 20s;
  options.bell = *SharedBell::makeShared();
  return options;
}

/// A child process that runs `body` and exits with its result.
pid_t start(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0)
    _exit(body());
  return child;
}

/// Waits for a child; its exit status, or minus the signal that ended it.
int finish(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int exitFor(const Status &status, StatusCode code, const std::string &part) {
  if (status.code() == code && status.message().find(part) != std::string::npos)
    return kAsExpected;
  std::fprintf(stderr, "got code %d: %s\n", static_cast<int>(status.code()),
               status.message().c_str());
  return 1;
}

/// Writes to its own segment and reads the neighbour's.
int exchange(const ProcessGroupOptions &options) {
  auto group = formProcessGroup(options);
  if (!group.ok())
    return exitFor(group.status(), StatusCode::Success, "");
  Group &ranks = **group;
  ranks.segment(options.rank)[9999] = std::byte(options.rank + 1);
  if (!ranks.barrier(Deadline(20s)).ok())
    return 2;
  uint32_t next = (options.rank + 1) % options.numRanks;
  if (ranks.segment(next)[9999] != std::byte(next + 1) || !ranks.isAlive(next) ||
      !ranks.acrossProcesses() || ranks.segment(next)[0] != std::byte{0})
    return 3;
  return ranks.barrier(Deadline(20s)).ok() ? kAsExpected : 4;
}

TEST(ProcessGroup, ranksSeeEachOthersSegments) {
  for (uint32_t numRanks : {1u, 2u, 5u}) {
    std::string name = uniqueName();
    std::vector<pid_t> children;
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      children.push_back(start([&] { return exchange(optionsFor(name, numRanks, rank)); }));
    for (pid_t child : children)
      EXPECT_EQ(finish(child), kAsExpected);
    EXPECT_FALSE(objectExists(name));
  }
}

/// All ranks ring their neighbour's doorbell while all are about to sleep on their own.
int ringTheNext(const ProcessGroupOptions &options) {
  auto group = formProcessGroup(options);
  if (!group.ok())
    return exitFor(group.status(), StatusCode::Success, "");
  Doorbell &own = (*group)->bell(options.rank);
  uint32_t ticket = own.prepareSleep();
  if (!(*group)->barrier(Deadline(20s)).ok())
    return 2;
  (*group)->bell((options.rank + 1) % options.numRanks).ring();
  own.sleep(ticket, 20s);
  return own.word.load() != ticket && (*group)->barrier(Deadline(20s)).ok() ? kAsExpected : 3;
}

TEST(ProcessGroup, ranksRingEachOthersDoorbells) {
  std::string name = uniqueName();
  std::vector<pid_t> children;
  for (uint32_t rank = 0; rank < 3; ++rank)
    children.push_back(start([&] { return ringTheNext(optionsFor(name, 3, rank)); }));
  for (pid_t child : children)
    EXPECT_EQ(finish(child), kAsExpected);
}

TEST(ProcessGroup, timeoutNamesTheMissingRanks) {
  auto options = optionsFor(uniqueName(), 4, 1);
  options.timeout = 50ms;
  Status status = formProcessGroup(options).status();
  EXPECT_EQ(status.code(), StatusCode::Timeout);
  EXPECT_NE(status.message().find("ranks 0, 2, 3 of 4 did not start"), std::string::npos)
      << status.message();
  EXPECT_FALSE(objectExists(options.name));
}

/// Rank 1 joins as `change` makes it; it must fail with `code` and `part`, and rank 0 must notice
/// at once.
void expectRefused(const std::function<void(ProcessGroupOptions &)> &change, StatusCode code,
                   const std::string &part) {
  std::string name = uniqueName();
  pid_t first = start([&] {
    return exitFor(formProcessGroup(optionsFor(name, 3, 0)).status(), StatusCode::PeerFailed,
                   "rank 1");
  });
  while (!objectExists(name))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms); // until rank 0 has joined
  auto options = optionsFor(name, 3, 1);
  change(options);
  auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(exitFor(formProcessGroup(options).status(), code, part), kAsExpected);
  EXPECT_EQ(finish(first), kAsExpected);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_FALSE(objectExists(name));
}

TEST(ProcessGroup, refusesAnotherNumberOfRanks) {
  expectRefused([](auto &options) { options.numRanks = 2; }, StatusCode::Mismatch,
                "expect 3 as the number of ranks, got 2");
}

TEST(ProcessGroup, refusesAnotherSegmentSize) {
  expectRefused([](auto &options) { options.segmentBytes = 50000; }, StatusCode::Mismatch,
                "expect 12288 as the bytes of a rank's segment, got 53248");
}

TEST(ProcessGroup, refusesARankOfAnotherJobAndHarmsNobody) {
  std::string name = uniqueName();
  auto ofJob = [&](uint32_t rank, uint64_t job) {
    auto options = optionsFor(name, 3, rank);
    options.job = job;
    return options;
  };
  pid_t first = start([&] { return exchange(ofJob(0, 0)); }); // says none: may be of any
  while (!objectExists(name))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  pid_t second = start([&] { return exchange(ofJob(1, 77)); });
  std::this_thread::sleep_for(50ms);
  Status status = formProcessGroup(ofJob(2, 78)).status();
  EXPECT_EQ(exitFor(status, StatusCode::Mismatch, "was started by another job"), kAsExpected);
  EXPECT_EQ(exchange(ofJob(2, 77)), kAsExpected);
  EXPECT_EQ(finish(first), kAsExpected);
  EXPECT_EQ(finish(second), kAsExpected);
}

TEST(ProcessGroup, refusesARankThatIsTaken) {
  std::string name = uniqueName();
  pid_t first = start([&] { return exchange(optionsFor(name, 2, 0)); });
  while (!objectExists(name))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  Status status = formProcessGroup(optionsFor(name, 2, 0)).status();
  EXPECT_EQ(exitFor(status, StatusCode::Mismatch,
                    "rank 0 is already taken by process " + std::to_string(first)),
            kAsExpected);
  // The group that was there first is unharmed.
  EXPECT_EQ(exchange(optionsFor(name, 2, 1)), kAsExpected);
  EXPECT_EQ(finish(first), kAsExpected);
}

TEST(ProcessGroup, refusesArgumentsOutOfRange) {
  EXPECT_EQ(formProcessGroup(optionsFor("a b", 1, 0)).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(formProcessGroup(optionsFor("", 1, 0)).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(formProcessGroup(optionsFor("x", 2, 2)).status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(formProcessGroup(optionsFor("x", 0, 0)).status().code(), StatusCode::InvalidArgument);
}

TEST(ProcessGroup, refusesAForeignObject) {
  std::string name = uniqueName(), path = objectName(name);
  int file = shm_open(path.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(ftruncate(file, 64), 0);
  Status status = formProcessGroup(optionsFor(name, 1, 0)).status();
  EXPECT_EQ(exitFor(status, StatusCode::Mismatch, "belongs to another program"), kAsExpected);
  close(file);
  EXPECT_TRUE(objectExists(name));
  shm_unlink(path.c_str());
}

TEST(ProcessGroup, killedWhileOthersWait) {
  std::string name = uniqueName();
  pid_t victim = start([&] { return exchange(optionsFor(name, 3, 2)); });
  pid_t waiting = start([&] {
    return exitFor(formProcessGroup(optionsFor(name, 3, 0)).status(), StatusCode::PeerFailed,
                   "rank 2");
  });
  while (!objectExists(name))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  kill(victim, SIGKILL);
  // Not reaped yet: a zombie counts as dead.
  EXPECT_EQ(finish(waiting), kAsExpected);
  EXPECT_EQ(finish(victim), -SIGKILL);
  EXPECT_FALSE(objectExists(name));
}

TEST(ProcessGroup, whatKilledRanksLeaveIsRemovedByTheNextStart) {
  std::string name = uniqueName();
  pid_t victim = start([&] { return exchange(optionsFor(name, 2, 0)); });
  while (!objectExists(name))
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  kill(victim, SIGKILL);
  finish(victim);
  ASSERT_TRUE(objectExists(name));
  EXPECT_EQ(exchange(optionsFor(uniqueName(), 1, 0)), kAsExpected); // under any name
  EXPECT_FALSE(objectExists(name));
}

TEST(ProcessGroup, startsOverWhereACreatorWasKilled) {
  std::string name = uniqueName(), path = objectName(name);
  close(shm_open(path.c_str(), O_RDWR | O_CREAT, 0600)); // and nothing more
  pid_t other = start([&] { return exchange(optionsFor(name, 2, 1)); });
  EXPECT_EQ(exchange(optionsFor(name, 2, 0)), kAsExpected);
  EXPECT_EQ(finish(other), kAsExpected);
  EXPECT_FALSE(objectExists(name));
}

TEST(ProcessGroup, aDeathAfterSetUpIsSeenAndLeaksNothing) {
  std::string name = uniqueName();
  pid_t victim = start([&] {
    auto group = formProcessGroup(optionsFor(name, 2, 1));
    pause();
    return 0;
  });
  auto group = formProcessGroup(optionsFor(name, 2, 0));
  ASSERT_TRUE(group.ok()) << group.status().message();
  EXPECT_FALSE(objectExists(name));
  EXPECT_TRUE((*group)->isAlive(1));
  EXPECT_EQ((*group)->process(1).pid, victim);
  EXPECT_EQ((*group)->barrier(Deadline(50ms)).code(), StatusCode::Timeout);
  kill(victim, SIGKILL);
  Status status = (*group)->barrier(Deadline(10s));
  EXPECT_EQ(status.code(), StatusCode::PeerFailed) << status.message();
  EXPECT_FALSE((*group)->isAlive(1));
  EXPECT_EQ((*group)->segment(1)[0], std::byte{0}); // still mapped
  finish(victim);
}

TEST(ProcessGroup, killedAtAnyMoment) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::string name = uniqueName();
  for (int round = 0; round < 60; ++round) {
    const uint32_t numRanks = 2 + random() % 3;
    const bool kills = round % 3 != 0;
    std::vector<pid_t> children;
    for (uint32_t rank = 0; rank < numRanks; ++rank)
      children.push_back(start([&] {
        auto options = optionsFor(name, numRanks, rank);
        if (kills) // ranks that start after the others have given up wait in vain
          options.timeout = 200ms;
        return exchange(options);
      }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    if (kills)
      kill(children[random() % numRanks], SIGKILL);
    for (pid_t child : children) {
      int result = finish(child);
      EXPECT_TRUE(kills || result == kAsExpected) << "round " << round << ": " << result;
    }
  }
  EXPECT_EQ(exchange(optionsFor(uniqueName(), 1, 0)), kAsExpected);
  EXPECT_FALSE(objectExists(name));
}

} // namespace
} // namespace occl::bootstrap

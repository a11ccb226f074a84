// The files of OCCL_METRICS: one a communicator, at its end or at that of the process.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

/// An allocation of this size stops this thread for good; 0: none does.
thread_local size_t stoppingSize = 0;
std::atomic<bool> hasStopped{false};

} // namespace

// Inline, it would be malloc() to the compiler, which warns of a delete.
[[gnu::noinline]] void *operator new(size_t bytes) {
  if (stoppingSize != 0 && bytes == stoppingSize) {
    hasStopped.store(true);
    for (;;)
      pause();
  }
  void *block = std::malloc(bytes != 0 ? bytes : 1);
  if (!block)
    throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void operator delete(void *block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void *block, size_t) noexcept { std::free(block); }

namespace occl::communicator::testing {
namespace {

std::string prefixOf(const std::string &name) {
  return std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
}

/// "" if it is not there.
std::string contentOf(const std::string &path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

void reduceTwice(occlComm_t comm) {
  float value = 1, sum = 0;
  for (int call = 0; call < 2; ++call)
    ASSERT_EQ(occlAllReduce(&value, &sum, 1, occlFloat32, occlSum, comm, nullptr), occlSuccess);
}

/// In a process of its own, which then exits; its pid.
pid_t inChild(const std::string &prefix, const std::function<void()> &body) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("OCCL_METRICS", prefix.c_str(), 1);
    body();
    std::exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return child;
}

/// As names and labels have it; its first rank is 0.
std::string nameOf(pid_t process) { return "0." + std::to_string(process); }

std::string pathOf(const std::string &prefix, pid_t process, uint32_t communicator) {
  return prefix + "." + nameOf(process) + "." + std::to_string(communicator) + ".prom";
}

std::string completed(uint32_t rank, pid_t process, uint32_t communicator, int times) {
  return "\noccl_completed_total{rank=\"" + std::to_string(rank) + "\",size=\"2\",process=\"" +
         nameOf(process) + "\",communicator=\"" + std::to_string(communicator) +
         "\",id=\"calls\"} " + std::to_string(times) + "\n";
}

/// Those of both ranks, which are threads, and no others.
void expectBoth(const std::string &prefix, pid_t process) {
  for (uint32_t rank : {0u, 1u}) {
    const std::string path = pathOf(prefix, process, rank + 1);
    const std::string content = contentOf(path);
    EXPECT_NE(content.find(completed(rank, process, rank + 1, 2)), std::string::npos) << content;
    EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  }
  EXPECT_FALSE(std::filesystem::exists(pathOf(prefix, process, 3)));
}

TEST(MetricsFile, IsWrittenAtTheEndOfACommunicator) {
  const std::string prefix = prefixOf("ended");
  const pid_t process = inChild(prefix, [&] {
    auto ranks = std::make_unique<Ranks>(2);
    ranks->run([&](uint32_t r) { reduceTwice((*ranks)[r]); });
    ranks.reset();
    _exit(0); // nothing is written later
  });
  expectBoth(prefix, process);
}

TEST(MetricsFile, IsWrittenWhenAProcessExitsThatDestroysNothing) {
  const std::string prefix = prefixOf("exited");
  const auto program = [] {
    auto *ranks = new Ranks(2);
    ranks->run([&](uint32_t r) { reduceTwice((*ranks)[r]); });
  };
  // Processes with the same first rank, as of subgroups or jobs, have files of their own.
  const pid_t process = inChild(prefix, program), other = inChild(prefix, program);
  expectBoth(prefix, process);
  expectBoth(prefix, other);
}

/// As where CUDA never says what a device's counters are.
TEST(MetricsFile, IsNoReasonForAnExitToWait) {
  const std::string prefix = prefixOf(std::string(150, 'w'));
  const pid_t process = inChild(prefix, [&] {
    alarm(120);
    auto *ranks = new Ranks(2);
    std::thread([&] {
      stoppingSize = prefix.size() + 1; // a copy of the prefix is the begin of the file's name
      ranks->destroy(0);
    }).detach();
    while (!hasStopped.load())
      std::this_thread::yield();
  });
  EXPECT_TRUE(contentOf(pathOf(prefix, process, 1)).empty());
  EXPECT_FALSE(contentOf(pathOf(prefix, process, 2)).empty());
}

/// Whose communicators are the parent's.
TEST(MetricsFile, IsNotWrittenByAForkedChild) {
  const std::string prefix = prefixOf("forked");
  const pid_t process = inChild(prefix, [&] {
    const Ranks ranks(2);
    const pid_t grandchild = fork();
    if (grandchild == 0)
      std::exit(0);
    int status = -1;
    if (waitpid(grandchild, &status, 0) != grandchild || status != 0 ||
        !contentOf(pathOf(prefix, getpid(), 1)).empty() ||
        std::filesystem::exists(pathOf(prefix, grandchild, 1)))
      _exit(1);
  });
  EXPECT_FALSE(contentOf(pathOf(prefix, process, 1)).empty());
}

} // namespace
} // namespace occl::communicator::testing

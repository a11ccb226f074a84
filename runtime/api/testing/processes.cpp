#include "runtime/api/testing/processes.h"

#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace occl::communicator::testing {

using namespace std::chrono_literals;

/// A rank that takes longer hangs.
constexpr auto kHang = 60s * kSlowness;

struct Processes::Said {
  std::array<char, 4096> text;
};

Processes::Processes(uint32_t numRanks, const std::function<std::string(uint32_t)> &body)
    : said(static_cast<Said *>(mmap(nullptr, numRanks * sizeof(Said), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0))),
      pids(numRanks) {
  for (uint32_t r = 0; r < numRanks; ++r) {
    pids[r] = fork();
    if (pids[r] != 0)
      continue;
    std::string wrong = body(r);
    wrong.copy(said[r].text.data(), said[r].text.size() - 1);
    if (!wrong.empty())
      std::fprintf(stderr, "rank %u: %s\n", r, wrong.c_str());
    _exit(wrong.empty() ? 0 : 1);
  }
}

Processes::~Processes() { munmap(said, pids.size() * sizeof(Said)); }

std::string Processes::wrong(uint32_t r) const { return said[r].text.data(); }

int Processes::join(uint32_t r) {
  for (auto end = std::chrono::steady_clock::now() + kHang;
       std::chrono::steady_clock::now() < end;) {
    int status = 0;
    if (waitpid(pids[r], &status, WNOHANG) == pids[r])
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::this_thread::sleep_for(2ms);
  }
  kill(r);
  ADD_FAILURE() << "rank " << r << " hangs";
  return -1;
}

void Processes::signal(uint32_t r, int number) const { ::kill(pids[r], number); }

void Processes::kill(uint32_t r) const { signal(r, SIGKILL); }

std::string jobName(const char *test) { return std::string(test) + "-" + std::to_string(getpid()); }

std::string meetingPath(const std::string &name) {
  return "/dev/shm/occl-" + std::to_string(geteuid()) + "-" + name;
}

void inProcesses(uint32_t numRanks, const char *test,
                 const std::function<std::string(occlComm_t, uint32_t)> &body,
                 const occlConfig_t &config) {
  std::string name = jobName(test);
  Processes processes(numRanks, [&](uint32_t rank) -> std::string {
    occlComm_t comm = nullptr;
    if (occlCommInitRank(&comm, numRanks, rank, name.c_str(), &config) != occlSuccess)
      return std::string("occlCommInitRank: ") + occlGetLastError();
    std::string wrong = body(comm, rank);
    occlCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < numRanks; ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

} // namespace occl::communicator::testing

#include "bench/gpu/processes/together.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace occl::bench {

void Together::meet() {
  std::atomic_ref<uint32_t> now(generation), here(arrived);
  uint32_t mine = now.load();
  if (here.fetch_add(1) + 1 == numRanks) {
    here.store(0);
    now.store(mine + 1);
    return;
  }
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (now.load() == mine) {
    sched_yield();
    if (std::atomic_ref<uint32_t>(failed).load() != 0)
      _exit(1);
    if (std::chrono::steady_clock::now() > end) {
      std::fprintf(stderr, "a process did not come\n");
      _exit(1);
    }
  }
}

void Together::fail() { std::atomic_ref<uint32_t>(failed).store(1); }

double Together::largest(double value, uint32_t rank) {
  values[rank] = value;
  meet();
  double found = value;
  for (uint32_t r = 0; r < numRanks; ++r)
    found = values[r] > found ? values[r] : found;
  meet();
  return found;
}

double Together::sum(double value, uint32_t rank) {
  values[rank] = value;
  meet();
  double all = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    all += values[r];
  meet();
  return all;
}

int Together::run(uint32_t numRanks, const std::function<int(Together &, uint32_t)> &body) {
  void *memory =
      mmap(nullptr, sizeof(Together), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || numRanks > kMaxRanks)
    return 1;
  auto *together = new (memory) Together;
  together->numRanks = numRanks;
  std::vector<pid_t> processes;
  for (uint32_t r = 0; r < numRanks; ++r) {
    pid_t process = fork();
    if (process == 0)
      std::exit(body(*together, r));
    processes.push_back(process);
  }
  int failed = 0;
  for (pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    failed += status != 0;
  }
  return failed;
}

int Together::main(int argc, char **argv, const std::function<int(Together &, uint32_t)> &body) {
  const unsigned long ranks = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (ranks < 2 || ranks > 8) {
    std::fprintf(stderr, "usage: %s <ranks, 2 to 8>\n", argv[0]);
    return 2;
  }
  return run(static_cast<uint32_t>(ranks), body);
}

} // namespace occl::bench

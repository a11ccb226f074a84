#include "test/gpu/harness/ranks_on_devices.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

namespace occl::gpu_test {

using namespace std::chrono_literals;

uint32_t numRanks() {
  const char *given = std::getenv("OCCL_TEST_RANKS");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : 3;
}

void RanksOnDevices::SetUpTestSuite() { setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); }

void RanksOnDevices::SetUp() {
  int number = 0;
  if (cudaGetDeviceCount(&number) != cudaSuccess || number == 0)
    GTEST_SKIP() << "no CUDA device";
  devices = static_cast<uint32_t>(number);
  start(numRanks());
}

void RanksOnDevices::TearDown() {
  onDevices.clear();
  more.push_back(std::move(comms));
  for (const std::vector<occlComm_t> &communicator : more)
    for (occlComm_t comm : communicator)
      EXPECT_EQ(occlCommDestroy(comm), occlSuccess) << occlGetLastError();
  more.clear();
  comms.clear();
}

void RanksOnDevices::start(uint32_t n, const occlConfig_t &config) {
  TearDown();
  comms.assign(n, nullptr);
  occlResult_t made = occlCommInitAll(comms.data(), n, &config);
  if (made != occlSuccess)
    comms.clear();
  ASSERT_EQ(made, occlSuccess) << occlGetLastError();
  for (uint32_t r = 0; r < n; ++r) {
    cudaSetDevice(static_cast<int>(r % devices));
    onDevices.push_back(std::make_unique<RankOnDevice>(comms[r], r));
  }
}

void RanksOnDevices::startWithTimeout(uint32_t timeoutMs) {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.deviceKind = occlDeviceCuda;
  config.arenaBytes = 256 << 20;
  config.timeoutMs = timeoutMs;
  start(numRanks(), config);
}

void RanksOnDevices::startMany(uint32_t number, uint32_t n, const occlConfig_t &config,
                               const std::vector<Case> &cases) {
  start(n, config);
  more.assign(number - 1, std::vector<occlComm_t>(n));
  inThreads([&](uint32_t rank) { return makeMore(rank, config, cases); });
}

std::string RanksOnDevices::makeMore(uint32_t rank, const occlConfig_t &config,
                                     const std::vector<Case> &cases) {
  RankOnDevice &on = *onDevices[rank];
  for (auto &communicator : more)
    if (occlCommSplit(comms[rank], 0, 0, &config, &communicator[rank]) != occlSuccess)
      return std::string("occlCommSplit: ") + occlGetLastError();
  void *buffers[2] = {nullptr, nullptr};
  for (size_t which = 0; which <= more.size(); ++which)
    for (const Case &what : cases) {
      const plan::RankPlan &program = what.plan.ranks[rank];
      const uint64_t bytes = std::max(program.inputChunks, program.outputChunks) /
                             what.plan.partChunks * what.count * sizeOf(what.type);
      for (void *&buffer : buffers)
        if (occlMemAlloc(commOf(rank, which), bytes, &buffer) != occlSuccess)
          return std::string("occlMemAlloc: ") + occlGetLastError();
      std::string wrong =
          callInStream(commOf(rank, which), what, buffers[0], buffers[1], on.stream());
      if (wrong.empty())
        wrong = on.synchronize();
      for (void *buffer : buffers)
        occlMemFree(commOf(rank, which), buffer);
      if (!wrong.empty())
        return wrong;
    }
  return "";
}

void RanksOnDevices::inThreads(const std::function<std::string(uint32_t)> &body) {
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(comms.size());
  for (uint32_t r = 0; r < comms.size(); ++r)
    threads.emplace_back([&, r] {
      cudaSetDevice(static_cast<int>(r % devices));
      wrong[r] = body(r);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &text : wrong)
    EXPECT_EQ(text, "");
}

void RanksOnDevices::runAll(const std::vector<Case> &cases) {
  std::barrier met(static_cast<ptrdiff_t>(comms.size()));
  std::atomic<bool> isWrong{false};
  inThreads([&](uint32_t rank) -> std::string {
    for (const Case &what : cases) {
      std::string wrong = onDevices[rank]->run(what, [&] { met.arrive_and_wait(); });
      isWrong = isWrong || !wrong.empty();
      met.arrive_and_wait();
      if (isWrong)
        return wrong;
    }
    return "";
  });
}

void RanksOnDevices::rememberOnAll(const Case &what, uint32_t timeoutMs) {
  for (occlComm_t comm : comms)
    remember(comm, what, timeoutMs);
}

uint64_t bytesTaken() {
  cudaSetDevice(0);
  size_t free = 0, all = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &all), cudaSuccess);
  return all - free;
}

void takeAllMemory(occlComm_t comm) {
  void *memory = nullptr;
  for (uint64_t bytes = 64 << 20; bytes >= 128; bytes /= 2)
    while (occlMemAlloc(comm, bytes, &memory) == occlSuccess) {
    }
}

Case RanksOnDevices::one(plan::Plan plan, uint64_t id) const {
  Case what;
  what.id = id;
  what.plan = std::move(plan);
  what.count = 1000;
  return what;
}

std::string RanksOnDevices::call(uint32_t rank, const Case &what, uint32_t timeoutMs) {
  RankOnDevice &on = *onDevices[rank];
  cudaSetDevice(static_cast<int>(rank % devices));
  return callInStream(comms[rank], what, on.input(what.isRegistered), on.output(what.isRegistered),
                      on.stream(), timeoutMs);
}

void RanksOnDevices::callOnAll(const Case &what) {
  inThreads([&](uint32_t rank) {
    std::string wrong = call(rank, what);
    return wrong.empty() ? onDevices[rank]->synchronize() : wrong;
  });
}

std::string RanksOnDevices::failureOf(uint32_t rank, size_t which) {
  const occlComm_t comm = commOf(rank, which);
  for (auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(1ms))
    if (*occlCommGetLastError(comm) != 0)
      break;
  return occlCommGetLastError(comm);
}

std::string RanksOnDevices::failureAfter(uint32_t rank) {
  cudaStreamSynchronize(streamOf(rank));
  return failureOf(rank);
}

} // namespace occl::gpu_test

#include "test/gpu/ranks_on_devices.h"

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
  for (occlComm_t comm : comms)
    EXPECT_EQ(occlCommDestroy(comm), occlSuccess) << occlGetLastError();
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

void RanksOnDevices::registerOnAll(const Case &what, uint32_t timeoutMs) {
  for (occlComm_t comm : comms)
    ASSERT_EQ(registerCase(comm, what, timeoutMs), occlSuccess) << occlGetLastError();
}

Case RanksOnDevices::one(plan::Plan plan, uint64_t id) const {
  Case what;
  what.id = id;
  what.plan = std::move(plan);
  what.count = 1000;
  return what;
}

std::string RanksOnDevices::enqueue(uint32_t rank, uint64_t id, bool isRegistered) {
  RankOnDevice &on = *onDevices[rank];
  return occlEnqueue(comms[rank], id, on.input(isRegistered), on.output(isRegistered),
                     on.stream()) == occlSuccess
             ? ""
             : occlGetLastError();
}

std::string RanksOnDevices::failureOf(uint32_t rank) {
  for (auto end = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < end;
       std::this_thread::sleep_for(1ms))
    if (*occlCommGetLastError(comms[rank]) != 0)
      break;
  return occlCommGetLastError(comms[rank]);
}

} // namespace occl::gpu_test

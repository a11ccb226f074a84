// Calls of occlStart on devices that cannot be executed: what ranks that do not do their part get,
// and what is refused. Ranks are threads, on as many devices as there are. Skipped where there is
// no device.
#include "test/gpu/daemon/started.h"

#include <chrono>

namespace occl::gpu_test {
namespace {

using namespace std::chrono_literals;

/// Rank 0 calls `mine`, the others `theirs`: all are told what differs.
void expectMismatch(const std::vector<occlComm_t> &comms, const Tried &mine, const Tried &theirs,
                    const std::string &text) {
  std::vector<std::thread> threads;
  std::vector<std::string> said(comms.size());
  std::vector<occlResult_t> results(comms.size(), occlSuccess);
  for (uint32_t r = 0; r < comms.size(); ++r)
    threads.emplace_back([&, r] {
      cudaSetDevice(0);
      const occlCall_t call = (r == 0 ? mine : theirs).on(r);
      occlRequest_t request = 0;
      results[r] = occlStart(comms[r], &call, nullptr, nullptr, &request);
      if (results[r] == occlSuccess)
        results[r] = occlWait(comms[r], request);
      said[r] = occlGetLastError();
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t r = 0; r < comms.size(); ++r) {
    EXPECT_EQ(results[r], occlMismatch) << "rank " << r << ": " << said[r];
    EXPECT_NE(said[r].find(text), std::string::npos) << said[r];
  }
}

TEST_F(Started, RanksThatCallDifferentlyFail) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  const auto of = [&](uint64_t count, DataType type = DataType::Float32,
                      const Kind &kind = kKinds[0]) { return make(kind, 9, count, type); };
  expectMismatch(comms, *of(1000), *of(1001), "count 100");
  startLarge();
  expectMismatch(comms, *of(1000), *of(1000, DataType::Int32), "dataType");
  startLarge();
  expectMismatch(comms, *of(1000), *of(100'000), "count 1000");
  startLarge();
  expectMismatch(comms, *of(1000), *of(1000, DataType::Float32, kKinds[3]), "kind");
}

TEST_F(Started, ARankThatDoesNotStartIt) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  auto what = make(kKinds[0], 4, 1000);
  occlCall_t call = what->on(0);
  call.timeoutMs = 300;
  occlRequest_t request = 0;
  ASSERT_EQ(occlStart(comms[0], &call, nullptr, nullptr, &request), occlSuccess);
  EXPECT_EQ(occlTest(comms[0], request), occlInProgress);
  EXPECT_EQ(occlWait(comms[0], request), occlTimeout);
  const std::string text = occlGetLastError();
  EXPECT_NE(text.find("rank 0 waits for rank 1 (its submission)"), std::string::npos) << text;
  EXPECT_EQ(occlStart(comms[1], &call, nullptr, nullptr, &request), occlTimeout);
}

TEST_F(Started, ARankThatAbortsOrLeaves) {
  if (n() == 1)
    GTEST_SKIP() << "of several ranks";
  auto what = make(kKinds[0], 4, 1000);
  for (bool aborts : {true, false}) {
    startLarge();
    const occlCall_t call = what->on(0);
    occlRequest_t request = 0;
    ASSERT_EQ(occlStart(comms[0], &call, nullptr, nullptr, &request), occlSuccess);
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      if (aborts)
        return (void)occlCommAbort(comms[1]);
      onDevices[1].reset();
      EXPECT_EQ(occlCommDestroy(std::exchange(comms[1], nullptr)), occlSuccess);
    });
    EXPECT_EQ(occlWait(comms[0], request), aborts ? occlAborted : occlPeerFailed)
        << occlGetLastError();
    other.join();
  }
}

TEST_F(Started, RefusedCallsTakeNoPlace) {
  auto what = make(kKinds[0], 4, 1000);
  inThreads([&](uint32_t rank) -> std::string {
    occlRequest_t request = 0;
    occlCall_t wrong = what->on(rank);
    std::vector<float> host(1000);
    wrong.sendBuffer = host.data();
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "memory of the host was taken";
    wrong = what->on(rank);
    wrong.recvBuffer = static_cast<char *>(wrong.recvBuffer) + 4;
    wrong.sendBuffer = what->outputs[rank]->get();
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "buffers that overlap were taken";
    const float scalar = 2;
    wrong = what->on(rank);
    wrong.op = occlMax;
    wrong.scalar = &scalar;
    if (occlStart(comms[rank], &wrong, nullptr, nullptr, &request) != occlInvalidArgument)
      return "a scalar was taken for maxima";
    const occlCall_t right = what->on(rank);
    if (occlStart(comms[rank], &right, nullptr, nullptr, &request) != occlSuccess)
      return failed("occlStart");
    if (occlStreamWait(comms[rank], request, onDevices[rank]->stream()) != occlInvalidArgument &&
        occlTest(comms[rank], request) == occlInProgress)
      return "a stream waits for a call without one";
    return occlWait(comms[rank], request) == occlSuccess
               ? what->check(rank, onDevices[rank]->stream())
               : failed("occlWait");
  });
}

} // namespace
} // namespace occl::gpu_test

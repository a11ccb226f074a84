// A sender and a receiver by reference. The receiver is stopped at every step of a broadcast that
// another process can see, so between any two slices. Meanwhile the sender fails, and stores
// something else to what the receiver has still to read: that is never taken for the broadcast's.
#include "plan/testing/example_plans.h"
#include "runtime/api/testing/harness.h"
#include "runtime/api/testing/processes.h"
#include "runtime/api/testing/steps.h"
#include "runtime/sync/thread.h"
#include "test/faults/fault_points.h"
#include "test/faults/resuming.h"
#include "test/faults/reused_buffers.h"
#include "test/faults/shared_record.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

namespace occl::communicator::testing {
namespace {

using namespace plan::testing;
using namespace std::chrono_literals;

struct Reading {
  faults::Record record; // of the receiver
  std::atomic<bool> isReused{false};
  std::atomic<uint32_t> numReused{0}, numRefused{0}; // of all trials
};

constexpr uint32_t kSender = 0, kReceiver = 1;

Exchange largeBroadcast(Exchange::Memory memory) {
  constexpr uint32_t kChunks = 4;
  return {0, handleOf(chainBroadcast(2, kChunks)), Exchange::Kind::BroadcastOfRank0, 1 << 17,
          memory};
}

std::string failWhileItIsRead(occlComm_t comm, Exchange &broadcast, Reading &shared) {
  Thread aborter([&] {
    while (!shared.record.hit.load() && !shared.record.ended.load())
      sleepFor(200us);
    sleepFor(2ms); // it has stopped by then, mostly
    if (shared.record.hit.load())
      occlCommAbort(comm);
  });
  occlResult_t result = broadcast.call();
  std::string wrong = broadcast.reuse(result);
  shared.numReused += result != occlSuccess;
  shared.isReused.store(true);
  aborter.join();
  return wrong;
}

std::string readOrSend(const std::string &name, uint64_t point, Exchange::Memory memory,
                       uint32_t rank, Reading &shared) {
  occlConfig_t config = withTimeout(60000);
  config.arenaBytes = 1 << 20;
  config.heapBytes = 2 << 20;
  occlComm_t comm = nullptr;
  if (occlCommInitRank(&comm, 2, rank, name.c_str(), &config) != occlSuccess)
    return lastError("occlCommInitRank");
  Exchange broadcast = largeBroadcast(memory);
  if (broadcast.enter(comm) != occlSuccess)
    return lastError("occlMemAlloc");
  broadcast.fill(0);
  if (broadcast.call() != occlSuccess)
    return lastError("the first broadcast");
  broadcast.fill(1);
  std::string wrong;
  if (rank == kSender) {
    wrong = failWhileItIsRead(comm, broadcast, shared);
  } else {
    faults::arm(faults::Kind::Stop, point, &shared.record);
    occlResult_t result = broadcast.call();
    faults::arm(faults::Kind::None, 0, nullptr);
    wrong = broadcast.reuse(result);
    shared.numRefused += result != occlSuccess;
    shared.record.ended.store(true);
  }
  occlCommDestroy(comm);
  return wrong;
}

void stopWhileReading(Exchange::Memory memory) {
  InSharedMemory<Reading> shared;
  const std::string name = jobName("reading");
  bool isHit = true;
  uint64_t point = 1;
  for (; isHit && !::testing::Test::HasFailure(); ++point) {
    shared->record.points = 0;
    shared->record.hit.store(false);
    shared->record.ended.store(false);
    shared->isReused.store(false);
    Processes processes(
        2, [&](uint32_t rank) { return readOrSend(name, point, memory, rank, *shared.get()); });
    waitFor(20s, [&] { return shared->isReused.load() || shared->record.ended.load(); });
    resumeAndJoin(processes, 2, kReceiver, [&] {
      return "stopped at point " + std::to_string(point) + ", " + shared->record.where;
    });
    isHit = shared->record.hit.load();
  }
  std::printf("%llu points; in %u trials the sender failed, in %u the receiver\n",
              static_cast<unsigned long long>(point - 1), shared->numReused.load(),
              shared->numRefused.load());
  EXPECT_GT(shared->numReused.load(), 0u);
}

/// The sources are private: the system copies them.
TEST(PausedWhileReading, LaterStoresToPrivateSourcesAreNotTaken) {
  stopWhileReading(Exchange::Memory::Private);
}
/// They are mapped.
TEST(PausedWhileReading, LaterStoresToSharedSourcesAreNotTaken) {
  stopWhileReading(Exchange::Memory::Shared);
}

} // namespace
} // namespace occl::communicator::testing

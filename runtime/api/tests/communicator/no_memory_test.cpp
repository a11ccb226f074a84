// There is no memory: each allocation of the calls of the C interface fails once, and the call says
// so, or does without. Then the next one works, nothing hangs, and nothing is left behind.
#include "runtime/api/occl_collectives.h"
#include "runtime/api/occl_partitioned.h"
#include "runtime/api/occl_transfer.h"
#include "runtime/api/testing/harness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

/// Blocks of operator new that have not been given back.
std::atomic<int64_t> liveBlocks{0};
/// Allocations in calls of this thread until one fails; 0: none does.
thread_local uint64_t untilFailure = 0;
thread_local bool isInCall = false;
/// The same of the library's own threads.
thread_local bool isOfTest = false;
std::atomic<int64_t> othersUntilFailure{0};

bool failsNow() {
  if (isOfTest)
    return isInCall && untilFailure != 0 && --untilFailure == 0;
  return othersUntilFailure.load() > 0 && othersUntilFailure.fetch_sub(1) == 1;
}

void *allocate(size_t bytes, size_t alignment) {
  void *block =
      failsNow() ? nullptr
      : alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes != 0 ? bytes : 1)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!block)
    throw std::bad_alloc();
  ++liveBlocks;
  return block;
}

void release(void *block) {
  liveBlocks -= block ? 1 : 0;
  std::free(block);
}

} // namespace

void *operator new(size_t bytes) { return allocate(bytes, 1); }
void *operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void *block) noexcept { release(block); }
void operator delete(void *block, size_t) noexcept { release(block); }
void operator delete(void *block, std::align_val_t) noexcept { release(block); }
void operator delete(void *block, size_t, std::align_val_t) noexcept { release(block); }

namespace occl::communicator::testing {
namespace {

constexpr uint32_t kRanks = 2;

/// A call, or some, of which an allocation may fail.
template <class Act> occlResult_t inCall(Act act) {
  isInCall = true;
  const occlResult_t result = act();
  isInCall = false;
  return result;
}

bool isOutOfMemory(occlResult_t result) {
  return result == occlSystemError &&
         std::string(occlGetLastError()).find("memory") != std::string::npos;
}

occlConfig_t smallConfig() {
  occlConfig_t config = OCCL_CONFIG_INITIALIZER;
  config.timeoutMs = 20000; // what hangs ends as an error
  config.workers = 1;
  config.arenaBytes = 8 << 20;
  config.heapBytes = 1 << 20;
  return config;
}

/// What a rank does with two communicators, the same on both.
class Program {
public:
  /// mayEnd: that the communicators end is no error, if they say why.
  Program(occlComm_t comm, occlComm_t other, uint32_t rank, bool mayEnd)
      : comm(comm), other(other), peer(1 - rank), mayEnd(mayEnd) {}

  void run() {
    for (int round = 0; round < 2 && !hasEnded; ++round) {
      callThem();
      startThem();
      transferThem();
      transferInParts();
      reduceInParts();
      useTheHeap();
    }
  }
  /// How often a call has said that there is no memory.
  uint32_t numRefused() const { return refused; }

private:
  /// Until it succeeds: the memory is back at once. Whether it has.
  template <class Act> bool must(const char *what, Act act) {
    if (hasEnded)
      return false;
    occlResult_t result = inCall(act);
    if (isOutOfMemory(result)) {
      ++refused;
      result = inCall(act);
    }
    if (result == occlSuccess)
      return true;
    EXPECT_TRUE(mayEnd && (isOutOfMemory(result) || result == occlAborted))
        << what << ": " << occlGetLastError();
    // The other rank must not wait for this one.
    for (occlComm_t each : {comm, other})
      EXPECT_EQ(occlCommAbort(each), occlSuccess);
    hasEnded = true;
    return false;
  }

  occlCall_t allReduce(const float *from, float *to, uint64_t count) const {
    occlCall_t call = OCCL_CALL_INITIALIZER;
    call.kind = occlKindAllReduce;
    call.sendBuffer = from;
    call.recvBuffer = to;
    call.count = count;
    call.dataType = occlFloat32;
    call.name = "a name that is too long for a short string";
    return call;
  }
  void expect(const std::vector<float> &got, float each, const char *what) const {
    for (const float value : got)
      if (!hasEnded && value != each) {
        ADD_FAILURE() << what << ": " << value << " and not " << each;
        return;
      }
  }

  /// Small ones also inline, large ones of several blocks, and with a copy of their input.
  void callThem() {
    for (const uint64_t count : {4, 4, 4, 200000}) {
      std::vector<float> from(count, 1.5f), to(count);
      const occlCall_t call = allReduce(from.data(), to.data(), count);
      must("occlCall", [&] { return occlCall(comm, &call, nullptr); });
      expect(to, 3, "occlCall");
    }
    std::vector<float> data(1000, 5);
    occlCall_t call = allReduce(data.data(), data.data(), data.size());
    call.op = occlAvg;
    must("occlCall in place", [&] { return occlCall(comm, &call, nullptr); });
    expect(data, 5, "occlCall in place");
  }

  void startThem() {
    std::vector<float> from(3000, 2), to(from.size());
    occlCall_t call = allReduce(from.data(), to.data(), from.size());
    call.id = 7;
    occlRequest_t request = 0;
    must("occlStart", [&] { return occlStart(comm, &call, nullptr, nullptr, &request); });
    must("occlWait", [&] { return occlWait(comm, request); });
    expect(to, 4, "occlStart");
    must("occlStart", [&] { return occlStart(comm, &call, nullptr, nullptr, &request); });
    awaitIt("occlTest", [&] { return occlTest(comm, request); });
    for (const uint8_t neverBlocks : {0, 1}) {
      std::atomic<uint32_t> calls{0};
      call.callbacksNeverBlock = neverBlocks;
      const bool hasStarted = must("occlStart with a callback", [&] {
        return occlStart(comm, &call, countCall, &calls, &request);
      });
      must("occlWait", [&] { return occlWait(comm, request); });
      while (hasStarted && calls.load() == 0)
        std::this_thread::yield();
    }
  }
  static void countCall(occlRequest_t, occlResult_t, void *calls) {
    ++*static_cast<std::atomic<uint32_t> *>(calls);
  }
  template <class Test> void awaitIt(const char *what, Test test) {
    must(what, [&] {
      occlResult_t result = occlInProgress;
      while (result == occlInProgress)
        result = test();
      return result;
    });
  }

  /// An exchange of both ranks as a group, which end(request) ends.
  template <class End> occlResult_t exchange(std::vector<float> &to, bool onBoth, End end) {
    if (const occlResult_t begun = occlGroupStart(); begun != occlSuccess)
      return begun;
    for (const occlComm_t on : {comm, other}) {
      const uint64_t half = to.size() / 2, begin = on == comm ? 0 : half;
      if (on == comm || onBoth) {
        (void)occlSend(from.data() + begin, half, occlFloat32, peer, on, nullptr);
        (void)occlRecv(to.data() + begin, half, occlFloat32, peer, on, nullptr);
      }
    }
    return end();
  }
  void transferThem() {
    std::vector<float> to(from.size());
    must("a group", [&] { return exchange(to, false, occlGroupEnd); });
    must("a group of two communicators", [&] { return exchange(to, true, occlGroupEnd); });
    expect(to, 1, "occlRecv");
    occlRequest_t request = 0;
    must("occlGroupEndAsync", [&] {
      return exchange(to, false,
                      [&] { return occlGroupEndAsync(comm, 0, nullptr, nullptr, &request); });
    });
    must("occlWait", [&] { return occlWait(comm, request); });
    const uint64_t counts[] = {3, 3}, begins[] = {0, 3};
    must("occlAllToAllv", [&] {
      return occlAllToAllv(from.data(), counts, begins, to.data(), counts, begins, occlFloat32,
                           comm, nullptr);
    });
  }

  void transferInParts() {
    constexpr int64_t kPartitions = 4;
    std::vector<float> &to = received;
    occlPart_t send = nullptr, receive = nullptr;
    must("occlPsendInit", [&] {
      return occlPsendInit(comm, from.data(), kPartitions, 16, occlFloat32, peer, 5, nullptr,
                           &send);
    });
    must("occlPrecvInit", [&] {
      return occlPrecvInit(comm, to.data(), kPartitions, 16, occlFloat32, peer, 5, nullptr,
                           &receive);
    });
    for (int epoch = 0; epoch < 2; ++epoch) {
      must("occlPstart", [&] { return occlPstart(receive); });
      must("occlPstart", [&] { return occlPstart(send); });
      must("occlPprepare", [&] { return occlPprepare(send); });
      must("occlPreadyRange", [&] { return occlPreadyRange(send, 0, kPartitions - 1); });
      int32_t arrived = 0;
      while (!hasEnded && !arrived)
        must("occlParrived", [&] { return occlParrived(receive, 2, &arrived); });
      must("occlPwait", [&] { return occlPwait(send); });
      awaitIt("occlPtest", [&] { return occlPtest(receive); });
    }
    expect(to, 1, "occlPrecvInit");
    must("occlPfree", [&] { return occlPfree(send); });
    must("occlPfree", [&] { return occlPfree(receive); });
  }

  void reduceInParts() {
    constexpr int64_t kPartitions = 2;
    std::vector<float> &to = reduced;
    const occlCall_t call = allReduce(from.data(), to.data(), to.size());
    occlPart_t part = nullptr;
    must("occlPcollInit",
         [&] { return occlPcollInit(comm, &call, kPartitions, kPartitions, nullptr, &part); });
    must("occlPstart", [&] { return occlPstart(part); });
    must("occlPreadyRange", [&] { return occlPreadyRange(part, 0, kPartitions - 1); });
    must("occlPwait", [&] { return occlPwait(part); });
    expect(to, 2, "occlPcollInit");
    must("occlPfree", [&] { return occlPfree(part); });
  }

  void useTheHeap() {
    void *memory = nullptr;
    must("occlMemAlloc", [&] { return occlMemAlloc(comm, 1000, &memory); });
    must("occlMemFree", [&] { return occlMemFree(comm, memory); });
  }

  const occlComm_t comm, other;
  const uint32_t peer;
  const bool mayEnd;
  const std::vector<float> from = std::vector<float>(512, 1);
  std::vector<float> received = std::vector<float>(64), reduced = std::vector<float>(200);
  uint32_t refused = 0;
  bool hasEnded = false;
};

int64_t numDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

/// What the process has. Threads of communicators are gone when these are destroyed.
struct Held {
  int64_t blocks = liveBlocks, descriptors = numDescriptors();
  bool operator==(const Held &) const = default;
};

/// Both ranks make communicators, run the program, and destroy them. How often a call of rank 0 was
/// refused: of its allocations `failing` is the one that fails.
uint32_t runOnce(bool mayEnd, uint64_t failing) {
  occlComm_t comms[2][kRanks] = {};
  const occlConfig_t config = smallConfig();
  for (auto &ranks : comms)
    EXPECT_EQ(occlCommInitAll(ranks, kRanks, &config), occlSuccess) << occlGetLastError();
  Program first(comms[0][0], comms[1][0], 0, mayEnd), second(comms[0][1], comms[1][1], 1, mayEnd);
  std::thread thread([&] {
    isOfTest = true;
    second.run();
  });
  untilFailure = failing;
  first.run();
  thread.join();
  for (auto &ranks : comms)
    for (occlComm_t comm : ranks)
      EXPECT_EQ(inCall([&] { return occlCommDestroy(comm); }), occlSuccess);
  return first.numRefused();
}

/// Calls act() with its first, its second ... allocation failing, until it does without a failure.
/// Each time nothing may be left behind. How often it was.
template <class Act> uint64_t failEach(Act act) {
  isOfTest = true;
  EXPECT_EQ(occlCommInitAll(nullptr, 0, nullptr), occlInvalidArgument); // with a text that is kept
  act();                                                                // and what else is
  for (uint64_t failing = 1;; ++failing) {
    SCOPED_TRACE("allocation " + std::to_string(failing) + " fails");
    const Held before;
    untilFailure = failing;
    act();
    const bool wasReached = std::exchange(untilFailure, 0) == 0;
    const Held after;
    EXPECT_EQ(before.descriptors, after.descriptors);
    EXPECT_EQ(before.blocks, after.blocks);
    if (!wasReached || ::testing::Test::HasFailure())
      return failing - 1;
  }
}

/// make(comms) makes some, or there is no memory; then it does when it is called again.
template <class Make> void makeAndDestroy(Make make) {
  occlComm_t comms[kRanks] = {};
  occlResult_t result = inCall([&] { return make(comms); });
  if (isOutOfMemory(result)) {
    EXPECT_EQ(comms[0], nullptr);
    result = make(comms);
  }
  EXPECT_EQ(result, occlSuccess) << occlGetLastError();
  for (occlComm_t comm : comms)
    EXPECT_EQ(inCall([&] { return occlCommDestroy(comm); }), occlSuccess);
}

TEST(NoMemory, CommunicatorsAreMadeOrNot) {
  const occlConfig_t config = smallConfig();
  const std::string name = "no-memory-" + std::to_string(getpid());
  EXPECT_GT(failEach([&] {
              makeAndDestroy(
                  [&](occlComm_t *comms) { return occlCommInitAll(comms, kRanks, &config); });
            }),
            50u);
  EXPECT_GT(failEach([&] {
              makeAndDestroy([&](occlComm_t *comms) {
                return occlCommInitRank(comms, 1, 0, name.c_str(), &config);
              });
            }),
            40u);
}

/// The exit of the process would write the counters of what is not there: all that it keeps of a
/// communicator goes with it.
TEST(NoMemory, CommunicatorsWithFilesOfCountersAreMadeOrNot) {
  const occlConfig_t config = smallConfig();
  const std::string name = "no-memory-counted-" + std::to_string(getpid());
  setenv("OCCL_METRICS", (::testing::TempDir() + "counters").c_str(), 1);
  EXPECT_GT(failEach([&] {
              makeAndDestroy([&](occlComm_t *comms) {
                return occlCommInitRank(comms, 1, 0, name.c_str(), &config);
              });
            }),
            40u);
  unsetenv("OCCL_METRICS");
}

TEST(NoMemory, EachCallWorksWhenItIsCalledAgain) {
  uint64_t refused = 0;
  const uint64_t failed = failEach([&] {
    const uint64_t failing = std::exchange(untilFailure, 0);
    refused += runOnce(false, failing);
  });
  EXPECT_GT(failed, 100u);
  EXPECT_GT(refused, failed / 2);
}

/// Where nobody can be told but all: in threads that execute what others have called.
TEST(NoMemory, WithoutAnyForItsThreadsACommunicatorEndsAtMost) {
  constexpr int64_t kMost = 50; // which allocations there are is a matter of time
  for (int64_t failing = 1; failing <= kMost && !HasFailure(); ++failing) {
    SCOPED_TRACE("allocation " + std::to_string(failing) + " of the others fails");
    isOfTest = true;
    othersUntilFailure = failing;
    (void)runOnce(true, 0);
    othersUntilFailure = 0;
  }
}

} // namespace
} // namespace occl::communicator::testing

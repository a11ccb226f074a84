// Ranks that are processes, and the shared library as programs load it.
#include "nccl/nccl_abi.h"
#include "nccl/testing/checked_call.h"
#include "nccl/testing/shared_id.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using occl::communicator::testing::Processes;
using occl::nccl::testing::SharedId;
using occl::nccl::testing::where;

namespace {

#define OCCL_NCCL_DONE(name) #name,
#define OCCL_NCCL_REFUSED(name) #name,
const std::vector<std::string> kNames = {
#include "nccl/abi/names.def"
};

std::string communicate(ncclComm_t comm, int rank, int numRanks) {
  std::vector<float> values(1000, static_cast<float>(rank + 1));
  if (ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum, comm,
                    nullptr) != ncclSuccess)
    return where("ncclAllReduce");
  if (values[999] != static_cast<float>(numRanks * (numRanks + 1) / 2))
    return "the sum is " + std::to_string(values[999]);
  std::vector<int> mine(100000, rank), theirs(100000, -1);
  ncclGroupStart();
  ncclSend(mine.data(), mine.size(), ncclInt32, (rank + 1) % numRanks, comm, nullptr);
  ncclRecv(theirs.data(), theirs.size(), ncclInt32, (rank + numRanks - 1) % numRanks, comm,
           nullptr);
  if (ncclGroupEnd() != ncclSuccess)
    return where("ncclGroupEnd");
  return theirs[99999] == (rank + numRanks - 1) % numRanks ? "" : "received something else";
}

/// Rank 1 has ended in its next call. What it had to say in that may have been said, so this may
/// end well here, but the one behind it does not.
std::string missRank1(ncclComm_t comm) {
  float value = 1;
  ncclResult_t result = ncclSuccess;
  for (int i = 0; i < 2 && result == ncclSuccess; ++i)
    result = ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
  if (result != ncclRemoteError)
    return "ncclAllReduce is " + std::to_string(result);
  const std::string text = ncclGetLastError(nullptr);
  return text.find("rank 1") != std::string::npos ? "" : "it does not say whom: " + text;
}

/// Each rank in a process of its own: joins, runs body(comm, rank), which returns what is wrong.
template <class Body> Processes ranks(int numRanks, const SharedId &id, Body body) {
  return {static_cast<uint32_t>(numRanks), [=](uint32_t r) -> std::string {
            const int rank = static_cast<int>(r);
            ncclComm_t comm = nullptr;
            if (ncclCommInitRank(&comm, numRanks, id.get(rank), rank) != ncclSuccess)
              return where("ncclCommInitRank");
            return body(comm, rank);
          }};
}

} // namespace

TEST(Processes, CommunicateAndDivide) {
  const SharedId id;
  auto processes = ranks(3, id, [](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = communicate(comm, rank, 3); !wrong.empty())
      return wrong;
    ncclComm_t pair = nullptr;
    if (ncclCommSplit(comm, rank == 1 ? NCCL_SPLIT_NOCOLOR : 0, 0, &pair, nullptr) != ncclSuccess)
      return where("ncclCommSplit");
    std::string wrong = pair ? communicate(pair, rank / 2, 2) : "";
    // This rank may leave only when all have what they need of it, which a call of all says.
    if (wrong.empty())
      wrong = communicate(comm, rank, 3);
    ncclCommDestroy(pair);
    ncclCommDestroy(comm);
    return wrong;
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Processes, HearOfOneThatIsKilled) {
  const SharedId id;
  auto processes = ranks(3, id, [](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = communicate(comm, rank, 3); !wrong.empty())
      return wrong;
    if (rank == 2)
      raise(SIGKILL);
    float value = 0;
    const ncclResult_t result =
        ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
    if (result != ncclRemoteError)
      return "ncclAllReduce is " + std::to_string(result);
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclRemoteError)
      return "the state is " + std::to_string(state);
    // Who is left goes on.
    ncclComm_t fewer = nullptr;
    int without[] = {2};
    if (ncclCommShrink(comm, without, 1, &fewer, nullptr, NCCL_SHRINK_ABORT) != ncclSuccess)
      return where("ncclCommShrink");
    std::string wrong = communicate(fewer, rank, 2);
    ncclCommAbort(comm);
    ncclCommDestroy(fewer);
    return wrong;
  });
  EXPECT_EQ(processes.join(2), -1);
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Processes, HearOfOneThatEndsBeforeAllHaveCome) {
  for (const bool isKilled : {true, false}) {
    const SharedId id;
    Processes processes(2, [&](uint32_t r) -> std::string {
      const int rank = static_cast<int>(r);
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, 3, id.get(rank), rank) != ncclSuccess) // the third does not come
        return where("ncclCommInitRank");
      if (rank == 1) {
        usleep(100000);
        if (isKilled)
          raise(SIGKILL);
        return ncclCommAbort(comm) == ncclSuccess ? "" : where("ncclCommAbort");
      }
      float value = 0;
      const ncclResult_t result =
          ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
      const std::string text = ncclGetLastError(nullptr);
      return result == ncclRemoteError && text.find("rank 1 on ") != std::string::npos ? "" : text;
    });
    EXPECT_EQ(processes.join(1), isKilled ? -1 : 0);
    EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
  }
}

/// Rank 0 is the one that has made the id. The child keeps none of what tells the others.
TEST(Processes, HearOfOneThatIsKilledBeforeAllHaveComeAndLeavesAChild) {
  struct Shared {
    std::atomic<bool> isOver{false};
    std::atomic<int> numBegun{0};
  };
  auto *shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared;
  for (const int killed : {0, 1}) {
    const SharedId id;
    Processes processes(2, [&](uint32_t r) -> std::string {
      const int rank = static_cast<int>(r);
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, 3, id.get(rank), rank) != ncclSuccess) // the third does not come
        return where("ncclCommInitRank");
      // Until both have begun, and have had time to reach the root.
      for (++shared->numBegun; shared->numBegun % 2 != 0;)
        usleep(1000);
      usleep(500000);
      if (rank == killed) {
        if (fork() == 0) {
          for (int i = 0; i < 60000 && !shared->isOver; ++i)
            usleep(1000);
          _exit(0);
        }
        raise(SIGKILL);
      }
      float value = 0;
      const ncclResult_t result =
          ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
      return result == ncclRemoteError ? "" : where("ncclAllReduce");
    });
    EXPECT_EQ(processes.join(static_cast<uint32_t>(killed)), -1);
    EXPECT_EQ(processes.join(static_cast<uint32_t>(1 - killed)), 0)
        << processes.wrong(static_cast<uint32_t>(1 - killed));
  }
  shared->isOver = true;
}

TEST(Processes, ExitWithCommunicatorsThatTheyLeak) {
  Processes processes(1, [&](uint32_t) -> std::string {
    ncclComm_t alone = nullptr, waiting = nullptr;
    ncclUniqueId id;
    if (ncclGetUniqueId(&id) != ncclSuccess)
      return where("ncclGetUniqueId");
    if (ncclCommInitRank(&alone, 1, id, 0) != ncclSuccess)
      return where("ncclCommInitRank");
    ncclUniqueId other;
    ncclGetUniqueId(&other);
    if (ncclCommInitRank(&waiting, 2, other, 0) != ncclSuccess)
      return where("ncclCommInitRank");
    if (std::string wrong = communicate(alone, 0, 1); !wrong.empty())
      return wrong;
    std::exit(0); // with destructors of static objects, as a program does
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Processes, ForkedChildrenLeaveTheirParentsCommunicatorsAlone) {
  Processes processes(1, [](uint32_t) -> std::string {
    ncclComm_t comm = nullptr;
    if (ncclCommInitAll(&comm, 1, nullptr) != ncclSuccess)
      return where("ncclCommInitAll");
    if (std::string wrong = communicate(comm, 0, 1); !wrong.empty())
      return wrong;
    Processes child(1, [&](uint32_t) -> std::string {
      int count = 0;
      if (ncclCommCount(comm, &count) != ncclInvalidUsage)
        return "the child may use its parent's communicator";
      return ncclCommDestroy(comm) == ncclSuccess ? "" : where("ncclCommDestroy");
    });
    if (child.join(0) != 0)
      return child.wrong(0);
    return communicate(comm, 0, 1);
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

TEST(Processes, ThatExitAtOnceInTheMiddleAreMissedByThoseWhoNeedThem) {
  const SharedId id;
  auto processes = ranks(2, id, [](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = communicate(comm, rank, 2); !wrong.empty())
      return wrong;
    float value = 1;
    if (rank == 1) { // another thread is in a call for which this rank's peer has not come
      std::thread([=, x = value]() mutable {
        ncclAllReduce(&x, &x, 1, ncclFloat32, ncclSum, comm, nullptr);
      }).detach();
      usleep(50000);
      _exit(0); // as os._exit: no destructors, nobody is told
    }
    usleep(200000);
    return missRank1(comm);
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Processes, ThatAreInterruptedInTheMiddleEndAndTheirPeersHear) {
  const SharedId id;
  auto processes = ranks(2, id, [](ncclComm_t comm, int rank) -> std::string {
    float value = 1;
    if (rank == 1) {
      std::thread([] {
        usleep(100000);
        kill(getpid(), SIGINT);
      }).detach();
      ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
      return "it goes on after SIGINT";
    }
    usleep(300000);
    return missRank1(comm);
  });
  EXPECT_EQ(processes.join(1), -1);
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

namespace {

std::atomic<pid_t> handledBy = 0;

} // namespace

TEST(Processes, LeaveSignalsToTheThreadsOfTheProgram) {
  const SharedId id;
  auto processes = ranks(2, id, [](ncclComm_t comm, int rank) -> std::string {
    std::signal(SIGINT, [](int) { handledBy = gettid(); });
    if (std::string wrong = communicate(comm, rank, 2); !wrong.empty())
      return wrong; // every thread of the library's is there now
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, SIGINT);
    pthread_sigmask(SIG_BLOCK, &one, nullptr);
    kill(getpid(), SIGINT);
    usleep(20000);
    sigpending(&pending);
    if (handledBy != 0 || !sigismember(&pending, SIGINT))
      return "a thread of the library has taken the signal";
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    if (handledBy != gettid())
      return "the signal has got lost";
    // A call that is interrupted by a handler goes on.
    std::thread([] {
      usleep(50000);
      kill(getpid(), SIGINT);
    }).detach();
    usleep(rank == 0 ? 0 : 150000);
    return communicate(comm, rank, 2);
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Processes, MayForkWhileOperationsAreInFlight) {
  // As workers of a DataLoader: the child leaves its parent's communicators alone, may make its
  // own, and ends without disturbing anybody.
  const SharedId id;
  auto processes = ranks(2, id, [](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = communicate(comm, rank, 2); !wrong.empty())
      return wrong;
    std::string inFlight = "not ended";
    std::thread caller([&] { inFlight = communicate(comm, rank, 2); });
    usleep(rank == 0 ? 100000 : 0); // so that rank 1 waits meanwhile
    for (const bool isEarly : {true, false}) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(30);
        ncclComm_t own = nullptr;
        int count = 0;
        if (ncclCommCount(comm, &count) != ncclInvalidUsage || ncclCommAbort(comm) != ncclSuccess)
          _exit(1);
        if (isEarly)
          std::exit(0);
#ifdef __SANITIZE_THREAD__
        _exit(0); // it does not let such a child have threads
#endif
        if (ncclCommInitAll(&own, 1, nullptr) != ncclSuccess || !communicate(own, 0, 1).empty())
          _exit(2);
        if (ncclCommCount(comm, &count) != ncclInvalidUsage || ncclCommDestroy(comm) != ncclSuccess)
          _exit(4); // still its parent's
        _exit(ncclCommDestroy(own) == ncclSuccess ? 0 : 3);
      }
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) {
        caller.detach();
        return "the child has ended with " + std::to_string(status);
      }
    }
    caller.join();
    return inFlight.empty() ? communicate(comm, rank, 2) : inFlight;
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Library, LoadsWithoutCudaAndWithoutThreads) {
  // In a process of its own: this one has threads of its other tests' libraries.
  Processes processes(1, [](uint32_t) -> std::string {
    const auto count = [] {
      const std::filesystem::directory_iterator tasks("/proc/self/task");
      return std::distance(begin(tasks), end(tasks));
    };
    const auto before = count();
    void *library = dlopen("nccl/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return dlerror();
    for (const std::string &name : kNames)
      for (const std::string &symbol : {name, "p" + name})
        if (!dlsym(library, symbol.c_str()))
          return symbol + " is not there";
    if (count() != before)
      return "loading it has started threads";
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("libcuda") != std::string::npos)
        return "it has loaded " + line;
    auto getVersion =
        reinterpret_cast<decltype(&ncclGetVersion)>(dlsym(library, "pncclGetVersion"));
    int version = 0;
    return getVersion(&version) == ncclSuccess && version == NCCL_VERSION_CODE ? ""
                                                                               : "wrong version";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

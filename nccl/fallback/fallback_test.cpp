// What goes to another NCCL, here that of testing/other_nccl.cpp: ranks are processes, and pretend
// by NCCL_HOSTID to be on several machines.
#include "nccl/abi/later.h"
#include "nccl/testing/checked_call.h"
#include "nccl/testing/shared_id.h"
#include "runtime/api/testing/processes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using occl::communicator::testing::Processes;
using occl::nccl::testing::allReduce;
using occl::nccl::testing::SharedId;
using occl::nccl::testing::where;

namespace {

const std::string kOther = "nccl/testing/other_nccl.so";

std::string contents(const std::string &path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void setLibrary(const std::string &path) { setenv("OCCL_NCCL_FALLBACK_LIBRARY", path.c_str(), 1); }

/// Pretends that each rank is on a machine of its own, with the other library.
void becomeMachine(int rank) {
  setenv("NCCL_HOSTID", ("machine" + std::to_string(rank)).c_str(), 1);
  setenv("OCCL_NCCL_FALLBACK_SECONDS", "20", 1);
  setLibrary(kOther);
}

/// Each rank in a process: prepare(rank), then body(comm, rank) with a communicator of all.
template <class Prepare, class Body> void eachProcess(int numRanks, Prepare prepare, Body body) {
  const SharedId id;
  Processes processes(static_cast<uint32_t>(numRanks), [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    prepare(rank);
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, numRanks, id.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    std::string wrong = body(comm, rank);
    id.leaveTogether(numRanks);
    return wrong;
  });
  for (uint32_t r = 0; r < static_cast<uint32_t>(numRanks); ++r)
    EXPECT_EQ(processes.join(r), 0) << "rank " << r << ": " << processes.wrong(r);
}

/// "" if the communicator has failed, within the deadline, with all of these parts in its text.
std::string expectFailure(ncclComm_t comm, ncclResult_t result,
                          const std::vector<std::string> &parts) {
  float value = 1;
  const ncclResult_t seen = ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, comm, nullptr);
  const std::string text = ncclGetLastError(nullptr);
  if (seen != result)
    return "the result is " + std::to_string(seen) + ": " + text;
  for (const std::string &part : parts)
    if (text.find(part) == std::string::npos)
      return "'" + part + "' is missing: " + text;
  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(comm, &state);
  return state == result && ncclCommDestroy(comm) == ncclSuccess ? "" : where("afterwards");
}

} // namespace

TEST(Fallback, OfRanksOnSeveralMachinesDoesEverything) {
  const std::string log = ::testing::TempDir() + "other_nccl_log";
  std::remove(log.c_str());
  auto prepare = [&](int rank) {
    // Two ranks on the root's machine, one elsewhere.
    becomeMachine(rank / 2);
    setenv("OTHER_NCCL_LOG", (log + std::to_string(rank)).c_str(), 1);
  };
  eachProcess(3, prepare, [&](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = allReduce(comm, rank, 3); !wrong.empty())
      return wrong;
    // Another scalar on each rank, destroyed right after the call and before the group's end.
    ncclRedOp_t op;
    float scalar = static_cast<float>(rank), value = 2, gathered[3] = {}, all[3] = {0, 1, 2};
    int next = -1, mine = rank;
    ncclGroupStart();
    if (ncclRedOpCreatePreMulSum(&op, &scalar, ncclFloat32, ncclScalarHostImmediate, comm) !=
            ncclSuccess ||
        ncclAllReduce(&value, &value, 1, ncclFloat32, op, comm, nullptr) != ncclSuccess ||
        ncclRedOpDestroy(op, comm) != ncclSuccess ||
        ncclAllGather(&all[rank], gathered, 1, ncclFloat32, comm, nullptr) != ncclSuccess ||
        ncclSend(&mine, 1, ncclInt32, (rank + 1) % 3, comm, nullptr) != ncclSuccess ||
        ncclRecv(&next, 1, ncclInt32, (rank + 2) % 3, comm, nullptr) != ncclSuccess ||
        ncclGroupEnd() != ncclSuccess)
      return where("the group");
    if (value != 6 || gathered[1] != 1 || gathered[2] != 2 || next != (rank + 2) % 3)
      return "the group computes something else";
    float parts[3] = {1, 2, 3}, part = 0, root = -1, from[3] = {0, 1, 2}, to[3] = {};
    if (ncclReduceScatter(parts, &part, 1, ncclFloat32, ncclSum, comm, nullptr) != ncclSuccess ||
        ncclReduce(&part, &root, 1, ncclFloat32, ncclSum, 2, comm, nullptr) != ncclSuccess ||
        ncclBroadcast(&root, &root, 1, ncclFloat32, 2, comm, nullptr) != ncclSuccess ||
        ncclAlltoAll(from, to, 1, ncclFloat32, comm, nullptr) != ncclSuccess)
      return where("collectives");
    if (part != static_cast<float>(3 * (rank + 1)) || root != 18 ||
        to[0] != static_cast<float>(rank) || to[2] != static_cast<float>(rank))
      return "collectives compute something else";
    int size = 0, own = -1, device = -1;
    ncclCommCount(comm, &size);
    ncclCommUserRank(comm, &own);
    ncclCommCuDevice(comm, &device);
    if (size != 3 || own != rank || device != 0)
      return "it is rank " + std::to_string(own) + " of " + std::to_string(size);
    for (const auto function : {ncclCommFinalize, ncclCommDestroy})
      for (ncclResult_t expected : {ncclSuccess, ncclInvalidArgument}) // the second time
        if (function(comm) != expected)
          return where("the end");
    return "";
  });
  for (int rank = 0; rank < 3; ++rank) {
    const std::string calls = contents(log + std::to_string(rank));
    EXPECT_EQ(calls.find("ncclGetUniqueId") != std::string::npos, rank == 0);
    const std::string right = "ncclCommInitRankConfig\nncclAllReduce\n"
                              "ncclGroupStart\nncclRedOpCreatePreMulSum\nncclAllReduce\n"
                              "ncclRedOpDestroy\nncclAllGather\nncclSend\nncclRecv\nncclGroupEnd\n"
                              "ncclReduceScatter\nncclReduce\nncclBroadcast\nncclAlltoAll\n"
                              "ncclCommFinalize\nncclCommDestroy\n";
    EXPECT_NE(calls.find(right), std::string::npos) << calls;
  }
}

TEST(Fallback, BlocksAsTheProgramWantsIt) {
  const std::string log = ::testing::TempDir() + "other_nccl_log_of_config";
  const SharedId id;
  Processes processes(2, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    becomeMachine(rank);
    std::remove((log + std::to_string(rank)).c_str());
    setenv("OTHER_NCCL_LOG", (log + std::to_string(rank)).c_str(), 1);
    ncclConfig_t config = kNcclConfigInitializer;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    if (ncclCommInitRankConfig(&comm, 2, id.get(rank), rank, &config) != ncclSuccess)
      return where("ncclCommInitRankConfig");
    ncclResult_t state = ncclInternalError;
    if (ncclCommGetAsyncError(comm, &state) != ncclSuccess || state != ncclSuccess)
      return where("ncclCommGetAsyncError"); // never in progress
    std::string wrong = allReduce(comm, rank, 2);
    ncclCommDestroy(comm);
    return wrong;
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(processes.join(static_cast<uint32_t>(rank)), 0)
        << processes.wrong(static_cast<uint32_t>(rank));
    const std::string calls = contents(log + std::to_string(rank));
    const std::string right = "ncclCommInitRankConfig, not blocking\nncclAllReduce\n"
                              "ncclCommFinalize\nncclCommDestroy\n";
    EXPECT_NE(calls.find(right), std::string::npos) << calls;
  }
}

/// One thread waits in the other library's state, and another one ends what it waits for.
TEST(Fallback, AsksNothingOfACommunicatorThatWasAborted) {
  const std::string log = ::testing::TempDir() + "other_nccl_log_of_finalize";
  auto prepare = [&](int rank) {
    becomeMachine(rank);
    setenv("OTHER_NCCL_FINALIZES_FOR_EVER", "1", 1);
    setenv("OTHER_NCCL_LOG", (log + std::to_string(rank)).c_str(), 1);
  };
  eachProcess(2, prepare, [&](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = allReduce(comm, rank, 2); !wrong.empty())
      return wrong;
    ncclResult_t finalized = ncclSuccess;
    std::thread waits([&] { finalized = ncclCommFinalize(comm); });
    while (contents(log + std::to_string(rank)).find("ncclCommFinalize") == std::string::npos)
      usleep(1000);
    std::string wrong = ncclCommAbort(comm) == ncclSuccess ? "" : where("ncclCommAbort");
    waits.join();
    return wrong.empty() && finalized != ncclInvalidUsage
               ? "ncclCommFinalize is " + std::to_string(finalized)
               : wrong;
  });
}

TEST(Fallback, OfEveryCommunicatorIsWhatAllAsksFor) {
  auto prepare = [](int) {
    setenv("OCCL_NCCL_FALLBACK", "all", 1);
    setLibrary(kOther);
  };
  eachProcess(2, prepare, [](ncclComm_t comm, int rank) -> std::string {
    // What only the other library has: windows, device communicators, signals, memory.
    void *memory = nullptr, *pointer = nullptr, *handle = nullptr;
    ncclWindow_t window = nullptr;
    int devices = 0, x = 0;
    if (ncclMemAlloc(&memory, 100) != ncclSuccess ||
        ncclCommRegister(comm, memory, 100, &handle) != ncclSuccess ||
        ncclCommWindowRegister(comm, memory, 100, &window, 1) != ncclSuccess || !window ||
        ncclDevCommCreate(comm, nullptr, &devices) != ncclSuccess || devices != 2 ||
        ncclGetPeerDevicePointer(window, 4, 1, &pointer) != ncclSuccess ||
        pointer != static_cast<char *>(memory) + 4 ||
        ncclSignal(1, 2, 3, 4, comm, nullptr) != ncclSuccess ||
        ncclPutSignal(&x, 1, ncclInt32, 1, window, 8, 2, 3, 4, comm, nullptr) != ncclSuccess)
      return where("one of them");
    // What not even that has.
    if (ncclCommRevoke(comm, 0) != ncclInvalidUsage ||
        where("").find(
            "other_nccl.so (2.27.3), which has the communicator, has no ncclCommRevoke") ==
            std::string::npos)
      return where("ncclCommRevoke");
    if (ncclCommWindowDeregister(comm, window) != ncclSuccess ||
        ncclCommDeregister(comm, handle) != ncclSuccess || ncclMemFree(memory) != ncclSuccess)
      return where("what ends them");
    std::string wrong = allReduce(comm, rank, 2);
    ncclCommDestroy(comm);
    return wrong;
  });
}

TEST(Fallback, DividesWithItsNamesBehindThoseOfAnotherLibrary) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: sanitizers do not let libraries have their own names first";
#endif
  // As programs have it: OCCL's library was loaded first, and its names are everybody's. The other
  // one calls ncclAllGather by name.
  const SharedId id;
  Processes processes(3, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    becomeMachine(rank);
    void *library = dlopen("nccl/libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (!library)
      return dlerror();
    auto get = [&](auto *sample, const char *name) {
      return reinterpret_cast<decltype(sample)>(dlsym(library, name));
    };
    const auto lastError = get(ncclGetLastError, "ncclGetLastError");
    const ncclUniqueId shared = id.get(rank, get(ncclGetUniqueId, "ncclGetUniqueId"));
    ncclComm_t comm = nullptr, half = nullptr;
    if (get(ncclCommInitRank, "ncclCommInitRank")(&comm, 3, shared, rank) != ncclSuccess ||
        get(ncclCommSplit, "ncclCommSplit")(comm, rank == 1 ? NCCL_SPLIT_NOCOLOR : 5, 0, &half,
                                            nullptr) != ncclSuccess)
      return lastError(nullptr);
    if (!half != (rank == 1))
      return "there is a communicator where none belongs";
    float value = 1;
    if (half && (get(ncclAllReduce, "ncclAllReduce")(&value, &value, 1, ncclFloat32, ncclSum, half,
                                                     nullptr) != ncclSuccess ||
                 value != 2))
      return std::string("half: ") + lastError(nullptr);
    // All are there still.
    if (get(ncclAllReduce, "ncclAllReduce")(&value, &value, 1, ncclFloat32, ncclSum, comm,
                                            nullptr) != ncclSuccess)
      return lastError(nullptr);
    get(ncclCommDestroy, "ncclCommDestroy")(half);
    get(ncclCommDestroy, "ncclCommDestroy")(comm);
    return "";
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Fallback, BesideOwnCommunicatorsAlsoInOneGroup) {
  const SharedId ofOne, ofOther;
  Processes processes(2, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    setLibrary(kOther);
    ncclComm_t own = nullptr, other = nullptr;
    if (ncclCommInitRank(&own, 2, ofOne.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    if (std::string wrong = allReduce(own, rank, 2); !wrong.empty())
      return wrong; // nobody was asked to go elsewhere
    becomeMachine(rank);
    if (ncclCommInitRank(&other, 2, ofOther.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    float values[3] = {1, 1, 1};
    ncclGroupStart();
    ncclAllReduce(&values[0], &values[0], 1, ncclFloat32, ncclSum, own, nullptr);
    ncclAllReduce(&values[1], &values[1], 1, ncclFloat32, ncclSum, other, nullptr);
    ncclAllReduce(&values[2], &values[2], 1, ncclFloat32, ncclSum, own, nullptr);
    if (ncclGroupEnd() != ncclSuccess)
      return where("ncclGroupEnd");
    // Of a communicator of OCCL's it is refused, whatever else there is.
    int devices = 0;
    if (ncclDevCommCreate(own, nullptr, &devices) != ncclInvalidUsage ||
        where("").find("OCCL_NCCL_FALLBACK=all") == std::string::npos)
      return where("ncclDevCommCreate");
    ncclCommDestroy(own);
    ncclCommDestroy(other);
    return values[0] == 2 && values[1] == 2 && values[2] == 2 ? "" : "other sums";
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Fallback, WithoutALibraryIsAnErrorOfAllThatSaysSo) {
  auto prepare = [](int rank) {
    becomeMachine(rank / 2);
    setenv("OCCL_NCCL_FALLBACK", "all", 1);
    if (rank == 1)
      unsetenv("OCCL_NCCL_FALLBACK_LIBRARY");
  };
  eachProcess(3, prepare, [](ncclComm_t comm, int) {
    return expectFailure(
        comm, ncclInvalidUsage,
        {"which OCCL does not do", "rank 1 on", "has no other NCCL", "OCCL_NCCL_FALLBACK_LIBRARY"});
  });
}

/// OCCL joins ranks of several machines if one of them lacks another library.
TEST(Fallback, OfSeveralMachinesWithoutALibraryIsOccls) {
  auto prepare = [](int rank) {
    becomeMachine(rank / 2);
    setenv("OCCL_HOSTID", std::to_string(rank / 2).c_str(), 1);
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    if (rank == 1)
      unsetenv("OCCL_NCCL_FALLBACK_LIBRARY");
  };
  eachProcess(4, prepare, [](ncclComm_t comm, int rank) -> std::string {
    if (std::string wrong = allReduce(comm, rank, 4); !wrong.empty())
      return wrong;
    int next = -1, mine = rank;
    float all[4] = {0, 1, 2, 3}, gathered[4] = {};
    ncclGroupStart();
    if (ncclSend(&mine, 1, ncclInt32, (rank + 1) % 4, comm, nullptr) != ncclSuccess ||
        ncclRecv(&next, 1, ncclInt32, (rank + 3) % 4, comm, nullptr) != ncclSuccess ||
        ncclAllGather(&all[rank], gathered, 1, ncclFloat32, comm, nullptr) != ncclSuccess ||
        ncclGroupEnd() != ncclSuccess)
      return where("the group");
    if (next != (rank + 3) % 4 || !std::equal(all, all + 4, gathered))
      return "the group computes something else";
    // The first and the last of each machine.
    ncclComm_t half = nullptr;
    if (ncclCommSplit(comm, rank % 2, rank, &half, nullptr) != ncclSuccess)
      return where("ncclCommSplit");
    if (std::string wrong = allReduce(half, rank / 2, 2); !wrong.empty())
      return wrong;
    return ncclCommDestroy(half) == ncclSuccess && ncclCommDestroy(comm) == ncclSuccess
               ? ""
               : where("ncclCommDestroy");
  });
}

TEST(Fallback, IsNotForIdsThatNoProcessHasMade) {
  auto prepare = [](int) {
    setenv("NCCL_COMM_ID", ("127.0.0.1:" + std::to_string(getppid())).c_str(), 1);
    setenv("OCCL_NCCL_FALLBACK", "all", 1);
    setLibrary(kOther);
  };
  eachProcess(2, prepare, [](ncclComm_t comm, int) {
    return expectFailure(comm, ncclInvalidUsage, {"with NCCL_COMM_ID"});
  });
}

TEST(Fallback, IsForbiddenByZero) {
  auto prepare = [](int rank) {
    becomeMachine(rank);
    setenv("OCCL_NCCL_FALLBACK", rank == 0 ? "0" : "all", 1);
  };
  eachProcess(2, prepare, [](ncclComm_t comm, int) {
    return expectFailure(comm, ncclInvalidUsage, {"rank 0 on", "OCCL_NCCL_FALLBACK=0 forbids it"});
  });
}

TEST(Fallback, RefusesALibraryThatIsTooOldOrLacksSomethingOrIsOurs) {
  const std::pair<std::string, std::string> cases[] = {
      {"nccl/testing/other_nccl_tiny.so", "has no ncclCommDestroy"},
      {"nccl/libnccl.so.2", "is a copy of OCCL's"},
      {"/no/such/library", "/no/such/library"},
      {"old", "(2.12.12) is too old"}};
  for (const auto &[library, part] : cases) {
    auto prepare = [&, &library = library](int rank) {
      becomeMachine(rank);
      setenv("OCCL_NCCL_FALLBACK", "all", 1);
      setLibrary(library == "old" ? kOther : library);
      if (library == "old")
        setenv("OTHER_NCCL_VERSION", "21212", 1);
    };
    eachProcess(2, prepare, [&part = part](ncclComm_t comm, int) {
      return expectFailure(comm, ncclInvalidUsage, {part});
    });
  }
}

TEST(Fallback, RefusesRanksWithDifferentVersions) {
  auto prepare = [](int rank) {
    becomeMachine(rank);
    setenv("OCCL_NCCL_FALLBACK", "all", 1);
    if (rank == 1)
      setenv("OTHER_NCCL_VERSION", "22809", 1);
  };
  eachProcess(2, prepare, [](ncclComm_t comm, int) {
    return expectFailure(comm, ncclInvalidUsage, {"2.27.3", "2.28.9", "rank 0", "rank 1"});
  });
}

TEST(Fallback, WithoutAFunctionRefusesItAlone) {
  auto prepare = [](int rank) {
    becomeMachine(rank);
    setLibrary("nccl/testing/other_nccl_small.so");
  };
  eachProcess(2, prepare, [](ncclComm_t comm, int) -> std::string {
    float from[2] = {}, to[2] = {};
    if (ncclAlltoAll(from, to, 1, ncclFloat32, comm, nullptr) != ncclInvalidUsage ||
        where("").find("has no ncclAlltoAll") == std::string::npos)
      return where("ncclAlltoAll");
    int devices = 0;
    if (ncclDevCommCreate(comm, nullptr, &devices) != ncclInvalidUsage ||
        where("").find("has no ncclDevCommCreate") == std::string::npos)
      return where("ncclDevCommCreate");
    ncclCommAbort(comm);
    return "";
  });
}

TEST(Fallback, EndsOnAllRanksIfOneCannotMakeItsCommunicator) {
  auto prepare = [](int rank) {
    becomeMachine(rank);
    setenv("OTHER_NCCL_FAIL", "1", 1);
  };
  eachProcess(3, prepare, [](ncclComm_t comm, int) {
    return expectFailure(comm, ncclSystemError,
                         {"rank 1 on", "other: system error: as it was asked to"});
  });
}

TEST(Fallback, EndsAtTheDeadlineIfARankDoesNotCome) {
  const SharedId id;
  Processes processes(2, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    becomeMachine(rank);
    setenv("OCCL_NCCL_FALLBACK_SECONDS", "1", 1);
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, 4, id.get(rank), rank) != ncclSuccess)
      return where("ncclCommInitRank");
    return expectFailure(comm, ncclRemoteError, {"after 1 s ranks are missing: 2, 3"});
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Fallback, EndsIfARankIsKilledOrAbortsMeanwhile) {
  for (const bool isKilled : {true, false}) {
    const SharedId id;
    Processes processes(3, [&](uint32_t r) -> std::string {
      const int rank = static_cast<int>(r);
      becomeMachine(rank == 2 ? 1 : 0);
      ncclComm_t comm = nullptr;
      if (ncclCommInitRank(&comm, 4, id.get(rank), rank) != ncclSuccess)
        return where("ncclCommInitRank");
      if (rank == 1) {
        usleep(200000); // so that others are there
        if (isKilled)
          raise(SIGKILL);
        return ncclCommAbort(comm) == ncclSuccess ? "" : where("ncclCommAbort");
      }
      return expectFailure(comm, ncclRemoteError, {"rank 1 on", "has ended or aborted"});
    });
    for (uint32_t r = 0; r < 3; ++r)
      EXPECT_EQ(processes.join(r), r == 1 && isKilled ? -1 : 0) << processes.wrong(r);
  }
}

TEST(Fallback, NeedsTheProcessThatMadeTheId) {
  const SharedId id;
  Processes root(1, [&](uint32_t) -> std::string {
    becomeMachine(0);
    id.get(0);
    return "";
  });
  EXPECT_EQ(root.join(0), 0);
  Processes processes(2, [&](uint32_t r) -> std::string {
    becomeMachine(static_cast<int>(r)); // on its machine, and elsewhere
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, 2, id.get(1), static_cast<int>(r)) != ncclSuccess)
      return where("ncclCommInitRank");
    return expectFailure(comm, ncclRemoteError,
                         {"the process that made the id", "cannot be reached"});
  });
  for (uint32_t r = 0; r < 2; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Fallback, EndsIfTheProcessThatMadeTheIdDoes) {
  const SharedId id;
  Processes processes(3, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r) - 1; // the first is none
    becomeMachine(rank);
    const ncclUniqueId shared = id.get(rank + 1);
    if (rank < 0) {
      usleep(200000); // so that the others are there
      return "";
    }
    ncclComm_t comm = nullptr;
    if (ncclCommInitRank(&comm, 3, shared, rank) != ncclSuccess)
      return where("ncclCommInitRank");
    return expectFailure(comm, ncclRemoteError, {"the process that made the id has ended"});
  });
  for (uint32_t r = 0; r < 3; ++r)
    EXPECT_EQ(processes.join(r), 0) << processes.wrong(r);
}

TEST(Fallback, IsListedAtTheEnd) {
  const std::string path = ::testing::TempDir() + "occl_nccl_list";
  const SharedId ofOther, ofFailing;
  Processes processes(2, [&](uint32_t r) -> std::string {
    const int rank = static_cast<int>(r);
    becomeMachine(rank);
    setenv("OCCL_NCCL_FALLBACK", "list", 1);
    if (!std::freopen((path + std::to_string(rank)).c_str(), "w", stderr))
      return "no file";
    ncclComm_t other = nullptr, own = nullptr;
    ncclCommInitRank(&other, 2, ofOther.get(rank), rank);
    if (std::string wrong = allReduce(other, rank, 2); !wrong.empty())
      return wrong;
    ncclCommInitAll(&own, 1, nullptr);
    if (std::string wrong = allReduce(own, 0, 1); !wrong.empty())
      return wrong;
    int devices = 0;
    ncclDevCommCreate(own, nullptr, &devices);
    setenv("OTHER_NCCL_FAIL", "0", 1);
    ncclComm_t failing = nullptr;
    ncclCommInitRank(&failing, 2, ofFailing.get(rank), rank);
    if (std::string wrong = expectFailure(failing, ncclSystemError, {}); !wrong.empty())
      return wrong;
    ncclCommAbort(other);
    std::exit(0);
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(processes.join(static_cast<uint32_t>(rank)), 0)
        << processes.wrong(static_cast<uint32_t>(rank));
    const std::string said = contents(path + std::to_string(rank));
    for (const std::string &part :
         {std::string("1 communicators of OCCL's, 1 of another NCCL, " + kOther + " (2.27.3)\n"),
          "  rank " + std::to_string(rank) + " of 2, device 0: ranks are on several machines",
          std::string("  refused: ncclDevCommCreate, 1 times: OCCL does not implement"),
          "  refused: rank " + std::to_string(rank) + " of 2, 1 times: rank 0 on "})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

TEST(Fallback, HasWordsThatAreChecked) {
  Processes processes(1, [](uint32_t) -> std::string {
    for (const char *words : {"always", "0,all"}) {
      setenv("OCCL_NCCL_FALLBACK", words, 1);
      ncclComm_t comm = nullptr;
      if (ncclCommInitAll(&comm, 1, nullptr) != ncclInvalidUsage ||
          where("").find("OCCL_NCCL_FALLBACK has") == std::string::npos)
        return where("ncclCommInitAll");
    }
    return "";
  });
  EXPECT_EQ(processes.join(0), 0) << processes.wrong(0);
}

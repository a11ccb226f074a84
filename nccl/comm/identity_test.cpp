// Version, ids, configurations, and what is refused when communicators are made.
#include "nccl/testing/ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

using namespace occl::nccl::testing;

namespace {

std::string lastError() { return ncclGetLastError(nullptr); }

ncclUniqueId makeId() {
  ncclUniqueId id;
  EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess) << lastError();
  return id;
}

ncclResult_t initAlone(const ncclConfig_t &given) {
  ncclComm_t comm = nullptr;
  ncclConfig_t config = given;
  const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, makeId(), 0, &config);
  if (result == ncclSuccess) {
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  }
  return result;
}

} // namespace

TEST(Version, IsThatOfTheHeaderOrOfTheEnvironment) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 22809);
  setenv("OCCL_NCCL_VERSION", "23007", 1);
  EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
  EXPECT_EQ(version, 23007);
  unsetenv("OCCL_NCCL_VERSION");
  EXPECT_EQ(ncclGetVersion(nullptr), ncclInvalidArgument);
}

TEST(Errors, HaveTexts) {
  std::set<std::string> texts;
  for (int result = 0; result <= ncclNumResults; ++result)
    texts.insert(ncclGetErrorString(static_cast<ncclResult_t>(result)));
  EXPECT_EQ(texts.size(), static_cast<size_t>(ncclNumResults) + 1);
  EXPECT_EQ(ncclCommCount(nullptr, nullptr), ncclInvalidArgument);
  EXPECT_NE(lastError().find("ncclCommCount: comm must not be NULL"), std::string::npos);
}

TEST(UniqueId, HasTheDocumentedBytesAndDiffers) {
  const ncclUniqueId first = makeId(), second = makeId();
  EXPECT_EQ(std::memcmp(first.internal, "OCCL\2\0\0\0", 8), 0);
  EXPECT_EQ(std::memcmp(first.internal, second.internal, 24), 0); // the machine
  EXPECT_NE(std::memcmp(first.internal + 24, second.internal + 24, 16), 0);
  EXPECT_NE(std::memcmp(first.internal + 40, second.internal + 40, 8), 0);
  EXPECT_EQ(std::memcmp(first.internal + 48, second.internal + 48, 28), 0); // the process
  const char zeros[52] = {};
  EXPECT_NE(std::memcmp(first.internal + 48, zeros, 8), 0);
  EXPECT_EQ(std::memcmp(first.internal + 76, zeros, 52), 0);
  EXPECT_EQ(ncclGetUniqueId(nullptr), ncclInvalidArgument);
  setenv("NCCL_HOSTID", "another", 1);
  const ncclUniqueId elsewhere = makeId();
  unsetenv("NCCL_HOSTID");
  EXPECT_NE(std::memcmp(first.internal + 8, elsewhere.internal + 8, 16), 0);
}

TEST(UniqueId, OfTheEnvironmentIsMadeByEachRankItself) {
  setenv("NCCL_COMM_ID", "127.0.0.1:4711", 1);
  const ncclUniqueId first = makeId(), second = makeId();
  unsetenv("NCCL_COMM_ID");
  EXPECT_NE(std::memcmp(&first, &second, sizeof(first)), 0);
  const char zeros[88] = {};
  EXPECT_EQ(std::memcmp(first.internal + 40, zeros, 88), 0); // of no process
  // What a rank computes for its first call: that of this process is known from elsewhere.
  const unsigned char hash[4] = {static_cast<unsigned char>(first.internal[24]),
                                 static_cast<unsigned char>(first.internal[25]),
                                 static_cast<unsigned char>(first.internal[26]),
                                 static_cast<unsigned char>(first.internal[27])};
  uint64_t right = 14695981039346656037u;
  for (unsigned char c : std::string("127.0.0.1:4711#0"))
    right = (right ^ c) * 1099511628211u;
  EXPECT_EQ(std::memcmp(hash, &right, 4), 0);
}

TEST(Init, RefusesIdsThatAreNotOfThisMachineAndLibrary) {
  ncclComm_t comm = nullptr;
  ncclUniqueId id = makeId();
  id.internal[0] = 'N';
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
  EXPECT_NE(lastError().find("not NVIDIA's"), std::string::npos);
  id = makeId();
  id.internal[4] = 9;
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, OfRanksOnSeveralMachinesWithoutAnotherNcclIsOccls) {
  setenv("NCCL_HOSTID", "another", 1);
  ncclUniqueId id = makeId();
  unsetenv("NCCL_HOSTID");
  eachRank(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
    EXPECT_EQ(allReduceOnce(comm), "") << lastError();
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
  // Nobody can be asked about an id of NCCL_COMM_ID.
  setenv("NCCL_COMM_ID", "127.0.0.1:4712", 1);
  id = makeId();
  unsetenv("NCCL_COMM_ID");
  id.internal[8] = static_cast<char>(id.internal[8] ^ 1);
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclCommInitRank(&comm, 2, id, 0), ncclSuccess);
  EXPECT_NE(allReduceOnce(comm).find("another machine"), std::string::npos) << lastError();
  EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Init, OfRanksThatDoNotBelongTogetherFails) {
  for (const bool isTwice : {true, false}) {
    const ncclUniqueId id = makeId();
    eachRank(2, [&](int rank) {
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRank(&comm, isTwice ? 3 : 2 + rank, id, isTwice ? 1 : rank),
                ncclSuccess);
      int x = 0;
      EXPECT_EQ(ncclAllReduce(&x, &x, 1, ncclInt32, ncclSum, comm, nullptr), ncclInvalidArgument);
      EXPECT_NE(lastError().find(isTwice ? "has come twice" : "has nranks"), std::string::npos)
          << lastError();
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  }
}

TEST(Init, RefusesRanksAndDevicesThatThereAreNot) {
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, makeId(), 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 0, makeId(), 0), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, makeId(), 2), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 2, makeId(), -1), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitAll(&comm, 0, nullptr), ncclInvalidArgument);
  ncclComm_t two[2];
  const int negative[] = {0, -1};
  EXPECT_EQ(ncclCommInitAll(two, 2, negative), ncclInvalidArgument);
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 0, nullptr, nullptr), ncclInvalidArgument);
}

TEST(Init, TakesTheFirstOfSeveralIds) {
  ncclUniqueId ids[2] = {makeId(), makeId()};
  eachRank(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRankScalable(&comm, 2, rank, 2, ids, nullptr), ncclSuccess);
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

TEST(Init, InAnyOrderOfCommunicatorsOnEachRank) {
  const ncclUniqueId ids[2] = {makeId(), makeId()};
  eachRank(2, [&](int rank) {
    ncclComm_t comms[2] = {};
    for (int i : {rank, 1 - rank}) {
      ASSERT_EQ(ncclCommInitRank(&comms[i], 2, ids[i], rank), ncclSuccess);
      int size = 0; // known without the other rank
      EXPECT_EQ(ncclCommCount(comms[i], &size), ncclSuccess);
      EXPECT_EQ(size, 2);
    }
    for (ncclComm_t comm : comms) {
      EXPECT_EQ(allReduceOnce(comm), "");
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    }
  });
}

TEST(Init, LeavesNeitherFilesNorThreadsBehind) {
  auto count = [](const char *folder) {
    const std::filesystem::directory_iterator entries(folder);
    return std::distance(begin(entries), end(entries));
  };
  auto once = [] {
    const ncclUniqueId id = makeId();
    eachRank(2, [&](int rank) {
      ncclComm_t comm = nullptr;
      ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
      EXPECT_EQ(allReduceOnce(comm), "");
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
  };
  once(); // what the process has one of is there now
  for (const char *folder : {"/proc/self/fd", "/proc/self/task"}) {
    // Threads end a little later than what they have done is seen.
    auto settled = [&] {
      auto least = count(folder);
      for (int i = 0; i < 20; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        least = std::min(least, count(folder));
      }
      return least;
    };
    const auto before = settled();
    for (int i = 0; i < 20; ++i)
      once();
    EXPECT_LE(settled(), before) << folder;
  }
}

TEST(Init, RanksMayShareADevice) {
  ncclComm_t comms[2];
  const int devices[] = {1, 1};
  ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess);
  eachRank(2, [&](int rank) {
    EXPECT_EQ(allReduceOnce(comms[rank]), "");
    EXPECT_EQ(ncclCommDestroy(comms[rank]), ncclSuccess);
  });
}

TEST(Init, OfAllRefusesNumbersThatAreNone) {
  ncclComm_t comms[2] = {};
  for (const int number : {0, -1}) {
    EXPECT_EQ(ncclCommInitAll(comms, number, nullptr), ncclInvalidArgument);
    EXPECT_NE(lastError().find("must be 1 or more"), std::string::npos) << lastError();
  }
  EXPECT_EQ(ncclCommInitAll(nullptr, 1, nullptr), ncclInvalidArgument);
}

TEST(Init, OfAllKnowsDevices) {
  ncclComm_t comms[2];
  const int devices[] = {3, 1};
  ASSERT_EQ(ncclCommInitAll(comms, 2, devices), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    int device = -1, of = -1, count = -1;
    EXPECT_EQ(ncclCommCuDevice(comms[rank], &device), ncclSuccess);
    EXPECT_EQ(ncclCommUserRank(comms[rank], &of), ncclSuccess);
    EXPECT_EQ(ncclCommCount(comms[rank], &count), ncclSuccess);
    EXPECT_EQ(device, devices[rank]);
    EXPECT_EQ(of, rank);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(ncclCommCount(comms[rank], nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommUserRank(comms[rank], nullptr), ncclInvalidArgument);
    EXPECT_EQ(ncclCommCuDevice(comms[rank], nullptr), ncclInvalidArgument);
  }
  for (ncclComm_t comm : comms)
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
}

TEST(Config, IsChecked) {
  ncclConfig_t config = kNcclConfigInitializer;
  EXPECT_EQ(initAlone(config), ncclSuccess);
  config.magic = 0;
  EXPECT_EQ(initAlone(config), ncclInvalidArgument);
  EXPECT_NE(lastError().find("NCCL_CONFIG_INITIALIZER"), std::string::npos);
  config = kNcclConfigInitializer;
  for (const size_t size : {size_t{0}, size_t{8}, offsetof(ncclConfig_t, blocking) - 1}) {
    config.size = size;
    EXPECT_EQ(initAlone(config), ncclInvalidArgument) << size;
  }
  for (auto [field, value] :
       {std::pair(&ncclConfig_t::blocking, 2), std::pair(&ncclConfig_t::cgaClusterSize, 9),
        std::pair(&ncclConfig_t::minCTAs, 0), std::pair(&ncclConfig_t::maxCTAs, -1),
        std::pair(&ncclConfig_t::splitShare, 2)}) {
    config = kNcclConfigInitializer;
    config.*field = value;
    EXPECT_EQ(initAlone(config), ncclInvalidArgument) << value;
  }
  config = kNcclConfigInitializer;
  config.minCTAs = 4;
  config.maxCTAs = 2;
  EXPECT_EQ(initAlone(config), ncclInvalidArgument);
}

TEST(Config, OfOtherVersions) {
  // Earlier: nothing behind its size is read, nor what its version does not have.
  ncclConfig_t config = kNcclConfigInitializer;
  config.size = offsetof(ncclConfig_t, cgaClusterSize);
  config.version = 21400;
  config.maxCTAs = -7;
  EXPECT_EQ(initAlone(config), ncclSuccess);
  config.size = sizeof(config);
  EXPECT_EQ(initAlone(config), ncclSuccess);
  config.version = 21700;
  EXPECT_EQ(initAlone(config), ncclInvalidArgument);
  // Later: longer.
  struct {
    ncclConfig_t known = kNcclConfigInitializer;
    char more[64] = {};
  } later;
  later.known.size = sizeof(later);
  later.known.version = 23100;
  EXPECT_EQ(initAlone(later.known), ncclSuccess);
}

TEST(Config, NotBlockingIsNeverInProgress) {
  const ncclUniqueId id = makeId();
  eachRank(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = kNcclConfigInitializer;
    config.blocking = 0;
    ASSERT_EQ(ncclCommInitRankConfig(&comm, 2, id, rank, &config), ncclSuccess);
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
    EXPECT_EQ(allReduceOnce(comm), "");
    EXPECT_EQ(ncclCommFinalize(comm), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  });
}

#include "runtime/cuda/device/peer_paths.h"

#include <gtest/gtest.h>

#include <cstring>
#include <new>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace occl::cuda {
namespace {

void setName(char (&name)[PeerPaths::kNameBytes], const std::string &text) {
  text.copy(name, sizeof name - 1); // zero before
}

PeerPaths on(const std::string &device, const std::vector<std::string> &linked) {
  PeerPaths paths = {};
  paths.computeCapability = 90;
  setName(paths.device, device);
  for (const std::string &name : linked)
    setName(paths.linked[paths.numLinked++], name);
  return paths;
}

TEST(PeerPaths, NvlinkBetweenAllAllowsLL128) {
  std::vector<PeerPaths> ranks = {on("a", {"b", "c"}), on("b", {"a", "c"}), on("c", {"a", "b"})};
  EXPECT_EQ(whyNoWideLines(ranks), "");
}

TEST(PeerPaths, RanksOnOneDeviceAllowIt) {
  std::vector<PeerPaths> ranks = {on("a", {}), on("a", {})};
  EXPECT_EQ(whyNoWideLines(ranks), "");
}

TEST(PeerPaths, OnePairWithoutNvlinkForbidsItAndIsNamed) {
  std::vector<PeerPaths> ranks = {on("a", {"b", "c"}), on("b", {"a"}), on("c", {"a"})};
  EXPECT_EQ(whyNoWideLines(ranks),
            "the devices of ranks 1 and 2 are not known to be joined by NVLink");
}

TEST(PeerPaths, BothMustKnowOfTheLink) {
  for (bool firstKnows : {false, true}) {
    std::vector<PeerPaths> ranks = {on("a", {}), on("b", {"a"})};
    if (firstKnows)
      ranks = {on("a", {"b"}), on("b", {})};
    EXPECT_NE(whyNoWideLines(ranks), "") << firstKnows;
  }
}

TEST(PeerPaths, DevicesOfDifferentKindsForbidIt) {
  std::vector<PeerPaths> ranks = {on("a", {"b"}), on("b", {"a"})};
  ranks[1].computeCapability = 100;
  EXPECT_EQ(whyNoWideLines(ranks), "the devices of ranks 0 and 1 are of different kinds");
}

TEST(PeerPaths, OneRankMayForbidItAndOnlyAllMayInsist) {
  std::vector<PeerPaths> linked = {on("a", {"b"}), on("b", {"a"})};
  linked[1].wanted = WideLines::Never;
  EXPECT_EQ(whyNoWideLines(linked), "OCCL_LL128 is 0 on rank 1");
  std::vector<PeerPaths> apart = {on("a", {}), on("b", {})};
  apart[0].wanted = WideLines::Always;
  EXPECT_NE(whyNoWideLines(apart), "");
  apart[1].wanted = WideLines::Always;
  EXPECT_EQ(whyNoWideLines(apart), "");
}

TEST(PeerPaths, AnyBytesAreReadWithinBounds) {
  PeerPaths spoilt;
  std::memset(static_cast<void *>(&spoilt), 0x5a, sizeof spoilt);
  std::vector<PeerPaths> ranks = {spoilt, on("a", {"b"})};
  EXPECT_NE(whyNoWideLines(ranks), "");
  EXPECT_NE(whyThroughHost(ranks), "");
}

/// Behind them lies nothing that can be read.
TEST(PeerPaths, NamesEndWhereTheirPlacesDo) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  char *end = static_cast<char *>(pages) + page;
  ASSERT_EQ(mprotect(end, page, PROT_NONE), 0);
  auto *paths = new (end - sizeof(PeerPaths)) PeerPaths(on("a", {}));
  paths->numUnreachable = ~0u;
  EXPECT_EQ(whyThroughHost({paths, 1}), "");
  munmap(pages, 2 * page);
}

void addUnreachable(PeerPaths &paths, const std::string &device) {
  setName(paths.unreachable[paths.numUnreachable++], device);
}

TEST(PeerPaths, DevicesThatAccessEachOtherNeedNoHostMemory) {
  std::vector<PeerPaths> ranks = {on("a", {"b"}), on("b", {}), on("a", {"b"})};
  EXPECT_EQ(whyThroughHost(ranks), "");
  addUnreachable(ranks[0], "c"); // where no rank is
  EXPECT_EQ(whyThroughHost(ranks), "");
}

TEST(PeerPaths, OneDeviceOutOfReachMakesAllGoThroughHostMemory) {
  std::vector<PeerPaths> ranks = {on("a", {"b"}), on("b", {"a"}), on("c", {})};
  addUnreachable(ranks[2], "x");
  addUnreachable(ranks[2], "b");
  EXPECT_EQ(whyThroughHost(ranks),
            "the device of rank 2 cannot access the memory of that of rank 1");
}

TEST(PeerPaths, InstancesOfADeviceAreOutOfReach) {
  std::vector<PeerPaths> ranks = {on("a", {}), on("a", {})};
  ranks[0].uuid[3] = ranks[1].uuid[3] = 7;
  EXPECT_EQ(whyThroughHost(ranks), "");
  ranks[1].uuid[15] = 1;
  EXPECT_NE(whyThroughHost(ranks).find("rank 0 and that of rank 1 are instances of one device"),
            std::string::npos);
}

TEST(PeerPaths, OneRankDisablesPeerAccessForAll) {
  std::vector<PeerPaths> ranks = {on("a", {"b"}), on("b", {"a"})};
  ranks[1].isPeerAccessDisabled = 1;
  EXPECT_EQ(whyThroughHost(ranks), "peer access is disabled on rank 1 (OCCL_P2P_DISABLE=1)");
}

TEST(PeerPaths, OurVariableComesBeforeThatOfNccl) {
  EXPECT_FALSE(*isPeerAccessDisabled(nullptr, nullptr));
  EXPECT_TRUE(*isPeerAccessDisabled("1", nullptr));
  EXPECT_TRUE(*isPeerAccessDisabled(nullptr, "1"));
  EXPECT_TRUE(*isPeerAccessDisabled("", "1"));
  EXPECT_FALSE(*isPeerAccessDisabled("0", "1"));
  EXPECT_TRUE(*isPeerAccessDisabled("1", "no"));
  EXPECT_NE(isPeerAccessDisabled("2", "0").status().message().find("OCCL_P2P_DISABLE is '2'"),
            std::string::npos);
  EXPECT_NE(isPeerAccessDisabled(nullptr, "x").status().message().find("NCCL_P2P_DISABLE is 'x'"),
            std::string::npos);
}

TEST(PeerPaths, TheVariableSaysNothingOrOneOfTwoThings) {
  EXPECT_EQ(*wideLinesFrom(nullptr), WideLines::WherePathsAllow);
  EXPECT_EQ(*wideLinesFrom(""), WideLines::WherePathsAllow);
  EXPECT_EQ(*wideLinesFrom("0"), WideLines::Never);
  EXPECT_EQ(*wideLinesFrom("1"), WideLines::Always);
  EXPECT_EQ(wideLinesFrom("no").status().code(), StatusCode::InvalidArgument);
}

} // namespace
} // namespace occl::cuda

#include "runtime/cuda/device/peer_paths.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace occl::cuda {
namespace {

void setName(char (&name)[PeerPaths::kNameBytes], const std::string &text) {
  std::strncpy(name, text.c_str(), sizeof name - 1);
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

TEST(PeerPaths, WhateverLiesThereIsReadWithinBounds) {
  PeerPaths spoilt;
  std::memset(static_cast<void *>(&spoilt), 0x5a, sizeof spoilt);
  std::vector<PeerPaths> ranks = {spoilt, on("a", {"b"})};
  EXPECT_NE(whyNoWideLines(ranks), "");
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

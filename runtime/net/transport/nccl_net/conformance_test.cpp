// Endpoints over network plugins of NCCL do what every transport must: over the plugin of tests, of
// each version and in two moods, or over that of OCCL_TEST_NCCL_NET, a name or a path.
#include "runtime/net/transport/nccl_net/testing/over_nccl_net.h"
#include "runtime/net/transport/testing/conformance.h"
#include "runtime/net/transport/testing/traffic.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace occl::net {
namespace {

constexpr const char *kUnpleasant = "unpleasant";

template <int Version> void calm(Side &a, Side &b) { overNcclNet(a, b, testPlugin(Version)); }
template <int Version> void unpleasant(Side &a, Side &b) {
  overNcclNet(a, b, testPlugin(Version), kUnpleasant);
}

const char *givenPlugin() { return std::getenv("OCCL_TEST_NCCL_NET"); }

void given(Side &a, Side &b) {
  if (!givenPlugin())
    GTEST_SKIP() << "OCCL_TEST_NCCL_NET names no plugin";
  overNcclNet(a, b, std::string("ncclnet:") + givenPlugin());
}

INSTANTIATE_TEST_SUITE_P(Calm, Transport,
                         ::testing::Values(calm<8>, calm<9>, calm<10>, calm<11>, calm<12>));
INSTANTIATE_TEST_SUITE_P(Unpleasant, Transport,
                         ::testing::Values(unpleasant<8>, unpleasant<9>, unpleasant<10>,
                                           unpleasant<11>, unpleasant<12>));
INSTANTIATE_TEST_SUITE_P(Given, Transport, ::testing::Values(given));

class NcclNetTraffic : public ::testing::TestWithParam<int> {
protected:
  Side a, b;
};

TEST_P(NcclNetTraffic, RandomPutsInBothDirectionsAreRight) {
  overNcclNet(a, b, testPlugin(GetParam()));
  converse(a, b, 1000);
}

TEST_P(NcclNetTraffic, AndOverAnUnpleasantPlugin) {
  overNcclNet(a, b, testPlugin(GetParam()), kUnpleasant);
  converse(a, b, 300);
}

/// Frames are as small as they may be.
TEST_P(NcclNetTraffic, AndInSmallRequests) {
  if (GetParam() == 8)
    GTEST_SKIP() << "version 8 does not say how large requests may be";
  overNcclNet(a, b, testPlugin(GetParam()), "bytes=8300,null=20");
  converse(a, b, 300);
}

INSTANTIATE_TEST_SUITE_P(Versions, NcclNetTraffic, ::testing::Values(8, 9, 10, 11, 12));

TEST(NcclNetTrafficOfGiven, RandomPutsInBothDirectionsAreRight) {
  Side a, b;
  given(a, b);
  if (a.endpoint && b.endpoint)
    converse(a, b, 1000);
}

} // namespace
} // namespace occl::net

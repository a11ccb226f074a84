#include "runtime/net/transport/verbs/testing/over_verbs.h"

#include "runtime/net/transport/verbs/port.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace occl::net {

StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank,
                                const AllowedTransports &allowed) {
  std::vector<ConnectRequest> requests;
  requests.push_back({1 - rank, rank, 1 - rank, std::move(socket), side.regions});
  auto connected = connectEndpoints(rank, std::move(requests), kVerbsSilence, allowed,
                                    Deadline(std::chrono::seconds(20)));
  if (!connected.ok())
    return connected.status();
  return std::move(connected->front());
}

void overVerbs(Side &a, Side &b) {
  if (rdmaPorts().ports.size() < 2) {
    ASSERT_EQ(std::getenv("OCCL_REQUIRE_VERBS"), nullptr) << rdmaPorts().whyNone;
    GTEST_SKIP() << rdmaPorts().whyNone;
  }
  auto sockets = socketPair();
  std::thread other([&] {
    auto connected = connectSide(std::move(sockets.second), b, 1);
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    b.endpoint = std::move(connected->endpoint);
  });
  auto connected = connectSide(std::move(sockets.first), a, 0);
  other.join();
  ASSERT_TRUE(connected.ok()) << connected.status().message();
  ASSERT_EQ(connected->how.substr(0, 5), "RDMA ");
  a.endpoint = std::move(connected->endpoint);
}

} // namespace occl::net

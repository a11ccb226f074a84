#include "runtime/net/transport/nccl_net/testing/over_nccl_net.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>
#include <vector>

namespace occl::net {

std::string testPlugin(int version) {
  return "ncclnet:runtime/net/transport/nccl_net/testing/libnccl-net-test_v" +
         std::to_string(version) + ".so";
}

TestPluginMood::TestPluginMood(const std::string &words) {
  setenv("OCCL_TEST_PLUGIN", words.c_str(), 1);
}
TestPluginMood::~TestPluginMood() { unsetenv("OCCL_TEST_PLUGIN"); }

StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank,
                                const AllowedTransports &allowed) {
  std::vector<ConnectRequest> requests;
  requests.push_back({1 - rank, rank, 1 - rank, std::move(socket), side.regions});
  auto connected = connectEndpoints(rank, std::move(requests), kNcclNetSilence, allowed,
                                    Deadline(std::chrono::seconds(20)));
  if (!connected.ok())
    return connected.status();
  return std::move(connected->front());
}

void overNcclNet(Side &a, Side &b, const std::string &plugin, const std::string &mood) {
  const TestPluginMood words(mood);
  auto sockets = socketPair();
  std::thread other([&] {
    auto connected = connectSide(std::move(sockets.second), b, 1, {plugin});
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    b.endpoint = std::move(connected->endpoint);
  });
  auto connected = connectSide(std::move(sockets.first), a, 0, {plugin});
  other.join();
  ASSERT_TRUE(connected.ok()) << connected.status().message();
  ASSERT_EQ(connected->how.substr(0, 6), "NCCL's") << connected->how;
  a.endpoint = std::move(connected->endpoint);
}

} // namespace occl::net

// Connections over the network plugin of tests, made as ranks make them.
#pragma once

#include "runtime/net/choose/choose_transport.h"
#include "runtime/net/transport/testing/side.h"
#include "runtime/net/transport/testing/socket_pair.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace occl::net {

/// How long a peer of theirs may acknowledge nothing.
inline constexpr std::chrono::seconds kNcclNetSilence{2};

/// "ncclnet:PATH" of the plugin of that version.
std::string testPlugin(int version);
/// As OCCL_TEST_PLUGIN says, until the destructor.
class TestPluginMood {
public:
  explicit TestPluginMood(const std::string &words);
  ~TestPluginMood();
};

/// One rank of two.
StatusOr<Connected> connectSide(Descriptor socket, Side &side, uint32_t rank,
                                const AllowedTransports &allowed);
/// Both, or the test fails.
void overNcclNet(Side &a, Side &b, const std::string &plugin, const std::string &mood = "");

} // namespace occl::net

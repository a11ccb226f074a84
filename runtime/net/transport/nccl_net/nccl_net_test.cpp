// Endpoints over the network plugin of tests: plugins and peers that fail or make no sense, and
// memory that a plugin may still have.
#include "runtime/net/transport/nccl_net/nccl_net_endpoint.h"
#include "runtime/net/transport/nccl_net/testing/over_nccl_net.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

const std::string kPlugin = testPlugin(12);

TEST(NcclNetFiles, AreThoseOfNccl) {
  using Files = std::vector<std::string>;
  EXPECT_EQ(ncclNetFiles(""), (Files{"libnccl-net.so"}));
  EXPECT_EQ(ncclNetFiles("ofi"), (Files{"libnccl-net-ofi.so", "ofi"}));
  EXPECT_EQ(ncclNetFiles("libnccl-net-ofi.so"), (Files{"libnccl-net-ofi.so"}));
  EXPECT_EQ(ncclNetFiles("/opt/ofi"), (Files{"/opt/ofi"}));
}

TEST(NcclNetFiles, AreRefusedWithWhatIsWrong) {
  const auto why = [](const char *name) { return loadNcclNet(name).status().message(); };
  EXPECT_NE(why("/nowhere/libnccl-net.so").find("/nowhere/libnccl-net.so"), std::string::npos);
  EXPECT_NE(why("nowhere").find("libnccl-net-nowhere.so"), std::string::npos);
  EXPECT_NE(why("libm.so.6").find("'libm.so.6' is no network plugin"), std::string::npos);
}

TEST(NcclNetFiles, TheNewestVersionIsTaken) {
  for (int version = 8; version <= 12; ++version) {
    const auto plugin = loadNcclNet(ncclNetPluginOf(testPlugin(version)));
    ASSERT_TRUE(plugin.ok()) << plugin.status().message();
    EXPECT_EQ((*plugin)->version, version);
  }
}

TEST(NcclNetFiles, ALibraryOfTwoNamesIsOnePlugin) {
  const std::string path = ncclNetPluginOf(kPlugin);
  const auto plugin = loadNcclNet(path);
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  std::string other = path;
  other.insert(other.rfind('/') + 1, "./");
  ASSERT_NE(other, path);
  const auto same = loadNcclNet(other);
  ASSERT_TRUE(same.ok()) << same.status().message();
  EXPECT_EQ(*same, *plugin) << "which would be initialized twice";
}

class NcclNet : public ::testing::Test {
protected:
  static void put(Side &side, uint64_t word) {
    side.endpoint->put({.hasWord = true, .wordOffset = 8, .word = word});
    side.poll();
  }

  Side a, b;
};

TEST_F(NcclNet, RoomThatComesBackIsTold) {
  overNcclNet(a, b, kPlugin);
  const std::vector<std::byte> bytes(kMaxPut);
  bool isTaken = false;
  const auto put = [&] {
    isTaken |= a.endpoint->put({.bytes = bytes}) == Posted::Yes;
    a.poll();
    return isTaken;
  };
  // Until what is below the plugin is full, too, and says so no more.
  for (int inVain = 0; inVain < 100; inVain = isTaken ? 0 : inVain + 1) {
    isTaken = false;
    put();
    std::this_thread::sleep_for(100us);
  }
  a.endpoint->hasMadeRoom();
  a.poll();
  EXPECT_FALSE(a.endpoint->hasMadeRoom());
  bool wasTold = false;
  EXPECT_TRUE(b.await([&] {
    a.poll();
    return wasTold |= a.endpoint->hasMadeRoom();
  }));
  EXPECT_TRUE(b.await(put));
}

/// The plugin has sent it, and the kernel may still lose it.
TEST_F(NcclNet, PutsAreNotDeliveredBeforeTheyAreConsumed) {
  overNcclNet(a, b, kPlugin);
  put(a, 1);
  for (int i = 0; i < 50; ++i, std::this_thread::sleep_for(200us)) {
    a.poll();
    ASSERT_FALSE(a.endpoint->isDelivered());
  }
  EXPECT_TRUE(b.await([&] {
    a.poll();
    b.poll();
    return a.endpoint->isDelivered();
  }));
  EXPECT_EQ(b.word(0, 8), 1u);
}

/// Both ranks see it, the one of the plugin with its name, function and result.
TEST_F(NcclNet, APluginThatFailsIsTheEnd) {
  for (const char *words : {"fails_after=40", "fails_after=40,unpleasant"}) {
    Side first, second;
    overNcclNet(first, second, kPlugin, words);
    uint64_t word = 0;
    EXPECT_TRUE(second.await([&] {
      put(first, ++word);
      put(second, word);
      return first.endpoint->isDown() && second.endpoint->isDown();
    }));
    const std::string why = first.endpoint->whyDown() + second.endpoint->whyDown();
    EXPECT_NE(why.find("plugin OCCL's plugin of tests: "), std::string::npos) << why;
    EXPECT_NE(why.find("() has failed with 2 (an error of the system)"), std::string::npos) << why;
    EXPECT_EQ(first.endpoint->put({.hasWord = true, .wordOffset = 8, .word = 1}), Posted::Down);
    EXPECT_TRUE(first.endpoint->isDelivered());
  }
}

/// Nobody cancels receives, and the plugin writes to their memory after its comm was closed.
TEST_F(NcclNet, MemoryThatThePluginMayHaveIsRetired) {
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = NcclNetComms::bytesRetired();
    Side first, second;
    overNcclNet(first, second, kPlugin, "writes_after_close");
    put(first, 1);
    EXPECT_EQ(NcclNetComms::bytesRetired(), before);
    first.endpoint.reset();
    const uint64_t retired = NcclNetComms::bytesRetired() - before;
    EXPECT_GE(retired, 2 * NcclNetComms::kSlots * kMostPacketBytes);
    EXPECT_LT(retired, 3 << 19) << "not more than it says";
    second.endpoint.reset();
    EXPECT_EQ(NcclNetComms::bytesRetired(), before + 2 * retired);
  }
  std::this_thread::sleep_for(100ms); // the plugin writes
}

/// An attempt that comes to nothing has no requests.
TEST_F(NcclNet, MemoryThatNobodyHasIsGivenBack) {
  const TestPluginMood mood("fails=regMr");
  const uint64_t before = NcclNetComms::bytesRetired();
  auto sockets = socketPair();
  std::thread other(
      [&] { EXPECT_FALSE(connectSide(std::move(sockets.second), b, 1, {kPlugin}).ok()); });
  EXPECT_FALSE(connectSide(std::move(sockets.first), a, 0, {kPlugin}).ok());
  other.join();
  EXPECT_EQ(NcclNetComms::bytesRetired(), before);
}

/// A peer that sends what no endpoint does.
class DamagedPeer {
public:
  explicit DamagedPeer(Side &victim) {
    const std::string name = ncclNetPluginOf(kPlugin);
    context = std::move(*NcclNetContext::open(name));
    auto ofVictim = std::move(*NcclNetContext::open(name));
    comms = std::move(*NcclNetComms::listen(context, context->devices[0]));
    auto made = std::move(
        *NcclNetEndpoint::make(ofVictim, ofVictim->devices[0], victim.regions, kNcclNetSilence));
    EXPECT_TRUE(made->connect(comms->address()).ok());
    EXPECT_TRUE(comms->setPeer(made->address()));
    bool isConnected = false, isTriedOut = false;
    for (int i = 0; i < 10000 && !isTriedOut; ++i) {
      if (std::lock_guard lock(context->mutex); !isConnected) {
        isConnected = *comms->connect();
        if (isConnected)
          send({}, {});
      }
      isTriedOut = *made->tryOut();
    }
    EXPECT_TRUE(isTriedOut);
    auto sockets = socketPair();
    socket = std::move(sockets.first);
    made->watch(std::move(sockets.second));
    victim.endpoint = std::move(made);
  }

  /// With the lock. The head's number is added to what it should be.
  void send(PacketHead head, std::span<const std::byte> frames, uint64_t cut = 0) {
    head.number += numSent;
    std::span<std::byte> slot = comms->sendSlot(numSent);
    std::memcpy(slot.data(), &head, sizeof head);
    if (!frames.empty())
      std::memcpy(slot.data() + sizeof head, frames.data(), frames.size());
    EXPECT_TRUE(*comms->send(numSent++, sizeof head + frames.size() - cut));
  }

  std::shared_ptr<NcclNetContext> context;
  std::unique_ptr<NcclNetComms> comms;

private:
  Descriptor socket;
  uint64_t numSent = 0;
};

struct Damage {
  FrameHeader frame;
  PacketHead head = {};
  uint64_t bytes = 0; // behind the frame
  uint64_t cut = 0;   // of the packet
};

/// As a good word is one word, what is damaged is what `change` does.
void expectDown(const Damage &damage) {
  Side victim;
  DamagedPeer peer(victim);
  const auto send = [&](const Damage &what, uint64_t number) {
    std::vector<std::byte> frames(sizeof(FrameHeader) + what.bytes);
    FrameHeader frame = what.frame;
    frame.number += number;
    std::memcpy(frames.data(), &frame, sizeof frame);
    PacketHead head = what.head;
    head.bytes += static_cast<uint32_t>(frames.size());
    std::lock_guard lock(peer.context->mutex);
    peer.send(head, frames, what.cut);
  };
  // A good one first, so that it is not down for another reason.
  send({.frame = {.kind = FrameHeader::kPut, .hasWord = 1, .wordOffset = 8, .word = 1}}, 0);
  ASSERT_TRUE(victim.await([&] { return victim.word(0, 8) == 1; }));
  send(damage, 1);
  EXPECT_TRUE(victim.await([&] { return victim.endpoint->isDown(); }));
  EXPECT_EQ(victim.endpoint->whyDown().find("the peer has sent "), 0u)
      << victim.endpoint->whyDown();
}

TEST_F(NcclNet, DamagedPacketsEndTheConnection) {
  const FrameHeader word = {.kind = FrameHeader::kPut, .hasWord = 1, .wordOffset = 8, .word = 2};
  FrameHeader with8 = word, otherNumber = word, outside = word;
  with8.bytes = 8;
  otherNumber.number = 1;
  outside.region = kNumRegions;
  expectDown({.frame = otherNumber});
  expectDown({.frame = outside});
  expectDown({.frame = {.kind = 3}});
  expectDown({.frame = with8});            // without its bytes
  expectDown({.frame = word, .bytes = 4}); // and part of another
  expectDown({.frame = word, .head = {.number = 1}});
  expectDown({.frame = word, .head = {.bytes = 8}});
  expectDown({.frame = word, .head = {.consumed = 1}}); // of what was never sent
  expectDown({.frame = word, .cut = sizeof(FrameHeader) + 1});
}

/// What makes no sense is no place to write to: words stay as they were.
TEST_F(NcclNet, AnAddressThatMakesNoSenseIsRefused) {
  auto context = std::move(*NcclNetContext::open(ncclNetPluginOf(kPlugin)));
  auto endpoint =
      std::move(*NcclNetEndpoint::make(context, context->devices[0], a.regions, kNcclNetSilence));
  NcclNetAddress address;
  EXPECT_FALSE(endpoint->connect(address).ok());
  address.packetBytes = kLeastPacketBytes - 1;
  EXPECT_FALSE(endpoint->connect(address).ok());
  address.packetBytes = ~uint64_t{0};
  EXPECT_TRUE(endpoint->connect(address).ok()) << "this side's limit counts";
}

} // namespace
} // namespace occl::net

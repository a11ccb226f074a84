#include "support/own_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

namespace occl {
namespace {

/// What a program gets that binds a port at all addresses, listens there, and ends.
bool canListen(uint16_t port, bool asks) {
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  if (asks)
    setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  const bool can =
      bind(file, reinterpret_cast<sockaddr *>(&any), sizeof any) == 0 && listen(file, 1) == 0;
  close(file);
  return can;
}

TEST(HeldPortTest, ThePortIsItsHoldersAndNobodyElses) {
  std::string why;
  HeldPort held = HeldPort::hold(why);
  ASSERT_NE(held.number(), 0) << why;
  EXPECT_TRUE(canListen(held.number(), true));
  EXPECT_FALSE(canListen(held.number(), false));
  HeldPort other = HeldPort::hold(why);
  EXPECT_NE(other.number(), held.number());
  const uint16_t port = held.number();
  HeldPort moved = std::move(held);
  EXPECT_EQ(held.number(), 0); // NOLINT(bugprone-use-after-move): it holds nothing any more
  EXPECT_EQ(moved.number(), port);
  EXPECT_FALSE(canListen(port, false));
  moved = HeldPort();
  EXPECT_TRUE(canListen(port, false));
}

TEST(OwnAddressTest, ByInterface) {
  SocketAddress loopback = interfaceAddress("=lo", "AF_INET");
  ASSERT_NE(loopback.length, 0u);
  EXPECT_TRUE(loopback.isLoopback());
  loopback.setPort(29500);
  EXPECT_EQ(loopback.text(), "127.0.0.1:29500");
  EXPECT_EQ(interfaceAddress("=none", "").length, 0u);
  EXPECT_NE(interfaceAddress("", "").length, 0u);
}

TEST(OwnAddressTest, TowardsAHost) {
  EXPECT_EQ(addressTowards("127.0.0.1").length, 0u) << "other machines do not reach that";
  EXPECT_EQ(addressTowards("::1").length, 0u);
  EXPECT_EQ(addressTowards("no-such-host.invalid").length, 0u);
  // To an own address a machine gets by that address.
  SocketAddress own = interfaceAddress("", "AF_INET");
  if (own.length == 0 || own.isLoopback())
    GTEST_SKIP() << "there is no interface but the loopback";
  own.setPort(0);
  const std::string text = own.text();
  SocketAddress found = addressTowards(text.substr(0, text.rfind(':')));
  found.setPort(0);
  EXPECT_EQ(found.text(), text);
}

TEST(OwnAddressTest, TextOfIpv6) {
  SocketAddress address;
  auto &six = reinterpret_cast<sockaddr_in6 &>(address.storage);
  six.sin6_family = AF_INET6;
  six.sin6_addr.s6_addr[0] = 0xfd;
  six.sin6_addr.s6_addr[15] = 1;
  address.length = sizeof six;
  address.setPort(7);
  EXPECT_EQ(address.text(), "[fd00::1]:7");
  EXPECT_FALSE(address.isLoopback());
}

} // namespace
} // namespace occl

#include "runtime/net/transport/rails/offer.h"

#include "runtime/base/environment_number.h"
#include "runtime/net/transport/rail_share.h"
#include "support/name_list.h"
#include "support/own_address.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace occl::net {
namespace {

std::optional<uint32_t> numberIn(const char *variable) {
  const char *text = std::getenv(variable);
  if (!text)
    return std::nullopt;
  return static_cast<uint32_t>(numberFrom(text, 0, UINT32_MAX).value_or(0));
}

/// NCCL has so many sockets a thread, and so many threads.
StatusOr<uint32_t> numConnections() {
  if (const auto number = numberIn("OCCL_NSOCKS")) {
    if (*number < 1 || *number > kMostRails)
      return Status(StatusCode::InvalidArgument,
                    "environment variable OCCL_NSOCKS is '" + std::string(getenv("OCCL_NSOCKS")) +
                        "', expected 1 to " + std::to_string(kMostRails));
    return *number;
  }
  uint32_t all = 1;
  for (const char *ofNccl : {"NCCL_NSOCKS_PERTHREAD", "NCCL_SOCKET_NTHREADS"})
    all *= std::clamp<uint32_t>(numberIn(ofNccl).value_or(1), 1, kMostRails);
  return std::min<uint32_t>(all, kMostRails);
}

/// Asked of the interface: /sys shows those of the network namespace in which it was mounted.
uint32_t speedOf(const Descriptor &socket, const char *interface) {
  ethtool_cmd settings{};
  settings.cmd = ETHTOOL_GSET;
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char *>(&settings);
  if (ioctl(socket.get(), SIOCETHTOOL, &request) != 0)
    return 0;
  const uint32_t speed = ethtool_cmd_speed(&settings);
  return speed == static_cast<uint32_t>(SPEED_UNKNOWN) ? 0 : speed;
}

uint8_t onesIn(std::span<const uint8_t> mask) {
  int ones = 0;
  for (const uint8_t byte : mask)
    ones += std::popcount(byte);
  return static_cast<uint8_t>(ones);
}

bool isLinkLocal(const in_addr &address) { return ntohl(address.s_addr) >> 16 == 0xa9fe; }

/// A link-local address means another machine on each interface.
std::optional<OfferedAddress> addressIn(const ifaddrs &each, const std::string &family) {
  if (!isUsable(each, family) || !each.ifa_netmask || !(each.ifa_flags & IFF_RUNNING))
    return std::nullopt;
  OfferedAddress address;
  std::array<uint8_t, 16> mask;
  mask.fill(0xff);
  if (each.ifa_addr->sa_family == AF_INET) {
    const auto *ipv4 = reinterpret_cast<const sockaddr_in *>(each.ifa_addr),
               *ofIpv4 = reinterpret_cast<const sockaddr_in *>(each.ifa_netmask);
    if (isLinkLocal(ipv4->sin_addr))
      return std::nullopt;
    address.host[10] = address.host[11] = 0xff;
    std::memcpy(&address.host[12], &ipv4->sin_addr, sizeof ipv4->sin_addr);
    std::memcpy(&mask[12], &ofIpv4->sin_addr, sizeof ofIpv4->sin_addr);
  } else {
    const auto *ipv6 = reinterpret_cast<const sockaddr_in6 *>(each.ifa_addr),
               *ofIpv6 = reinterpret_cast<const sockaddr_in6 *>(each.ifa_netmask);
    std::memcpy(address.host.data(), &ipv6->sin6_addr, sizeof ipv6->sin6_addr);
    std::memcpy(mask.data(), &ofIpv6->sin6_addr, sizeof ofIpv6->sin6_addr);
  }
  address.prefixBits = onesIn(mask);
  std::string_view(each.ifa_name).copy(address.interface.data(), address.interface.size() - 1);
  return address;
}

} // namespace

std::string OfferedAddress::name() const {
  return {interface.data(), strnlen(interface.data(), interface.size())};
}

bool OfferedAddress::isIpv4() const {
  Address address;
  address.host = host;
  return address.isIpv4();
}

bool OfferedAddress::reaches(const OfferedAddress &other) const {
  if (host == other.host || prefixBits != other.prefixBits || isIpv4() != other.isIpv4() ||
      prefixBits > 8 * host.size())
    return false;
  const size_t whole = prefixBits / 8;
  const auto rest = static_cast<uint8_t>(0xff00 >> prefixBits % 8);
  return std::equal(host.begin(), host.begin() + static_cast<ptrdiff_t>(whole),
                    other.host.begin()) &&
         (rest == 0 || ((host[whole] ^ other.host[whole]) & rest) == 0);
}

StatusOr<TcpOffer> tcpOffer() {
  TcpOffer offer;
  auto connections = numConnections();
  if (!connections.ok())
    return connections.status();
  offer.connections = *connections;
  const auto [names, family] = InterfaceChoice::fromEnvironment();
  const bool isFamily = family == "AF_INET" || family == "AF_INET6";
  offer.isNamed = !names.empty() && !names.starts_with('^');
  offer.isRestricted = !names.empty() || isFamily;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all) != 0)
    return offer; // then there is the connection by which ranks have met
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> given(all, freeifaddrs);
  const NameList choice(names.empty() ? "^docker" : names);
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const ifaddrs *each = all; each && offer.count < TcpOffer::kMost; each = each->ifa_next) {
    auto address = addressIn(*each, family);
    if (!address || !choice.takes(each->ifa_name) ||
        (!offer.isNamed && (each->ifa_flags & (IFF_LOOPBACK | IFF_POINTOPOINT))))
      continue;
    address->speed = speedOf(socket, each->ifa_name);
    offer.addresses[offer.count++] = *address;
  }
  return offer;
}

} // namespace occl::net

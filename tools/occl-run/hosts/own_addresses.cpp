#include "tools/occl-run/hosts/own_addresses.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cstdlib>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sstream>
#include <sys/socket.h>

namespace occl::run {

std::vector<std::string> ownAddresses() {
  std::vector<std::string> addresses;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0)
    return addresses;
  for (const ifaddrs *it = list; it; it = it->ifa_next) {
    // IPv4 addresses of interfaces that are up; loopback reaches nobody else.
    if (!it->ifa_addr || it->ifa_addr->sa_family != AF_INET || !(it->ifa_flags & IFF_UP) ||
        (it->ifa_flags & IFF_LOOPBACK))
      continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto *address = reinterpret_cast<const sockaddr_in *>(it->ifa_addr);
    addresses.emplace_back(inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
  }
  freeifaddrs(list);
  // "CLIENT PORT SERVER PORT"
  if (const char *connection = std::getenv("SSH_CONNECTION")) {
    std::istringstream words(connection);
    std::string client, clientPort, server;
    words >> client >> clientPort >> server;
    // The address by which ssh came here certainly reaches this machine, so it goes first.
    const auto found = std::ranges::find(addresses, server);
    if (found != addresses.end())
      std::rotate(addresses.begin(), found, found + 1);
  }
  return addresses;
}

} // namespace occl::run

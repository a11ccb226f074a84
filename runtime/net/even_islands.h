// Whether a plan for islands of as many ranks each suits the ranks of a communicator.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace occl::net {

/// Rank r lives on hosts[r]; there is one. The number of hosts if each has as many ranks, more than
/// one, and ranks are numbered host by host; else 1. A pure function.
template <class Host> uint32_t evenIslands(const std::vector<Host> &hosts) {
  const auto isOther = [&hosts](const Host &host) { return host != hosts[0]; };
  const auto size = static_cast<size_t>(std::ranges::find_if(hosts, isOther) - hosts.begin());
  if (size < 2 || hosts.size() % size != 0)
    return 1;
  std::vector<Host> seen;
  for (size_t first = 0; first < hosts.size(); first += size) {
    const auto island = std::span(hosts).subspan(first, size);
    if (std::ranges::count(island, island[0]) != static_cast<std::ptrdiff_t>(size) ||
        std::ranges::count(seen, island[0]) > 0)
      return 1;
    seen.push_back(island[0]);
  }
  return static_cast<uint32_t>(seen.size());
}

} // namespace occl::net

#include "runtime/cuda/device/peer_paths.h"

#include <algorithm>
#include <string_view>

namespace occl::cuda {

namespace {

std::string_view nameIn(const char (&name)[PeerPaths::kNameBytes]) {
  return {name, static_cast<size_t>(std::find(name, name + PeerPaths::kNameBytes, '\0') - name)};
}

bool isLinked(const PeerPaths &from, const PeerPaths &to) {
  const uint32_t number = std::min(from.numLinked, PeerPaths::kMaxLinked);
  return std::any_of(from.linked, from.linked + number,
                     [&](const auto &name) { return nameIn(name) == nameIn(to.device); });
}

/// Ranks on one device have its memory between them.
bool keepsLines(const PeerPaths &a, const PeerPaths &b) {
  return nameIn(a.device) == nameIn(b.device) || (isLinked(a, b) && isLinked(b, a));
}

} // namespace

StatusOr<WideLines> wideLinesFrom(const char *text) {
  const std::string_view given = text != nullptr ? text : "";
  if (given.empty())
    return WideLines::WherePathsAllow;
  if (given == "0")
    return WideLines::Never;
  if (given == "1")
    return WideLines::Always;
  return Status(StatusCode::InvalidArgument,
                "environment variable OCCL_LL128 is '" + std::string(given) +
                    "', expected 0 (LL128 plans run as LL), 1 (LL128 on any path), or nothing "
                    "(LL128 where NVLink joins all devices)");
}

std::string whyNoWideLines(std::span<const PeerPaths> ranks) {
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].wanted == WideLines::Never)
      return "OCCL_LL128 is 0 on rank " + std::to_string(r);
  if (std::ranges::all_of(ranks, [](const auto &rank) { return rank.wanted == WideLines::Always; }))
    return "";
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t other = 0; other < r; ++other) {
      const std::string who = "ranks " + std::to_string(other) + " and " + std::to_string(r);
      if (ranks[r].computeCapability != ranks[other].computeCapability)
        return "the devices of " + who + " are of different kinds";
      if (!keepsLines(ranks[r], ranks[other]))
        return "the devices of " + who + " are not known to be joined by NVLink";
    }
  return "";
}

} // namespace occl::cuda

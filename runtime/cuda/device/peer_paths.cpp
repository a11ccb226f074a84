// Decisions from the cards of all ranks, which other processes write: nothing is trusted to end or
// to be in range.
#include "runtime/cuda/device/peer_paths.h"

#include <algorithm>
#include <string_view>

namespace occl::cuda {

namespace {

std::string_view nameIn(const char (&name)[PeerPaths::kNameBytes]) {
  return {name, static_cast<size_t>(std::find(name, name + PeerPaths::kNameBytes, '\0') - name)};
}

using Names = char[PeerPaths::kMaxNamed][PeerPaths::kNameBytes];

/// The number may be anything.
bool isAmong(const Names &names, uint32_t number, const PeerPaths &to) {
  return std::any_of(names, names + std::min(number, PeerPaths::kMaxNamed),
                     [&](const auto &name) { return nameIn(name) == nameIn(to.device); });
}

bool isLinked(const PeerPaths &from, const PeerPaths &to) {
  return isAmong(from.linked, from.numLinked, to);
}

bool areInstancesOfOne(const PeerPaths &a, const PeerPaths &b) {
  return nameIn(a.device) == nameIn(b.device) && !std::ranges::equal(a.uuid, b.uuid);
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

StatusOr<bool> isPeerAccessDisabled(const char *ours, const char *nccls) {
  const bool isOurs = ours != nullptr && *ours != '\0';
  const std::string_view given = isOurs ? ours : nccls != nullptr ? nccls : "";
  if (given.empty() || given == "0")
    return false;
  if (given == "1")
    return true;
  return Status(StatusCode::InvalidArgument,
                std::string("environment variable ") + (isOurs ? "OCCL" : "NCCL") +
                    "_P2P_DISABLE is '" + std::string(given) +
                    "', expected 1 (ranks on devices exchange data through host memory), 0 or "
                    "nothing (where devices access each other's memory, through that)");
}

std::string whyThroughHost(std::span<const PeerPaths> ranks) {
  // The wish of one rank counts for all.
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].isPeerAccessDisabled != 0)
      return "peer access is disabled on rank " + std::to_string(r) + " (OCCL_P2P_DISABLE=1)";
  // Each rank knows its own device's paths alone, so all ordered pairs are looked at.
  for (size_t r = 0; r < ranks.size(); ++r)
    for (size_t other = 0; other < ranks.size(); ++other) {
      const PeerPaths &from = ranks[r], &to = ranks[other];
      const std::string who = "the device of rank " + std::to_string(r);
      if (isAmong(from.unreachable, from.numUnreachable, to))
        return who + " cannot access the memory of that of rank " + std::to_string(other);
      if (areInstancesOfOne(from, to))
        return who + " and that of rank " + std::to_string(other) +
               " are instances of one device (MIG), which cannot access each other's memory";
    }
  return "";
}

std::string whyNoWideLines(std::span<const PeerPaths> ranks) {
  // One rank may forbid LL128; only all of them together may insist on it.
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].wanted == WideLines::Never)
      return "OCCL_LL128 is 0 on rank " + std::to_string(r);
  if (std::ranges::all_of(ranks, [](const auto &rank) { return rank.wanted == WideLines::Always; }))
    return "";
  // Else any two devices must be of one kind and joined by NVLink, as both sides say.
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

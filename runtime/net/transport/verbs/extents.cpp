// Counts which parts of regions are worth registering, and knows those of the peer.
#include "runtime/net/transport/verbs/extents.h"

#include <algorithm>

namespace occl::net {
namespace {

/// So much is copied into an extent before it is registered, which takes as long as copying more.
constexpr uint64_t kWorthRegistering = 64 << 10;
constexpr uint64_t kNoMore = ~uint64_t{0};

size_t numExtents(std::span<const std::byte> region) {
  return (region.size() + kExtentBytes - 1) / kExtentBytes;
}

} // namespace

OwnExtents::OwnExtents(ibv_pd *domain, const Regions &regions) : domain(domain), regions(regions) {
  for (uint32_t r = 0; r < kNumRegions; ++r)
    counts[r].resize(numExtents(regions[r]));
}

void OwnExtents::count(uint32_t region, uint64_t offset, uint64_t bytes) {
  uint64_t &counted = counts[region][offset / kExtentBytes];
  // It is not worth it yet, or was decided before.
  if (counted == kNoMore || (counted += bytes) < kWorthRegistering)
    return;
  // This is decided once, also if registration fails below.
  counted = kNoMore;
  const uint64_t begin = offset / kExtentBytes * kExtentBytes,
                 size = std::min(kExtentBytes, regions[region].size() - begin);
  const std::span memory = regions[region].subspan(begin, size);
  auto registered =
      Registration::make(domain, memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (!registered.ok())
    return; // what goes there goes on to come in frames
  extents.push_back(
      {begin, size, reinterpret_cast<uint64_t>(memory.data()), region, registered->remoteKey()});
  registrations.push_back(std::move(*registered));
}

std::vector<VerbsExtent> OwnExtents::takeNew(size_t most) {
  const size_t taken = std::min(most, extents.size() - numTaken);
  const auto first = extents.begin() + static_cast<ptrdiff_t>(numTaken);
  numTaken += taken;
  return {first, first + static_cast<ptrdiff_t>(taken)};
}

PeerExtents::PeerExtents(const Regions &own) {
  for (uint32_t r = 0; r < kNumRegions; ++r)
    extents[r].resize(numExtents(own[r]));
}

bool PeerExtents::add(const VerbsExtent &extent) {
  // Regions of both ranks have the same size, so anything else is damage.
  const uint64_t index = extent.offset / kExtentBytes;
  if (extent.region >= kNumRegions || extent.offset % kExtentBytes != 0 ||
      index >= extents[extent.region].size() || extent.bytes > kExtentBytes)
    return false;
  extents[extent.region][index] = extent;
  return true;
}

const VerbsExtent *PeerExtents::find(uint32_t region, uint64_t offset) const {
  if (region >= kNumRegions || offset / kExtentBytes >= extents[region].size())
    return nullptr;
  const auto &found = extents[region][offset / kExtentBytes];
  return found && offset - found->offset < found->bytes ? &*found : nullptr;
}

bool PlacesToCopy::overlap(uint32_t region, uint64_t offset, uint64_t bytes) const {
  return std::ranges::any_of(places, [&](const Place &place) {
    return place.region == region && place.begin < offset + bytes && offset < place.end;
  });
}

} // namespace occl::net

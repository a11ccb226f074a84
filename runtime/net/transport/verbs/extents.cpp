#include "runtime/net/transport/verbs/extents.h"

#include <algorithm>

namespace occl::net {
namespace {

/// So much is copied into an extent before it is registered, which takes as long as copying more.
constexpr uint64_t kWorthRegistering = 64 << 10;
constexpr uint64_t kNoMore = ~uint64_t{0};

} // namespace

OwnExtents::OwnExtents(const RdmaDevice &device, const Regions &regions)
    : device(device), regions(regions) {
  for (uint32_t r = 0; r < kNumRegions; ++r)
    counts[r].resize((regions[r].size() + kExtentBytes - 1) / kExtentBytes);
}

void OwnExtents::count(uint32_t region, uint64_t offset, uint64_t bytes) {
  uint64_t &counted = counts[region][offset / kExtentBytes];
  if (counted == kNoMore || (counted += bytes) < kWorthRegistering)
    return;
  counted = kNoMore;
  const uint64_t begin = offset / kExtentBytes * kExtentBytes,
                 size = std::min(kExtentBytes, regions[region].size() - begin);
  const std::span memory = regions[region].subspan(begin, size);
  auto registered =
      Registration::make(device, memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
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

bool PeerExtents::add(const VerbsExtent &extent) {
  constexpr uint64_t kMost = 1 << 20; // 2 TiB of a region
  const uint64_t index = extent.offset / kExtentBytes;
  if (extent.region >= kNumRegions || extent.offset % kExtentBytes != 0 || index >= kMost ||
      extent.bytes > kExtentBytes)
    return false;
  auto &ofRegion = extents[extent.region];
  ofRegion.resize(std::max<size_t>(ofRegion.size(), index + 1));
  ofRegion[index] = extent;
  return true;
}

const VerbsExtent *PeerExtents::find(uint32_t region, uint64_t offset) const {
  if (region >= kNumRegions || offset / kExtentBytes >= extents[region].size())
    return nullptr;
  const auto &found = extents[region][offset / kExtentBytes];
  return found && offset - found->offset < found->bytes ? &*found : nullptr;
}

} // namespace occl::net

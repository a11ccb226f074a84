// Which parts of regions are registered. Registered memory is locked: only what is much used is.
#pragma once

#include "runtime/net/transport/verbs/port.h"
#include "runtime/net/transport/verbs/wire.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace occl::net {

/// Of the own regions. No thread safety.
class OwnExtents {
public:
  OwnExtents(const RdmaDevice &device, const Regions &regions);

  /// So many bytes have come for this place in frames: registers the extent once it is worth it.
  void count(uint32_t region, uint64_t offset, uint64_t bytes);
  /// At most so many of those that the peer does not know yet; it is told of them.
  std::vector<VerbsExtent> takeNew(size_t most);
  bool hasNew() const { return numTaken < extents.size(); }
  size_t numTold() const { return numTaken; }

private:
  const RdmaDevice &device;
  const Regions regions;
  std::array<std::vector<uint64_t>, kNumRegions> counts; // by extent; kNoMore: not any more
  std::vector<VerbsExtent> extents;
  std::vector<Registration> registrations;
  size_t numTaken = 0;
};

/// Of the peer's regions. No thread safety.
class PeerExtents {
public:
  /// False: it makes no sense.
  bool add(const VerbsExtent &extent);
  /// Of which that offset is part, or null.
  const VerbsExtent *find(uint32_t region, uint64_t offset) const;

private:
  std::array<std::vector<std::optional<VerbsExtent>>, kNumRegions> extents;
};

} // namespace occl::net

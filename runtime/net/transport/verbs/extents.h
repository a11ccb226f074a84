// Which parts of regions are registered. Registered memory is locked: only what is much used is.
#pragma once

#include "runtime/net/transport/verbs/port.h"
#include "runtime/net/transport/verbs/wire.h"

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace occl::net {

/// Of the own regions. No thread safety.
class OwnExtents {
public:
  /// `domain`: in which they are registered.
  OwnExtents(ibv_pd *domain, const Regions &regions);

  /// So many bytes have come for this place in frames: registers the extent once it is worth it.
  void count(uint32_t region, uint64_t offset, uint64_t bytes);
  /// At most so many of those that the peer does not know yet; it is told of them.
  std::vector<VerbsExtent> takeNew(size_t most);
  bool hasNew() const { return numTaken < extents.size(); }
  size_t numTold() const { return numTaken; }

private:
  ibv_pd *const domain;
  const Regions regions;
  std::array<std::vector<uint64_t>, kNumRegions> counts; // by extent; kNoMore: not any more
  std::vector<VerbsExtent> extents;
  std::vector<Registration> registrations;
  size_t numTaken = 0;
};

/// Of the peer's regions, which are as large as the own ones. No thread safety.
class PeerExtents {
public:
  explicit PeerExtents(const Regions &own);

  /// False: it makes no sense.
  bool add(const VerbsExtent &extent);
  /// Of which that offset is part, or null.
  const VerbsExtent *find(uint32_t region, uint64_t offset) const;

private:
  std::array<std::vector<std::optional<VerbsExtent>>, kNumRegions> extents;
};

/// Places of the peer to which it has yet to copy what frames have brought: the device must not
/// write there before. No thread safety.
class PlacesToCopy {
public:
  /// Of the frame `number`, the largest so far.
  void add(uint64_t number, uint32_t region, uint64_t offset, uint64_t bytes) {
    places.push_back({number, offset, offset + bytes, region});
  }
  /// So many frames were consumed.
  void consumed(uint64_t count) {
    while (!places.empty() && places.front().number < count)
      places.pop_front();
  }
  bool overlap(uint32_t region, uint64_t offset, uint64_t bytes) const;

private:
  struct Place {
    uint64_t number, begin, end;
    uint32_t region;
  };
  std::deque<Place> places; // no more than there are frames
};

} // namespace occl::net

// Which locations exist: input, output and scratch chunks of all ranks, numbered through.
#pragma once

#include "compiler/frontend/memory/ChunkSink.h"
#include "plan/model/limits.h"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace occl::frontend {

/// The number of a location. Valid ones are below Layout::numLocations().
using LocationId = uint32_t;

/// As many as a plan may have. Bounds the memory of a compilation: 16 bytes a location and alias
/// mode.
inline constexpr uint64_t kMaxLocations = plan::limits::kMaxTotalChunks;

/// Chunks [index, index + count) of a buffer of one rank; index counts from the beginning of the
/// named scratch.
struct Place {
  BufferKind buffer = BufferKind::Input;
  uint32_t scratch = 0; // which, if buffer is Scratch
  uint32_t rank = 0;
  uint32_t index = 0;
  uint32_t count = 1;
  /// Written without range: as a destination it takes the count of the source.
  bool isOpen = true;
};

struct Scratch {
  std::string name;
  std::vector<uint32_t> slots;           // of each rank
  std::vector<uint32_t> firstChunk;      // in the rank's scratch buffer
  std::vector<LocationId> firstLocation; // of each rank, and the end
};

class Layout {
public:
  /// The vectors have one element a rank; the sums stay below kMaxLocations.
  void setBuffers(std::vector<uint32_t> inputChunks, std::vector<uint32_t> outputChunks,
                  std::vector<int32_t> inPlaceOffsets);
  /// The number of the new scratch, which has so many slots on each rank; nullopt if there would be
  /// too many locations.
  std::optional<uint32_t> addScratch(std::string name, std::vector<uint32_t> slots);

  uint32_t numRanks() const { return static_cast<uint32_t>(inputs.size()); }
  uint32_t numLocations() const { return total; }
  /// Of all scratches together, on each rank.
  const std::vector<uint32_t> &scratchChunks() const { return scratchTotals; }
  const std::vector<uint32_t> &inputChunks() const { return inputs; }
  const std::vector<uint32_t> &outputChunks() const { return outputs; }
  const std::vector<int32_t> &inPlaceOffsets() const { return offsets; }

  /// Chunks that the buffer of the place has on its rank, which exists.
  uint32_t size(const Place &place) const;
  LocationId first(const Place &place) const;
  ChunkRange range(const Place &place) const;
  /// The locations of a scratch, on all ranks: from the first up to, not including, the second.
  std::pair<LocationId, LocationId> scratchLocations(uint32_t scratch) const {
    const std::vector<LocationId> &first = scratches[scratch].firstLocation;
    return {first.front(), first.back()};
  }
  /// The place of one chunk.
  Place placeOf(LocationId location) const;

  /// The location that holds the data when the collective is called in place.
  LocationId inPlaceAlias(LocationId location) const {
    return location < aliases.size() ? aliases[location] : location;
  }
  /// Whether two places share a location, or are the same; places of one rank, with counts.
  enum class Overlap { None, Partial, Same };
  Overlap overlap(const Place &a, const Place &b, bool inPlace) const;

  /// "output[2][0]", "sum[1][0..4]".
  std::string describe(const Place &place) const;

private:
  std::vector<uint32_t> inputs, outputs;
  std::vector<int32_t> offsets;
  std::vector<LocationId> firstInput, firstOutput; // by rank
  std::vector<LocationId> aliases;                 // of input and output locations
  std::deque<Scratch> scratches;
  std::vector<uint32_t> scratchTotals; // by rank
  uint32_t total = 0;
};

} // namespace occl::frontend

#include "compiler/frontend/Layout.h"

#include <algorithm>
#include <numeric>

namespace occl::frontend {

void Layout::setBuffers(std::vector<uint32_t> inputChunks, std::vector<uint32_t> outputChunks,
                        std::vector<int32_t> inPlaceOffsets) {
  inputs = std::move(inputChunks);
  outputs = std::move(outputChunks);
  offsets = std::move(inPlaceOffsets);
  for (uint32_t rank = 0; rank < numRanks(); ++rank) {
    firstInput.push_back(total);
    total += inputs[rank];
    firstOutput.push_back(total);
    total += outputs[rank];
  }
  aliases.resize(total);
  std::iota(aliases.begin(), aliases.end(), 0);
  for (uint32_t rank = 0; rank < numRanks(); ++rank)
    for (uint32_t i = 0; i < inputs[rank]; ++i) {
      int64_t k = static_cast<int64_t>(i) + offsets[rank];
      if (k >= 0 && k < outputs[rank])
        aliases[firstInput[rank] + i] = firstOutput[rank] + static_cast<LocationId>(k);
    }
}

std::optional<uint32_t> Layout::addScratch(std::string name, uint32_t slots) {
  uint64_t locations = static_cast<uint64_t>(slots) * numRanks();
  if (total + locations > kMaxLocations)
    return std::nullopt;
  scratches.push_back({std::move(name), slots, scratchTotal, total});
  scratchTotal += slots;
  total += static_cast<uint32_t>(locations);
  return static_cast<uint32_t>(scratches.size() - 1);
}

uint32_t Layout::size(const Place &place) const {
  switch (place.buffer) {
  case BufferKind::Input:
    return inputs[place.rank];
  case BufferKind::Output:
    return outputs[place.rank];
  case BufferKind::Scratch:
    return scratches[place.scratch].slots;
  }
  return 0;
}

LocationId Layout::first(const Place &place) const {
  switch (place.buffer) {
  case BufferKind::Input:
    return firstInput[place.rank] + place.index;
  case BufferKind::Output:
    return firstOutput[place.rank] + place.index;
  case BufferKind::Scratch: {
    const Scratch &scratch = scratches[place.scratch];
    return scratch.firstLocation + place.rank * scratch.slots + place.index;
  }
  }
  return 0;
}

ChunkRange Layout::range(const Place &place) const {
  uint32_t base = place.buffer == BufferKind::Scratch ? scratches[place.scratch].firstChunk : 0;
  return {place.rank, place.buffer, base + place.index, place.count};
}

Place Layout::placeOf(LocationId location) const {
  auto scratch = std::find_if(scratches.begin(), scratches.end(), [&](const Scratch &entry) {
    return location >= entry.firstLocation &&
           location - entry.firstLocation < entry.slots * numRanks();
  });
  if (scratch != scratches.end()) {
    uint32_t offset = location - scratch->firstLocation;
    return {BufferKind::Scratch, static_cast<uint32_t>(scratch - scratches.begin()),
            offset / scratch->slots, offset % scratch->slots};
  }
  auto rank = static_cast<uint32_t>(
      std::upper_bound(firstInput.begin(), firstInput.end(), location) - firstInput.begin() - 1);
  if (location < firstOutput[rank])
    return {BufferKind::Input, 0, rank, location - firstInput[rank]};
  return {BufferKind::Output, 0, rank, location - firstOutput[rank]};
}

Layout::Overlap Layout::overlap(const Place &a, const Place &b, bool inPlace) const {
  bool sameBuffer = a.buffer == b.buffer && a.scratch == b.scratch;
  bool mayAlias =
      inPlace && !sameBuffer && a.buffer != BufferKind::Scratch && b.buffer != BufferKind::Scratch;
  if (a.rank != b.rank || (!sameBuffer && !mayAlias))
    return Overlap::None;
  int64_t offset = sameBuffer ? 0 : offsets[a.rank];
  int64_t firstA = a.index + (a.buffer == BufferKind::Input ? offset : 0);
  int64_t firstB = b.index + (b.buffer == BufferKind::Input ? offset : 0);
  // Only what lies in the output is shared between the two.
  int64_t low = std::max(firstA, firstB), high = std::min(firstA + a.count, firstB + b.count);
  if (low >= high)
    return Overlap::None;
  return firstA == firstB && a.count == b.count ? Overlap::Same : Overlap::Partial;
}

std::string Layout::describe(const Place &place) const {
  std::string name = place.buffer == BufferKind::Input    ? "input"
                     : place.buffer == BufferKind::Output ? "output"
                                                          : scratches[place.scratch].name;
  std::string text = name + "[" + std::to_string(place.rank) + "][" + std::to_string(place.index);
  if (place.count != 1)
    text += ".." + std::to_string(static_cast<uint64_t>(place.index) + place.count);
  return text + "]";
}

} // namespace occl::frontend

#include "compiler/frontend/memory/Layout.h"

#include <algorithm>
#include <numeric>

namespace occl::frontend {

void Layout::setBuffers(std::vector<uint32_t> inputChunks, std::vector<uint32_t> outputChunks,
                        std::vector<int32_t> inPlaceOffsets) {
  // Locations are numbered rank by rank, input before output; scratch is added behind all of them
  // as it is declared.
  inputs = std::move(inputChunks);
  outputs = std::move(outputChunks);
  offsets = std::move(inPlaceOffsets);
  scratchTotals.assign(numRanks(), 0);
  for (uint32_t rank = 0; rank < numRanks(); ++rank) {
    firstInput.push_back(total);
    total += inputs[rank];
    firstOutput.push_back(total);
    total += outputs[rank];
  }
  // Each location has an alias in place: itself, unless it is an input chunk that is also an output
  // chunk.
  aliases.resize(total);
  std::iota(aliases.begin(), aliases.end(), 0);
  for (uint32_t rank = 0; rank < numRanks(); ++rank)
    for (uint32_t i = 0; i < inputs[rank]; ++i) {
      int64_t k = static_cast<int64_t>(i) + offsets[rank];
      if (k >= 0 && k < outputs[rank])
        aliases[firstInput[rank] + i] = firstOutput[rank] + static_cast<LocationId>(k);
    }
}

std::optional<uint32_t> Layout::addScratch(std::string name, std::vector<uint32_t> slots) {
  // The number of locations bounds the memory of both modes; scratch is the only thing that a
  // program can add.
  uint64_t end = std::accumulate(slots.begin(), slots.end(), uint64_t{total});
  if (end > kMaxLocations)
    return std::nullopt;
  Scratch &scratch = scratches.emplace_back();
  scratch.name = std::move(name);
  // The scratches of a rank lie one behind the other, as one scratch buffer of the plan.
  scratch.firstChunk = scratchTotals;
  for (uint32_t rank = 0; rank < numRanks(); ++rank) {
    scratch.firstLocation.push_back(total);
    total += slots[rank];
    scratchTotals[rank] += slots[rank];
  }
  // An end behind the last one, so that ranges of locations need no special case.
  scratch.firstLocation.push_back(total);
  scratch.slots = std::move(slots);
  return static_cast<uint32_t>(scratches.size() - 1);
}

uint32_t Layout::size(const Place &place) const {
  switch (place.buffer) {
  case BufferKind::Input:
    return inputs[place.rank];
  case BufferKind::Output:
    return outputs[place.rank];
  case BufferKind::Scratch:
    return scratches[place.scratch].slots[place.rank];
  }
  return 0;
}

LocationId Layout::first(const Place &place) const {
  switch (place.buffer) {
  case BufferKind::Input:
    return firstInput[place.rank] + place.index;
  case BufferKind::Output:
    return firstOutput[place.rank] + place.index;
  case BufferKind::Scratch:
    return scratches[place.scratch].firstLocation[place.rank] + place.index;
  }
  return 0;
}

ChunkRange Layout::range(const Place &place) const {
  uint32_t base =
      place.buffer == BufferKind::Scratch ? scratches[place.scratch].firstChunk[place.rank] : 0;
  return {place.rank, place.buffer, base + place.index, place.count};
}

Place Layout::placeOf(LocationId location) const {
  // The rank is found by bisection in the first locations of all ranks.
  auto rankIn = [&](const std::vector<LocationId> &first) {
    return static_cast<uint32_t>(std::upper_bound(first.begin(), first.end(), location) -
                                 first.begin() - 1);
  };
  // Scratches first: there are few, and each has a range of its own.
  for (uint32_t i = 0; i < scratches.size(); ++i)
    if (const std::vector<LocationId> &first = scratches[i].firstLocation;
        location >= first.front() && location < first.back()) {
      uint32_t rank = rankIn(first);
      return {BufferKind::Scratch, i, rank, location - first[rank]};
    }
  uint32_t rank = rankIn(firstInput);
  if (location < firstOutput[rank])
    return {BufferKind::Input, 0, rank, location - firstInput[rank]};
  return {BufferKind::Output, 0, rank, location - firstOutput[rank]};
}

Layout::Overlap Layout::overlap(const Place &a, const Place &b, bool inPlace) const {
  // Two places of one buffer, or input and output of the same rank in place.
  bool sameBuffer = a.buffer == b.buffer && a.scratch == b.scratch;
  bool mayAlias =
      inPlace && !sameBuffer && a.buffer != BufferKind::Scratch && b.buffer != BufferKind::Scratch;
  if (a.rank != b.rank || (!sameBuffer && !mayAlias))
    return Overlap::None;
  // Both in the coordinates of the output.
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

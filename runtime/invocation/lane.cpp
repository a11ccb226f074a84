// The lane's view of a shape: where the rings lie, and the addresses that follow.
#include "runtime/invocation/lane.h"

namespace occl::daemon {

using transport::PrepostedRing;

void Lane::find(const IdState &id, const Collective &shape, const Fabric &fabric) {
  const interpreter::Binding &binding = *shape.binding;
  // Known only when every ring has been found.
  collective = nullptr;
  ringsForgotten = id.ringsForgotten.load(std::memory_order_relaxed);
  // The lane drives one thread block of plain steps.
  if (binding.program().numBlocks != 1 || !binding.steps(0)->isPlain())
    return;
  const auto add = [&](uint32_t r, const PrepostedRing &ring) {
    const uint64_t needed = binding.arenaBytes(r);
    rings.push_back({reinterpret_cast<char *>(fabric.of(r).arena() + ring.firstOffset(needed)),
                     ring.blockBytes(needed), interpreter::arenaPlace(r)});
  };
  rings.clear();
  ownOffset = id.ring.firstOffset(binding.arenaBytes(fabric.rank()));
  ownBlockBytes = id.ring.blockBytes(binding.arenaBytes(fabric.rank()));
  if (binding.arenaBytes(fabric.rank()) != 0)
    add(fabric.rank(), id.ring);
  // The peers' rings are those that executors have found; a missing one ends the search.
  for (uint32_t r : binding.arenaRanks()) {
    if (r == fabric.rank())
      continue;
    const auto ring = PrepostedRing::unpack(id.peerRings[r].load(std::memory_order_relaxed));
    if (!shape.fits(ring, r))
      return;
    add(r, ring);
  }
  collective = &shape;
}

void Lane::prepare(interpreter::Invocation &view, const IdState &id, uint64_t ordinal,
                   const void *input, void *output) const {
  // Rings have as many blocks as there are records.
  const uint64_t block = ordinal % transport::AnnounceCell::kRecords;
  view.flagBase = collective->flagBase(id.id, ordinal);
  view.inPlace = collective->aliasing.isInPlace(input, output);
  view.places[0] = static_cast<char *>(const_cast<void *>(input));
  view.places[1] = static_cast<char *>(output);
  for (const Ring &ring : rings)
    view.places[ring.place] = ring.begin + block * ring.blockBytes;
}

} // namespace occl::daemon

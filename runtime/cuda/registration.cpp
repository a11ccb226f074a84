#include "runtime/cuda/registration.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device_tiles.h"

#include <algorithm>
#include <string>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// The larger the arena blocks, the fewer: with one, an invocation begins on all ranks together,
/// which large ones do not notice.
uint32_t ringFor(uint64_t largestBlock) {
  constexpr uint64_t kSmall = 1 << 20, kMedium = 8 << 20;
  return largestBlock <= kSmall ? kMaxRing : largestBlock <= kMedium ? 2 : 1;
}

} // namespace

StatusOr<std::unique_ptr<Registration>> Registration::make(const ShapeContext &context,
                                                           const daemon::CollectiveSpec &spec,
                                                           uint32_t instance) {
  std::unique_ptr<Registration> made(new Registration(context));
  Status status =
      made->bindTo(spec, tilesFor(*spec.plan, spec.count * sizeOf(spec.type)), /*slotsOffset=*/0);
  if (status.ok())
    status = made->findIdleRanks(spec);
  if (status.ok())
    made->layOut(*spec.plan);
  if (status.ok() && !made->isIdle())
    status = made->takeMemory();
  if (!status.ok())
    return status;
  bool reduces =
      std::ranges::any_of(spec.plan->instructions, [](const plan::Instruction &instruction) {
        return instruction.numSources > 1;
      });
  auto slot = context.slots.claim({spec.id, instance},
                                  {spec.planHash, spec.count, static_cast<uint32_t>(spec.type),
                                   reduces ? static_cast<uint32_t>(spec.op) : 0});
  if (!slot.ok())
    return slot.status();
  made->device.slot = *slot;
  made->hasSlot = true;
  if (!made->isIdle())
    status = made->publish();
  if (status.ok())
    return made;
  (void)made->retire().ok(); // nobody else would
  return status;
}

/// With a slot that is not retired the memory stays taken: other ranks may know where it is.
Registration::~Registration() {
  for (const ArenaSpace::Piece &piece : taken)
    if (!hasSlot)
      context.space.release(piece);
}

Status Registration::findIdleRanks(const daemon::CollectiveSpec &spec) {
  for (uint32_t r = 0; r < context.numRanks; ++r)
    if (spec.plan->ranks[r].numThreadBlocks == 0)
      device.idleRanks |= 1u << r;
  for (uint32_t r : bound->directRanks())
    if ((device.idleRanks >> r & 1) != 0)
      return invalid(spec, "accesses buffers of rank " + std::to_string(r) +
                               ", which has no thread block and so cannot say where they are");
  return {};
}

void Registration::layOut(const plan::Plan &plan) {
  describe(plan);
  uint64_t largest = 0;
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    device.ringStrides[r] = alignUp(
        bound->arenaBytes(r) + plan.ranks[r].numThreadBlocks * kControlStride, kBlockAlignment);
    largest = std::max(largest, device.ringStrides[r]);
  }
  device.ring = ringFor(largest);
  device.lead = device.ring;
  for (uint32_t r = 0; r < context.numRanks; ++r)
    device.ringBytes[r] = device.ring * device.ringStrides[r];
  device.progressOffset = bound->arenaBytes(context.rank);
}

Status Registration::takeMemory() {
  auto blocks = take(device.ringBytes[context.rank] + bound->scratchBytes());
  if (!blocks.ok())
    return blocks.status();
  uint64_t ordinalBytes = device.numBlocks * sizeof(uint64_t);
  auto ordinals = take(ordinalBytes);
  if (!ordinals.ok())
    return ordinals.status();
  device.ordinals = reinterpret_cast<uint64_t *>(*ordinals);
  device.numOrdinals = device.numBlocks;
  Status status = context.memory.clear(*blocks, device.ringBytes[context.rank]);
  if (status.ok())
    status = context.memory.clear(*ordinals, ordinalBytes);
  return status.ok() ? takeOwnMemory() : status;
}

Status Registration::publish() {
  uint64_t where = taken[0].offset + 1;
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    RankRecord *record = recordIn(device.arenas[r], device.slot, context.rank);
    Status status =
        context.memory.upload(reinterpret_cast<char *>(&record->where), &where, sizeof where);
    if (!status.ok())
      return status;
  }
  return {};
}

Status Registration::retire() {
  context.space.releaseWithSlot(device.slot, taken);
  taken.clear();
  auto isLast = context.slots.retire(device.slot);
  if (!isLast.ok() || !*isLast)
    return isLast.status();
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    char *records = reinterpret_cast<char *>(recordIn(device.arenas[r], device.slot, 0));
    Status status = context.memory.clear(records, kMaxRanks * sizeof(RankRecord));
    if (!status.ok())
      return status;
  }
  return context.slots.release(device.slot);
}

} // namespace occl::cuda

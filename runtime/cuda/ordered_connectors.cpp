#include "runtime/cuda/ordered_connectors.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device_tiles.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace occl::cuda {

using namespace interpreter;

namespace {

constexpr uint64_t kKiB = 1 << 10, kMiB = 1 << 20;
constexpr uint64_t kProgressBytes = kOrderedOrdinals * kControlStride;
/// Messages are cut no finer to have them fit.
constexpr uint64_t kSmallestMessage = 4 * kKiB;

uint64_t roundDown(uint64_t bytes) { return bytes / kBlockAlignment * kBlockAlignment; }

/// The most bytes of an arena block, of any rank: a plan that fits on one fits on all.
uint64_t largestBlock(const Binding &binding, uint32_t numRanks) {
  uint64_t largest = 0;
  for (uint32_t r = 0; r < numRanks; ++r)
    largest = std::max(largest, binding.arenaBytes(r));
  return largest;
}

} // namespace

uint64_t OrderedConnectors::Geometry::progressOffset() const { return words - kProgressBytes; }

/// Room for the plans of algorithms/device_plans.tsv, with little memory for their smaller ones: an
/// eighth of it, of which messages get most.
OrderedConnectors::Geometry OrderedConnectors::geometryFor(uint32_t numRanks,
                                                           uint64_t memoryBytes) {
  const uint64_t block = memoryBytes / 8 / kMaxRing;
  const uint64_t lines = std::min<uint64_t>((numRanks - 1) * 512 * kKiB, 1536 * kKiB);
  Geometry sizes;
  sizes.words = kProgressBytes + 88 * kKiB;
  sizes.lines = std::max(roundDown(std::min(lines, block / 8)), kBlockAlignment);
  sizes.wideLines = std::max(roundDown(std::min(4608 * kKiB, block / 4)), kBlockAlignment);
  sizes.messages = std::max(roundDown(std::min(8 * kMiB, block / 2)), kBlockAlignment);
  sizes.scratch = roundDown(std::min(4 * kMiB, memoryBytes / 64));
  return sizes;
}

StatusOr<std::unique_ptr<OrderedConnectors>> OrderedConnectors::make(const ShapeContext &context,
                                                                     uint64_t firstCall) {
  std::unique_ptr<OrderedConnectors> made(new OrderedConnectors(
      context, geometryFor(context.numRanks, context.memory.bytes() - kRecordBytes)));
  Status status = made->takeMemory(firstCall);
  if (!status.ok())
    return status;
  return made;
}

/// They stay until the communicator ends.
Status OrderedConnectors::takeMemory(uint64_t firstCall) {
  auto claimed = context.slots.claim({0, SlotKey::kOrdered}, {});
  if (!claimed.ok())
    return claimed.status();
  slot = *claimed;
  auto blocks = context.space.allocate(sizes.all());
  const std::vector<uint64_t> first(kOrderedOrdinals, firstCall);
  const uint64_t numberBytes = kOrderedOrdinals * sizeof(uint64_t);
  auto ordinals = context.space.allocate(numberBytes);
  if (!blocks || !ordinals)
    return {StatusCode::Again, "no " + std::to_string(sizes.all()) + " bytes of the " +
                                   std::to_string(context.memory.bytes()) +
                                   " of device memory are free for calls; set arenaBytes higher"};
  char *arena = context.memory.arena(context.rank);
  numbers = reinterpret_cast<uint64_t *>(arena + ordinals->offset);
  Status status = context.memory.clear(arena + blocks->offset, sizes.all());
  if (status.ok())
    status = context.memory.upload(arena + ordinals->offset, first.data(), numberBytes);
  return status.ok() ? publish(blocks->offset + 1, firstCall) : status;
}

/// What comes first in a record.
Status OrderedConnectors::publish(uint64_t where, uint64_t firstCall) const {
  static_assert(offsetof(RankRecord, begun) == sizeof where);
  const uint64_t words[] = {where, firstCall};
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    RankRecord *record = recordIn(context.memory.arena(r), slot, context.rank);
    Status status =
        context.memory.upload(reinterpret_cast<char *>(&record->where), words, sizeof words);
    if (!status.ok())
      return status;
  }
  return {};
}

OrderedConnectors::Part OrderedConnectors::partFor(plan::Protocol protocol,
                                                   bool hasWideLines) const {
  const uint64_t wide = sizes.words + sizes.lines;
  if (protocol == plan::Protocol::Simple)
    return {wide + sizes.wideLines, sizes.messages};
  if (protocol == plan::Protocol::LL || !hasWideLines)
    return {sizes.words, sizes.lines};
  return {wide, sizes.wideLines};
}

void OrderedConnectors::describe(DeviceCollective &device) const {
  device.slot = slot;
  device.isOrdered = true;
  device.ordinals = numbers;
  device.numOrdinals = kOrderedOrdinals;
  device.ring = kMaxRing;
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    device.ringStrides[r] = sizes.block();
    device.ringBytes[r] = kMaxRing * sizes.block();
  }
  device.progressOffset = sizes.progressOffset();
  device.linesOffset = sizes.words;
  device.linesBytes = sizes.lines;
}

StatusOr<std::vector<uint64_t>> OrderedConnectors::ordinals() const {
  std::vector<uint64_t> now(kOrderedOrdinals);
  Status read = context.memory.download(now.data(), reinterpret_cast<const char *>(numbers),
                                        now.size() * sizeof(uint64_t));
  if (!read.ok())
    return read;
  return now;
}

StatusOr<std::unique_ptr<OrderedShape>> OrderedShape::make(const ShapeContext &context,
                                                           const OrderedConnectors &connectors,
                                                           const daemon::CollectiveSpec &spec) {
  std::unique_ptr<OrderedShape> made(new OrderedShape(context));
  Status status = made->bindWithin(connectors, spec);
  if (!status.ok())
    return status;
  DeviceCollective &device = made->device;
  made->Shape::describe(*spec.plan);
  connectors.describe(device);
  device.signature = signatureOf(spec);
  if (device.numBlocks != 0)
    status = made->takeOwnMemory();
  if (!status.ok())
    return status;
  // Who has data of its own to wait for may be ahead; others meet at the begin.
  const bool mayBeAhead = device.numBlocks == 0 || device.straight.images != nullptr;
  device.lead = mayBeAhead ? device.ring : 1;
  device.numBlocks = std::max(device.numBlocks, 1u);
  return made;
}

OrderedShape::~OrderedShape() {
  for (const ArenaSpace::Piece &piece : taken)
    context.space.release(piece);
}

/// Large messages are cut until they fit: by all ranks alike.
Status OrderedShape::bindWithin(const OrderedConnectors &connectors,
                                const daemon::CollectiveSpec &spec) {
  const auto part = connectors.partFor(spec.plan->protocol, context.memory.hasWideLines());
  TilePolicy tiles = tilesFor(*spec.plan, spec.count * sizeOf(spec.type));
  for (;; tiles.messageBytes /= 2) {
    Status status = bindTo(spec, tiles, part.offset);
    if (!status.ok())
      return status;
    const uint64_t block = largestBlock(*bound, context.numRanks);
    if (block <= part.offset + part.bytes)
      return checkWords(spec, connectors);
    if (bound->program().line.bytes != 0 || tiles.messageBytes <= kSmallestMessage)
      return invalid(spec, "needs " + std::to_string(block - part.offset) +
                               " bytes for messages at a count of " + std::to_string(spec.count) +
                               "; the communicator has " + std::to_string(part.bytes) +
                               ". Set arenaBytes higher, or compile it for less data");
  }
}

/// What the words and flags of one call differ by, and how many there are.
Status OrderedShape::checkWords(const daemon::CollectiveSpec &spec,
                                const OrderedConnectors &connectors) const {
  const Program &program = bound->program();
  const OrderedConnectors::Geometry &sizes = connectors.geometry();
  for (uint32_t r = 0; r < context.numRanks; ++r)
    if (bound->counterBytes(r) > sizes.progressOffset())
      return invalid(spec, "has more connections than a communicator's calls have words for");
  if (bound->scratchBytes() > sizes.scratch)
    return invalid(spec, "needs " + std::to_string(bound->scratchBytes()) +
                             " bytes of scratch at a count of " + std::to_string(spec.count) +
                             "; the communicator has " + std::to_string(sizes.scratch) +
                             ". Set arenaBytes higher");
  if (program.numBlocks > kOrderedOrdinals)
    return invalid(spec, "has more than " + std::to_string(kOrderedOrdinals) + " thread blocks");
  uint64_t words = 1;
  for (uint32_t e = 0; program.ends && e < bound->numEnds(); ++e)
    words = std::max(words,
                     program.numTiles * program.ends[e].messagesPerTile * program.slicesPerMessage);
  for (uint32_t b = 0; b < program.numBlocks; ++b)
    words = std::max(words, program.numTiles * program.blocks[b].numInstructions);
  if (words >= 1ull << kWordShift || program.flagsPerInvocation > kOrderedFlags)
    return invalid(spec, "sends too many messages at a count of " + std::to_string(spec.count) +
                             ": larger ones, or another protocol, would do");
  return {};
}

/// Words that differ in anything differ in 16 bits of this in all but one of 65,536 cases.
uint16_t signatureOf(const daemon::CollectiveSpec &spec) {
  uint64_t hash = 0;
  for (uint64_t word : {spec.planHash, spec.count, uint64_t{static_cast<uint32_t>(spec.type)},
                        uint64_t{static_cast<uint32_t>(spec.op)}}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return static_cast<uint16_t>(hash ^ hash >> 16);
}

} // namespace occl::cuda

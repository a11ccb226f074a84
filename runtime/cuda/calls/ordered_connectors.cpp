// Connectors that all calls of a communicator share: memory for messages, the numbers of calls, and
// the records by which the other ranks know of them.
#include "runtime/cuda/calls/ordered_connectors.h"

#include "runtime/invocation/plan_scaling.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// Of a rank's ordinals, and the two words behind them.
constexpr uint64_t kNumberBytes = (kOrderedOrdinals + 2) * sizeof(uint64_t);

} // namespace

StatusOr<std::unique_ptr<OrderedConnectors>>
OrderedConnectors::make(const ShapeContext &context, uint32_t number, const OrderedGeometry &sizes,
                        uint64_t firstCall, std::unique_ptr<OrderedConnectors> &unfinished,
                        const std::optional<Pieces> &reserved) {
  if (!unfinished) {
    // It stays until the communicator ends.
    const std::optional<Pieces> pieces = reserved ? reserved : take(context, sizes);
    if (!pieces)
      return Status(StatusCode::Again, "no " + std::to_string(sizes.all()) + " bytes of the " +
                                           std::to_string(context.memory.bytes()) +
                                           " of memory for messages are free for calls; set "
                                           "arenaBytes higher");
    unfinished.reset(new OrderedConnectors(context, number, sizes));
    unfinished->numbers =
        reinterpret_cast<uint64_t *>(context.memory.onDevice() + pieces->numbers.offset);
    unfinished->blocks = pieces->messages.offset;
  }
  // What others may have stored there since they were told of it stays.
  Status status = unfinished->isFilled ? Status() : unfinished->fill(firstCall);
  if (status.ok())
    status = unfinished->publish(firstCall);
  if (!status.ok())
    return status;
  return std::move(unfinished);
}

/// Both pieces, or none.
std::optional<OrderedConnectors::Pieces> OrderedConnectors::take(const ShapeContext &context,
                                                                 const OrderedGeometry &sizes) {
  const auto messages = context.space.allocate(sizes.all());
  const auto numbers = context.onDevice.allocate(kNumberBytes);
  if (messages && numbers)
    return Pieces{*messages, *numbers};
  if (messages)
    context.space.release(*messages);
  if (numbers)
    context.onDevice.release(*numbers);
  return {};
}

/// Numbers and blocks are complete before the other ranks hear of them.
Status OrderedConnectors::fill(uint64_t firstCall) {
  const std::vector<uint64_t> first(kNumberBytes / sizeof(uint64_t), firstCall);
  Status status = context.memory.clear(context.memory.arena(context.rank) + blocks, sizes.all());
  if (status.ok())
    status = context.memory.upload(reinterpret_cast<char *>(numbers), first.data(), kNumberBytes);
  isFilled = status.ok();
  return status;
}

/// What comes first in a record; the same each time.
Status OrderedConnectors::publish(uint64_t firstCall) const {
  // Nobody has used a lane's memory: its first call may begin at once. Who may be ahead says so
  // only when the call before is finished.
  const uint64_t words[] = {blocks + 1, slot == kOfStreams ? firstCall : firstCall + 1};
  static_assert(offsetof(RankRecord, begun) == sizeof words[0]);
  // Nothing is announced: resident::isAnnounced() of the word and of any call is false.
  const uint64_t announced = firstCall << 32;
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    RankRecord *record = recordIn(context.memory.arena(r), slot, context.rank);
    const auto store = [&](uint64_t &at, const void *from, uint64_t bytes) {
      return context.memory.upload(reinterpret_cast<char *>(&at), from, bytes);
    };
    // The announcement is there before `begun` lets others begin.
    Status status = store(record->announced, &announced, sizeof announced);
    if (status.ok())
      status = store(record->where, words, sizeof words);
    if (!status.ok())
      return status;
  }
  return {};
}

void OrderedConnectors::describe(DeviceCollective &device, plan::Protocol protocol) const {
  device.slot = slot;
  device.ordinals = numbers;
  device.numOrdinals = kOrderedOrdinals;
  device.cleared = clearedWord();
  device.ring = sizes.ring;
  const auto own = sizes.blocksFor(protocol), scratch = sizes.scratchBlock(),
             lines = sizes.blocksFor(plan::Protocol::LL);
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    device.ringOffsets[r] = offsetOf(own, r);
    device.scratchOffsets[r] = offsetOf(scratch, r);
  }
  device.ringStride = own.stride;
  device.progressOffset = sizes.progressOffset();
  // All calls clear lines of LL, whatever they have themselves.
  device.linesOffset = offsetOf(lines, context.rank) + sizes.words;
  device.linesStride = lines.stride;
  device.linesBytes = sizes.lines;
}

/// Kernels count from where the connectors' memory begins in the arena, which is in the same place
/// of all ranks if parts lie elsewhere. Memory that no call of the program has needed lies nowhere.
uint64_t OrderedConnectors::offsetOf(const OrderedGeometry::Blocks &part, uint32_t rank) const {
  if (!part.in)
    return part.offset;
  const auto begin = reinterpret_cast<uint64_t>(context.later->begin(*part.in, rank));
  return begin + part.offset - reinterpret_cast<uint64_t>(context.memory.arena(rank)) - blocks;
}

StatusOr<std::vector<uint64_t>> OrderedConnectors::ordinals() const {
  std::vector<uint64_t> now(kOrderedOrdinals);
  Status read = context.memory.download(now.data(), reinterpret_cast<const char *>(numbers),
                                        now.size() * sizeof(uint64_t));
  if (!read.ok())
    return read;
  return now;
}

StatusOr<bool> OrderedConnectors::haveOthersBegun(uint64_t number) const {
  std::array<RankRecord, kMaxRanks> records;
  char *arena = context.memory.arena(context.rank);
  Status read = context.memory.download(
      records.data(), reinterpret_cast<const char *>(recordIn(arena, slot, 0)), sizeof records);
  if (!read.ok())
    return read;
  for (uint32_t r = 0; r < context.numRanks; ++r)
    if (r != context.rank && records[r].begun < number + 1)
      return false;
  return true;
}

StatusOr<std::unique_ptr<OrderedShape>> OrderedShape::make(const ShapeContext &context,
                                                           const OrderedGeometry &sizes,
                                                           const daemon::CollectiveSpec &spec,
                                                           Kernels kernels) {
  std::unique_ptr<OrderedShape> made(new OrderedShape(context));
  Status status = made->bindTo(spec, sizes, kernels);
  if (!status.ok())
    return status;
  DeviceCollective &device = made->device;
  device.ring = sizes.ring;
  made->protocol = device.hasLines ? spec.plan->protocol : plan::Protocol::Simple;
  made->note(sizes.blocksFor(made->protocol));
  made->note(sizes.blocksFor(plan::Protocol::LL));
  // Of any rank, so that all need the same.
  if (std::ranges::any_of(spec.plan->ranks,
                          [](const auto &rank) { return rank.scratchChunks != 0; }))
    made->note(sizes.scratchBlock());
  // Ranks need not name the same operation for a plan that reduces nothing.
  device.signature = signatureOf(spec.planHash, spec.count, spec.type,
                                 daemon::reduces(*spec.plan) ? spec.op : ReduceOp::Sum);
  // Who has data of its own to wait for may be ahead, as straight blocks have, which are of lines;
  // others meet at the begin, as all whose block other calls use, too.
  const bool mayBeAhead = device.numBlocks == 0 || device.straight.images != nullptr;
  device.lead = mayBeAhead ? device.ring : 1;
  device.numBlocks = std::max(device.numBlocks, 1u);
  return made;
}

StatusOr<std::shared_ptr<const net::Crossing>>
OrderedShape::crossingOf(const ShapeContext &context, const OrderedGeometry &sizes,
                         const daemon::CollectiveSpec &spec, const std::vector<bool> &isRemote) {
  auto bound = bindMessages(*spec.plan, sizes, requestFor(context, spec, Kernels::InStream));
  if (!bound.ok())
    return bound.status();
  return std::make_shared<const net::Crossing>(std::move(*bound), isRemote, 0);
}

OrderedShape::~OrderedShape() {
  // Its tables may be on their way to memory that others would get.
  if (context.uploads && !context.uploads->await().ok())
    return;
  for (const ArenaSpace::Piece &piece : taken)
    context.onDevice.release(piece);
}

} // namespace occl::cuda

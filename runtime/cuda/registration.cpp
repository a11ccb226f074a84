#include "runtime/cuda/registration.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/block_image.h"
#include "runtime/cuda/device_tiles.h"
#include "runtime/cuda/replay_word.h"
#include "runtime/interpreter/straight.h"

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

Status invalid(const daemon::CollectiveSpec &spec, const std::string &why) {
  return {StatusCode::InvalidArgument, "plan '" + spec.plan->name + "' " + why};
}

} // namespace

StatusOr<std::unique_ptr<Registration>> Registration::make(const RegistrationContext &context,
                                                           const daemon::CollectiveSpec &spec,
                                                           uint32_t instance) {
  std::unique_ptr<Registration> made(new Registration(context));
  Status status = made->bindAll(spec);
  if (status.ok())
    status = made->layOut(*spec.plan);
  if (status.ok() && !made->isIdle())
    status = made->takeMemory();
  if (status.ok() && !made->isIdle())
    status = made->uploadImages();
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

Status Registration::bindAll(const daemon::CollectiveSpec &spec) {
  if (spec.plan->numRanks != context.numRanks)
    return invalid(spec, "is for " + std::to_string(spec.plan->numRanks) + " ranks, not " +
                             std::to_string(context.numRanks));
  BindRequest request;
  request.rank = context.rank;
  request.count = spec.count;
  request.type = spec.type;
  request.op = spec.op;
  request.tiles = tilesFor(*spec.plan, spec.count * sizeOf(spec.type));
  request.placement = Placement::AtDestination;
  request.lines = kDeviceLines;
  request.lines.hasWide = context.memory.hasWideLines();
  request.stepOperands = kMaxBlockOperands;
  auto binding = bind(*spec.plan, request);
  if (!binding.ok())
    return binding.status();
  bound = *binding;
  const Program &program = bound->program();
  // What else is bound the same way is executed by kernels that leave and come back.
  request.lineStepBytes = kMaxStraightStepBytes;
  auto grouped = program.line.bytes != 0 ? bind(*spec.plan, request) : binding;
  if (!grouped.ok())
    return grouped.status();
  straight = makeStraightImages((*grouped)->program());
  if (program.maxOperands > kMaxBlockOperands)
    return invalid(spec, "has an instruction with more than " + std::to_string(kMaxBlockOperands) +
                             " operands");
  if (program.numBlocks > context.maxBlocks)
    return invalid(spec, "has " + std::to_string(program.numBlocks) +
                             " thread blocks on a rank; the device runs " +
                             std::to_string(context.maxBlocks) + " at once");
  return findIdleRanks(spec);
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

Status Registration::layOut(const plan::Plan &plan) {
  const Program &program = bound->program();
  device.rank = context.rank;
  device.numRanks = context.numRanks;
  device.numBlocks = program.numBlocks;
  device.numTiles = program.numTiles;
  device.hasLines = program.line.bytes != 0;
  device.isFloatSum = program.type == DataType::Float32 && program.op == ReduceOp::Sum;
  device.type = program.type;
  device.op = program.op;
  for (const plan::Instruction &instruction : plan.instructions)
    device.isDirect |= instruction.opcode == plan::Opcode::LoadReduceStore;
  uint64_t largest = 0;
  for (uint32_t r = 0; r < context.numRanks; ++r) {
    device.arenas[r] = context.memory.arena(r);
    device.ringStrides[r] = alignUp(
        bound->arenaBytes(r) + plan.ranks[r].numThreadBlocks * kControlStride, kBlockAlignment);
    largest = std::max(largest, device.ringStrides[r]);
  }
  device.ring = ringFor(largest);
  for (uint32_t r = 0; r < context.numRanks; ++r)
    device.ringBytes[r] = device.ring * device.ringStrides[r];
  device.progressOffset = bound->arenaBytes(context.rank);
  return {};
}

Status Registration::takeMemory() {
  auto blocks = take(device.ringBytes[context.rank] + bound->scratchBytes());
  if (!blocks.ok())
    return blocks.status();
  uint64_t ordinalBytes = (device.numBlocks + 1) * sizeof(uint64_t); // and relay()
  auto ordinals = take(ordinalBytes);
  if (!ordinals.ok())
    return ordinals.status();
  device.ordinals = reinterpret_cast<uint64_t *>(*ordinals);
  Status cleared = context.memory.clear(*blocks, device.ringBytes[context.rank]);
  if (cleared.ok())
    cleared = context.memory.clear(*ordinals, ordinalBytes);
  return cleared.ok() && device.numBlocks > 1 ? takeAdoptions() : cleared;
}

Status Registration::takeAdoptions() {
  uint64_t bytes = Adoptions::bytesFor(device.numBlocks);
  auto adoptions = take(bytes);
  if (!adoptions.ok())
    return adoptions.status();
  device.adoptions.memory = *adoptions;
  return context.memory.clear(*adoptions, bytes);
}

Status Registration::uploadImages() {
  std::vector<std::vector<char>> images;
  uint64_t stride = 0;
  for (uint32_t b = 0; b < device.numBlocks; ++b) {
    images.push_back(makeBlockImage(bound->program(), b));
    stride = std::max<uint64_t>(stride, alignUp(images.back().size(), 128));
  }
  if (stride > kTableBytes)
    return {StatusCode::InvalidArgument,
            "a thread block's tables of " + std::to_string(stride) + " bytes exceed the " +
                std::to_string(kTableBytes) +
                " of a device's shared memory: use more thread blocks"};
  std::vector<char> all(stride * device.numBlocks);
  for (uint32_t b = 0; b < device.numBlocks; ++b)
    std::ranges::copy(images[b], all.begin() + static_cast<ptrdiff_t>(b * stride));
  auto memory = take(all.size());
  if (!memory.ok())
    return memory.status();
  device.images = *memory;
  device.imageStride = static_cast<uint32_t>(stride);
  Status uploaded = context.memory.upload(*memory, all.data(), all.size());
  return uploaded.ok() ? uploadStraightImages() : uploaded;
}

Status Registration::uploadStraightImages() {
  if (straight.bytes.empty())
    return {};
  auto memory = take(straight.bytes.size());
  if (!memory.ok())
    return memory.status();
  device.straight = straight.layout;
  device.straight.images = *memory;
  return context.memory.upload(*memory, straight.bytes.data(), straight.bytes.size());
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

StatusOr<std::array<char *, 2>> Registration::staging() {
  if (staged)
    return *staged;
  auto input = take(bound->inputBytes());
  if (!input.ok())
    return input.status();
  auto output = take(bound->outputBytes());
  if (!output.ok())
    return output.status();
  staged = {*input, *output};
  return *staged;
}

StatusOr<std::vector<uint64_t>> Registration::readOrdinals() const {
  std::vector<uint64_t> ordinals(device.numBlocks);
  Status read =
      context.memory.download(ordinals.data(), reinterpret_cast<const char *>(device.ordinals),
                              ordinals.size() * sizeof(uint64_t));
  if (!read.ok())
    return read;
  return ordinals;
}

StatusOr<uint64_t> Registration::finished() const {
  if (isIdle())
    return ~0ull;
  auto ordinals = readOrdinals();
  return ordinals.ok() ? StatusOr<uint64_t>(*std::ranges::min_element(*ordinals))
                       : ordinals.status();
}

StatusOr<bool> Registration::isReplayed() const {
  if (isIdle())
    return false;
  auto ordinals = readOrdinals();
  return ordinals.ok() ? StatusOr<bool>(std::ranges::any_of(*ordinals, isReplaying))
                       : ordinals.status();
}

StatusOr<char *> Registration::take(uint64_t bytes) {
  auto piece = context.space.allocate(bytes);
  if (!piece)
    return Status(StatusCode::Again, "no " + std::to_string(bytes) + " bytes of the " +
                                         std::to_string(context.memory.bytes()) +
                                         " of device memory are free for a collective; set "
                                         "arenaBytes higher");
  taken.push_back(*piece);
  return context.memory.arena(context.rank) + piece->offset;
}

} // namespace occl::cuda

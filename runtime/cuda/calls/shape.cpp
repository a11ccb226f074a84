#include "runtime/cuda/calls/shape.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/tables/block_image.h"
#include "runtime/exec/step/straight.h"
#include "runtime/invocation/plan_scaling.h"

#include <algorithm>
#include <string>

namespace occl::cuda {

using namespace interpreter;

Status Shape::invalid(const daemon::CollectiveSpec &spec, const std::string &why) {
  return {StatusCode::InvalidArgument, "plan '" + spec.plan->name + "' " + why};
}

Status Shape::bindTo(const daemon::CollectiveSpec &spec, const TilePolicy &tiles,
                     uint64_t slotsOffset) {
  if (spec.plan->numRanks != context.numRanks)
    return invalid(spec, "is for " + std::to_string(spec.plan->numRanks) + " ranks, not " +
                             std::to_string(context.numRanks));
  BindRequest request;
  request.rank = context.rank;
  request.count = spec.count;
  request.type = spec.type;
  const bool isDivided = daemon::dividesInputsOnDevice(*spec.plan, spec.op, spec.type);
  request.op = isDivided ? ReduceOp::Sum : spec.op;
  inputDivisor = isDivided ? spec.plan->numRanks : 1;
  mayHaveFactor = daemon::mayHaveFactor(*spec.plan);
  hasOutOfPlace = spec.plan->outOfPlace;
  request.tiles = tiles;
  request.placement = Placement::AtDestination;
  request.lines = kDeviceLines;
  request.lines.hasWide = context.memory.hasWideLines();
  request.slotsOffset = slotsOffset;
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
  return {};
}

void Shape::describe(const plan::Plan &plan) {
  const Program &program = bound->program();
  device.rank = context.rank;
  device.numRanks = context.numRanks;
  device.numBlocks = program.numBlocks;
  device.numTiles = program.numTiles;
  device.hasLines = program.line.bytes != 0;
  device.isFloatSum = program.type == DataType::Float32 && program.op == ReduceOp::Sum;
  device.type = program.type;
  device.op = program.op;
  device.isDirect = std::ranges::any_of(plan.instructions, [](const auto &instruction) {
    return instruction.opcode == plan::Opcode::LoadReduceStore;
  });
  for (uint32_t r = 0; r < context.numRanks; ++r)
    device.arenas[r] = context.memory.arena(r);
}

Status Shape::takeOwnMemory() {
  Status status = device.numBlocks > 1 ? takeAdoptions() : Status();
  return status.ok() ? uploadImages() : status;
}

Status Shape::takeAdoptions() {
  uint64_t bytes = Adoptions::bytesFor(device.numBlocks);
  auto adoptions = take(bytes);
  if (!adoptions.ok())
    return adoptions.status();
  device.adoptions.memory = *adoptions;
  return context.memory.clear(*adoptions, bytes);
}

Status Shape::uploadImages() {
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

Status Shape::uploadStraightImages() {
  if (straight.bytes.empty())
    return {};
  auto memory = take(straight.bytes.size());
  if (!memory.ok())
    return memory.status();
  device.straight = straight.layout;
  device.straight.images = *memory;
  return context.memory.upload(*memory, straight.bytes.data(), straight.bytes.size());
}

StatusOr<char *> Shape::take(uint64_t bytes) {
  auto piece = context.space.allocate(bytes);
  if (!piece)
    return Status(StatusCode::Again, "no " + std::to_string(bytes) + " bytes of the " +
                                         std::to_string(context.memory.bytes()) +
                                         " of device memory are free for a collective; set "
                                         "arenaBytes higher");
  taken.push_back(*piece);
  return context.memory.arena(context.rank) + piece->offset;
}

uint64_t Shape::largestBuffer() const {
  return std::max(bound->inputBytes(), bound->outputBytes());
}

StatusOr<InputScale> Shape::scaleBy(const InputFactor &factor, bool isCaptured) const {
  if (!factor.isNone() && !mayHaveFactor)
    return Status(StatusCode::InvalidArgument,
                  hasOutOfPlace ? "it reduces nothing, so a scalar has no meaning; give it none"
                                : "a scalar needs a plan that is valid out of place");
  if (factor.onDevice)
    if (Status status =
            checkReadable("deviceScalar", factor.onDevice, context.memory.device(), isCaptured);
        !status.ok())
      return status;
  return InputScale{factor, inputDivisor};
}

/// About as many as one thread block takes for the work of all. So waiting costs at most twice what
/// it would with the better choice made beforehand, whether the others are late or wait for room.
uint64_t Shape::leaveAfter(uint64_t timeout) const {
  constexpr uint64_t kAtLeast = 20'000'000, kBytesPerNanosecond = 16;
  if (device.numBlocks <= 1 || device.straight.images != nullptr)
    return 0;
  return std::min(kAtLeast + largestBuffer() / kBytesPerNanosecond, timeout / 4);
}

} // namespace occl::cuda

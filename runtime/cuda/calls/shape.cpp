#include "runtime/cuda/calls/shape.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/device/buffer_check.h"
#include "runtime/cuda/tables/block_images.h"
#include "runtime/invocation/plan_scaling.h"

#include <algorithm>
#include <string>

namespace occl::cuda {

using namespace interpreter;

namespace {

bool isDirect(const plan::Plan &plan) {
  return std::ranges::any_of(plan.instructions, [](const auto &instruction) {
    return instruction.opcode == plan::Opcode::LoadReduceStore;
  });
}

} // namespace

Status Shape::invalid(const daemon::CollectiveSpec &spec, const std::string &why) {
  return {StatusCode::InvalidArgument, "plan '" + spec.plan->name + "' " + why};
}

Status Shape::bindTo(const daemon::CollectiveSpec &spec, const OrderedGeometry &sizes,
                     Kernels kernels) {
  if (spec.plan->numRanks != context.numRanks)
    return invalid(spec, "is for " + std::to_string(spec.plan->numRanks) + " ranks, not " +
                             std::to_string(context.numRanks));
  if (const std::string &why = context.memory.throughHost(); !why.empty() && isDirect(*spec.plan))
    return invalid(spec, "accesses other ranks' buffers, and data goes through host memory: " +
                             why + "; compile it without --direct");
  const bool isDivided = daemon::dividesInputsOnDevice(*spec.plan, spec.op, spec.type);
  inputDivisor = isDivided ? spec.plan->numRanks : 1;
  mayHaveFactor = daemon::mayHaveFactor(*spec.plan);
  hasOutOfPlace = spec.plan->outOfPlace;
  auto made = bindForDevice(*spec.plan, sizes,
                            {.rank = context.rank,
                             .count = spec.count,
                             .type = spec.type,
                             .op = isDivided ? ReduceOp::Sum : spec.op,
                             .hasWideLines = context.memory.hasWideLines(),
                             .kernels = kernels});
  if (!made.ok())
    return made.status();
  bound = std::move(made->bound);
  straight = std::move(made->straight);
  isStraightAlone = made->isStraightAlone;
  const Program &program = bound->program();
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
  device.hasLines = program.line.bytes != 0;
  device.folds = foldsOf(program.type, program.op);
  device.type = program.type;
  device.op = program.op;
  device.isDirect = isDirect(plan);
  for (uint32_t r = 0; r < context.numRanks; ++r)
    device.arenas[r] = context.memory.arena(r);
}

/// All of it is one piece, and comes to the device by one copy: words of adoptions, which begin as
/// zeroes, the images of thread blocks, and those of straight ones. In streams either are enough.
Status Shape::takeOwnMemory() {
  constexpr uint64_t kAlignment = 256;
  BlockImages images;
  if (!isStraightAlone)
    images = makeBlockImages(bound->program());
  if (images.stride > kTableBytes)
    return {StatusCode::InvalidArgument,
            "a thread block's tables of " + std::to_string(images.stride) + " bytes exceed the " +
                std::to_string(kTableBytes) +
                " of a device's shared memory: use more thread blocks"};
  const uint64_t adoptions = device.numBlocks > 1 ? Adoptions::bytesFor(device.numBlocks) : 0;
  const uint64_t imagesAt = alignUp(adoptions, kAlignment);
  const uint64_t straightAt = alignUp(imagesAt + images.bytes.size(), kAlignment);
  std::vector<char> all(straightAt + straight.bytes.size());
  std::ranges::copy(images.bytes, all.begin() + static_cast<ptrdiff_t>(imagesAt));
  std::ranges::copy(straight.bytes, all.begin() + static_cast<ptrdiff_t>(straightAt));
  auto memory = take(all.size());
  if (!memory.ok())
    return memory.status();
  if (adoptions != 0)
    device.adoptions.memory = *memory;
  device.imageStride = static_cast<uint32_t>(images.stride);
  device.images = isStraightAlone ? nullptr : *memory + imagesAt;
  if (!straight.bytes.empty()) {
    device.straight = straight.layout;
    device.straight.images = *memory + straightAt;
    straight = {};
  }
  return context.uploads && all.size() <= UploadRing::kMostBytes
             ? context.uploads->put(*memory, all.data(), all.size())
             : context.memory.upload(*memory, all.data(), all.size());
}

StatusOr<char *> Shape::take(uint64_t bytes) {
  auto piece = context.onDevice.allocate(bytes);
  if (!piece)
    return Status(StatusCode::Again, "no " + std::to_string(bytes) + " bytes of the " +
                                         std::to_string(context.memory.bytesOnDevice()) +
                                         " of device memory are free for a collective; set "
                                         "arenaBytes higher");
  taken.push_back(*piece);
  return context.memory.onDevice() + piece->offset;
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
  if (device.numBlocks <= 1)
    return 0;
  return std::min(kAtLeast + largestBuffer() / kBytesPerNanosecond, timeout / 4);
}

} // namespace occl::cuda

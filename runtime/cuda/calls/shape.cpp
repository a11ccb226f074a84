// The part of a shape that calls in streams and lanes have in common: the bound plan as tables in
// device memory.
#include "runtime/cuda/calls/shape.h"

#include "runtime/cuda/device/buffer_check.h"
#include "runtime/invocation/plan_scaling.h"

#include <algorithm>
#include <memory_resource>
#include <string>
#include <utility>

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

DeviceBindRequest Shape::requestFor(const ShapeContext &context, const daemon::CollectiveSpec &spec,
                                    Kernels kernels) {
  const bool isDivided = daemon::dividesInputsOnDevice(*spec.plan, spec.op, spec.type);
  return {.rank = context.rank,
          .count = spec.count,
          .type = spec.type,
          .op = isDivided ? ReduceOp::Sum : spec.op,
          .hasWideLines = context.memory.hasWideLines(),
          .isSimple = context.memory.isAcrossMachines(),
          .kernels = kernels};
}

Status Shape::bindTo(const daemon::CollectiveSpec &spec, const OrderedGeometry &sizes,
                     Kernels kernels) {
  // Refuse what cannot work here before anything is bound.
  if (spec.plan->numRanks != context.numRanks)
    return invalid(spec, "is for " + std::to_string(spec.plan->numRanks) + " ranks, not " +
                             std::to_string(context.numRanks));
  if (const std::string &why = context.memory.throughHost(); !why.empty() && isDirect(*spec.plan))
    return invalid(spec, "accesses other ranks' buffers, and data goes through host memory: " +
                             why + "; compile it without --direct");
  const bool isDivided = daemon::dividesInputsOnDevice(*spec.plan, spec.op, spec.type);
  // A division by the number of ranks is done on the inputs, so the plan itself sums.
  inputDivisor = isDivided ? spec.plan->numRanks : 1;
  mayHaveFactor = daemon::mayHaveFactor(*spec.plan);
  hasOutOfPlace = spec.plan->outOfPlace;
  // Of the binding nothing is kept.
  std::pmr::monotonic_buffer_resource memory(context.room.data(), context.room.size());
  auto made = bindForDevice(*spec.plan, sizes, requestFor(context, spec, kernels), &memory);
  if (!made.ok())
    return made.status();
  bufferBytes[0] = made->bound->inputBytes();
  bufferBytes[1] = made->bound->outputBytes();
  const Program &program = made->bound->program();
  // Thread blocks wait for each other, so the device must be able to run all of them at once.
  if (program.numBlocks > context.maxBlocks)
    return invalid(spec, "has " + std::to_string(program.numBlocks) +
                             " thread blocks on a rank; the device runs " +
                             std::to_string(context.maxBlocks) + " at once");
  describe(*spec.plan, program);
  // Resident daemons count the bytes that each thread block moves.
  for (uint32_t b = 0; kernels == Kernels::Resident && b < program.numBlocks; ++b)
    moved.push_back(daemon::bytesOf(program, b));
  return program.numBlocks != 0 ? takeOwnMemory(made->tables) : Status();
}

void Shape::describe(const plan::Plan &plan, const Program &program) {
  device.rank = context.rank;
  device.numRanks = context.numRanks;
  tiles = program.numTiles;
  device.numBlocks = program.numBlocks;
  device.hasLines = program.line.bytes != 0;
  device.folds = foldsOf(program.type, program.op);
  device.type = program.type;
  device.op = program.op;
  device.isDirect = isDirect(plan);
  device.isAcrossMachines = context.memory.isAcrossMachines();
  for (uint32_t r = 0; r < context.numRanks; ++r)
    device.arenas[r] = context.memory.arena(r);
}

/// They come to the device by one copy.
Status Shape::takeOwnMemory(const DeviceTables &tables) {
  auto memory = take(tables.bytes.size());
  if (!memory.ok())
    return memory.status();
  if (tables.hasAdoptions)
    device.adoptions.memory = *memory;
  device.imageStride = static_cast<uint32_t>(tables.imageStride);
  device.images = tables.imageStride != 0 ? *memory + tables.imagesAt : nullptr;
  device.straight = tables.straight;
  if (tables.straight.stride != 0)
    device.straight.images = *memory + tables.straightAt;
  // Small tables go through the ring, and the host need not wait for them.
  if (context.uploads && tables.bytes.size() <= UploadRing::kMostBytes)
    return context.uploads->put(*memory, tables.bytes.data(), tables.bytes.size());
  Status status = context.memory.upload(*memory, tables.bytes.data(), tables.bytes.size());
  if (!status.ok())
    taken.clear(); // they may still be on their way: the memory is nobody else's any more
  return status;
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

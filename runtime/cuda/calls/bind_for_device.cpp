// Binds a plan with the geometry of the communicator's connectors, and lays its tables out in one
// piece of memory for one copy to the device.
#include "runtime/cuda/calls/bind_for_device.h"

#include "runtime/base/cache_line.h"
#include "runtime/cuda/calls/device_tiles.h"
#include "runtime/cuda/tables/adoption.h"
#include "runtime/cuda/tables/block_images.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/cuda/tables/straight_images.h"
#include "runtime/exec/step/straight.h"

#include <memory_resource>
#include <string>
#include <utility>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// Messages are cut no finer to have them fit.
constexpr uint64_t kSmallestMessage = 4 << 10;

BindRequest requestFor(const plan::Plan &plan, const OrderedGeometry &sizes,
                       const DeviceBindRequest &from) {
  const auto part = sizes.partFor(from.isSimple ? plan::Protocol::Simple : plan.protocol);
  BindRequest request;
  request.rank = from.rank;
  request.count = from.count;
  request.type = from.type;
  request.op = from.op;
  // Small ones between machines, so that one crosses while the next one is made.
  constexpr TilePolicy kBetweenMachines = {128 << 10, 1};
  request.tiles = from.isSimple ? kBetweenMachines : tilesFor(plan, from.count * sizeOf(from.type));
  request.placement = Placement::AtDestination;
  request.lines = kDeviceLines;
  request.lines.hasWide = from.hasWideLines;
  request.isSimple = from.isSimple;
  request.slotsOffset = part.offset;
  request.mostArenaBytes = part.offset + part.bytes;
  request.smallestMessageBytes = kSmallestMessage;
  request.stepOperands = kMaxStepOperands;
  return request;
}

/// Empty: all of it fits. Else the rest of a sentence that begins with the plan.
std::string misfit(const Binding &bound, const OrderedGeometry &sizes, const BindRequest &request) {
  const uint64_t block = largestBlock(bound);
  if (block > request.mostArenaBytes)
    return "needs " + std::to_string(block - request.slotsOffset) +
           " bytes for messages at a count of " + std::to_string(request.count) +
           "; the communicator has " +
           std::to_string(request.mostArenaBytes - request.slotsOffset) +
           ". Set arenaBytes higher, or compile it for less data";
  return sizes.misfit(bound, request.count);
}

/// Either may have none.
DeviceTables inOnePiece(const BlockImages &images, const StraightTablesOnDevice &straight,
                        uint32_t numBlocks, std::pmr::memory_resource *memory) {
  constexpr uint64_t kAlignment = 128;
  DeviceTables tables{.bytes = std::pmr::vector<char>(memory)};
  // A single thread block has nobody to leave its steps to.
  tables.hasAdoptions = numBlocks > 1;
  uint64_t bytes = tables.hasAdoptions ? Adoptions::bytesFor(numBlocks) : 0;
  // Lay the parts out one behind the other, each aligned.
  const auto place = [&](uint64_t more) {
    const uint64_t at = alignUp(bytes, kAlignment);
    bytes = at + more;
    return at;
  };
  tables.imagesAt = place(images.bytes());
  tables.straightAt = place(straight.bytes());
  tables.imageStride = images.stride;
  tables.straight = straight.layout;
  // The words of adoptions, and the gaps, are zero.
  tables.bytes.resize(bytes);
  images.writeTo(tables.bytes.data() + tables.imagesAt);
  straight.writeTo(tables.bytes.data() + tables.straightAt);
  return tables;
}

} // namespace

StatusOr<std::shared_ptr<const Binding>>
bindMessages(const plan::Plan &plan, const OrderedGeometry &sizes, const DeviceBindRequest &from) {
  return bind(plan, requestFor(plan, sizes, from));
}

/// Steps of several lines are for straight thread blocks alone: kernels that leave and come back
/// execute what has none.
StatusOr<DeviceBinding> bindForDevice(const plan::Plan &plan, const OrderedGeometry &sizes,
                                      const DeviceBindRequest &from,
                                      std::pmr::memory_resource *memory) {
  // Bind for straight thread blocks first, whose steps may have several lines.
  BindRequest request = requestFor(plan, sizes, from);
  request.lineStepBytes = kMaxStraightStepBytes;
  auto bound = bind(plan, request, memory);
  if (!bound.ok())
    return bound.status();
  const auto straight = makeStraightImages((*bound)->program(), memory);
  const bool isStraightAlone = from.kernels == Kernels::InStream && !straight.blocks.empty();
  // These kernels leave and come back, or some thread block is not straight: bind again without
  // such steps.
  if ((*bound)->program().line.bytes != 0 && !isStraightAlone) {
    request.lineStepBytes = 0;
    bound = bind(plan, request, memory);
    if (!bound.ok())
      return bound.status();
  }
  const auto refuse = [&](const std::string &why) {
    return Status(StatusCode::InvalidArgument, "plan '" + plan.name + "' " + why);
  };
  // Refuse what does not fit into the memory for messages, or into shared memory.
  if (const std::string why = misfit(**bound, sizes, request); !why.empty())
    return refuse(why);
  const Program &program = (*bound)->program();
  // Straight kernels read no images.
  const BlockImages images = isStraightAlone ? BlockImages() : makeBlockImages(program, memory);
  if (images.stride > kTableBytes)
    return refuse("makes tables of " + std::to_string(images.stride) +
                  " bytes for a thread block, and a device's shared memory has room for " +
                  std::to_string(kTableBytes) + ": use more thread blocks");
  return DeviceBinding{std::move(*bound), inOnePiece(images, straight, program.numBlocks, memory),
                       isStraightAlone};
}

} // namespace occl::cuda

#include "runtime/cuda/calls/bind_for_device.h"

#include "runtime/cuda/calls/device_tiles.h"
#include "runtime/cuda/tables/limits.h"
#include "runtime/exec/step/straight.h"

#include <string>
#include <utility>

namespace occl::cuda {

using namespace interpreter;

namespace {

/// Messages are cut no finer to have them fit.
constexpr uint64_t kSmallestMessage = 4 << 10;

BindRequest requestFor(const plan::Plan &plan, const OrderedGeometry &sizes,
                       const DeviceBindRequest &from) {
  const auto part = sizes.partFor(plan.protocol);
  BindRequest request;
  request.rank = from.rank;
  request.count = from.count;
  request.type = from.type;
  request.op = from.op;
  request.tiles = tilesFor(plan, from.count * sizeOf(from.type));
  request.placement = Placement::AtDestination;
  request.lines = kDeviceLines;
  request.lines.hasWide = from.hasWideLines;
  request.slotsOffset = part.offset;
  request.mostArenaBytes = part.offset + part.bytes;
  request.smallestMessageBytes = kSmallestMessage;
  request.stepOperands = kMaxStepOperands;
  return request;
}

/// Empty: all of it fits. Else the rest of a sentence that begins with the plan.
std::string misfit(const Binding &bound, const OrderedGeometry &sizes,
                   const BindRequest &request) {
  const uint64_t block = largestBlock(bound);
  if (block > request.mostArenaBytes)
    return "needs " + std::to_string(block - request.slotsOffset) +
           " bytes for messages at a count of " + std::to_string(request.count) +
           "; the communicator has " +
           std::to_string(request.mostArenaBytes - request.slotsOffset) +
           ". Set arenaBytes higher, or compile it for less data";
  return sizes.misfit(bound, request.count);
}

} // namespace

/// Steps of several lines are for straight thread blocks alone: kernels that leave and come back
/// execute what has none.
StatusOr<DeviceBinding> bindForDevice(const plan::Plan &plan, const OrderedGeometry &sizes,
                                      const DeviceBindRequest &from) {
  BindRequest request = requestFor(plan, sizes, from);
  request.lineStepBytes = kMaxStraightStepBytes;
  auto bound = bind(plan, request);
  if (!bound.ok())
    return bound.status();
  DeviceBinding made;
  made.straight = makeStraightImages((*bound)->program());
  made.isStraightAlone = from.kernels == Kernels::InStream && !made.straight.bytes.empty();
  if ((*bound)->program().line.bytes != 0 && !made.isStraightAlone) {
    request.lineStepBytes = 0;
    bound = bind(plan, request);
    if (!bound.ok())
      return bound.status();
  }
  if (const std::string why = misfit(**bound, sizes, request); !why.empty())
    return Status(StatusCode::InvalidArgument, "plan '" + plan.name + "' " + why);
  made.bound = std::move(*bound);
  return made;
}

} // namespace occl::cuda

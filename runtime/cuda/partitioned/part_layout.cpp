// Cuts a send into messages and units: few enough for their words, and large enough for the links.
#include "runtime/cuda/partitioned/part_layout.h"

#include "runtime/base/cache_line.h"
#include "runtime/base/data_type.h"

#include <algorithm>

namespace occl::cuda {

namespace {

/// A message of so many bytes is one unit; units of larger ones have so many, or more, so that
/// there are not too many of them.
constexpr uint64_t kWholeMessage = 256 << 10, kUnitBytes = 128 << 10, kMostUnits = 1024;
constexpr uint64_t kUnitAlignment = 128;

} // namespace

device::Cut cutOf(const partitioned::Shape &shape) {
  device::Cut cut;
  cut.bytes = shape.bytes();
  cut.messageBytes = shape.perMessage * shape.count * sizeOf(shape.type);
  cut.messages = shape.numMessages();
  cut.perMessage = shape.perMessage;
  // No message has more than kMostUnits units.
  const uint64_t least = (cut.messageBytes + kMostUnits - 1) / kMostUnits;
  cut.unitBytes = cut.messageBytes <= kWholeMessage
                      ? kWholeMessage
                      : std::max(kUnitBytes, alignUp(least, kUnitAlignment));
  cut.unitsOfMessage =
      std::max<uint64_t>(1, (cut.messageBytes + cut.unitBytes - 1) / cut.unitBytes);
  return cut;
}

PartLayout::PartLayout(bool isSend, const device::Cut &cut, uint64_t partitions)
    : marked(alignUp(sizeof(device::State), kUnitAlignment)), bytes(marked) {
  if (!isSend)
    return;
  counted = marked + partitions * sizeof(uint64_t);
  units = counted + (cut.perMessage > 1 ? cut.messages * sizeof(uint64_t) : 0);
  bytes = units + cut.units() * sizeof(uint64_t);
}

} // namespace occl::cuda

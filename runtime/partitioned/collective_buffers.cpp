// How a partitioned collective's buffers are divided.
#include "runtime/partitioned/collective_buffers.h"

#include "runtime/partitioned/shape.h"

#include <algorithm>
#include <string>

namespace occl::partitioned {

namespace {

/// Of a buffer that the rank has.
Status checkNumber(const Side &side, const char *buffer) {
  if (side.partitions <= kMostPartitions && (side.partitions != 0 || side.elements == 0))
    return {};
  // What was negative is said as it was given.
  return {StatusCode::InvalidArgument,
          std::to_string(static_cast<int64_t>(side.partitions)) + " partitions of the " + buffer +
              " of " + std::to_string(side.elements) + " elements: there have to be 1 to " +
              std::to_string(kMostPartitions)};
}

} // namespace

plan::Range CollectiveBuffers::inputOf(plan::Range of) const {
  // Buffers that lie apart have no element in common.
  if (!inPlace)
    return {};
  const auto within = [&](uint64_t element) {
    const int64_t inInput = static_cast<int64_t>(element) - *inPlace;
    return static_cast<uint64_t>(
        std::clamp<int64_t>(inInput, 0, static_cast<int64_t>(input.elements)));
  };
  return {within(of.begin), within(of.end)};
}

StatusOr<CollectiveBuffers> divide(const DividedBuffers &given, const plan::RankPlan &rank,
                                   const plan::Aliasing &aliasing, DataType type,
                                   uint64_t inputBytes, uint64_t outputBytes) {
  if (!aliasing.accepts(given.input, given.output))
    return Status(StatusCode::InvalidArgument, aliasing.complaint(given.input, given.output));
  const uint64_t size = sizeOf(type);
  CollectiveBuffers buffers;
  buffers.type = type;
  buffers.data = static_cast<const char *>(given.input);
  // A rank has only those buffers in which its plan has chunks.
  Status number;
  if (rank.inputChunks != 0) {
    buffers.input = {inputBytes / size, given.inputPartitions};
    number = checkNumber(buffers.input, "input");
  }
  if (rank.outputChunks != 0) {
    buffers.output = {outputBytes / size, given.outputPartitions};
    if (number.ok())
      number = checkNumber(buffers.output, "output");
  }
  if (!number.ok())
    return number;
  // In place the input begins so many elements behind the output, or before it.
  if (aliasing.isInPlace(given.input, given.output))
    buffers.inPlace =
        (static_cast<const char *>(given.input) - static_cast<const char *>(given.output)) /
        static_cast<int64_t>(size);
  return buffers;
}

} // namespace occl::partitioned

#include "plan/model/aliasing.h"

#include "plan/model/chunking_of.h"

namespace occl::plan {

Aliasing::Aliasing(const Plan &plan, uint32_t rank, uint64_t count, uint64_t elementBytes) {
  const RankPlan &buffers = plan.ranks[rank];
  const Chunking chunking = chunkingOf(plan, count, elementBytes);
  auto bytesTo = [&](int64_t chunk) {
    return static_cast<int64_t>(chunking.beginInBuffer(static_cast<uint64_t>(chunk)) *
                                elementBytes);
  };
  const int64_t offset = buffers.inPlaceOffset;
  const bool sharesChunks = offset < buffers.outputChunks && -offset < buffers.inputChunks;
  inputBytes = static_cast<uint64_t>(bytesTo(buffers.inputChunks));
  outputBytes = static_cast<uint64_t>(bytesTo(buffers.outputChunks));
  if (sharesChunks)
    inPlaceBytes = offset < 0 ? -bytesTo(-offset) : bytesTo(offset);
  isEitherEmpty = inputBytes == 0 || outputBytes == 0;
  sharesInPlace = sharesChunks && !isEitherEmpty &&
                  inPlaceBytes < static_cast<int64_t>(outputBytes) &&
                  -inPlaceBytes < static_cast<int64_t>(inputBytes);
  mayBeInPlace = plan.inPlace;
  mayBeApart = plan.outOfPlace || !sharesInPlace;
}

std::string Aliasing::complaint(const void *input, const void *output) const {
  if (accepts(input, output))
    return "";
  if ((!input && inputBytes != 0) || (!output && outputBytes != 0))
    return std::string("the ") + (!input && inputBytes != 0 ? "send" : "receive") +
           " buffer is NULL and must have " +
           std::to_string(!input && inputBytes != 0 ? inputBytes : outputBytes) + " bytes";
  const std::string demand =
      "(send buffer = receive buffer" +
      (inPlaceBytes != 0 ? " + " + std::to_string(inPlaceBytes) + " bytes)" : ")");
  if (areApart(input, output))
    return "its plan is valid in place only " + demand;
  if (!sharesInPlace)
    return "the buffers overlap; in this collective those of this rank never do";
  return "the buffers overlap, but not as in place demands " + demand;
}

} // namespace occl::plan

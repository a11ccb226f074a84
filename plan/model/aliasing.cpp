#include "plan/model/aliasing.h"

#include "plan/model/chunking_of.h"

namespace occl::plan {

Aliasing::Aliasing(const Plan &plan, uint32_t rank, uint64_t count, uint64_t elementBytes) {
  const RankPlan &buffers = plan.ranks[rank];
  // Offsets are in chunks, buffers in bytes: the cut of a part into chunks says how many bytes lie
  // before one.
  const Chunking chunking = chunkingOf(plan, count, elementBytes);
  auto bytesTo = [&](int64_t chunk) {
    return static_cast<int64_t>(chunking.beginInBuffer(static_cast<uint64_t>(chunk)) *
                                elementBytes);
  };
  const int64_t offset = buffers.inPlaceOffset;
  // The offset is the place of the input's first chunk in the output. It lies outside if in-place
  // buffers of this rank would not touch, as those of a rank that only gives or only gets.
  const bool sharesChunks = offset < buffers.outputChunks && -offset < buffers.inputChunks;
  inputBytes = static_cast<uint64_t>(bytesTo(buffers.inputChunks));
  outputBytes = static_cast<uint64_t>(bytesTo(buffers.outputChunks));
  if (sharesChunks)
    inPlaceBytes = offset < 0 ? -bytesTo(-offset) : bytesTo(offset);
  // With few elements the last chunks are empty, so that buffers that share chunks need not share
  // bytes.
  isEitherEmpty = inputBytes == 0 || outputBytes == 0;
  // Both ends have to overlap: begin of the input before the end of the output, and the other way
  // round.
  sharesInPlace = sharesChunks && !isEitherEmpty &&
                  inPlaceBytes < static_cast<int64_t>(outputBytes) &&
                  -inPlaceBytes < static_cast<int64_t>(inputBytes);
  mayBeInPlace = plan.inPlace;
  // A rank whose buffers cannot touch is apart in any alias mode.
  mayBeApart = plan.outOfPlace || !sharesInPlace;
}

std::string Aliasing::complaint(const void *input, const void *output) const {
  if (accepts(input, output))
    return "";
  // A buffer of no bytes may be NULL, as in MPI; any other one is needed.
  if ((!input && inputBytes != 0) || (!output && outputBytes != 0))
    return std::string("the ") + (!input && inputBytes != 0 ? "send" : "receive") +
           " buffer is NULL and must have " +
           std::to_string(!input && inputBytes != 0 ? inputBytes : outputBytes) + " bytes";
  // What in-place means for this rank: the send buffer lies so many bytes behind the begin of the
  // receive buffer.
  const std::string demand =
      "(send buffer = receive buffer" +
      (inPlaceBytes != 0 ? " + " + std::to_string(inPlaceBytes) + " bytes)" : ")");
  // Apart, but the plan is proved for in-place only: it may, for example, leave the own part where
  // it is and count on it being in the output.
  if (areApart(input, output))
    return "its plan is valid in place only " + demand;
  if (!sharesInPlace)
    return "the buffers overlap; in this collective those of this rank never do";
  return "the buffers overlap, but not as in place demands " + demand;
}

} // namespace occl::plan

#include "compiler/dialect/ProgramHeader.h"

#include "mlir/IR/Diagnostics.h"
#include "plan/model/limits.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace occl::dialect {

llvm::StringRef bufferName(plan::OperandKind buffer) {
  constexpr llvm::StringRef names[] = {"input", "output", "scratch"};
  return names[static_cast<unsigned>(buffer)];
}

std::optional<plan::OperandKind> bufferNamed(llvm::StringRef name) {
  for (auto buffer :
       {plan::OperandKind::Input, plan::OperandKind::Output, plan::OperandKind::Scratch})
    if (bufferName(buffer) == name)
      return buffer;
  return std::nullopt;
}

std::optional<plan::Protocol> parseProtocol(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<plan::Protocol>>(name)
      .Case("simple", plan::Protocol::Simple)
      .Case("ll", plan::Protocol::LL)
      .Case("ll128", plan::Protocol::LL128)
      .Default(std::nullopt);
}

LogicalResult verifyRange(EmitError emitError, const ProgramHeader &header, int32_t rank,
                          plan::OperandKind buffer, int32_t index, int32_t count) {
  // Written so that nothing can overflow: `count` is compared with what is left of the buffer.
  if (rank < 0 || rank >= header.numRanks)
    return emitError() << "names rank " << rank << " of " << header.numRanks << " ranks";
  if (count < 1)
    return emitError() << "needs a count of at least 1, got " << count;
  int32_t size = header.sizesOf(buffer)[rank];
  if (index < 0 || index > size || count > size - index)
    return emitError() << "names chunks [" << index << ", " << static_cast<int64_t>(index) + count
                       << ") of " << bufferName(buffer) << " of rank " << rank << ", which has "
                       << size << " chunks";
  return success();
}

static LogicalResult verifySizes(Operation *op, const ProgramHeader &header, llvm::StringRef name,
                                 llvm::ArrayRef<int32_t> sizes) {
  if (sizes.size() != static_cast<size_t>(header.numRanks))
    return op->emitOpError() << "needs one entry a rank (" << header.numRanks << ") in " << name
                             << ", got " << sizes.size();
  for (int32_t size : sizes)
    if (size < 0 || static_cast<uint32_t>(size) > plan::limits::kMaxChunks)
      return op->emitOpError() << name << " must be between 0 and " << plan::limits::kMaxChunks
                               << ", got " << size;
  return success();
}

/// `requirements` is well-formed and names chunks that exist.
static LogicalResult verifyRequirements(Operation *op, const ProgramHeader &header) {
  // Four numbers (rank, output chunk, count, number of contributions) and two for each
  // contribution, one requirement after the other. The number of contributions is checked before it
  // is used to skip them.
  auto emitError = [&] { return op->emitOpError(); };
  llvm::ArrayRef<int32_t> rest = header.requirements;
  while (!rest.empty()) {
    if (rest.size() < 4 || rest[3] < 0 || (rest.size() - 4) / 2 < static_cast<size_t>(rest[3]))
      return op->emitOpError("has requirements that end in the middle of one");
    int32_t count = rest[2];
    if (failed(verifyRange(emitError, header, rest[0], plan::OperandKind::Output, rest[1], count)))
      return failure();
    llvm::ArrayRef<int32_t> contributions = rest.slice(4, 2 * static_cast<size_t>(rest[3]));
    for (size_t i = 0; i < contributions.size(); i += 2)
      if (failed(verifyRange(emitError, header, contributions[i], plan::OperandKind::Input,
                             contributions[i + 1], count)))
        return failure();
    rest = rest.drop_front(4 + contributions.size());
  }
  return success();
}

static LogicalResult verifyOptions(Operation *op, const ProgramHeader &header) {
  // What has a range by the plan's limits is checked here, so that passes need not.
  if (header.parameterNames.size() != header.parameterValues.size())
    return op->emitOpError() << "has " << header.parameterNames.size() << " parameter names and "
                             << header.parameterValues.size() << " values";
  if (!parseProtocol(header.protocol))
    return op->emitOpError() << "expected protocol simple, ll or ll128, got " << header.protocol;
  if (header.depth < 1 || header.depth > static_cast<int32_t>(plan::limits::kMaxDepth))
    return op->emitOpError() << "needs a depth between 1 and " << plan::limits::kMaxDepth
                             << ", got " << header.depth;
  if (header.channel < -1 || header.channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
    return op->emitOpError() << "needs a channel below " << plan::limits::kMaxChannels
                             << " or -1, got " << header.channel;
  // Sizes are unsigned; the attribute holds them as signed bits.
  if (static_cast<uint64_t>(header.minBytes) > static_cast<uint64_t>(header.maxBytes))
    return op->emitOpError() << "is meant for at least " << static_cast<uint64_t>(header.minBytes)
                             << " and at most " << static_cast<uint64_t>(header.maxBytes)
                             << " bytes: no size is both";
  if (!header.outOfPlace && !header.inPlace)
    return op->emitOpError("must claim to work in place, out of place, or both");
  return success();
}

LogicalResult verifyHeader(Operation *op, const ProgramHeader &header) {
  // From sizes to what refers to them: requirements name ranks and chunks, which must be known to
  // exist.
  if (header.numRanks < 1 || header.numRanks > static_cast<int32_t>(plan::limits::kMaxRanks))
    return op->emitOpError() << "needs between 1 and " << plan::limits::kMaxRanks << " ranks, got "
                             << header.numRanks;
  if (failed(verifySizes(op, header, "input_chunks", header.inputChunks)) ||
      failed(verifySizes(op, header, "output_chunks", header.outputChunks)) ||
      failed(verifySizes(op, header, "scratch_chunks", header.scratchChunks)))
    return failure();
  if (header.inPlaceOffsets.size() != static_cast<size_t>(header.numRanks))
    return op->emitOpError() << "needs one entry a rank (" << header.numRanks
                             << ") in in_place_offsets, got " << header.inPlaceOffsets.size();
  if (header.partChunks < 1 || header.partChunks > static_cast<int32_t>(plan::limits::kMaxChunks))
    return op->emitOpError() << "needs between 1 and " << plan::limits::kMaxChunks
                             << " chunks in a part, got " << header.partChunks;
  if (header.root < 0 || header.root >= header.numRanks)
    return op->emitOpError() << "names root " << header.root << " of " << header.numRanks
                             << " ranks";
  return success(succeeded(verifyOptions(op, header)) && succeeded(verifyRequirements(op, header)));
}

} // namespace occl::dialect

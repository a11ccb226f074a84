#include "compiler/dialect/Hints.h"

#include "plan/model/limits.h"

using namespace mlir;

namespace occl::dialect {

HintRecord hintAt(llvm::ArrayRef<int32_t> hints, int32_t hint) {
  if (hint < 0)
    return {};
  llvm::ArrayRef<int32_t> fields =
      hints.slice(static_cast<size_t>(hint) * kHintFields, kHintFields);
  return {fields[0], fields[1], fields[2], fields[3]};
}

void appendHint(llvm::SmallVectorImpl<int32_t> &hints, const HintRecord &record) {
  hints.append({record.parallel, record.aggregate, record.sendBlock, record.recvBlock});
}

static LogicalResult verifyBlock(Operation *op, size_t record, int32_t block) {
  if (block >= -1 && block < static_cast<int32_t>(plan::limits::kMaxThreadBlocks))
    return success();
  return op->emitOpError() << "asks in hint " << record << " for thread block " << block
                           << "; they are numbered below " << plan::limits::kMaxThreadBlocks;
}

LogicalResult verifyHints(Operation *op, llvm::ArrayRef<int32_t> hints) {
  // Records have a fixed number of fields, one after the other, so that the attribute is a plain
  // list of numbers.
  if (hints.size() % kHintFields != 0)
    return op->emitOpError("has hints that end in the middle of one");
  // A hint is a wish, but numbers that no plan can have are an error here, where the source is
  // known.
  for (size_t i = 0; i < hints.size() / kHintFields; ++i) {
    HintRecord record = hintAt(hints, static_cast<int32_t>(i));
    if (record.parallel < 1 || record.parallel > static_cast<int32_t>(plan::limits::kMaxChannels))
      return op->emitOpError() << "asks in hint " << i << " for " << record.parallel
                               << " parts; between 1 and " << plan::limits::kMaxChannels
                               << " are possible";
    if (record.aggregate < -1)
      return op->emitOpError() << "has in hint " << i << " the group " << record.aggregate
                               << "; groups are numbered from 0, and -1 is none";
    if (failed(verifyBlock(op, i, record.sendBlock)) ||
        failed(verifyBlock(op, i, record.recvBlock)))
      return failure();
  }
  return success();
}

LogicalResult verifyHint(EmitError emitError, llvm::ArrayRef<int32_t> hints, int32_t hint) {
  auto records = static_cast<int32_t>(hints.size() / kHintFields);
  if (hint >= -1 && hint < records)
    return success();
  return emitError() << "names hint " << hint << " of " << records << " hints";
}

} // namespace occl::dialect

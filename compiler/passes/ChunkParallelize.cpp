#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/passes/Passes.h"
#include "plan/limits.h"

#include <numeric>

namespace occl::passes {
#define GEN_PASS_DEF_CHUNKPARALLELIZE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using plan::OperandKind;

namespace {

/// A range of one rank's buffer, in chunks.
struct ChunkRange {
  int32_t rank = 0;
  OperandKind buffer = OperandKind::Input;
  int64_t index = 0;
  int64_t count = 1;

  /// Part `part` of `parts` where every chunk is cut into `factor`, which `parts` divides: chunk i
  /// becomes [i * factor, (i + 1) * factor), so that an element stays in its chunk, and whatever
  /// the program does with a chunk it does with each of its pieces.
  ChunkRange part(int64_t factor, int32_t parts, int32_t part) const {
    int64_t size = count * factor / parts;
    return {rank, buffer, index * factor + part * size, size};
  }
};

ChunkRange rangeOf(chunk::ChunkOpInterface op) {
  return {op.getRank(), op.getBuffer(), op.getIndex(), op.getCount()};
}

int32_t hintOf(Operation &op) {
  if (auto copy = dyn_cast<chunk::CopyOp>(op))
    return copy.getHint();
  return cast<chunk::ReduceOp>(op).getHint();
}

int32_t channelOf(Operation &op) {
  if (auto copy = dyn_cast<chunk::CopyOp>(op))
    return copy.getChannel();
  return cast<chunk::ReduceOp>(op).getChannel();
}

/// What a program asks for, as a whole.
struct Demand {
  /// Least common multiple of the parts of all ops: what every chunk is cut into.
  int64_t factor = 1;
  Operation *largest = nullptr; // an op of the most parts
  /// Part k works on channels and thread blocks k strides above those asked for.
  int32_t channelStride = 1, blockStride = 1;
  bool namesBlocks = false;
};

/// Cuts the ops of one program into their parts.
class Parallelization {
public:
  Parallelization(chunk::ProgramOp op, int32_t instances, bool shareChannels)
      : op(op), header(dialect::headerOf(op)), hints(op.getHints()), instances(instances),
        shareChannels(shareChannels) {}

  LogicalResult run() {
    Demand demand = findDemand();
    if (demand.factor == 1)
      return success();
    if (failed(checkLimits(demand)))
      return failure();
    if (failed(splitOps(demand)))
      return failure();
    refineHeader(static_cast<int32_t>(demand.factor));
    return success();
  }

private:
  int64_t partsOf(Operation &operation) const {
    return int64_t(dialect::hintAt(hints, hintOf(operation)).parallel) * instances;
  }

  template <typename Function> void forEachOp(Function fn) {
    for (Operation &operation : op.getBody().front())
      if (!isa<chunk::ReadOp>(operation))
        fn(operation);
  }

  Demand findDemand() {
    Demand demand;
    int64_t most = 0;
    forEachOp([&](Operation &operation) {
      int64_t parts = partsOf(operation);
      // Beyond the limit of chunks nothing is computed any more, only reported.
      if (demand.factor <= plan::limits::kMaxChunks)
        demand.factor = std::lcm(demand.factor, parts);
      if (parts > most) {
        most = parts;
        demand.largest = &operation;
      }
      dialect::HintRecord hint = dialect::hintAt(hints, hintOf(operation));
      demand.channelStride = std::max(demand.channelStride, channelOf(operation) + 1);
      demand.namesBlocks |= hint.sendBlock >= 0 || hint.recvBlock >= 0;
      demand.blockStride = std::max({demand.blockStride, hint.sendBlock + 1, hint.recvBlock + 1});
    });
    demand.channelStride = std::max(demand.channelStride, header.channel + 1);
    return demand;
  }

  LogicalResult checkLimits(const Demand &demand) {
    int64_t largest = header.partChunks;
    for (llvm::ArrayRef<int32_t> sizes :
         {header.inputChunks, header.outputChunks, header.scratchChunks})
      for (int32_t size : sizes)
        largest = std::max<int64_t>(largest, size);
    if (largest * demand.factor <= int64_t(plan::limits::kMaxChunks))
      return success();
    auto diagnostic = emitError(demand.largest->getLoc())
                      << "parallelism cuts every chunk of the program into ";
    if (demand.factor > int64_t(plan::limits::kMaxChunks))
      diagnostic << "more pieces than a plan may have chunks";
    else
      diagnostic << demand.factor << ", so that a buffer has " << largest * demand.factor
                 << " chunks";
    return diagnostic << "; a plan allows " << plan::limits::kMaxChunks
                      << "; ask for fewer parts, and for numbers with a small common multiple "
                         "[E100]";
  }

  LogicalResult splitOps(const Demand &demand) {
    Block &body = op.getBody().front();
    std::vector<Operation *> originals;
    for (Operation &operation : body)
      originals.push_back(&operation);
    for (Operation *operation : originals)
      if (!isa<chunk::ReadOp>(operation) && failed(split(*operation, demand)))
        return failure();
    for (Operation *operation : llvm::reverse(originals))
      operation->erase();
    return success();
  }

  LogicalResult split(Operation &operation, const Demand &demand) {
    auto parts = static_cast<int32_t>(partsOf(operation));
    std::vector<Value> &results = partsOfResult[&operation];
    ChunkRange target = rangeOf(cast<chunk::ChunkOpInterface>(operation));
    OpBuilder builder(&operation);
    for (int32_t part = 0; part < parts; ++part) {
      int32_t channel = channelOf(operation), hint = hintOf(operation);
      // Parts with thread blocks of their own need channels of their own.
      if (part > 0 && (!shareChannels || demand.namesBlocks))
        channel = std::max({channel, header.channel, 0}) + part * demand.channelStride;
      if (channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
        return emitError(operation.getLoc())
               << "part " << part << " of " << parts << " needs channel " << channel
               << "; there are " << plan::limits::kMaxChannels
               << ": ask for fewer parts or smaller channels [E101]";
      if (failed(placePart(operation, hint, part, demand.blockStride)))
        return failure();
      ChunkRange to = target.part(demand.factor, parts, part);
      SmallVector<Value, 4> sources;
      for (Value source : operation.getOperands())
        sources.push_back(partOfValue(builder, source, demand.factor, parts, part));
      auto index = static_cast<int32_t>(to.index);
      if (isa<chunk::CopyOp>(operation)) {
        results.push_back(builder.create<chunk::CopyOp>(operation.getLoc(), sources.front(),
                                                        to.rank, to.buffer, index, channel, hint));
        continue;
      }
      auto reduce = builder.create<chunk::ReduceOp>(operation.getLoc(), sources, to.rank, to.buffer,
                                                    index, channel, hint);
      reduce.setFinal(cast<chunk::ReduceOp>(operation).getFinal());
      results.push_back(reduce);
    }
    return success();
  }

  /// The value of a part of `source`: the result of the op that wrote the same part, or what lies
  /// in its range now, which is the same.
  Value partOfValue(OpBuilder &builder, Value source, int64_t factor, int32_t parts, int32_t part) {
    auto known = partsOfResult.find(source.getDefiningOp());
    if (known != partsOfResult.end() && known->second.size() == static_cast<size_t>(parts))
      return known->second[part];
    auto defining = source.getDefiningOp<chunk::ChunkOpInterface>();
    ChunkRange from = rangeOf(defining).part(factor, parts, part);
    return builder.create<chunk::ReadOp>(defining.getLoc(), from.rank, from.buffer,
                                         static_cast<int32_t>(from.index),
                                         static_cast<int32_t>(from.count));
  }

  /// Replaces `hint` by the number of the record for one part: of one piece, on thread blocks of
  /// its own.
  LogicalResult placePart(Operation &operation, int32_t &hint, int32_t part, int32_t stride) {
    dialect::HintRecord record = dialect::hintAt(hints, hint);
    record.parallel = 1;
    for (int32_t *block : {&record.sendBlock, &record.recvBlock}) {
      if (*block < 0)
        continue;
      *block += part * stride;
      if (*block >= static_cast<int32_t>(plan::limits::kMaxThreadBlocks))
        return emitError(operation.getLoc())
               << "part " << part << " needs thread block " << *block << "; there are "
               << plan::limits::kMaxThreadBlocks
               << ": ask for fewer parts or smaller thread blocks [E102]";
    }
    if (record == dialect::HintRecord()) {
      hint = -1;
      return success();
    }
    auto [entry, isNew] = recordOf.try_emplace({hint, part}, 0);
    if (isNew) {
      entry->second = static_cast<int32_t>(newHints.size() / dialect::kHintFields);
      dialect::appendHint(newHints, record);
    }
    hint = entry->second;
    return success();
  }

  void refineHeader(int32_t factor) {
    auto scale = [&](llvm::ArrayRef<int32_t> values) {
      SmallVector<int32_t> scaled;
      for (int32_t value : values)
        scaled.push_back(value * factor);
      return scaled;
    };
    SmallVector<int32_t> requirements;
    for (llvm::ArrayRef<int32_t> rest = header.requirements; !rest.empty();) {
      requirements.append({rest[0], rest[1] * factor, rest[2] * factor, rest[3]});
      llvm::ArrayRef<int32_t> contributions = rest.slice(4, 2 * static_cast<size_t>(rest[3]));
      for (size_t i = 0; i < contributions.size(); i += 2)
        requirements.append({contributions[i], contributions[i + 1] * factor});
      rest = rest.drop_front(4 + contributions.size());
    }
    op.setInputChunks(scale(header.inputChunks));
    op.setOutputChunks(scale(header.outputChunks));
    op.setScratchChunks(scale(header.scratchChunks));
    op.setInPlaceOffsets(scale(header.inPlaceOffsets));
    op.setPartChunks(static_cast<uint32_t>(header.partChunks * factor));
    op.setRequirements(requirements);
    op.setHints(newHints);
  }

  chunk::ProgramOp op;
  dialect::ProgramHeader header; // as it was before
  llvm::ArrayRef<int32_t> hints;
  int32_t instances;
  bool shareChannels;
  SmallVector<int32_t> newHints;
  llvm::DenseMap<std::pair<int32_t, int32_t>, int32_t> recordOf; // of a hint and a part
  llvm::DenseMap<Operation *, std::vector<Value>> partsOfResult;
};

class ChunkParallelizePass : public passes::impl::ChunkParallelizeBase<ChunkParallelizePass> {
  using ChunkParallelizeBase::ChunkParallelizeBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<chunk::ProgramOp>())
      if (failed(Parallelization(program, static_cast<int32_t>(instances), shareChannels).run()))
        signalPassFailure();
  }
};

} // namespace

#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "compiler/passes/Passes.h"
#include "plan/model/limits.h"

#include <numeric>

namespace occl::passes {
#define GEN_PASS_DEF_CHUNKPARALLELIZE
#include "compiler/passes/Passes.h.inc"
} // namespace occl::passes

using namespace mlir;
using namespace occl;
using chunk::ChunkOp;

namespace {

/// Makes `op` part `part` of `parts` of what it is, where every chunk is cut into `factor`, which
/// `parts` divides: chunk i becomes [i * factor, (i + 1) * factor), so that an element stays in its
/// chunk, and whatever the program does with a chunk it does with each of its pieces.
void narrow(ChunkOp &op, int64_t factor, int32_t parts, int32_t part) {
  int64_t size = op.count * factor / parts;
  op.index = static_cast<int32_t>(op.index * factor + part * size);
  op.count = static_cast<int32_t>(size);
}

/// What a program asks for, as a whole.
struct Demand {
  /// Least common multiple of the parts of all ops: what every chunk is cut into.
  int64_t factor = 1;
  mlir::LocationAttr largest; // of an op of the most parts
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

  /// Replaces the operations.
  LogicalResult run(chunk::ChunkProgram &program) {
    // How finely the program has to be cut, and what its channels and thread blocks are; most
    // programs ask for nothing.
    Demand demand = findDemand(program);
    if (demand.factor == 1)
      return success();
    if (failed(checkLimits(demand)) || failed(splitOps(program, demand)))
      return failure();
    program = std::move(result);
    refineHeader(static_cast<int32_t>(demand.factor));
    return success();
  }

private:
  int32_t partsOf(const ChunkOp &target) const {
    return dialect::hintAt(hints, target.hint).parallel * instances;
  }

  Demand findDemand(const chunk::ChunkProgram &program) {
    // All chunks are cut by the same factor, so that numbers of parts that differ have a common
    // grid: their least common multiple.
    Demand demand;
    int64_t most = 0;
    for (const ChunkOp &target : program.ops) {
      if (target.kind == ChunkOp::Kind::Read)
        continue;
      int64_t parts = partsOf(target);
      // Beyond the limit of chunks nothing is computed any more, only reported.
      if (demand.factor <= plan::limits::kMaxChunks)
        demand.factor = std::lcm(demand.factor, parts);
      if (parts > most) {
        most = parts;
        demand.largest = target.location;
      }
      dialect::HintRecord hint = dialect::hintAt(hints, target.hint);
      // Parts get channels and thread blocks of their own, a stride apart, so that those of
      // different parts never collide.
      demand.channelStride = std::max(demand.channelStride, target.channel + 1);
      demand.namesBlocks |= hint.sendBlock >= 0 || hint.recvBlock >= 0;
      demand.blockStride = std::max({demand.blockStride, hint.sendBlock + 1, hint.recvBlock + 1});
    }
    demand.channelStride = std::max(demand.channelStride, header.channel + 1);
    return demand;
  }

  LogicalResult checkLimits(const Demand &demand) {
    // The largest buffer decides whether a plan can have so many chunks.
    int64_t largest = header.partChunks;
    for (llvm::ArrayRef<int32_t> sizes :
         {header.inputChunks, header.outputChunks, header.scratchChunks})
      for (int32_t size : sizes)
        largest = std::max<int64_t>(largest, size);
    if (largest * demand.factor <= int64_t(plan::limits::kMaxChunks))
      return success();
    // The operation that asked for most is the one to change.
    auto diagnostic = emitError(demand.largest)
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

  LogicalResult splitOps(const chunk::ChunkProgram &program, const Demand &demand) {
    partsOfResult.resize(program.ops.size());
    for (auto [position, target] : llvm::enumerate(program.ops))
      if (target.kind != ChunkOp::Kind::Read &&
          failed(split(program, target, demand, partsOfResult[position])))
        return failure();
    return success();
  }

  /// Appends the parts of `target` to the result, and their positions to `positions`.
  LogicalResult split(const chunk::ChunkProgram &program, const ChunkOp &target,
                      const Demand &demand, std::vector<uint32_t> &positions) {
    // Each part is an operation over its share of the chunks, with the same part of its sources.
    const int32_t parts = partsOf(target);
    for (int32_t part = 0; part < parts; ++part) {
      ChunkOp to = target;
      // Parts with thread blocks of their own need channels of their own.
      if (part > 0 && (!shareChannels || demand.namesBlocks))
        to.channel = std::max({to.channel, header.channel, 0}) + part * demand.channelStride;
      if (to.channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
        return emitError(to.location) << "part " << part << " of " << parts << " needs channel "
                                      << to.channel << "; there are " << plan::limits::kMaxChannels
                                      << ": ask for fewer parts or smaller channels [E101]";
      if (failed(placePart(to, part, demand.blockStride)))
        return failure();
      narrow(to, demand.factor, parts, part);
      // The same part of each source, if that was cut into as many; otherwise a read of the range.
      SmallVector<uint32_t, 4> sources;
      for (uint32_t source : program.sourcesOf(target))
        sources.push_back(partOfValue(program, source, demand.factor, parts, part));
      positions.push_back(result.add(to, sources));
    }
    return success();
  }

  /// The value of a part of `source`: the result of the op that wrote the same part, or what lies
  /// in its range now, which is the same.
  uint32_t partOfValue(const chunk::ChunkProgram &program, uint32_t source, int64_t factor,
                       int32_t parts, int32_t part) {
    // Results of the same cut are known part by part.
    const std::vector<uint32_t> &known = partsOfResult[source];
    if (known.size() == static_cast<size_t>(parts))
      return known[part];
    ChunkOp from;
    from.rank = program.ops[source].rank;
    from.buffer = program.ops[source].buffer;
    from.index = program.ops[source].index;
    from.count = program.ops[source].count;
    from.location = program.ops[source].location;
    narrow(from, factor, parts, part);
    return result.add(from, {});
  }

  /// Replaces the op's hint by the number of the record for one part: of one piece, on thread
  /// blocks of its own.
  LogicalResult placePart(ChunkOp &target, int32_t part, int32_t stride) {
    // Nothing is cut further; thread blocks are moved by the stride.
    dialect::HintRecord record = dialect::hintAt(hints, target.hint);
    record.parallel = 1;
    for (int32_t *block : {&record.sendBlock, &record.recvBlock}) {
      if (*block < 0)
        continue;
      *block += part * stride;
      if (*block >= static_cast<int32_t>(plan::limits::kMaxThreadBlocks))
        return emitError(target.location)
               << "part " << part << " needs thread block " << *block << "; there are "
               << plan::limits::kMaxThreadBlocks
               << ": ask for fewer parts or smaller thread blocks [E102]";
    }
    // The usual hint has no record.
    if (record == dialect::HintRecord()) {
      target.hint = -1;
      return success();
    }
    // Records are shared by all operations with the same hint and part.
    auto [entry, isNew] = recordOf.try_emplace({target.hint, part}, 0);
    if (isNew) {
      entry->second = static_cast<int32_t>(newHints.size() / dialect::kHintFields);
      dialect::appendHint(newHints, record);
    }
    target.hint = entry->second;
    return success();
  }

  void refineHeader(int32_t factor) {
    // Everything that counts chunks is multiplied; the number of contributions is not.
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
  chunk::ChunkProgram result;
  std::vector<std::vector<uint32_t>> partsOfResult; // of each op so far
};

class ChunkParallelizePass : public passes::impl::ChunkParallelizeBase<ChunkParallelizePass> {
  using ChunkParallelizeBase::ChunkParallelizeBase;

  void runOnOperation() override {
    for (auto op : getOperation().getOps<chunk::ProgramOp>()) {
      Parallelization parallelization(op, static_cast<int32_t>(instances), shareChannels);
      if (failed(parallelization.run(op.getMutableOperations())))
        return signalPassFailure();
    }
  }
};

} // namespace

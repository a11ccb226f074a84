#include "compiler/dialect/chunk/Chunk.h"

#include "compiler/dialect/Hints.h"
#include "compiler/dialect/ProgramHeader.h"
#include "mlir/IR/DialectImplementation.h"
#include "plan/model/limits.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace occl;
using namespace occl::chunk;
using plan::OperandKind;

#include "compiler/dialect/chunk/ChunkDialect.cpp.inc"
#include "compiler/dialect/chunk/ChunkInterfaces.cpp.inc"

void ChunkDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "compiler/dialect/chunk/ChunkTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "compiler/dialect/chunk/ChunkOps.cpp.inc"
      >();
}

//===--- ProgramOp ---===//

void ProgramOp::build(OpBuilder &builder, OperationState &state, llvm::StringRef algorithm,
                      llvm::StringRef collective, llvm::ArrayRef<int32_t> inputChunks,
                      llvm::ArrayRef<int32_t> outputChunks, llvm::ArrayRef<int32_t> scratchChunks,
                      llvm::ArrayRef<int32_t> inPlaceOffsets) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.algorithm = builder.getStringAttr(algorithm);
  properties.collective = builder.getStringAttr(collective);
  properties.num_ranks = builder.getI32IntegerAttr(static_cast<int32_t>(inputChunks.size()));
  properties.input_chunks = builder.getDenseI32ArrayAttr(inputChunks);
  properties.output_chunks = builder.getDenseI32ArrayAttr(outputChunks);
  properties.scratch_chunks = builder.getDenseI32ArrayAttr(scratchChunks);
  properties.in_place_offsets = builder.getDenseI32ArrayAttr(inPlaceOffsets);
  state.addRegion()->emplaceBlock();
}

LogicalResult ProgramOp::verify() {
  return success(succeeded(dialect::verifyHeader(*this, dialect::headerOf(*this))) &&
                 succeeded(dialect::verifyHints(*this, getHints())));
}

int32_t ProgramOp::bufferChunks(int32_t rank, OperandKind buffer) {
  return dialect::headerOf(*this).sizesOf(buffer)[rank];
}

//===--- ReadOp, CopyOp, ReduceOp: assembly ---===//

namespace {

/// Where an op's result lies, as it is written: `buffer[rank][index] count n`.
struct Place {
  int32_t rank = 0;
  OperandKind buffer = OperandKind::Input;
  int32_t index = 0;
  int32_t count = 1;
};

ParseResult parsePlace(OpAsmParser &parser, Place &place) {
  llvm::SMLoc at = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  if (name == "input")
    place.buffer = OperandKind::Input;
  else if (name == "output")
    place.buffer = OperandKind::Output;
  else if (name == "scratch")
    place.buffer = OperandKind::Scratch;
  else
    return parser.emitError(at) << "expected input, output or scratch, got " << name;
  if (parser.parseLSquare() || parser.parseInteger(place.rank) || parser.parseRSquare() ||
      parser.parseLSquare() || parser.parseInteger(place.index) || parser.parseRSquare())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("count")))
    return parser.parseInteger(place.count);
  return success();
}

template <typename Op> void printPlace(OpAsmPrinter &printer, Op op) {
  printer << dialect::bufferName(op.getBuffer()) << '[' << op.getRank() << "][" << op.getIndex()
          << ']';
  if (op.getCount() != 1)
    printer << " count " << op.getCount();
}

/// Fills in the properties that all chunk ops have and finishes parsing.
template <typename Op>
ParseResult finishParsing(OpAsmParser &parser, OperationState &state, const Place &place) {
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  properties.rank = place.rank;
  properties.buffer = place.buffer;
  properties.index = place.index;
  properties.count = place.count;
  state.addTypes(ValueType::get(parser.getContext()));
  return parser.parseOptionalAttrDict(state.attributes);
}

template <typename Op>
ParseResult parseSourcesAndPlace(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand> sources;
  Place place;
  if (parser.parseOperandList(sources) || parser.parseKeyword("into") ||
      parsePlace(parser, place) ||
      parser.resolveOperands(sources, ValueType::get(parser.getContext()), state.operands))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("channel")) &&
      parser.parseInteger(state.getOrAddProperties<typename Op::Properties>().channel))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("hint")) &&
      parser.parseInteger(state.getOrAddProperties<typename Op::Properties>().hint))
    return failure();
  if constexpr (std::is_same_v<Op, ReduceOp>)
    state.getOrAddProperties<typename Op::Properties>().final =
        succeeded(parser.parseOptionalKeyword("final"));
  return finishParsing<Op>(parser, state, place);
}

template <typename Op> void printSourcesAndPlace(OpAsmPrinter &printer, Op op) {
  printer << ' ' << op->getOperands() << " into ";
  printPlace(printer, op);
  if (op.getChannel() != -1)
    printer << " channel " << op.getChannel();
  if (op.getHint() != -1)
    printer << " hint " << op.getHint();
  if constexpr (std::is_same_v<Op, ReduceOp>)
    if (op.getFinal())
      printer << " final";
  printer.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
}

/// Sets the properties that all chunk ops have. The result has as many chunks as the first source.
template <typename Op>
void buildFromSources(OpBuilder &builder, OperationState &state, ValueRange sources, int32_t rank,
                      OperandKind buffer, int32_t index, int32_t channel, int32_t hint) {
  auto &properties = state.getOrAddProperties<typename Op::Properties>();
  properties.rank = rank;
  properties.buffer = buffer;
  properties.index = index;
  properties.count = sources.front().getDefiningOp<ChunkOpInterface>().getCount();
  properties.channel = channel;
  properties.hint = hint;
  state.addOperands(sources);
  state.addTypes(ValueType::get(builder.getContext()));
}

LogicalResult verifyPlace(ChunkOpInterface op) {
  auto program = cast<ProgramOp>(op->getParentOp());
  return dialect::verifyRange(op, dialect::headerOf(program), op.getRank(), op.getBuffer(),
                              op.getIndex(), op.getCount());
}

LogicalResult verifySources(ChunkOpInterface op, int32_t channel, int32_t hint) {
  for (Value source : op->getOperands()) {
    auto producer = source.getDefiningOp<ChunkOpInterface>();
    if (producer.getCount() == op.getCount())
      continue;
    auto diagnostic = op->emitOpError() << "stores " << op.getCount()
                                        << " chunks, but a source has " << producer.getCount();
    diagnostic.attachNote(producer->getLoc()) << "the source is defined here";
    return diagnostic;
  }
  if (channel < -1 || channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
    return op->emitOpError() << "needs a channel below " << plan::limits::kMaxChannels << ", got "
                             << channel;
  if (failed(dialect::verifyHint(op, cast<ProgramOp>(op->getParentOp()).getHints(), hint)))
    return failure();
  return verifyPlace(op);
}

} // namespace

ParseResult ReadOp::parse(OpAsmParser &parser, OperationState &state) {
  Place place;
  return failure(parsePlace(parser, place) || finishParsing<ReadOp>(parser, state, place));
}

void ReadOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printPlace(printer, *this);
  printer.printOptionalAttrDict((*this)->getDiscardableAttrDictionary().getValue());
}

void ReadOp::build(OpBuilder &builder, OperationState &state, int32_t rank, OperandKind buffer,
                   int32_t index, int32_t count) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.rank = rank;
  properties.buffer = buffer;
  properties.index = index;
  properties.count = count;
  state.addTypes(ValueType::get(builder.getContext()));
}

LogicalResult ReadOp::verify() { return verifyPlace(*this); }

ParseResult CopyOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseSourcesAndPlace<CopyOp>(parser, state);
}

void CopyOp::print(OpAsmPrinter &printer) { printSourcesAndPlace(printer, *this); }

void CopyOp::build(OpBuilder &builder, OperationState &state, Value source, int32_t rank,
                   OperandKind buffer, int32_t index, int32_t channel, int32_t hint) {
  buildFromSources<CopyOp>(builder, state, source, rank, buffer, index, channel, hint);
}

LogicalResult CopyOp::verify() { return verifySources(*this, getChannel(), getHint()); }

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseSourcesAndPlace<ReduceOp>(parser, state);
}

void ReduceOp::print(OpAsmPrinter &printer) { printSourcesAndPlace(printer, *this); }

void ReduceOp::build(OpBuilder &builder, OperationState &state, ValueRange sources, int32_t rank,
                     OperandKind buffer, int32_t index, int32_t channel, int32_t hint) {
  buildFromSources<ReduceOp>(builder, state, sources, rank, buffer, index, channel, hint);
}

LogicalResult ReduceOp::verify() {
  if (getSources().size() < 2)
    return emitOpError() << "needs at least 2 sources, got " << getSources().size();
  if (getSources().size() >= plan::limits::kMaxOperands)
    return emitOpError() << "has " << getSources().size() << " sources; a plan allows "
                         << plan::limits::kMaxOperands - 1;
  return verifySources(*this, getChannel(), getHint());
}

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/chunk/ChunkTypes.cpp.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/chunk/ChunkOps.cpp.inc"

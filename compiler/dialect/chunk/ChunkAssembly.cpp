#include "compiler/dialect/chunk/ChunkAssembly.h"

#include "compiler/dialect/Lines.h"
#include "compiler/dialect/ProgramHeader.h"

#include <optional>

using namespace mlir;

namespace occl::chunk {

llvm::StringRef nameOf(ChunkOp::Kind kind) {
  constexpr llvm::StringLiteral names[] = {"chunk.read", "chunk.copy", "chunk.reduce"};
  return names[static_cast<unsigned>(kind)];
}

static std::optional<ChunkOp::Kind> kindNamed(llvm::StringRef name) {
  for (ChunkOp::Kind kind : {ChunkOp::Kind::Read, ChunkOp::Kind::Copy, ChunkOp::Kind::Reduce})
    if (nameOf(kind) == name)
      return kind;
  return std::nullopt;
}

/// `buffer[rank][index] count n`; without a count it stays as it is.
static ParseResult parsePlace(OpAsmParser &parser, ChunkOp &op) {
  // buffer, rank and index; a range of one chunk says no count.
  const llvm::SMLoc where = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  const std::optional<plan::OperandKind> buffer = dialect::bufferNamed(name);
  if (!buffer)
    return parser.emitError(where) << "expected input, output or scratch, got " << name;
  op.buffer = *buffer;
  if (parser.parseLSquare() || parser.parseInteger(op.rank) || parser.parseRSquare() ||
      parser.parseLSquare() || parser.parseInteger(op.index) || parser.parseRSquare())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("count")))
    return parser.parseInteger(op.count);
  return success();
}

/// What stands behind the mnemonic, but for sources.
static ParseResult parseOperation(OpAsmParser &parser, ChunkOp &op) {
  if (parsePlace(parser, op))
    return failure();
  if (op.kind == ChunkOp::Kind::Read)
    return success();
  if (succeeded(parser.parseOptionalKeyword("channel")) && parser.parseInteger(op.channel))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("hint")) && parser.parseInteger(op.hint))
    return failure();
  op.final = op.kind == ChunkOp::Kind::Reduce && succeeded(parser.parseOptionalKeyword("final"));
  return success();
}

ParseResult parseOperations(OpAsmParser &parser, ChunkProgram &program) {
  dialect::LineParser lines(parser);
  return lines.parse([&](llvm::StringRef name, llvm::SMLoc where) -> LocationAttr * {
    // A mnemonic, then its sources if it has any, then where it stores.
    const std::optional<ChunkOp::Kind> kind = kindNamed(name);
    if (!kind) {
      (void)(parser.emitError(where) << "expected an operation on chunks, got " << name);
      return nullptr;
    }
    ChunkOp op;
    op.kind = *kind;
    // A read has no sources: it is what a place holds.
    SmallVector<uint32_t, 8> sources;
    if ((op.kind != ChunkOp::Kind::Read &&
         (lines.parseNames(sources) || parser.parseKeyword("into"))) ||
        parseOperation(parser, op))
      return nullptr;
    return &program.ops[program.add(op, sources)].location;
  });
}

static void printOperation(OpAsmPrinter &printer, const ChunkProgram &program, const ChunkOp &op) {
  // The inverse of parseOperations: what has its usual value is left out.
  printer << nameOf(op.kind) << ' ';
  if (op.kind != ChunkOp::Kind::Read) {
    dialect::printNames(printer, program.sourcesOf(op));
    printer << " into ";
  }
  printer << dialect::bufferName(op.buffer) << '[' << op.rank << "][" << op.index << ']';
  if (op.count != 1)
    printer << " count " << op.count;
  if (op.channel != -1)
    printer << " channel " << op.channel;
  if (op.hint != -1)
    printer << " hint " << op.hint;
  if (op.final)
    printer << " final";
}

void printOperations(OpAsmPrinter &printer, Operation *, const ChunkProgram &program) {
  dialect::printLines(printer, program.ops.size(), [&](size_t i) {
    printOperation(printer, program, program.ops[i]);
    return program.ops[i].location;
  });
}

} // namespace occl::chunk

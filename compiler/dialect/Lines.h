// The textual form of a list that an op has as a property: one line for each element, as if it were
// an op whose result later ones name: `%2 = mnemonic ... %0, %1 ... loc(...)`.
#pragma once

#include "mlir/IR/OpImplementation.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

#include <cstdint>

namespace occl::dialect {

/// Reads `{`, lines and `}`. Errors are emitted at their place in the text.
class LineParser {
public:
  explicit LineParser(mlir::OpAsmParser &parser) : parser(parser) {}

  /// Calls parseLine(mnemonic, where) for each line, which reads what stands between the mnemonic
  /// and the location, and returns the element's location, to be set, or null after an error. A
  /// line without location has that of its mnemonic.
  mlir::ParseResult
  parse(llvm::function_ref<mlir::LocationAttr *(llvm::StringRef mnemonic, llvm::SMLoc where)>
            parseLine);

  /// One or more names of earlier lines, appended to `positions` as their positions.
  mlir::ParseResult parseNames(llvm::SmallVectorImpl<uint32_t> &positions);

private:
  mlir::ParseResult parseOwnName(uint32_t position);
  mlir::ParseResult parseLocation(llvm::SMLoc mnemonic, mlir::LocationAttr &location);

  mlir::OpAsmParser &parser;
  llvm::StringMap<uint32_t> positionOf; // of the line of that name
};

/// Writes `{`, `number` lines and `}`. printLine(i) writes what stands behind the name of line i,
/// and returns its location, which may be null.
void printLines(mlir::OpAsmPrinter &printer, size_t number,
                llvm::function_ref<mlir::LocationAttr(size_t)> printLine);

/// Writes the names of the lines at `positions`.
void printNames(mlir::OpAsmPrinter &printer, llvm::ArrayRef<uint32_t> positions);

} // namespace occl::dialect

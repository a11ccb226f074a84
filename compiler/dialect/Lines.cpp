#include "compiler/dialect/Lines.h"

#include <optional>

using namespace mlir;

namespace occl::dialect {

ParseResult LineParser::parse(
    llvm::function_ref<LocationAttr *(llvm::StringRef mnemonic, llvm::SMLoc where)> parseLine) {
  // One line for each element: an optional name, a mnemonic, what belongs to it, an optional
  // location.
  if (parser.parseLBrace())
    return failure();
  for (uint32_t position = 0; failed(parser.parseOptionalRBrace()); ++position) {
    if (parseOwnName(position))
      return failure();
    // The place of the mnemonic is the element's location if the text gives none.
    const llvm::SMLoc where = parser.getCurrentLocation();
    llvm::StringRef mnemonic;
    if (parser.parseKeyword(&mnemonic))
      return failure();
    LocationAttr *location = parseLine(mnemonic, where);
    if (!location || parseLocation(where, *location))
      return failure();
  }
  return success();
}

ParseResult LineParser::parseOwnName(uint32_t position) {
  const llvm::SMLoc where = parser.getCurrentLocation();
  OpAsmParser::UnresolvedOperand name;
  // A line without name cannot be referred to, which is allowed.
  OptionalParseResult hasName = parser.parseOptionalOperand(name, /*allowResultNumber=*/false);
  if (!hasName.has_value())
    return success();
  if (*hasName || parser.parseEqual())
    return failure();
  if (!positionOf.try_emplace(name.name, position).second)
    return parser.emitError(where) << "has the name '" << name.name << "' of an earlier line";
  return success();
}

ParseResult LineParser::parseLocation(llvm::SMLoc mnemonic, LocationAttr &location) {
  std::optional<Location> given;
  const llvm::SMLoc where = parser.getCurrentLocation();
  if (parser.parseOptionalLocationSpecifier(given))
    return failure();
  location = given ? LocationAttr(*given) : LocationAttr(parser.getEncodedSourceLoc(mnemonic));
  // An alias that is defined further below is not resolved in what is no op.
  if (isa<OpaqueLoc>(location))
    return parser.emitError(where, "expected a location, or an alias that is defined above");
  return success();
}

ParseResult LineParser::parseNames(llvm::SmallVectorImpl<uint32_t> &positions) {
  // Only earlier lines have names, so the text cannot express a cycle.
  return parser.parseCommaSeparatedList([&]() -> ParseResult {
    const llvm::SMLoc where = parser.getCurrentLocation();
    OpAsmParser::UnresolvedOperand name;
    if (parser.parseOperand(name, /*allowResultNumber=*/false))
      return failure();
    auto known = positionOf.find(name.name);
    if (known == positionOf.end())
      return parser.emitError(where) << "expected the name of an earlier line, got " << name.name;
    positions.push_back(known->second);
    return success();
  });
}

void printLines(OpAsmPrinter &printer, size_t number,
                llvm::function_ref<LocationAttr(size_t)> printLine) {
  // The printer that collects aliases would take those of locations in any case. Its flags are not
  // to be had: those of the command line (--mlir-print-debuginfo) are what occl-opt prints with.
  const bool hasLocations = OpPrintingFlags().shouldPrintDebugInfo();
  printer << '{';
  printer.increaseIndent();
  for (size_t i = 0; i < number; ++i) {
    printer.printNewline();
    printer << '%' << i << " = ";
    if (LocationAttr location = printLine(i); location && hasLocations)
      printer.printOptionalLocationSpecifier(location);
  }
  printer.decreaseIndent();
  printer.printNewline();
  printer << '}';
}

void printNames(OpAsmPrinter &printer, llvm::ArrayRef<uint32_t> positions) {
  llvm::interleaveComma(positions, printer, [&](uint32_t position) { printer << '%' << position; });
}

} // namespace occl::dialect

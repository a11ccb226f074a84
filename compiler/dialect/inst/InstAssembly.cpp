#include "compiler/dialect/inst/InstAssembly.h"

#include "compiler/dialect/inst/Inst.h"
#include "plan/model/limits.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace occl::inst {

static constexpr llvm::StringLiteral kPlaceNames[] = {"input", "output", "scratch", "transfer",
                                                      "connection"};

static ParseResult parseOwner(OpAsmParser &parser, Place &place) {
  if (failed(parser.parseOptionalKeyword("of")))
    return success();
  llvm::SMLoc at = parser.getCurrentLocation();
  int32_t rank = 0;
  if (parser.parseInteger(rank))
    return failure();
  if (rank < 0 || rank >= static_cast<int32_t>(plan::limits::kMaxRanks))
    return parser.emitError(at) << "expected a rank below " << plan::limits::kMaxRanks << ", got "
                                << rank;
  place.channel = static_cast<int16_t>(rank);
  return success();
}

static ParseResult parsePlace(OpAsmParser &parser, Place &place) {
  llvm::SMLoc at = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  const auto *found = llvm::find(kPlaceNames, name);
  if (found == std::end(kPlaceNames))
    return parser.emitError(at) << "expected input, output, scratch, transfer or connection, got "
                                << name;
  place.kind = static_cast<PlaceKind>(found - kPlaceNames);
  if (place.isLocal()) {
    if (parser.parseLSquare() || parser.parseInteger(place.index) || parser.parseRSquare())
      return failure();
    return parseOwner(parser, place);
  }
  if (parser.parseLParen() || parser.parseInteger(place.index) || parser.parseRParen())
    return failure();
  if (place.kind != PlaceKind::Transfer || failed(parser.parseOptionalKeyword("channel")))
    return success();
  at = parser.getCurrentLocation();
  int32_t channel = 0;
  if (parser.parseInteger(channel))
    return failure();
  if (channel < 0 || channel >= static_cast<int32_t>(plan::limits::kMaxChannels))
    return parser.emitError(at) << "expected a channel below " << plan::limits::kMaxChannels
                                << ", got " << channel;
  place.channel = static_cast<int16_t>(channel);
  return success();
}

static ParseResult parsePlaces(OpAsmParser &parser, Places &places) {
  return parser.parseCommaSeparatedList([&] { return parsePlace(parser, places.emplace_back()); });
}

static ParseResult parseOptionalField(OpAsmParser &parser, llvm::StringRef keyword, auto &value) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  return parser.parseInteger(value);
}

ParseResult parseInstruction(OpAsmParser &parser, OperationState &state, Instruction &instruction) {
  llvm::StringRef name = state.name.getStringRef();
  bool hasSources = name != SignalOp::getOperationName();
  bool hasDestinations = name != WaitOp::getOperationName();
  if ((hasSources && parsePlaces(parser, instruction.sources)) ||
      (hasDestinations &&
       (parser.parseKeyword("into") || parsePlaces(parser, instruction.destinations))) ||
      parseOptionalField(parser, "count", instruction.count) ||
      parseOptionalField(parser, "extent", instruction.extent) ||
      parseOptionalField(parser, "block", instruction.threadBlock) ||
      parseOptionalField(parser, "group", instruction.group))
    return failure();
  instruction.final = succeeded(parser.parseOptionalKeyword("final"));
  auto token = TokenType::get(parser.getContext());
  SmallVector<OpAsmParser::UnresolvedOperand> dependencies;
  if (succeeded(parser.parseOptionalKeyword("after")) &&
      (parser.parseOperandList(dependencies) ||
       parser.resolveOperands(dependencies, token, state.operands)))
    return failure();
  state.addTypes(token);
  return parser.parseOptionalAttrDict(state.attributes);
}

static void printPlace(OpAsmPrinter &printer, Place place) {
  printer << kPlaceNames[static_cast<unsigned>(place.kind)];
  if (place.isLocal())
    printer << '[' << place.index << ']';
  else
    printer << '(' << place.index << ')';
  if (place.channel != -1)
    printer << (place.isLocal() ? " of " : " channel ") << place.channel;
}

void printInstruction(OpAsmPrinter &printer, Operation *op, const Instruction &instruction) {
  printer << ' ';
  llvm::interleaveComma(instruction.sources, printer,
                        [&](Place place) { printPlace(printer, place); });
  if (!instruction.destinations.empty())
    printer << (instruction.sources.empty() ? "into " : " into ");
  llvm::interleaveComma(instruction.destinations, printer,
                        [&](Place place) { printPlace(printer, place); });
  if (instruction.count != 1)
    printer << " count " << instruction.count;
  if (instruction.extent != 0)
    printer << " extent " << instruction.extent;
  if (instruction.threadBlock != -1)
    printer << " block " << instruction.threadBlock;
  if (instruction.group != -1)
    printer << " group " << instruction.group;
  if (instruction.final)
    printer << " final";
  if (op->getNumOperands() != 0)
    printer << " after " << op->getOperands();
  printer.printOptionalAttrDict(op->getDiscardableAttrDictionary().getValue());
}

} // namespace occl::inst

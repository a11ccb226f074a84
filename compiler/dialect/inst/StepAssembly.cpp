#include "compiler/dialect/inst/StepAssembly.h"

#include "compiler/dialect/Lines.h"
#include "compiler/dialect/ProgramHeader.h"
#include "plan/model/limits.h"

#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace mlir;

namespace occl::inst {

static llvm::StringRef nameOf(PlaceKind kind) {
  if (kind == PlaceKind::Transfer)
    return "transfer";
  if (kind == PlaceKind::Connection)
    return "connection";
  return dialect::bufferName(static_cast<plan::OperandKind>(kind));
}

static std::optional<PlaceKind> placeNamed(llvm::StringRef name) {
  for (PlaceKind kind : {PlaceKind::Input, PlaceKind::Output, PlaceKind::Scratch,
                         PlaceKind::Transfer, PlaceKind::Connection})
    if (nameOf(kind) == name)
      return kind;
  return std::nullopt;
}

std::string nameOf(plan::Opcode opcode) {
  return "inst." + llvm::convertToSnakeFromCamelCase(plan::mnemonic(opcode));
}

static ParseResult parseOwner(OpAsmParser &parser, Place &place) {
  // The owner of another rank's buffer is kept where messages have their channel: a place has one
  // or the other.
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
  // A buffer with an index, of another rank if it says so; or a message with a number, on a channel
  // of its own if it says so.
  llvm::SMLoc at = parser.getCurrentLocation();
  llvm::StringRef name;
  if (parser.parseKeyword(&name))
    return failure();
  const std::optional<PlaceKind> kind = placeNamed(name);
  if (!kind)
    return parser.emitError(at) << "expected input, output, scratch, transfer or connection, got "
                                << name;
  place.kind = *kind;
  // Places in buffers first.
  if (place.isLocal()) {
    if (parser.parseLSquare() || parser.parseInteger(place.index) || parser.parseRSquare())
      return failure();
    return parseOwner(parser, place);
  }
  if (parser.parseLParen() || parser.parseInteger(place.index) || parser.parseRParen())
    return failure();
  if (place.kind != PlaceKind::Transfer || failed(parser.parseOptionalKeyword("channel")))
    return success();
  // Checked before it is narrowed to 16 bits.
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

/// The opcode of data and control instructions whose name this is.
static std::optional<plan::Opcode> opcodeNamed(llvm::StringRef name) {
  for (auto opcode = plan::Opcode::Copy; opcode <= plan::Opcode::Wait;
       opcode = static_cast<plan::Opcode>(static_cast<unsigned>(opcode) + 1))
    if (nameOf(opcode) == name)
      return opcode;
  return std::nullopt;
}

/// What an instruction's operands are not, as its name says what they are to be; empty if nothing.
static llvm::StringRef contradiction(plan::Opcode opcode, const Instruction &instruction) {
  // The text names the instruction, though it follows from the operands: both have to agree, so
  // that a text is not read as something else than it says.
  if (!hasShapeOf(opcode, instruction))
    return "has operands of another shape than its kind of instruction takes";
  auto isPeer = [](const Place &place) { return place.isPeer(); };
  if (opcode != plan::Opcode::LoadReduceStore &&
      (llvm::any_of(instruction.sources, isPeer) || llvm::any_of(instruction.destinations, isPeer)))
    return "names another rank's buffer, which only load_reduce_store may";
  return {};
}

static ParseResult parseStep(OpAsmParser &parser, dialect::LineParser &lines, plan::Opcode opcode,
                             Step &step) {
  // `mnemonic sources into destinations`, then what differs from the usual. Signals have no
  // sources, waits no destinations.
  Instruction &instruction = step.instruction;
  const bool hasSources = opcode != plan::Opcode::Signal;
  const bool hasDestinations = opcode != plan::Opcode::Wait;
  if ((hasSources && parsePlaces(parser, instruction.sources)) ||
      (hasDestinations &&
       (parser.parseKeyword("into") || parsePlaces(parser, instruction.destinations))) ||
      parseOptionalField(parser, "count", instruction.count) ||
      parseOptionalField(parser, "extent", instruction.extent) ||
      parseOptionalField(parser, "block", instruction.threadBlock) ||
      parseOptionalField(parser, "group", instruction.group))
    return failure();
  instruction.final = succeeded(parser.parseOptionalKeyword("final"));
  if (failed(parser.parseOptionalKeyword("after")))
    return success();
  if (lines.parseNames(step.dependencies))
    return failure();
  // In any order in the text, ascending and once each in the IR.
  llvm::sort(step.dependencies);
  step.dependencies.erase(llvm::unique(step.dependencies), step.dependencies.end());
  return success();
}

ParseResult parseSteps(OpAsmParser &parser, Steps &steps) {
  dialect::LineParser lines(parser);
  return lines.parse([&](llvm::StringRef name, llvm::SMLoc where) -> LocationAttr * {
    // The mnemonic decides which lists are there.
    std::optional<plan::Opcode> opcode = opcodeNamed(name);
    if (!opcode) {
      (void)(parser.emitError(where) << "expected an instruction, got " << name);
      return nullptr;
    }
    Step &step = steps.emplace_back();
    if (parseStep(parser, lines, *opcode, step))
      return nullptr;
    if (llvm::StringRef error = contradiction(*opcode, step.instruction); !error.empty()) {
      (void)(parser.emitError(where) << "'" << name << "' " << error);
      return nullptr;
    }
    return &step.location;
  });
}

static void printPlace(OpAsmPrinter &printer, Place place) {
  printer << nameOf(place.kind);
  if (place.isLocal())
    printer << '[' << place.index << ']';
  else
    printer << '(' << place.index << ')';
  if (place.channel != -1)
    printer << (place.isLocal() ? " of " : " channel ") << place.channel;
}

static void printStep(OpAsmPrinter &printer, const Step &step) {
  const Instruction &instruction = step.instruction;
  // The inverse of parseStep.
  printer << nameOf(opcodeOf(instruction)) << ' ';
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
  if (step.dependencies.empty())
    return;
  printer << " after ";
  dialect::printNames(printer, step.dependencies);
}

void printSteps(OpAsmPrinter &printer, Operation *, const Steps &steps) {
  dialect::printLines(printer, steps.size(), [&](size_t i) {
    printStep(printer, steps[i]);
    return steps[i].location;
  });
}

} // namespace occl::inst

#include "plan/assembler.h"

#include "plan/limits.h"
#include "plan/names.h"
#include "plan/text_check.h"

#include <algorithm>
#include <array>
#include <limits>

namespace occl::plan {

enum class PlanAssembler::Frame : uint8_t {
  Plan,
  Parameters,
  Files,
  Locations,
  Location,
  Connections,
  Connection,
  Destinations,
  Ranks,
  Rank,
  ThreadBlocks,
  ThreadBlock,
  Instruction,
  Sources,
  InstructionDestinations,
  Operand,
  After,
  Dependency,
  Requirements,
  Requirement,
  Contributions,
  Contribution,
  None, // holds neither object nor array
};

/// A value that is neither object nor array.
struct PlanAssembler::Scalar {
  enum class Type : uint8_t { Null, Bool, Unsigned, Negative, Real, String };
  Type type;
  uint64_t bits = 0; // Bool, Unsigned, Negative
  std::string_view text = {};
};

/// A member of an object: its name, and what it holds if not a scalar.
struct PlanAssembler::Field {
  const char *name;
  Frame child;
  bool isRequired = true;
};

/// What an object or array may hold. Objects have fields; arrays have an element kind; tuples are
/// arrays of minSize to maxSize elements of which the last one may be an array.
struct PlanAssembler::Shape {
  bool isObject = false;
  std::span<const Field> fields = {};
  Frame element = Frame::None;
  uint32_t minSize = 0;
  uint32_t maxSize = ~0u;
};

const PlanAssembler::Shape &PlanAssembler::shapeOf(Frame frame) {
  static constexpr Field planFields[] = {
      {"schemaVersion", Frame::None},  {"name", Frame::None},
      {"collective", Frame::None},     {"parameters", Frame::Parameters},
      {"sourceHash", Frame::None},     {"numRanks", Frame::None},
      {"partChunks", Frame::None},     {"root", Frame::None},
      {"outOfPlace", Frame::None},     {"inPlace", Frame::None},
      {"uniformChunks", Frame::None},  {"protocol", Frame::None},
      {"depth", Frame::None},          {"minBytes", Frame::None},
      {"maxBytes", Frame::None},       {"files", Frame::Files},
      {"locations", Frame::Locations}, {"connections", Frame::Connections},
      {"ranks", Frame::Ranks},         {"requirements", Frame::Requirements}};
  static constexpr Field rankFields[] = {{"inputChunks", Frame::None},
                                         {"outputChunks", Frame::None},
                                         {"scratchChunks", Frame::None},
                                         {"inPlaceOffset", Frame::None},
                                         {"threadBlocks", Frame::ThreadBlocks}};
  static constexpr Field instructionFields[] = {{"op", Frame::None},
                                                {"src", Frame::Sources, false},
                                                {"dst", Frame::InstructionDestinations, false},
                                                {"count", Frame::None, false},
                                                {"extent", Frame::None, false},
                                                {"value", Frame::None, false},
                                                {"final", Frame::None, false},
                                                {"after", Frame::After, false},
                                                {"at", Frame::None, false}};
  static constexpr std::array<Shape, 22> shapes = {{
      {true, planFields},
      {true},
      {},                                      // Files
      {false, {}, Frame::Location},            // Locations
      {false, {}, Frame::None, 3, 3},          // Location
      {false, {}, Frame::Connection},          // Connections
      {false, {}, Frame::Destinations, 3, 3},  // Connection
      {},                                      // Destinations
      {false, {}, Frame::Rank},                // Ranks
      {true, rankFields},                      // Rank
      {false, {}, Frame::ThreadBlock},         // ThreadBlocks
      {false, {}, Frame::Instruction},         // ThreadBlock
      {true, instructionFields},               // Instruction
      {false, {}, Frame::Operand},             // Sources
      {false, {}, Frame::Operand},             // InstructionDestinations
      {false, {}, Frame::None, 2, 3},          // Operand
      {false, {}, Frame::Dependency},          // After
      {false, {}, Frame::None, 2, 2},          // Dependency
      {false, {}, Frame::Requirement},         // Requirements
      {false, {}, Frame::Contributions, 4, 4}, // Requirement
      {false, {}, Frame::Contribution},        // Contributions
      {false, {}, Frame::None, 2, 2},          // Contribution
  }};
  return shapes[static_cast<size_t>(frame)];
}

bool PlanAssembler::null() { return scalar({Scalar::Type::Null}); }
bool PlanAssembler::boolean(bool value) { return scalar({Scalar::Type::Bool, value}); }
bool PlanAssembler::unsignedInteger(uint64_t value) {
  return scalar({Scalar::Type::Unsigned, value});
}
bool PlanAssembler::negativeInteger(int64_t value) {
  return scalar({Scalar::Type::Negative, static_cast<uint64_t>(value)});
}
bool PlanAssembler::real() { return scalar({Scalar::Type::Real}); }
bool PlanAssembler::string(std::string_view value) {
  return scalar({Scalar::Type::String, 0, value});
}

bool PlanAssembler::key(std::string_view name) {
  Level &level = levels.back();
  if (level.frame == Frame::Parameters) {
    if (!text({Scalar::Type::String, 0, name}, parameter))
      return false;
    auto isSame = [&](const auto &known) { return known.first == name; };
    if (std::any_of(plan.parameters.begin(), plan.parameters.end(), isSame))
      return fail("the parameter is given twice");
    return hasRoom(plan.parameters.size(), limits::kMaxParameters, "parameters");
  }
  std::span<const Field> fields = shapeOf(level.frame).fields;
  for (uint32_t i = 0; i < fields.size(); ++i) {
    if (name != fields[i].name)
      continue;
    level.field = i;
    if (level.seen >> i & 1)
      return fail("the key is given twice");
    level.seen |= 1u << i;
    return true;
  }
  levels.back().field = static_cast<uint32_t>(fields.size());
  return fail("unknown key '" + printable(name) + "'");
}

bool PlanAssembler::open(bool isObject) {
  Frame child = Frame::Plan;
  if (isComplete)
    return fail("something follows the plan");
  if (!levels.empty()) {
    Level &parent = levels.back();
    const Shape &shape = shapeOf(parent.frame);
    if (shape.isObject)
      child = shape.fields.empty() ? Frame::None : shape.fields[parent.field].child;
    else
      child =
          shape.maxSize == ~0u || parent.index + 1 == shape.maxSize ? shape.element : Frame::None;
    if (!shape.isObject && ++parent.index > shape.maxSize)
      return fail("expected at most " + std::to_string(shape.maxSize) + " elements");
  }
  if (child == Frame::None)
    return fail(isObject ? "expected no object here" : "expected no array here");
  if (shapeOf(child).isObject != isObject)
    return fail(isObject ? "expected an array, got an object" : "expected an object, got an array");
  levels.push_back({child});
  switch (child) {
  case Frame::Rank:
    return beginRank();
  case Frame::ThreadBlock:
    return beginThreadBlock();
  case Frame::Instruction:
    instruction = {};
    sources.clear();
    destinations.clear();
    dependencies.clear();
    return hasRoom(plan.instructions.size(), limits::kMaxInstructions, "instructions");
  case Frame::Operand:
    operand = {OperandKind::Input, plan.numRanks - 1, 0};
    return hasRoom(sources.size() + destinations.size(), limits::kMaxOperands, "operands") &&
           hasRoom(plan.operands.size(), limits::kMaxTotalOperands, "operands in all");
  case Frame::Connection:
    ranks.clear();
    return hasRoom(plan.connections.size(), limits::kMaxConnections, "connections");
  case Frame::Requirement:
    contributions.clear();
    return hasRoom(plan.requirements.size(), limits::kMaxRequirements, "requirements");
  case Frame::Location:
    return hasRoom(plan.locations.size(), limits::kMaxLocations, "locations");
  default:
    return true;
  }
}

bool PlanAssembler::close() {
  // Errors about the whole of it are reported at its own place, not at its last element's.
  const Level level = levels.back();
  levels.pop_back();
  const Shape &shape = shapeOf(level.frame);
  if (!shape.isObject && level.index < shape.minSize)
    return fail("expected " + std::to_string(shape.minSize) + " elements, got " +
                std::to_string(level.index));
  for (uint32_t i = 0; i < shape.fields.size(); ++i)
    if (shape.fields[i].isRequired && !(level.seen >> i & 1))
      return fail(std::string("the key '") + shape.fields[i].name + "' is missing");
  isComplete = levels.empty();
  return finish(level);
}

bool PlanAssembler::finish(const Level &level) {
  switch (level.frame) {
  case Frame::Instruction:
    return finishInstruction();
  case Frame::Operand:
  case Frame::Dependency:
  case Frame::Location:
  case Frame::Contribution:
    return finishTuple(level.frame);
  case Frame::Connection:
    builder.addConnection(tuple[0], tuple[1], ranks);
    return true;
  case Frame::Requirement:
    builder.addRequirement(requirement, contributions);
    return true;
  case Frame::Plan:
    return declaredRanks == plan.ranks.size() ||
           fail("numRanks is " + std::to_string(declaredRanks) + ", but there are " +
                std::to_string(plan.ranks.size()) + " ranks");
  default:
    return true;
  }
}

bool PlanAssembler::finishInstruction() {
  builder.addInstruction(instruction, sources, destinations, dependencies);
  return true;
}

bool PlanAssembler::finishTuple(Frame frame) {
  switch (frame) {
  case Frame::Operand: {
    bool isSource = levels.back().frame == Frame::Sources;
    (isSource ? sources : destinations).push_back(operand);
    return true;
  }
  case Frame::Dependency:
    dependencies.push_back({tuple[0], tuple[1]});
    return hasRoom(dependencies.size() - 1, limits::kMaxDependencies, "dependencies") &&
           hasRoom(plan.dependencies.size(), limits::kMaxTotalDependencies, "dependencies in all");
  case Frame::Location:
    plan.locations.push_back({tuple[0], tuple[1], tuple[2]});
    return true;
  default:
    contributions.push_back({tuple[0], tuple[1]});
    return hasRoom(plan.contributions.size() + contributions.size() - 1,
                   limits::kMaxTotalContributions, "contributions");
  }
}

bool PlanAssembler::beginRank() {
  if (!hasRoom(plan.ranks.size(), limits::kMaxRanks, "ranks"))
    return false;
  builder.beginRank({});
  return true;
}

bool PlanAssembler::beginThreadBlock() {
  if (!hasRoom(plan.ranks.back().numThreadBlocks, limits::kMaxThreadBlocks, "thread blocks") ||
      !hasRoom(plan.threadBlocks.size(), limits::kMaxTotalThreadBlocks, "thread blocks in all"))
    return false;
  builder.beginThreadBlock();
  return true;
}

bool PlanAssembler::scalar(const Scalar &value) {
  if (levels.empty())
    return fail("expected one object, the plan");
  Level &level = levels.back();
  const Shape &shape = shapeOf(level.frame);
  if (shape.isObject) {
    if (level.frame == Frame::Parameters)
      return parameterField(value);
    if (shape.fields[level.field].child != Frame::None)
      return wrongType(value, shapeOf(shape.fields[level.field].child).isObject ? "an object"
                                                                                : "an array");
    return level.frame == Frame::Plan   ? planField(level.field, value)
           : level.frame == Frame::Rank ? rankField(level.field, value)
                                        : instructionField(level.field, value);
  }
  uint32_t index = level.index++;
  if (index >= shape.maxSize)
    return fail("expected at most " + std::to_string(shape.maxSize) + " elements");
  if (shape.element != Frame::None && (shape.maxSize == ~0u || index + 1 == shape.maxSize))
    return wrongType(value, shapeOf(shape.element).isObject ? "an object" : "an array");
  return tupleElement(level.frame, index, value);
}

bool PlanAssembler::parameterField(const Scalar &value) {
  int64_t number = 0;
  if (!this->number(value, number))
    return false;
  plan.parameters.emplace_back(parameter, number);
  return true;
}

bool PlanAssembler::planField(uint32_t field, const Scalar &value) {
  switch (field) {
  case 0:
    if (!number(value, plan.schemaVersion))
      return false;
    if (plan.schemaVersion == kSchemaVersion)
      return true;
    return fail("this version reads schema version " + std::to_string(kSchemaVersion) + ", not " +
                std::to_string(plan.schemaVersion) + ": compile the plan again");
  case 1:
    return text(value, plan.name);
  case 2:
    return text(value, plan.collective);
  case 4:
    return text(value, plan.sourceHash);
  case 5: // The builder counts the ranks itself; finish() compares.
    return number(value, declaredRanks);
  case 6:
    return number(value, plan.partChunks);
  case 7:
    return number(value, plan.root);
  case 8:
    return truth(value, plan.outOfPlace);
  case 9:
    return truth(value, plan.inPlace);
  case 10:
    return truth(value, plan.uniformChunks);
  case 11: {
    std::optional<Protocol> protocol = protocolOf(value.text);
    if (value.type != Scalar::Type::String || !protocol)
      return wrongType(value, "\"Simple\", \"LL\" or \"LL128\"");
    plan.protocol = *protocol;
    return true;
  }
  case 12:
    return number(value, plan.depth);
  case 13:
    return number(value, plan.minBytes);
  default:
    return number(value, plan.maxBytes);
  }
}

bool PlanAssembler::rankField(uint32_t field, const Scalar &value) {
  RankPlan &rank = plan.ranks.back();
  switch (field) {
  case 0:
    return number(value, rank.inputChunks);
  case 1:
    return number(value, rank.outputChunks);
  case 2:
    return number(value, rank.scratchChunks);
  default:
    return number(value, rank.inPlaceOffset);
  }
}

bool PlanAssembler::instructionField(uint32_t field, const Scalar &value) {
  switch (field) {
  case 0: {
    std::optional<Opcode> opcode = opcodeOf(value.text);
    if (value.type != Scalar::Type::String || !opcode)
      return wrongType(value, "the name of an instruction");
    instruction.opcode = *opcode;
    return true;
  }
  case 3:
    return number(value, instruction.count);
  case 4:
    return number(value, instruction.extent);
  case 5:
    return number(value, instruction.value);
  case 6:
    return truth(value, instruction.final);
  default:
    return number(value, instruction.location);
  }
}

bool PlanAssembler::tupleElement(Frame frame, uint32_t index, const Scalar &value) {
  switch (frame) {
  case Frame::Files:
    plan.files.emplace_back();
    return hasRoom(plan.files.size() - 1, limits::kMaxFiles, "files") &&
           text(value, plan.files.back());
  case Frame::Destinations:
    ranks.push_back(0);
    return hasRoom(ranks.size() - 1, limits::kMaxRanks, "destinations") &&
           hasRoom(plan.destinations.size(), limits::kMaxTotalDestinations,
                   "destinations in all") &&
           number(value, ranks.back());
  case Frame::Operand: {
    if (index == 1)
      return number(value, operand.index);
    if (index == 2)
      return number(value, operand.rank);
    std::optional<OperandKind> kind = operandKindOf(value.text);
    if (value.type != Scalar::Type::String || !kind)
      return wrongType(value, "\"input\", \"output\", \"scratch\" or \"connection\"");
    operand.kind = *kind;
    if (*kind == OperandKind::Connection)
      operand.rank = 0;
    return true;
  }
  case Frame::Requirement:
    return number(value, index == 0   ? requirement.rank
                         : index == 1 ? requirement.outputChunk
                                      : requirement.count);
  default:
    return number(value, tuple[index]);
  }
}

template <typename T> bool PlanAssembler::number(const Scalar &value, T &to) {
  using Limits = std::numeric_limits<T>;
  if (value.type == Scalar::Type::Unsigned && value.bits <= static_cast<uint64_t>(Limits::max())) {
    to = static_cast<T>(value.bits);
    return true;
  }
  auto negative = static_cast<int64_t>(value.bits);
  if (value.type == Scalar::Type::Negative && Limits::is_signed &&
      negative >= static_cast<int64_t>(Limits::min())) {
    to = static_cast<T>(negative);
    return true;
  }
  return wrongType(value, "an integer from " + std::to_string(Limits::min()) + " to " +
                              std::to_string(Limits::max()));
}

bool PlanAssembler::truth(const Scalar &value, bool &to) {
  to = value.bits != 0;
  return value.type == Scalar::Type::Bool || wrongType(value, "true or false");
}

bool PlanAssembler::text(const Scalar &value, std::string &to) {
  if (value.type != Scalar::Type::String)
    return wrongType(value, "a string");
  if (value.text.size() > limits::kMaxNameLength)
    return fail("the text has " + std::to_string(value.text.size()) + " bytes; at most " +
                std::to_string(limits::kMaxNameLength) + " are allowed");
  if (!isPlainText(value.text))
    return fail("the text holds control characters or is not UTF-8");
  to = value.text;
  return true;
}

bool PlanAssembler::wrongType(const Scalar &value, const std::string &expected) {
  std::string got;
  switch (value.type) {
  case Scalar::Type::Null:
    got = "null";
    break;
  case Scalar::Type::Bool:
    got = value.bits ? "true" : "false";
    break;
  case Scalar::Type::Unsigned:
    got = std::to_string(value.bits);
    break;
  case Scalar::Type::Negative:
    got = std::to_string(static_cast<int64_t>(value.bits));
    break;
  case Scalar::Type::Real:
    got = "a number that is not a 64-bit integer";
    break;
  case Scalar::Type::String:
    got = "'" + printable(value.text) + "'";
    break;
  }
  return fail("expected " + expected + ", got " + got);
}

bool PlanAssembler::hasRoom(size_t used, uint64_t limit, const char *what) {
  return used < limit || fail("more than " + std::to_string(limit) + " " + what);
}

bool PlanAssembler::fail(const std::string &what) {
  message = "at " + path() + ": " + what;
  return false;
}

std::string PlanAssembler::path() const {
  std::string path;
  for (const Level &level : levels) {
    const Shape &shape = shapeOf(level.frame);
    if (level.frame == Frame::Parameters && !parameter.empty())
      path += "." + parameter;
    else if (shape.isObject && level.field < shape.fields.size() && level.seen != 0)
      path += (path.empty() ? "" : ".") + std::string(shape.fields[level.field].name);
    else if (!shape.isObject && level.index > 0)
      path += "[" + std::to_string(level.index - 1) + "]";
  }
  return path.empty() ? "the top" : path;
}

} // namespace occl::plan

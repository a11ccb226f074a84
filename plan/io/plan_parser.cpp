#include "plan/io/plan_parser.h"

#include "support/suggestion.h"
#include "support/text_check.h"

#include <algorithm>
#include <array>

namespace occl::plan {

enum class PlanParser::Frame : uint8_t {
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
  Witnesses,
  Witness,
  Place,
  None, // holds neither object nor array
};

/// A member of an object: its name and either where its value goes or what object or array it
/// holds.
struct PlanParser::Field {
  constexpr Field(std::string_view name, Setter set, bool isRequired = true)
      : name(name), set(set), isRequired(isRequired) {}
  constexpr Field(std::string_view name, Frame child, bool isRequired = true)
      : name(name), child(child), isRequired(isRequired) {}

  std::string_view name;
  Setter set = nullptr;
  Frame child = Frame::None;
  bool isRequired;
};

/// What an object or array may hold. Objects have fields; arrays have an element kind; tuples are
/// arrays of minSize to maxSize elements of which number `elementAt`, if any, is an array.
struct PlanParser::Shape {
  bool isObject = false;
  std::span<const Field> fields = {};
  Frame element = Frame::None;
  uint32_t minSize = 0;
  uint32_t maxSize = ~0u;
  uint32_t elementAt = ~0u;

  bool isTuple() const { return maxSize != ~0u; }
  /// Whether element `index` of an array is an object or array itself.
  bool isElementAt(uint32_t index) const {
    return element != Frame::None && (!isTuple() || index == elementAt);
  }
};

/// The schema of a plan file.
struct PlanParser::Schema {
  static constexpr Field planFields[] = {{"schemaVersion", setSchemaVersion},
                                         {"name", setPlan<&Plan::name>},
                                         {"collective", setPlan<&Plan::collective>},
                                         {"parameters", Frame::Parameters},
                                         {"sourceHash", setPlan<&Plan::sourceHash>},
                                         {"numRanks", setNumRanks},
                                         {"partChunks", setPlan<&Plan::partChunks>},
                                         {"root", setPlan<&Plan::root>},
                                         {"outOfPlace", setPlan<&Plan::outOfPlace>},
                                         {"inPlace", setPlan<&Plan::inPlace>},
                                         {"uniformChunks", setPlan<&Plan::uniformChunks>},
                                         {"postcondition", setPlan<&Plan::hasPostcondition>, false},
                                         {"average", setPlan<&Plan::average>, false},
                                         {"protocol", setPlan<&Plan::protocol>},
                                         {"depth", setPlan<&Plan::depth>},
                                         {"minBytes", setPlan<&Plan::minBytes>},
                                         {"maxBytes", setPlan<&Plan::maxBytes>},
                                         {"files", Frame::Files},
                                         {"locations", Frame::Locations},
                                         {"connections", Frame::Connections},
                                         {"ranks", Frame::Ranks},
                                         {"requirements", Frame::Requirements},
                                         {"witnesses", Frame::Witnesses, false}};
  static constexpr Field rankFields[] = {{"inputChunks", setRank<&RankPlan::inputChunks>},
                                         {"outputChunks", setRank<&RankPlan::outputChunks>},
                                         {"scratchChunks", setRank<&RankPlan::scratchChunks>},
                                         {"inPlaceOffset", setRank<&RankPlan::inPlaceOffset>},
                                         {"threadBlocks", Frame::ThreadBlocks}};
  static constexpr Field instructionFields[] = {
      {"op", setInstruction<&Instruction::opcode>},
      {"src", Frame::Sources, false},
      {"dst", Frame::InstructionDestinations, false},
      {"count", setInstruction<&Instruction::count>, false},
      {"extent", setInstruction<&Instruction::extent>, false},
      {"value", setInstruction<&Instruction::value>, false},
      {"final", setInstruction<&Instruction::final>, false},
      {"after", Frame::After, false},
      {"at", setInstruction<&Instruction::location>, false}};
  static constexpr std::array<Shape, 25> shapes = {{
      // In the order of Frame.
      {true, planFields},
      {true},
      {},                                         // Files
      {false, {}, Frame::Location},               // Locations
      {false, {}, Frame::None, 3, 3},             // Location
      {false, {}, Frame::Connection},             // Connections
      {false, {}, Frame::Destinations, 3, 4, 2},  // Connection
      {},                                         // Destinations
      {false, {}, Frame::Rank},                   // Ranks
      {true, rankFields},                         // Rank
      {false, {}, Frame::ThreadBlock},            // ThreadBlocks
      {false, {}, Frame::Instruction},            // ThreadBlock
      {true, instructionFields},                  // Instruction
      {false, {}, Frame::Operand},                // Sources
      {false, {}, Frame::Operand},                // InstructionDestinations
      {false, {}, Frame::None, 2, 3},             // Operand
      {false, {}, Frame::Dependency},             // After
      {false, {}, Frame::None, 2, 2},             // Dependency
      {false, {}, Frame::Requirement},            // Requirements
      {false, {}, Frame::Contributions, 4, 4, 3}, // Requirement
      {false, {}, Frame::Contribution},           // Contributions
      {false, {}, Frame::None, 2, 2},             // Contribution
      {false, {}, Frame::Witness},                // Witnesses
      {false, {}, Frame::Place},                  // Witness
      {false, {}, Frame::None, 3, 3},             // Place
  }};
};

const PlanParser::Shape &PlanParser::shapeOf(Frame frame) {
  return Schema::shapes[static_cast<size_t>(frame)];
}

bool PlanParser::null() { return scalar({Scalar::Type::Null}); }
bool PlanParser::boolean(bool value) { return scalar({Scalar::Type::Bool, value}); }
bool PlanParser::unsignedInteger(uint64_t value) { return scalar({Scalar::Type::Unsigned, value}); }
bool PlanParser::negativeInteger(int64_t value) {
  return scalar({Scalar::Type::Negative, static_cast<uint64_t>(value)});
}
bool PlanParser::real() { return scalar({Scalar::Type::Real}); }
bool PlanParser::string(std::string_view value) { return scalar({Scalar::Type::String, 0, value}); }

bool PlanParser::key(std::string_view name) {
  Level &level = levels.back();
  // The program's parameters have names that no schema knows; all else has a field in the schema's
  // table.
  if (level.frame == Frame::Parameters) {
    if (!set({Scalar::Type::String, 0, name}, parameter))
      return false;
    auto isSame = [&](const auto &known) { return known.first == name; };
    if (std::any_of(plan.parameters.begin(), plan.parameters.end(), isSame))
      return fail("the parameter is given twice");
    return hasRoom(plan.parameters.size(), most.parameters, "parameters");
  }
  std::span<const Field> fields = shapeOf(level.frame).fields;
  for (uint32_t i = 0; i < fields.size(); ++i) {
    if (name != fields[i].name)
      continue;
    level.field = i;
    // One bit a field: what is given twice would silently overwrite what was checked before, and
    // what is missing is found when the object is closed.
    if (level.seen >> i & 1)
      return fail("the key is given twice");
    level.seen |= 1u << i;
    return true;
  }
  // An invalid field, so that path() does not name the one before.
  levels.back().field = static_cast<uint32_t>(fields.size());
  std::vector<std::string_view> known;
  for (const Field &field : fields)
    known.push_back(field.name);
  return fail("unknown key '" + support::printable(name) + "'" +
              support::didYouMean(support::suggest(name, known)));
}

bool PlanParser::open(bool isObject) {
  // Which object or array may stand here, by what the schema says about its parent. Nothing is
  // stored before that and the limits are checked, so that a file cannot make this allocate for
  // what no plan has.
  Frame child = Frame::Plan;
  if (isComplete)
    return fail("something follows the plan");
  if (!levels.empty()) {
    Level &parent = levels.back();
    const Shape &shape = shapeOf(parent.frame);
    if (shape.isObject)
      child = shape.fields.empty() ? Frame::None : shape.fields[parent.field].child;
    else if (shape.isElementAt(parent.index))
      child = shape.element;
    else
      child = Frame::None;
    // Of an array; an object's members have counted their keys.
    if (!shape.isObject && ++parent.index > shape.maxSize)
      return fail("expected at most " + std::to_string(shape.maxSize) + " elements");
  }
  if (child == Frame::None)
    return fail(isObject ? "expected no object here" : "expected no array here");
  if (shapeOf(child).isObject != isObject)
    return fail(isObject ? "expected an array, got an object" : "expected an object, got an array");
  levels.push_back({child});
  // Begins the state of what is collected before it goes into the plan as a whole: an instruction's
  // operands, a connection's ranks, and so on. Each limit is checked at the begin of the element
  // that would exceed it.
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
    return hasRoom(plan.instructions.size(), most.instructions, "instructions");
  case Frame::Operand:
    // The rank is the own one where the file does not say: it has a third element only for buffers
    // of other ranks.
    operand = {OperandKind::Input, plan.numRanks - 1, 0};
    return hasRoom(sources.size() + destinations.size(), most.operands, "operands") &&
           hasRoom(plan.operands.size() + sources.size() + destinations.size(), most.totalOperands,
                   "operands in all");
  case Frame::Connection:
    ranks.clear();
    isOrdered = isCounter = false;
    return hasRoom(plan.connections.size(), most.connections, "connections");
  case Frame::Requirement:
    contributions.clear();
    return hasRoom(plan.requirements.size(), most.requirements, "requirements");
  case Frame::Location:
    return hasRoom(plan.locations.size(), most.locations, "locations");
  case Frame::Witness:
    places.clear();
    return hasRoom(plan.witnesses.size(), most.witnesses, "witnesses");
  default:
    return true;
  }
}

bool PlanParser::close() {
  // Errors about the whole of it are reported at its own place, not at its last element's.
  const Level level = levels.back();
  levels.pop_back();
  const Shape &shape = shapeOf(level.frame);
  if (!shape.isObject && level.index < shape.minSize)
    return fail("expected " + std::to_string(shape.minSize) + " elements, got " +
                std::to_string(level.index));
  for (uint32_t i = 0; i < shape.fields.size(); ++i)
    if (shape.fields[i].isRequired && !(level.seen >> i & 1))
      return fail("the key '" + std::string(shape.fields[i].name) + "' is missing");
  isComplete = levels.empty();
  return finish(level);
}

bool PlanParser::finish(const Level &level) {
  // What was collected goes into the plan in one piece, when it is known to be complete: the flat
  // arrays of a Plan need all of an instruction's operands side by side.
  switch (level.frame) {
  case Frame::Instruction:
    return finishInstruction();
  case Frame::Operand:
  case Frame::Dependency:
  case Frame::Location:
  case Frame::Contribution:
  case Frame::Place:
    return finishTuple(level.frame);
  case Frame::Connection:
    finishConnection();
    return true;
  case Frame::Witness:
    builder.addWitness(places);
    return true;
  case Frame::Requirement:
    builder.addRequirement(requirement, contributions);
    return true;
  case Frame::Plan:
    // numRanks stands before the ranks, so the two can be compared only at the end; nothing was
    // allocated by the number.
    return declaredRanks == plan.ranks.size() ||
           fail("numRanks is " + std::to_string(declaredRanks) + ", but there are " +
                std::to_string(plan.ranks.size()) + " ranks");
  default:
    return true;
  }
}

bool PlanParser::finishInstruction() {
  builder.addInstruction(instruction, sources, destinations, dependencies);
  return true;
}

void PlanParser::finishConnection() {
  uint32_t connection = builder.addConnection(tuple[0], tuple[1], ranks);
  if (isCounter)
    builder.markCounter(connection);
  if (isOrdered)
    builder.markOrdered(connection);
}

bool PlanParser::finishTuple(Frame frame) {
  switch (frame) {
  case Frame::Operand: {
    // The level of the operand itself is gone, so the last one is the list that it stood in.
    bool isSource = levels.back().frame == Frame::Sources;
    (isSource ? sources : destinations).push_back(operand);
    return true;
  }
  case Frame::Dependency:
    dependencies.push_back({tuple[0], tuple[1]});
    // The limit is of those before this one: size() - 1 have been counted in.
    return hasRoom(dependencies.size() - 1, most.dependencies, "dependencies") &&
           hasRoom(plan.dependencies.size() + dependencies.size() - 1, most.totalDependencies,
                   "dependencies in all");
  case Frame::Location:
    plan.locations.push_back({tuple[0], tuple[1], tuple[2]});
    return true;
  case Frame::Place:
    places.push_back({tuple[0], tuple[1], tuple[2]});
    return hasRoom(plan.places.size() + places.size() - 1, most.totalPlaces, "places of witnesses");
  default:
    contributions.push_back({tuple[0], tuple[1]});
    return hasRoom(plan.contributions.size() + contributions.size() - 1, most.totalContributions,
                   "contributions");
  }
}

bool PlanParser::beginRank() {
  if (!hasRoom(plan.ranks.size(), most.ranks, "ranks"))
    return false;
  builder.beginRank({});
  return true;
}

bool PlanParser::beginThreadBlock() {
  if (!hasRoom(plan.ranks.back().numThreadBlocks, most.threadBlocks, "thread blocks") ||
      !hasRoom(plan.threadBlocks.size(), most.totalThreadBlocks, "thread blocks in all"))
    return false;
  builder.beginThreadBlock();
  return true;
}

bool PlanParser::scalar(const Scalar &value) {
  if (levels.empty())
    return fail("expected one object, the plan");
  Level &level = levels.back();
  const Shape &shape = shapeOf(level.frame);
  // Of an object the last key says which field this is, and the field has a setter if a scalar may
  // stand there at all.
  if (shape.isObject) {
    if (level.frame == Frame::Parameters)
      return parameterField(value);
    const Field &field = shape.fields[level.field];
    if (field.set)
      return field.set(*this, value);
    return wrongType(value, shapeOf(field.child).isObject ? "an object" : "an array");
  }
  // Counted before it is stored, so that an error of the value names its own place: path() takes
  // the index before the current one.
  uint32_t index = level.index++;
  if (index >= shape.maxSize)
    return fail("expected at most " + std::to_string(shape.maxSize) + " elements");
  if (shape.isElementAt(index))
    return wrongType(value, shapeOf(shape.element).isObject ? "an object" : "an array");
  return tupleElement(level.frame, index, value);
}

bool PlanParser::parameterField(const Scalar &value) {
  int64_t number = 0;
  if (!set(value, number))
    return false;
  plan.parameters.emplace_back(parameter, number);
  return true;
}

bool PlanParser::setSchemaVersion(PlanParser &self, const Scalar &value) {
  uint32_t &version = self.plan.schemaVersion;
  if (!self.set(value, version))
    // Checked when it is met and not at the end, as it comes first in a file: what follows may be
    // another schema.
    return false;
  if (version == kSchemaVersion)
    return true;
  return self.fail("this version reads schema version " + std::to_string(kSchemaVersion) +
                   ", not " + std::to_string(version) + ": compile the plan again");
}

/// The builder counts the ranks itself; finish() compares.
bool PlanParser::setNumRanks(PlanParser &self, const Scalar &value) {
  return self.set(value, self.declaredRanks);
}

bool PlanParser::tupleElement(Frame frame, uint32_t index, const Scalar &value) {
  switch (frame) {
  case Frame::Files:
    plan.files.emplace_back();
    return hasRoom(plan.files.size() - 1, most.files, "files") && set(value, plan.files.back());
  case Frame::Destinations:
    ranks.push_back(0);
    return hasRoom(ranks.size() - 1, most.ranks, "destinations") &&
           hasRoom(plan.destinations.size() + ranks.size() - 1, most.totalDestinations,
                   "destinations in all") &&
           set(value, ranks.back());
  case Frame::Operand: {
    // Kind, index, rank: in this order, since what the third one means depends on the first.
    if (index == 1)
      return set(value, operand.index);
    if (index == 2)
      return set(value, operand.rank);
    if (!set(value, operand.kind))
      return false;
    // Connections have no rank; what `open` assumed would be taken for the third element.
    if (operand.kind == OperandKind::Connection)
      operand.rank = 0;
    return true;
  }
  case Frame::Requirement:
    return set(value, index == 0   ? requirement.rank
                      : index == 1 ? requirement.outputChunk
                                   : requirement.count);
  case Frame::Connection:
    // The fourth element, if any, is a word; the third one is the array of destinations, which is
    // no scalar.
    if (index == 3)
      return setKind(value);
    return set(value, tuple[index]);
  default:
    return set(value, tuple[index]);
  }
}

bool PlanParser::hasRoom(size_t used, uint64_t limit, const char *what) {
  if (used < limit)
    return true;
  code = ReadCode::AboveLimit;
  return fail("more than " + std::to_string(limit) + " " + what);
}

bool PlanParser::fail(const std::string &what) {
  message = "at " + path() + ": " + what;
  return false;
}

std::string PlanParser::path() const {
  std::string path;
  for (const Level &level : levels) {
    const Shape &shape = shapeOf(level.frame);
    // Inside `parameters` the names are the file's own.
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

// Turns the events of a plan file (JSON or CBOR) into a Plan, checking the schema and every limit
// of plan/limits.h before it stores anything. It keeps no document: a stack of at most ten levels
// is all its state besides the plan.
//
// Each event function returns false once something is wrong; error() then says what and where (as a
// path such as ranks[3].threadBlocks[0][7].src[1]), and no further event may follow. Not thread
// safe.
#pragma once

#include "plan/builder.h"
#include "plan/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace occl::plan {

class PlanAssembler {
public:
  bool null();
  bool boolean(bool value);
  bool unsignedInteger(uint64_t value);
  /// `value` is negative.
  bool negativeInteger(int64_t value);
  bool real();
  bool string(std::string_view value);
  bool key(std::string_view name);
  bool startObject() { return open(true); }
  bool startArray() { return open(false); }
  bool endObject() { return close(); }
  bool endArray() { return close(); }

  /// Empty unless an event function returned false.
  const std::string &error() const { return message; }

  /// The plan, after the outermost object ended.
  Plan take() && { return std::move(builder).take(); }

private:
  /// The kinds of objects and arrays of the schema.
  enum class Frame : uint8_t;
  struct Level {
    Frame frame;
    uint32_t index = 0; // array: elements begun so far
    uint32_t field = 0; // object: the member being read, an index in the frame's fields
    uint32_t seen = 0;  // object: a bit for each field
  };
  struct Scalar;
  struct Field;
  struct Shape;

  static const Shape &shapeOf(Frame frame);
  bool open(bool isObject);
  bool close();
  bool finish(const Level &level);
  bool scalar(const Scalar &value);
  bool planField(uint32_t field, const Scalar &value);
  bool parameterField(const Scalar &value);
  bool rankField(uint32_t field, const Scalar &value);
  bool instructionField(uint32_t field, const Scalar &value);
  bool tupleElement(Frame frame, uint32_t index, const Scalar &value);
  bool beginRank();
  bool beginThreadBlock();
  bool finishInstruction();
  bool finishTuple(Frame frame);

  template <typename T> bool number(const Scalar &value, T &to);
  bool truth(const Scalar &value, bool &to);
  bool text(const Scalar &value, std::string &to);
  bool wrongType(const Scalar &value, const std::string &expected);
  bool hasRoom(size_t used, uint64_t limit, const char *what);
  bool fail(const std::string &what);
  std::string path() const;

  PlanBuilder builder;
  Plan &plan = builder.header();
  std::vector<Level> levels;
  bool isComplete = false;
  std::string message;

  // The element being read.
  uint32_t declaredRanks = 0;
  std::string parameter;
  uint32_t tuple[3] = {};
  Requirement requirement;
  Operand operand;
  Instruction instruction;
  std::vector<Operand> sources, destinations;
  std::vector<Dependency> dependencies;
  std::vector<uint32_t> ranks;
  std::vector<Contribution> contributions;
};

} // namespace occl::plan

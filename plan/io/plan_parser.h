// Turns the events of a plan file (JSON or CBOR) into a Plan, checking the schema and every limit
// of plan/model/limits.h before it stores anything. It keeps no document: a stack of at most ten
// levels is all its state besides the plan.
//
// Each event function returns false once something is wrong; error() then says what and where (as a
// path such as ranks[3].threadBlocks[0][7].src[1]), and no further event may follow. Not thread
// safe.
#pragma once

#include "plan/io/read_code.h"
#include "plan/model/builder.h"
#include "plan/model/limits.h"
#include "support/status.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace occl::plan {

class PlanParser {
public:
  explicit PlanParser(const Limits &limits = {}) : most(limits) {}

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
  /// What kind of mistake that is.
  ReadCode errorCode() const { return code; }

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
  /// A value that is neither object nor array.
  struct Scalar {
    enum class Type : uint8_t { Null, Bool, Unsigned, Negative, Real, String };
    Type type;
    uint64_t bits = 0; // Bool, Unsigned, Negative
    std::string_view text = {};
  };
  /// Puts a member's value where it belongs.
  using Setter = bool (*)(PlanParser &self, const Scalar &value);
  struct Field;
  struct Shape;
  struct Schema;

  static const Shape &shapeOf(Frame frame);
  bool open(bool isObject);
  bool close();
  bool finish(const Level &level);
  bool scalar(const Scalar &value);
  bool parameterField(const Scalar &value);
  bool tupleElement(Frame frame, uint32_t index, const Scalar &value);
  bool beginRank();
  bool beginThreadBlock();
  bool finishInstruction();
  void finishConnection();
  bool finishTuple(Frame frame);

  static bool setSchemaVersion(PlanParser &self, const Scalar &value);
  static bool setNumRanks(PlanParser &self, const Scalar &value);
  template <auto member> static bool setPlan(PlanParser &self, const Scalar &value) {
    return self.set(value, self.plan.*member);
  }
  template <auto member> static bool setRank(PlanParser &self, const Scalar &value) {
    return self.set(value, self.plan.ranks.back().*member);
  }
  template <auto member> static bool setInstruction(PlanParser &self, const Scalar &value) {
    return self.set(value, self.instruction.*member);
  }
  bool set(const Scalar &value, uint32_t &to);
  bool set(const Scalar &value, uint64_t &to);
  bool set(const Scalar &value, int32_t &to);
  bool set(const Scalar &value, int64_t &to);
  bool set(const Scalar &value, bool &to);
  bool set(const Scalar &value, std::string &to);
  bool set(const Scalar &value, Protocol &to);
  bool set(const Scalar &value, Opcode &to);
  bool set(const Scalar &value, OperandKind &to);
  bool setKind(const Scalar &value);
  template <typename T> bool setNumber(const Scalar &value, T &to);
  template <typename Enum>
  bool setEnum(const Scalar &value, Enum &to, std::optional<Enum> named, const char *expected);
  bool wrongType(const Scalar &value, const std::string &expected);
  bool hasRoom(size_t used, uint64_t limit, const char *what);
  bool fail(const std::string &what);
  std::string path() const;

  const Limits most;
  PlanBuilder builder;
  Plan &plan = builder.header();
  std::vector<Level> levels;
  bool isComplete = false;
  std::string message;
  ReadCode code = ReadCode::WrongContent;

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
  bool isOrdered = false, isCounter = false;
  std::vector<Contribution> contributions;
  std::vector<Place> places;
};

} // namespace occl::plan

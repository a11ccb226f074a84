// What a random program means, by executing it statement by statement: the reference that plans are
// compared with. It shares no code with the compiler or the verifier.
#pragma once

#include "test/random/expressions.h"

#include <bitset>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace occl::random {

enum class Buffer : uint8_t { Input, Output, Scratch };

struct Place {
  Buffer buffer = Buffer::Input;
  uint32_t rank = 0;
  uint32_t index = 0;

  Place at(uint32_t offset) const { return {buffer, rank, index + offset}; }
  bool operator==(const Place &) const = default;
};

/// Sizes, in chunks and equal on all ranks, and alias modes. In place, input chunk i is output
/// chunk i + offset.
struct Shape {
  uint32_t ranks = 2;
  uint32_t sizes[3] = {1, 1, 1}; // by Buffer
  uint32_t partChunks = 1;
  uint32_t offset = 0;
  bool outOfPlace = true;
  bool inPlace = false;
  /// No value may meet a place or a value of another extent, so that the plan must do without
  /// uniform chunks.
  bool keepsExtents = true;
};

struct Value {
  static constexpr uint32_t kNoReduction = ~0u;

  uint32_t expression = 0;
  std::bitset<256> contributions;    // rank * chunks of an input + chunk
  uint32_t extent = 0;               // which chunk of a part it is
  uint32_t reduction = kNoReduction; // the statement that computed it

  bool operator==(const Value &) const = default;
};

/// The memory of one alias mode.
class Memory {
public:
  Memory(const Shape &shape, bool inPlace);
  std::optional<Value> &operator[](Place place);
  /// The place that it lies at: in place, the input is a part of the output.
  Place address(Place place) const;

private:
  const Shape &shape;
  bool inPlace;
  std::vector<std::optional<Value>> cells[3];
};

/// An output that the program's collective asks for.
struct Required {
  uint32_t rank = 0;
  uint32_t chunk = 0;
  Value value;
};

/// Executes statements and writes them down. A statement is refused, without effect, unless it is
/// right and means the same in all the modes that the shape claims.
class Reference {
public:
  Reference(const Shape &shape, Expressions &expressions);

  bool copy(Place source, Place target, uint32_t count);
  bool reduce(std::span<const Place> sources, Place target, uint32_t count);
  /// Statements until end() stand in a block such as "parallelize(2)".
  void begin(const std::string &block);
  void end();

  const Shape &shape() const { return form; }
  /// The value at a place; nothing if there is none or it depends on the mode.
  std::optional<Value> at(Place place);
  bool isReadable(Place place, uint32_t count) { return read(place, count).has_value(); }
  /// Whether a value meets a place or a value of another extent.
  bool isUniform() const { return uniform; }
  uint32_t numStatements() const { return statements; }

  /// The outputs that a collective can ask for. What was reduced further is an intermediate result,
  /// which an average must not divide.
  std::vector<Required> required();
  /// The program as a .coll file, with `clauses` such as " instances 2" of its algorithm; empty if
  /// nothing can be asked for.
  std::string text(const std::string &clauses);

private:
  using Values = std::vector<Value>;

  std::optional<Values> read(Place place, uint32_t count);
  std::optional<Value> reduce(std::span<const Values> operands, uint32_t chunk);
  bool isAllowed(std::span<const Place> sources, Place target, uint32_t count) const;
  bool admitsExtents(std::span<const Values> operands, Place target);
  void write(Place target, const Values &values);
  std::string requirements();

  Shape form;
  Expressions &expressions;
  std::vector<Memory> memories;
  std::set<uint32_t> consumed; // reductions whose result another reduction reads
  /// Output chunks, by rank and index, that were written under that name: where they are also
  /// input, the language does not let them be read as such.
  std::set<std::pair<uint32_t, uint32_t>> overwritten;
  std::string body, indent = "  ";
  uint32_t statements = 0;
  bool uniform = false;
};

} // namespace occl::random
